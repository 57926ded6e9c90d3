//! Running the host's tools, with errors that say what was run and what it answered.

use std::process::{Command, Output};

use anyhow::{Context, Result, bail};

/// Runs `command` to its end and returns what it printed; a failure carries its standard error.
pub(crate) async fn run(command: Command) -> Result<String> {
    run_shown(&describe(&command), command).await
}

/// [`run`] for a command that is known by another name to whoever reads the error.
pub(crate) async fn run_shown(shown: &str, command: Command) -> Result<String> {
    let mut command = tokio::process::Command::from(command);
    command.stdin(std::process::Stdio::null()).kill_on_drop(true);
    finish(shown, command.output().await)
}

/// [`run`] with `input` on standard input.
pub(crate) async fn run_with_input(mut command: Command, input: &str) -> Result<String> {
    use tokio::io::AsyncWriteExt as _;
    let shown = describe(&command);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = tokio::process::Command::from(command)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot run `{shown}`"))?;
    let stdin = child.stdin.take();
    let feed = async {
        if let Some(mut stdin) = stdin {
            // A command that fails early closes its input; its own error says more than EPIPE.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
    };
    let ((), output) = tokio::join!(feed, child.wait_with_output());
    finish(&shown, output).with_context(|| format!("its input was:\n{input}"))
}

/// [`run`] for places that cannot wait asynchronously, such as `Drop`.
pub(crate) fn run_blocking(mut command: Command) -> Result<String> {
    let shown = describe(&command);
    finish(&shown, command.stdin(std::process::Stdio::null()).output())
}

fn finish(shown: &str, output: std::io::Result<Output>) -> Result<String> {
    let output = output.with_context(|| format!("cannot run `{shown}`"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{shown}` failed ({}): {}", output.status, said.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn describe(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn failure_names_command_and_its_words() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such thing >&2; exit 3"]);
        let error = format!("{:#}", run(command).await.unwrap_err());
        assert!(error.contains("no such thing") && error.contains("exit status: 3"), "{error}");
    }

    #[tokio::test]
    async fn input_reaches_the_command() {
        assert_eq!(run_with_input(Command::new("cat"), "hello").await.unwrap(), "hello");
    }
}
