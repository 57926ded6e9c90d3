//! Requests that nobody should send, for a while.

use crate::steps::root;
use anyhow::{Result, bail};
use clap::Args;
use std::process::Command;

#[derive(Args)]
pub(crate) struct FuzzArgs {
    /// How long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Where to begin; the same number makes the same requests.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keeps cases whose answers are of a new kind in the corpus, too, not only those that show a mistake.
    #[arg(long)]
    keep: bool,
}

/// Runs the fuzzer of the sandbox; what shows a mistake stays in its corpus.
pub(crate) fn run(args: &FuzzArgs) -> Result<()> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--locked", "--quiet", "--package", "portolan-sandbox", "--example", "fuzz", "--"]);
    command.args(["--seconds", &args.seconds.to_string(), "--seed", &args.seed.to_string()]);
    if args.keep {
        command.arg("--keep");
    }
    if !command.current_dir(root()).status()?.success() {
        bail!("there are mistakes; each is a file in crates/sandbox/tests/corpus that `cargo test` replays");
    }
    Ok(())
}
