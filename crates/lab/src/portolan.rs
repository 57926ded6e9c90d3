//! Portolan as it is in the tree now: its binaries, and an image of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use tokio::sync::OnceCell;

use crate::command::run;

/// The name of the image that [`portolan_image`] makes. Its tag is not `latest`, so that nodes do not try to pull it.
pub const PORTOLAN_IMAGE: &str = "localhost/portolan:test";

/// Portolan's binary in the target directory and the profile that this program was built in. Nothing is compiled if it is
/// current.
pub async fn portolan_binary() -> Result<PathBuf> {
    built("portolan").await
}

/// The OCI runtime `portolan-runc`, as [`portolan_binary`].
pub async fn portolan_runc_binary() -> Result<PathBuf> {
    built("portolan-runc").await
}

async fn built(program: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = tokio::process::Command::new(cargo);
    // All packages are selected for the same features, and so the same builds, as in the tests.
    build.args(["build", "--quiet", "--workspace", "--bin", program]).stdin(std::process::Stdio::null());
    let own = std::env::current_exe()?;
    let profile = own.ancestors().find(|folder| folder.join("deps").is_dir());
    let profile = profile.context("the program that asks runs in a target directory")?;
    if profile.ends_with("release") {
        build.arg("--release");
    }
    let built = build.status().await.with_context(|| format!("cannot run cargo to build {program}"))?;
    ensure!(built.success(), "{program} does not build");
    Ok(profile.join(program))
}

/// An archive with the image [`PORTOLAN_IMAGE`] of [`portolan_binary`] without its debug information, for
/// [`Lab::load_image`] and [`Cluster::load_image`]. It is made once in a process, in a second or two.
///
/// [`Lab::load_image`]: crate::Lab::load_image
/// [`Cluster::load_image`]: crate::Cluster::load_image
pub async fn portolan_image() -> Result<PathBuf> {
    static ARCHIVE: OnceCell<PathBuf> = OnceCell::const_new();
    let make = async || make(&portolan_binary().await?, PORTOLAN_IMAGE, "portolan-image.tar").await;
    ARCHIVE.get_or_try_init(make).await.cloned()
}

/// An archive with the same program as an image of another name, such as one that was there before an upgrade. Its tag must not
/// be `latest`.
pub async fn portolan_image_as(name: &str) -> Result<PathBuf> {
    portolan_image_of(&portolan_binary().await?, name).await
}

/// The same with another build of the program; the archive lies beside it.
pub async fn portolan_image_of(binary: &Path, name: &str) -> Result<PathBuf> {
    let tag = name.rsplit(':').next().unwrap_or_default();
    make(binary, name, &format!("portolan-image-{tag}.tar")).await
}

async fn make(binary: &Path, name: &str, file: &str) -> Result<PathBuf> {
    let archive = binary.with_file_name(file);
    let directory = archive.parent().context("the binary lies in a directory")?;
    let stripped = tempfile::NamedTempFile::new_in(directory)?.into_temp_path();
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(&*stripped).arg(binary);
    run(strip).await?;
    let image = portolan_image::portolan(name, &stripped)?;
    let to = archive.clone();
    tokio::task::spawn_blocking(move || image.write_tar(&to)).await??;
    Ok(archive)
}
