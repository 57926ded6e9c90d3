//! All checks and all tests, from the cheapest up.

use crate::steps::{Steps, root};
use crate::{circles, deny, docs, faults, generate, lab, platforms};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::Value;
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
    // CI tells all that is wrong at once; a developer hears of the first.
    let mut steps = Steps::new(ci);
    steps.cargo("format", &["fmt", "--all", "--check"])?;
    steps.step("circles", circles::run)?;
    steps.cargo(
        "lints",
        &["clippy", "--locked", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"],
    )?;
    steps.step("other platforms", || platforms::run(&platforms::PlatformsArgs::in_test(ci)))?;
    steps.step("dependencies", deny::check)?;
    steps.step("advisories", deny::advisories)?;
    if with_lab {
        // Before the other tests: some of them use the lab's kubectl on the sandbox.
        steps.step("parts of the lab", lab::ensure_all)?;
    }
    let (on_the_lab, others): (Vec<String>, Vec<String>) =
        test_targets()?.into_iter().partition(|target| target.starts_with("lab"));
    steps.tests(
        "unit tests",
        &selecting(&["--quiet", "--lib", "--bins"], &others, |name| name != "sandbox"),
    )?;
    steps.tests("sandbox tests", &selecting(&[], &others, |name| name == "sandbox"))?;
    steps.step("seeds", || faults::run(&faults::FaultsArgs::in_ci()))?;
    steps.step("seeds of tenancies", || faults::run(&faults::FaultsArgs::tenancies_in_ci()))?;
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
        on_real_kubernetes(&mut steps, &on_the_lab)?;
    }
    steps.end()
}

/// Tests on real Kubernetes: the lab itself, then Portolan on it.
fn on_real_kubernetes(steps: &mut Steps, targets: &[String]) -> Result<()> {
    let mut arguments = selecting(&[], targets, |_| true);
    arguments.extend(["--", "--test-threads=1", "--nocapture"].map(str::to_owned));
    steps.tests("the lab, and Portolan on it", &arguments)
}

/// The arguments of a `cargo test` of some targets.
///
/// All packages are selected, whichever the targets belong to: with another selection cargo would choose other features
/// of shared dependencies, and build those once more.
fn selecting(kinds: &[&str], targets: &[String], wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let mut arguments: Vec<String> = ["test", "--locked", "--workspace", "--no-fail-fast"]
        .iter()
        .chain(kinds)
        .map(|word| (*word).to_owned())
        .collect();
    for target in targets.iter().filter(|target| wanted(target)) {
        arguments.extend(["--test".to_owned(), target.clone()]);
    }
    arguments
}

/// The names of all integration tests of the workspace; those on real Kubernetes begin with `lab`.
fn test_targets() -> Result<Vec<String>> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(root()).output()?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let mut names: Vec<String> =
        tests.filter_map(|target| target["name"].as_str()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn is_root() -> Result<bool> {
    let output = Command::new("id").arg("-u").output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim() == "0")
}
