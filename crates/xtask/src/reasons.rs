//! Why tests failed, found again in all that they printed.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How many lines are said again in all, and of one failure: the end of a long log is all that many people see.
const LINES: usize = 24;
const LINES_OF_ONE: usize = 8;
/// How much of a line is said again.
const WIDTH: usize = 1500;

/// How long to wait for the rest of the output when the program has ended: something it started may hold it open.
const REST: Duration = Duration::from_secs(5);

/// Runs tests, showing what they print; a failure carries the reasons that were printed.
///
/// Backtraces of a test's error run through the test harness and the runtime, and bury what went wrong. Properties are
/// tried with the same inputs everywhere, unless others are asked for: what passed here passes on the next machine.
pub(crate) fn run_tests(command: &mut Command, line: &str) -> Result<()> {
    let (reader, writer) = std::io::pipe()?;
    command.env("RUST_BACKTRACE", "0").env("RUST_LIB_BACKTRACE", "0");
    if std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        command.env("PROPTEST_RNG_SEED", "1");
    }
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn().with_context(|| format!("cannot run {line}"))?;
    // The command holds the writing end too: as long as it does, the output has no end.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let (sender, printed) = mpsc::channel();
    let copy = thread::spawn(move || copy(BufReader::new(reader), &sender));
    let status = child.wait().with_context(|| format!("cannot wait for {line}"))?;
    let mut lines: Vec<String> = Vec::new();
    while let Ok(printed) = printed.recv_timeout(REST) {
        lines.push(printed);
    }
    if copy.is_finished() {
        let copied = copy.join().unwrap_or_else(|_| bail!("the copying of the output panicked"));
        copied.with_context(|| format!("cannot show what {line} prints"))?;
    }
    if !status.success() {
        let why = reasons(&lines);
        bail!("{line}: {status}{}{}", if why.is_empty() { "" } else { "\n" }, why.join("\n"));
    }
    Ok(())
}

fn copy(mut reader: impl BufRead, kept: &mpsc::Sender<String>) -> Result<()> {
    let mut stdout = std::io::stdout();
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes)? > 0 {
        stdout.write_all(&bytes)?;
        stdout.flush()?;
        // Nobody listens any more after the end: then it is only shown.
        let _ = kept.send(String::from_utf8_lossy(&bytes).trim_end().to_owned());
        bytes.clear();
    }
    Ok(())
}

/// The messages of errors, then the names of the tests that failed.
fn reasons(lines: &[String]) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    let mut left = 0;
    for line in lines {
        if begins(line) {
            left = LINES_OF_ONE;
        } else if ends(line) {
            left = 0;
        }
        if left > 0 {
            left -= 1;
            told.push(line.chars().take(WIDTH).collect());
        }
        names.extend(failed(line));
    }
    names.sort_unstable();
    names.dedup();
    // The last ones: what was printed first is often only said again, with more words, at the end.
    let room = LINES.saturating_sub(names.len());
    let mut kept = told.split_off(told.len().saturating_sub(room));
    kept.extend(names.into_iter().map(|name| format!("failed: {name}")));
    kept
}

/// Whether a line begins a message about a failure.
fn begins(line: &str) -> bool {
    line.contains("Error: ")
        || line.contains(" panicked at ")
        || line.starts_with("error: ")
        || line.starts_with("error[")
}

/// Whether a line is no part of the message before it any more.
fn ends(line: &str) -> bool {
    line.is_empty()
        || ["test ", "ok", "FAILED", "note: run with", "stack backtrace", "---- ", "failures:"]
            .iter()
            .any(|start| line.starts_with(start))
}

/// The test of which a line says that it failed, in a list of them or after its own output.
fn failed(line: &str) -> Option<&str> {
    let listed = || line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
    let at_once = || line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"));
    let indented = || line.strip_prefix("    ").filter(|name| name.contains("::") && is_path(name));
    listed().or_else(at_once).or_else(indented)
}

fn is_path(name: &str) -> bool {
    name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_' || each == ':')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        reasons(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn the_error_of_a_test_that_prints_at_once_is_found_again() {
        let told = of("test policies::each ... --- c1: pods\nshop web-1 Running\n\
                       Error: waited 300.0 s in vain until c2 has pods; seen last: none\n\nCaused by:\n    no\nFAILED\n\
                       test services::follow ... ok\n\nfailures:\n\nfailures:\n    policies::each\n\n\
                       test result: FAILED. 7 passed; 1 failed\n\nerror: test failed, to rerun pass `--test lab`");
        assert!(told[0].starts_with("Error: waited 300.0 s"), "{told:?}");
        assert_eq!(told.last().map(String::as_str), Some("failed: policies::each"));
        assert!(!told.iter().any(|line| line.contains("web-1")), "{told:?}");
    }

    #[test]
    fn the_panic_of_a_test_whose_output_is_kept_is_found_again() {
        let told = of("test drift::back ... FAILED\n\nfailures:\n\n---- drift::back stdout ----\n\n\
                       thread 'drift::back' panicked at tests/drift.rs:3:5:\nassertion `left == right` failed\n  left: 1\n \
                       right: 2\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n");
        assert_eq!(told.len(), 5, "{told:?}");
        assert_eq!((told[2].as_str(), told[4].as_str()), ("  left: 1", "failed: drift::back"));
    }

    #[test]
    fn there_is_never_more_than_a_screen_of_it() {
        let told = of(&"error[E0308]: mismatched types\n  --> src/lib.rs:1:1\n\n".repeat(100));
        assert_eq!(told.len(), LINES);
    }
}
