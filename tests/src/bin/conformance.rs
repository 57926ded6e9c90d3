//! Holds the sandbox against answers of a real API server that a run on the lab has kept.

use anyhow::{Context, Result, bail};
use portolan_tests::conformance::{compare, divergences, run_on_sandbox, script};

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let Some(file) = arguments.next() else {
        bail!(
            "usage: conformance FILE [--all]; the file is one that PORTOLAN_KEEP_ANSWERS=FILE named in a run on the lab; \
             with --all, known differences are shown, too"
        );
    };
    let all = arguments.any(|argument| argument == "--all");
    let listed = if all { Vec::new() } else { divergences()? };
    let text = std::fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let real = serde_json::from_slice(&text).context("these are no answers")?;
    let verdict = compare(&real, &run_on_sandbox(&script()).await?, &listed);
    print!("{verdict}");
    Ok(())
}
