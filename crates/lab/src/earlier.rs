//! Portolan as it was in an earlier commit, for upgrades from it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::command::run;
use crate::parts::user_cache;

/// Names the commit, as git does. To build a program takes minutes, so that no test does it by itself.
const FROM: &str = "PORTOLAN_UPGRADE_FROM";

/// The program of the commit that `PORTOLAN_UPGRADE_FROM` names, built once and kept in the cache; none if it names none.
pub async fn earlier_binary() -> Result<Option<PathBuf>> {
    let Some(name) = std::env::var(FROM).ok().filter(|name| !name.is_empty()) else { return Ok(None) };
    let commit = git(&["rev-parse", "--verify", &format!("{name}^{{commit}}")]).await;
    let commit = commit.with_context(|| format!("{FROM} names no commit: {name}"))?;
    let cache = user_cache().join("earlier");
    let binary = cache.join(commit.trim()).join("portolan");
    if !binary.exists() {
        eprintln!("building portolan of {name}, which takes some minutes");
        build(commit.trim(), &cache, &binary).await.with_context(|| format!("{name} does not build"))?;
    }
    Ok(Some(binary))
}

/// Builds in a copy of the commit's files, with a target directory that all earlier commits share.
async fn build(commit: &str, cache: &Path, binary: &Path) -> Result<()> {
    std::fs::create_dir_all(cache)?;
    let source = tempfile::tempdir_in(cache)?;
    let archive = source.path().join("source.tar");
    let text = |path: &Path| path.to_str().map(str::to_owned).context("the path of the cache is text");
    git(&["archive", "--format=tar", "--output", &text(&archive)?, commit]).await?;
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&archive).arg("-C").arg(source.path());
    run(unpack).await?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args([
        "build",
        "--locked",
        "--quiet",
        "--package",
        "portolan",
        "--bin",
        "portolan",
        "--target-dir",
    ]);
    let target = cache.join("target");
    cargo.arg(&target).current_dir(source.path());
    run(cargo).await?;
    let directory = binary.parent().context("the program has a directory of its own")?;
    std::fs::create_dir_all(directory)?;
    // It appears under its name only when it is whole.
    let partial = directory.join("partial");
    std::fs::copy(target.join("debug/portolan"), &partial)?;
    std::fs::rename(partial, binary)?;
    Ok(())
}

async fn git(arguments: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).args(arguments);
    run(git).await
}
