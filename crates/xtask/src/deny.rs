//! cargo-deny: licences, bans, sources and advisories of the dependencies.

use crate::steps::{cache, root, run};
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

const VERSION: &str = "0.20.2";

/// How long the database of advisories is waited for, in seconds.
const FETCH_SECONDS: &str = "60";

/// Checks the dependencies; installs the tool where it is not there yet.
pub(crate) fn check() -> Result<()> {
    let tool = install()?;
    run(Command::new(tool).args(["--locked", "--all-features", "check", "licenses", "bans", "sources"]))
}

/// Looks the dependencies up in the database of security advisories. Without a network that is said, loudly, and is no
/// failure: a build must not depend on it.
pub(crate) fn advisories() -> Result<()> {
    let tool = install()?;
    // Where there is no network, a fetch may wait for minutes.
    let fetched = Command::new("timeout")
        .arg(FETCH_SECONDS)
        .arg(&tool)
        .args(["fetch", "db"])
        .current_dir(root())
        .output()?;
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        let why = why.lines().last().unwrap_or_default();
        println!("!!! SKIPPED: the database of advisories cannot be fetched: no network? {why}");
        return Ok(());
    }
    let check = ["--offline", "--locked", "--all-features", "check", "advisories"];
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
