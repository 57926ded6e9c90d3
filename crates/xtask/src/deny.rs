//! cargo-deny: licences, bans, sources and advisories of the dependencies.

use crate::steps::{cache, root, run};
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

const VERSION: &str = "0.20.2";

/// Checks the dependencies; installs the tool where it is not there yet.
pub(crate) fn check() -> Result<()> {
    let tool = install()?;
    run(Command::new(tool).args(["--locked", "--all-features", "check", "licenses", "bans", "sources"]))
}

/// Looks the dependencies up in the database of security advisories. Without a network that is said, loudly, and is no
/// failure: a build must not depend on it.
pub(crate) fn advisories() -> Result<()> {
    let tool = install()?;
    let fetched = Command::new(&tool).args(["fetch", "db"]).current_dir(root()).output()?;
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        let why = why.lines().last().unwrap_or_default();
        println!("!!! SKIPPED: the database of advisories cannot be fetched: no network? {why}");
        return Ok(());
    }
    let check = ["--locked", "--all-features", "check", "--disable-fetch", "advisories"];
    run(Command::new(tool).args(check))
}

fn install() -> Result<PathBuf> {
    let place = cache()?.join("tools").join(format!("cargo-deny-{VERSION}"));
    let tool = place.join("bin/cargo-deny");
    if !tool.exists() {
        let version = format!("cargo-deny@{VERSION}");
        let install = ["install", "--quiet", "--locked", "--debug", &version, "--root"];
        run(Command::new(env!("CARGO")).args(install).arg(&place))?;
    }
    Ok(tool)
}
