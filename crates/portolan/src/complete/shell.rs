//! What a shell sends, what it gets back, and the script that connects the two.

use super::Candidate;
use super::quoting::{self, for_bash, for_powershell, kept};
use std::ffi::OsString;
use std::path::Path;

/// What asks for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    Powershell,
    /// kubectl, which passes them on to its own shell.
    Kubectl,
}

/// What a shell asks for.
pub(super) struct Asked {
    /// The words up to the cursor; the last one is being written.
    pub(super) words: Vec<String>,
    /// How the last word stands there, in bash.
    raw: String,
    /// How much of it bash does not expect again.
    kept: usize,
}

/// For kubectl: the candidates are all there is, files are none.
const NO_FILES: u8 = 4;

/// For kubectl: the word goes on behind the candidate.
const NO_SPACE: u8 = 2;

impl Shell {
    /// The shell of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bash" => Self::Bash,
            "zsh" => Self::Zsh,
            "fish" => Self::Fish,
            "powershell" => Self::Powershell,
            "kubectl" => Self::Kubectl,
            _ => return None,
        })
    }

    /// Reads what the shell asks for; nothing if it cannot be understood.
    pub(super) fn read(self, arguments: Vec<OsString>) -> Option<Asked> {
        let arguments: Option<Vec<String>> =
            arguments.into_iter().map(|argument| argument.into_string().ok()).collect();
        let mut words = arguments?;
        let mut asked = Asked { words: Vec::new(), raw: String::new(), kept: 0 };
        match self {
            // The line up to the cursor, and the characters at which bash takes words apart.
            Self::Bash => {
                let split = quoting::split(words.first()?);
                asked.kept = kept(&split.raw, words.get(1).map_or("", String::as_str));
                asked.raw = split.raw;
                words = split.words;
            }
            // An empty word is written so: some versions leave out what is empty.
            Self::Powershell => {
                words.last_mut().filter(|last| *last == "\"\"").into_iter().for_each(String::clear);
            }
            // kubectl sends what stands behind the name of the plugin.
            Self::Kubectl => words.insert(0, "portolan".to_owned()),
            Self::Zsh | Self::Fish => {}
        }
        asked.words = words;
        (asked.words.len() > 1).then_some(asked)
    }

    /// The answer for the shell.
    pub(super) fn answer(self, asked: &Asked, found: &[Candidate]) -> String {
        let line = |value: &str, help: &str| {
            if help.is_empty() { format!("{value}\n") } else { format!("{value}\t{help}\n") }
        };
        let each = |one: &Candidate| match self {
            Self::Bash => {
                let rest = one.value.get(asked.kept..).unwrap_or(&one.value);
                line(&for_bash(rest, &asked.raw), "")
            }
            Self::Powershell => line(&for_powershell(&one.value), &one.help),
            Self::Zsh | Self::Fish | Self::Kubectl => line(&one.value, &one.help),
        };
        let mut answer: String = found.iter().map(each).collect();
        if self == Self::Kubectl {
            let goes_on = |one: &Candidate| one.value.ends_with(['=', '/']);
            let open = !found.is_empty() && found.iter().all(goes_on);
            answer.push_str(&format!(":{}\n", if open { NO_FILES | NO_SPACE } else { NO_FILES }));
        }
        answer
    }

    /// The script that makes the shell ask this program, which is called so.
    pub(crate) fn script(self, program: &str) -> String {
        let (text, program) = match self {
            Self::Bash => (include_str!("scripts/portolan.bash"), quoting::posix(program)),
            Self::Zsh => (include_str!("scripts/portolan.zsh"), quoting::posix(program)),
            Self::Fish => (include_str!("scripts/portolan.fish"), quoting::fish(program)),
            Self::Powershell => (include_str!("scripts/portolan.ps1"), quoting::powershell(program)),
            Self::Kubectl => (include_str!("scripts/kubectl_complete-portolan"), quoting::posix(program)),
        };
        text.replace("@PROGRAM@", &program)
    }
}

/// How a shell can call this program later: by its name if it was found by that, otherwise by its whole path.
pub(crate) fn program() -> String {
    let first = std::env::args_os().next().unwrap_or_else(|| OsString::from("portolan"));
    let path = Path::new(&first);
    let is_path = path.components().count() > 1;
    let path =
        if is_path { std::path::absolute(path).unwrap_or_else(|_| path.to_owned()) } else { path.to_owned() };
    path.to_string_lossy().into_owned()
}
