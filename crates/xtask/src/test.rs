//! All checks and all tests, from the cheapest up.

use crate::steps::Steps;
use crate::{deny, docs, generate};
use anyhow::{Result, bail};
use clap::Args;
use portolan_lab::parts::{DEFAULT_KUBERNETES, Parts};
use std::process::Command;

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Leaves out the lab (real Kubernetes, needs root). CI never does.
    #[arg(long)]
    no_lab: bool,
}

pub(crate) fn run(args: &TestArgs) -> Result<()> {
    let ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    if args.no_lab && ci {
        bail!("CI may not leave out the lab");
    }
    let with_lab = !args.no_lab && is_root()?;
    let mut steps = Steps::default();
    steps.cargo("format", &["fmt", "--all", "--check"])?;
    steps.cargo("lints", &["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    steps.step("dependencies", deny::check)?;
    if with_lab {
        // Before the other tests: some of them use the lab's kubectl on the sandbox.
        steps.step("parts of the lab", || {
            Parts::ensure(DEFAULT_KUBERNETES, &mut |step| println!("{step}"))?;
            Ok(())
        })?;
    }
    let on_the_lab = ["--exclude", "portolan-lab", "--exclude", "portolan-tests"];
    steps.cargo("unit tests", &[&["test", "--quiet", "--workspace"], &on_the_lab[..]].concat())?;
    steps.cargo("sandbox tests", &["test", "--package", "portolan-tests", "--lib", "--test", "sandbox"])?;
    steps.step("generated files", || generate::run(&generate::GenerateArgs::checking()))?;
    steps.step("documentation", docs::run)?;
    if !with_lab {
        println!(
            "\n!!! SKIPPED: the lab tests (real Kubernetes) were not run: they need root, without --no-lab"
        );
        if ci {
            bail!("CI may not skip the lab: run it as root");
        }
    } else {
        lab(&mut steps)?;
    }
    steps.summary();
    Ok(())
}

/// Tests on real Kubernetes: the lab itself, then Portolan on it.
fn lab(steps: &mut Steps) -> Result<()> {
    let one_by_one = ["--", "--test-threads=1", "--nocapture"];
    steps.cargo("the lab", &[&["test", "--package", "portolan-lab"], &one_by_one[..]].concat())?;
    let portolan = ["test", "--package", "portolan-tests", "--test", "lab"];
    steps.cargo("Portolan on the lab", &[&portolan[..], &one_by_one[..]].concat())
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim() == "0")
}
