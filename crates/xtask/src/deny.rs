//! cargo-deny: licences, bans and sources of the dependencies.

use crate::steps::{cache, run};
use anyhow::Result;
use std::path::PathBuf;
use std::process::Command;

const VERSION: &str = "0.20.2";

/// Checks the dependencies; installs the tool where it is not there yet.
pub(crate) fn check() -> Result<()> {
    let tool = install()?;
    // The database of advisories needs a network that builds here do not count on.
    run(Command::new(tool).args(["--all-features", "check", "licenses", "bans", "sources"]))
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
