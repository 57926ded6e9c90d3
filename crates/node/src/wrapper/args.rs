//! The command line of runc, as far as it matters here.

use std::ffi::{OsStr, OsString};

/// A call of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The options before the command, as they came.
    pub global: Vec<OsString>,
    /// The file into which errors are written.
    pub log: Option<OsString>,
    /// The command.
    pub command: Command,
}

/// What the runtime is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Make a container that is started later.
    Create(Create),
    /// Make a container and start it at once.
    Run(Create),
    /// Start a container that was made.
    Start {
        /// Its ID.
        id: OsString,
    },
    /// Remove what is left of a container.
    Delete {
        /// Its ID.
        id: OsString,
    },
    /// Anything else.
    Other,
}

/// The options of `create` and `run`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Create {
    /// The folder of the bundle; the present one if it is not given.
    pub bundle: Option<OsString>,
    /// The file into which the number of the first process is written.
    pub pid_file: Option<OsString>,
    /// The socket that takes the terminal.
    pub console_socket: Option<OsString>,
    /// Whether the root is changed without `pivot_root`.
    pub no_pivot: bool,
    /// Options that a restore does not have.
    pub others: Vec<String>,
    /// The ID of the container.
    pub id: OsString,
}

/// Why a command line is not understood, where it matters that it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgsError {
    /// It may be a call that makes a container, and it is not certain.
    #[error(
        "option {option:?} before a command that makes a container is not known to this portolan-runc: update it"
    )]
    UnknownOption {
        /// The option.
        option: String,
    },
    /// A value is missing.
    #[error("option {option:?} has no value")]
    NoValue {
        /// The option.
        option: String,
    },
    /// There is no container.
    #[error("the command {command:?} names no container")]
    NoContainer {
        /// The command.
        command: String,
    },
}

const GLOBAL_VALUES: [&str; 5] = ["root", "log", "log-format", "criu", "rootless"];
const GLOBAL_FLAGS: [&str; 3] = ["debug", "systemd-cgroup", "help"];
const CREATE_VALUES: [&str; 5] = ["bundle", "pid-file", "console-socket", "preserve-fds", "pidfd-socket"];
const CREATE_FLAGS: [&str; 5] = ["no-pivot", "no-new-keyring", "detach", "keep", "no-subreaper"];

/// An option with its value, and how many words it took.
struct Flag {
    name: String,
    value: Option<OsString>,
}

/// Splits words into options and the rest, which begins with the first word that is none.
fn flags<'a>(
    mut words: &'a [OsString],
    with_value: &[&str],
    without: &[&str],
) -> Result<(Vec<Flag>, &'a [OsString]), ArgsError> {
    let mut found = Vec::new();
    while let Some((word, rest)) = words.split_first() {
        let Some(text) = word.to_str().filter(|text| text.len() > 1 && text.starts_with('-')) else { break };
        if text == "--" {
            words = rest;
            break;
        }
        let text = text.strip_prefix("--").or_else(|| text.strip_prefix('-')).unwrap_or(text);
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        // The one short name that a shim may use.
        let name = if name == "b" { "bundle" } else { name };
        words = rest;
        let value = match value {
            None if with_value.contains(&name) => {
                let Some((value, rest)) = words.split_first() else {
                    return Err(ArgsError::NoValue { option: name.to_owned() });
                };
                words = rest;
                Some(value.clone())
            }
            // Whether the next word is its value is not known, so nothing after it is.
            None if !without.contains(&name) => {
                return Err(ArgsError::UnknownOption { option: name.chars().take(64).collect() });
            }
            value => value,
        };
        found.push(Flag { name: name.to_owned(), value });
    }
    Ok((found, words))
}

impl Invocation {
    /// Reads the words after the name of the program.
    ///
    /// # Errors
    /// They may make a container, and are not understood.
    pub fn parse(words: &[OsString]) -> Result<Self, ArgsError> {
        let makes = |words: &[OsString]| words.iter().any(|word| word == "create" || word == "run");
        let other = || Self { global: words.to_vec(), log: None, command: Command::Other };
        let (global, rest) = match flags(words, &GLOBAL_VALUES, &GLOBAL_FLAGS) {
            Ok(split) => split,
            Err(error) if makes(words) => return Err(error),
            Err(_) => return Ok(other()),
        };
        let log = value(&global, "log");
        let before = words.len() - rest.len();
        let global = words[..before].to_vec();
        let Some((command, words)) = rest.split_first() else { return Ok(other()) };
        let command = match command.to_str() {
            Some(name @ ("create" | "run")) => {
                let create = create(name, words)?;
                if name == "run" { Command::Run(create) } else { Command::Create(create) }
            }
            Some("start") => match words {
                [id] => Command::Start { id: id.clone() },
                _ => Command::Other,
            },
            Some("delete") => match flags(words, &[], &["force", "f"]) {
                Ok((_, [id])) => Command::Delete { id: id.clone() },
                _ => Command::Other,
            },
            _ => Command::Other,
        };
        Ok(Self { global, log, command })
    }

    /// The words of a call of runc that restores instead.
    #[must_use]
    pub fn restore(&self, create: &Create, images: &OsStr, work: &OsStr) -> Vec<OsString> {
        let mut words = self.global.clone();
        words.extend(["restore", "--detach", "--no-subreaper"].map(OsString::from));
        let mut option = |name: &str, value: &OsStr| words.extend([name.into(), value.to_owned()]);
        for (name, value) in [
            ("--bundle", &create.bundle),
            ("--pid-file", &create.pid_file),
            ("--console-socket", &create.console_socket),
        ] {
            if let Some(value) = value {
                option(name, value);
            }
        }
        option("--image-path", images);
        option("--work-path", work);
        if create.no_pivot {
            words.push("--no-pivot".into());
        }
        words.push(create.id.clone());
        words
    }
}

fn value(flags: &[Flag], name: &str) -> Option<OsString> {
    flags.iter().rev().find(|flag| flag.name == name).and_then(|flag| flag.value.clone())
}

fn create(command: &str, words: &[OsString]) -> Result<Create, ArgsError> {
    let (flags, rest) = flags(words, &CREATE_VALUES, &CREATE_FLAGS)?;
    let [id] = rest else { return Err(ArgsError::NoContainer { command: command.to_owned() }) };
    let known = ["bundle", "pid-file", "console-socket", "no-pivot", "no-new-keyring"];
    let none = |flag: &Flag| {
        // Nothing is preserved, so nothing is lost.
        flag.name == "preserve-fds" && flag.value.as_deref() == Some(OsStr::new("0"))
    };
    let others = flags.iter().filter(|flag| !known.contains(&flag.name.as_str()) && !none(flag));
    Ok(Create {
        bundle: value(&flags, "bundle"),
        pid_file: value(&flags, "pid-file"),
        console_socket: value(&flags, "console-socket"),
        no_pivot: flags.iter().any(|flag| flag.name == "no-pivot"),
        others: others.map(|flag| flag.name.clone()).collect(),
        id: id.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn parse(text: &str) -> Result<Invocation, ArgsError> {
        Invocation::parse(&words(text))
    }

    const GLOBAL: &str = "--root /run/containerd/runc/k8s.io --log B/log.json --log-format json";

    #[test]
    fn what_the_shim_calls_becomes_a_restore() {
        let call = format!("{GLOBAL} create --bundle B --pid-file B/init.pid --console-socket S abc");
        let invocation = parse(&call).unwrap();
        assert_eq!(invocation.log.as_deref(), Some(OsStr::new("B/log.json")));
        let Command::Create(create) = &invocation.command else { unreachable!("{invocation:?}") };
        assert_eq!(create.id, "abc");
        let restore = invocation.restore(create, OsStr::new("D/used"), OsStr::new("D"));
        let expected = format!(
            "{GLOBAL} restore --detach --no-subreaper --bundle B --pid-file B/init.pid --console-socket S \
             --image-path D/used --work-path D abc"
        );
        assert_eq!(restore, words(&expected));
    }

    #[test]
    fn commands_are_told_apart() {
        let id = || OsString::from("abc");
        for (call, command) in [
            ("--debug start abc", Command::Start { id: id() }),
            ("--systemd-cgroup delete --force abc", Command::Delete { id: id() }),
            ("delete abc", Command::Delete { id: id() }),
            ("-root=/x start abc", Command::Start { id: id() }),
            ("--root start create abc", Command::Create(Create { id: id(), ..Create::default() })),
            (
                "create -b B --no-pivot -- abc",
                Command::Create(Create {
                    bundle: Some("B".into()),
                    no_pivot: true,
                    id: id(),
                    ..Create::default()
                }),
            ),
            ("create --preserve-fds 0 abc", Command::Create(Create { id: id(), ..Create::default() })),
            (
                "create --preserve-fds=3 abc",
                Command::Create(Create {
                    others: vec!["preserve-fds".to_owned()],
                    id: id(),
                    ..Create::default()
                }),
            ),
            (
                "run --detach abc",
                Command::Run(Create { others: vec!["detach".to_owned()], id: id(), ..Create::default() }),
            ),
            ("state abc", Command::Other),
            ("exec --process P --detach abc", Command::Other),
            ("kill --all abc 9", Command::Other),
            ("--version", Command::Other),
            ("", Command::Other),
            ("start", Command::Other),
        ] {
            let parsed = parse(call).map(|invocation| invocation.command);
            assert_eq!(parsed, Ok(command), "{call}");
        }
    }

    #[test]
    fn a_call_that_may_make_a_container_is_understood_or_refused() {
        for call in ["--new-option create abc", "--new-option x create abc", "create --new-option abc"] {
            assert!(matches!(parse(call), Err(ArgsError::UnknownOption { .. })), "{call}");
        }
        assert!(matches!(parse("create --bundle"), Err(ArgsError::NoValue { .. })));
        for call in ["create", "create a b", "run --bundle B"] {
            assert!(matches!(parse(call), Err(ArgsError::NoContainer { .. })), "{call}");
        }
        assert_eq!(parse("--new-option state abc").unwrap().command, Command::Other);
    }
}
