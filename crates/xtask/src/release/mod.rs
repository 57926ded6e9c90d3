//! What is released: the image, archives of the program, checksums, what they consist of, and the manifest of the kubectl
//! plugin. The same commit gives the same bytes, in any directory and at any time.

mod archive;
mod build;
mod commit;
pub(crate) mod dist;
pub(crate) mod image;
mod krew;
mod sbom;
mod target;

pub(crate) use build::target_directory;
pub(crate) use target::Target;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where people find the releases.
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The SHA-256 of a file, in hexadecimal digits.
fn sha256(path: &Path) -> Result<String> {
    let content = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Bytes as people read them.
fn megabytes(path: &Path) -> Result<String> {
    let bytes = path.metadata().with_context(|| format!("cannot read {}", path.display()))?.len();
    Ok(format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000))
}

/// What a program prints when it succeeds.
fn output(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{program} prints no text"))
}

/// Where results lie, if the user names no other place.
fn folder() -> Result<PathBuf> {
    Ok(build::target_directory()?.join("dist"))
}
