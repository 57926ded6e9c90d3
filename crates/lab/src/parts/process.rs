//! Running the programs that make parts.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::PartsError;

/// How much of a failed program's output is shown.
const SHOWN_LINES: usize = 40;

/// Runs a program to its end and gives what it printed on its standard output.
pub(super) fn run(part: &str, command: &mut Command, help: &str) -> Result<String, PartsError> {
    let output = command.output().map_err(|source| PartsError::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let lines: Vec<&str> = printed.lines().collect();
    Err(PartsError::Command {
        part: part.to_owned(),
        command: line(command),
        status: output.status.to_string(),
        output: lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n"),
        help: help.to_owned(),
    })
}

/// Looks for a program as a shell would, and also where those for root lie.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let executable = |path: &Path| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|directory| directory.join(program))
        .find(|candidate| executable(candidate))
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let quoted = words.map(|word| {
        let word = word.to_string_lossy();
        if word.contains([' ', '\'']) { format!("'{word}'") } else { word.into_owned() }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_command_its_output_and_the_help() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 3"]);
        let error = run("etcd", &mut command, "Try again.").unwrap_err().to_string();
        for piece in ["etcd: `sh -c 'echo out", "exit status: 3", "| out", "| err", "\nTry again."] {
            assert!(error.contains(piece), "{piece} is not in {error}");
        }
    }

    #[test]
    fn output_is_given_and_an_absent_program_named() {
        assert_eq!(run("x", Command::new("echo").arg("hello"), "").unwrap(), "hello\n");
        let error = run("x", &mut Command::new("no-such-program"), "").unwrap_err().to_string();
        assert!(error.contains("no-such-program"), "{error}");
        assert!(find("sh").is_some());
        assert!(find("no-such-program").is_none());
    }
}
