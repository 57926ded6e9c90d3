//! Whether the program compiles where only its command line runs: on macOS and Windows.
//!
//! `cargo check` reads all of its Rust code for the platform and links nothing. So a standard library of the platform is
//! needed, and no C compiler, linker or SDK: C code is left out.

use crate::release::{Target, target_directory};
use crate::steps::run as run_command;
use anyhow::{Context, Result};
use clap::Args;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

/// What is checked: an operating system each. Another architecture would check the same code of ours.
const CHECKED: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-msvc"];

/// Makes the library that it is asked for, empty. The linker of MSVC is told of it by `-out:`.
const ARCHIVER: &str = r#"#!/bin/sh
for word; do
  case "$word" in
    *.a | *.lib) : >>"${word#-out:}" ;;
  esac
done
"#;

#[derive(Args)]
pub(crate) struct PlatformsArgs {
    /// Installs the standard libraries that are missing, by rustup. Without it, a platform without one is skipped.
    #[arg(long)]
    install: bool,
}

impl PlatformsArgs {
    /// What the test command runs: CI checks all platforms, and a developer's toolchain is left as it is.
    pub(crate) fn in_test(ci: bool) -> Self {
        Self { install: ci }
    }
}

pub(crate) fn run(args: &PlatformsArgs) -> Result<()> {
    for triple in CHECKED {
        let target = Target::named(triple)?;
        if !target.is_installed()? && args.install {
            run_command(Command::new("rustup").args(["target", "add", triple]))?;
        }
        if target.is_installed()? {
            check(target)?;
        } else {
            println!(
                "!!! SKIPPED: whether the program compiles for {triple} was not checked: its standard library is missing; \
                 `cargo xtask platforms --install` installs it"
            );
        }
    }
    Ok(())
}

/// Build scripts compile C code and look whether there is a library then: the compiler does nothing, and the archiver makes an
/// empty one.
fn check(target: &Target) -> Result<()> {
    // Always the same paths: with others cargo would check everything anew.
    let folder = target_directory()?.join("platforms");
    let (archiver, jemalloc) = (folder.join("ar"), folder.join("libjemalloc.a"));
    write(&folder, &archiver, &jemalloc).with_context(|| format!("cannot write in {}", folder.display()))?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--locked", "--quiet", "--package", "portolan", "--target", target.triple]);
    let name = target.triple.replace('-', "_");
    cargo.env(format!("CC_{name}"), "true").env(format!("AR_{name}"), archiver);
    run_command(cargo.env("JEMALLOC_OVERRIDE", jemalloc))
}

fn write(folder: &Path, archiver: &Path, jemalloc: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(jemalloc, "")?;
    fs::write(archiver, ARCHIVER)?;
    fs::set_permissions(archiver, fs::Permissions::from_mode(0o755))
}
