//! Running programs one after the other, each announced and timed.

use crate::reasons::run_tests;
use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map(PathBuf::from).unwrap_or(here)
}

/// Where things that outlive a checkout are kept.
pub(crate) fn cache() -> Result<PathBuf> {
    let base = match std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => {
            PathBuf::from(std::env::var_os("HOME").context("HOME is not set: set it, or XDG_CACHE_HOME")?)
                .join(".cache")
        }
    };
    Ok(base.join("portolan"))
}

/// A run of several steps, with the time that each took.
pub(crate) struct Steps {
    done: Vec<(String, Duration)>,
    /// What failed while the other steps went on.
    failed: Vec<String>,
    keep_going: bool,
}

impl Steps {
    /// With `keep_going` a failure does not keep the steps after it from being done: `end` tells it.
    pub(crate) fn new(keep_going: bool) -> Self {
        Self { done: Vec::new(), failed: Vec::new(), keep_going }
    }

    /// Does one step; a failure names it.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
        println!("\n=== {name}");
        let start = Instant::now();
        let result = work();
        self.done.push((name.to_owned(), start.elapsed()));
        let result =
            result.with_context(|| format!("{name} failed after {:.1} s", start.elapsed().as_secs_f64()));
        match result {
            Err(error) if self.keep_going => {
                let error = format!("{error:#}");
                println!("error: {error}");
                self.failed.push(error);
                Ok(())
            }
            Err(error) => {
                self.summary();
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }

    /// Prints the time of each step; an error tells of all that failed.
    pub(crate) fn end(self) -> Result<()> {
        self.summary();
        if !self.failed.is_empty() {
            bail!("{}", self.failed.join("\n"));
        }
        Ok(())
    }

    /// Runs `cargo` with these arguments as a step.
    pub(crate) fn cargo(&mut self, name: &str, arguments: &[impl AsRef<OsStr>]) -> Result<()> {
        self.step(name, || run(Command::new(env!("CARGO")).args(arguments)))
    }

    /// Runs tests by `cargo` with these arguments as a step; a failure says last why they failed.
    pub(crate) fn tests(&mut self, name: &str, arguments: &[impl AsRef<OsStr>]) -> Result<()> {
        self.step(name, || {
            let mut command = Command::new(env!("CARGO"));
            command.args(arguments).current_dir(root());
            let line = announce(&command);
            run_tests(&mut command, &line)
        })
    }

    fn summary(&self) {
        println!("\n=== time");
        for (name, time) in &self.done {
            println!("{:>8.1} s  {name}", time.as_secs_f64());
        }
        let total: Duration = self.done.iter().map(|(_, time)| *time).sum();
        println!("{:>8.1} s  in all", total.as_secs_f64());
    }
}

/// Builds a program of the workspace; answers its path. All packages are selected, so that dependencies have the same features,
/// and so the same builds, whichever program it is.
pub(crate) fn build(program: &str, release: bool) -> Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "--workspace", "--bin", program]);
    if release {
        cargo.arg("--release");
    }
    run(&mut cargo)?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join(if release { "release" } else { "debug" }).join(program))
}

/// Runs a program in the workspace's root, showing the command and its output.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = announce(command);
    let status = command.current_dir(root()).status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line}: {status}");
    }
    Ok(())
}

/// Shows a command; answers it as text.
fn announce(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    println!("$ {line}");
    line
}
