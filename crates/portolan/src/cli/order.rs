//! Flags before the command, as kubectl takes them.

use std::ffi::OsString;

/// The flags that may stand before the command; each takes a value.
pub(crate) const MOVED: [&str; 4] = ["-n", "--namespace", "--context", "--kubeconfig"];

/// Puts such flags behind the command, where its own arguments are: `portolan -n shop get mcd`.
pub(crate) fn as_kubectl_does(arguments: Vec<OsString>) -> Vec<OsString> {
    Ordered::new(arguments).joined()
}

/// A command line in its parts.
pub(crate) struct Ordered {
    /// The program, and the flags before the command that stay there.
    pub(crate) program: Vec<OsString>,
    /// The flags before the command that belong behind it, with their values.
    pub(crate) moved: Vec<OsString>,
    /// The command, and what follows it; nothing if there is no command.
    pub(crate) rest: Vec<OsString>,
}

impl Ordered {
    pub(crate) fn new(arguments: Vec<OsString>) -> Self {
        let mut words = arguments.into_iter();
        let mut ordered =
            Self { program: words.next().into_iter().collect(), moved: Vec::new(), rest: Vec::new() };
        while let Some(argument) = words.next() {
            let text = argument.to_string_lossy();
            let named = |flag: &&&str| {
                text.strip_prefix(**flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            };
            match MOVED.iter().find(named) {
                Some(flag) if text == **flag => {
                    ordered.moved.push(argument);
                    ordered.moved.extend(words.next());
                }
                Some(_) => ordered.moved.push(argument),
                None if text.starts_with('-') => ordered.program.push(argument),
                None => {
                    ordered.rest.push(argument);
                    ordered.rest.extend(words.by_ref());
                }
            }
        }
        ordered
    }

    fn joined(self) -> Vec<OsString> {
        let Self { program: mut words, moved, rest } = self;
        let mut rest = rest.into_iter();
        words.extend(rest.next());
        words.extend(moved);
        words.extend(rest);
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(line: &str) -> String {
        let words = as_kubectl_does(line.split(' ').map(OsString::from).collect());
        words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn flags_before_the_command_go_behind_it() {
        assert_eq!(ordered("portolan -n shop get mcd"), "portolan get -n shop mcd");
        assert_eq!(ordered("portolan -v --context=a -n b status"), "portolan -v status --context=a -n b");
        assert_eq!(ordered("portolan get mcd -n shop"), "portolan get mcd -n shop");
        assert_eq!(ordered("portolan --namespaces get"), "portolan --namespaces get");
    }
}
