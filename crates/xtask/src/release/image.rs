//! `cargo xtask image`: Portolan's image as an archive.

use super::build::{self, CLibrary};
use super::commit::Commit;
use super::target::Target;
use super::{folder, megabytes};
use crate::generate;
use crate::steps::run as run_command;
use anyhow::{Context, Result, ensure};
use clap::Args;
use portolan_image::{Image, Linkage, Written, linkage};
use portolan_install::{VERSION, Values};
use std::path::{Path, PathBuf};
use std::process::Command;

/// An image of a release is not larger.
const LARGEST: u64 = 40_000_000;

#[derive(Args)]
pub(crate) struct ImageArgs {
    /// The file of the archive; without it, one in the folder dist of the target directory.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The name of the image; without it, the one that `portolan install` takes.
    #[arg(long, value_name = "NAME:TAG")]
    name: Option<String>,

    /// Takes a debug build with the shared objects of this machine: made sooner, larger, and not the same elsewhere.
    #[arg(long)]
    debug: bool,
}

/// The name that an installation of this version asks for.
pub(crate) fn default_name() -> String {
    format!("{}:{VERSION}", Values::default().image.repository)
}

pub(crate) fn run(args: &ImageArgs) -> Result<()> {
    let name = args.name.clone().unwrap_or_else(default_name);
    let commit = Commit::current()?;
    let target = Target::host()?;
    let path = match &args.output {
        Some(path) => path.clone(),
        None => folder()?.join(file_name(target)),
    };
    let written = if args.debug {
        let stripped = stripped()?;
        of_program(&name, &stripped, &commit, &path)?
    } else {
        commit.warn_if_dirty();
        of_release(&name, &build::release(target, CLibrary::Inside)?.path, &commit, &path)?
    };
    let (repository, tag) = name.rsplit_once(':').unwrap_or((&name, ""));
    println!(
        "\nimage   {name}\ndigest  {}\nID      {}\nsize    {}\nfile    {}\n",
        written.manifest,
        written.id,
        megabytes(&path)?,
        path.display()
    );
    let file = path.display();
    println!("Load it into nodes by one of:\n");
    println!("  docker load --input {file}");
    println!("  ctr --namespace k8s.io images import {file}");
    println!("  kind load image-archive {file}");
    println!("  cargo xtask lab load {file}");
    println!("\nThen: portolan install --set image.repository={repository},image.tag={tag}");
    Ok(())
}

/// The name of the archive.
pub(crate) fn file_name(target: &Target) -> String {
    format!("{}.tar", stem(target))
}

/// The name of what belongs to the image, without its extension.
pub(crate) fn stem(target: &Target) -> String {
    format!("portolan-{VERSION}-image-{}", target.platform())
}

/// Writes the image of a release build, which needs no other file and is small.
pub(crate) fn of_release(name: &str, binary: &Path, commit: &Commit, path: &Path) -> Result<Written> {
    ensure!(
        linkage(binary)? == Linkage::Static,
        "{} needs shared objects: the image would hold those of this machine",
        binary.display()
    );
    let written = of_program(name, binary, commit, path)?;
    let size = path.metadata()?.len();
    ensure!(size <= LARGEST, "the image is {size} bytes large; it may be {LARGEST}");
    Ok(written)
}

fn of_program(name: &str, binary: &Path, commit: &Commit, path: &Path) -> Result<Written> {
    Ok(made_from(commit, portolan_image::portolan(name, binary)?).write_tar(path)?)
}

/// The image with the commit that it is made from, and its time.
fn made_from(commit: &Commit, image: Image) -> Image {
    image
        .created(&commit.time)
        .annotation("org.opencontainers.image.created", &commit.time)
        .annotation("org.opencontainers.image.revision", &commit.id)
}

/// The debug build without its debug information.
fn stripped() -> Result<tempfile::TempPath> {
    let binary = generate::program("portolan")?;
    let folder = binary.parent().context("the program lies in a folder")?;
    let stripped = tempfile::NamedTempFile::new_in(folder)?.into_temp_path();
    run_command(Command::new("strip").arg("-o").arg(&*stripped).arg(&binary))?;
    Ok(stripped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn commit() -> Commit {
        Commit { id: "4be7d12".to_owned(), seconds: 1, time: "1970-01-01T00:00:01Z".to_owned() }
    }

    #[test]
    fn the_name_is_the_one_that_an_installation_asks_for() {
        assert_eq!(default_name(), format!("ghcr.io/portolan-dev/portolan:{VERSION}"));
    }

    #[test]
    fn a_program_with_shared_objects_is_no_release() {
        let folder = tempfile::tempdir().unwrap();
        let own = std::env::current_exe().unwrap();
        let path = folder.path().join("image.tar");
        let error = of_release("localhost/portolan:test", &own, &commit(), &path).unwrap_err().to_string();
        assert!(error.contains("needs shared objects"), "{error}");
        assert!(!path.exists());
    }

    #[test]
    fn the_commit_is_in_the_image() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image.tar");
        let digest = |commit: &Commit| {
            let image = Image::new("localhost/portolan:test").unwrap();
            made_from(commit, image).write_tar(&path).unwrap().manifest
        };
        let first = digest(&commit());
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
        assert!(text.contains("\"org.opencontainers.image.revision\":\"4be7d12\""));
        assert_ne!(digest(&Commit { id: "0000000".to_owned(), ..commit() }), first);
        assert_eq!(digest(&commit()), first);
    }
}
