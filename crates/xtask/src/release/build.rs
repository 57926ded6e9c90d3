//! The release build: the same commit, compiler and C library give the same program, wherever and whenever it is built.

use super::output;
use super::target::{Target, rustc};
use crate::steps::{root, run};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// What stands in a program for the folder of downloaded crates.
const CARGO: &str = "/cargo";

/// Folders of this machine that must not be in a program.
struct Folders {
    workspace: PathBuf,
    target: PathBuf,
    cargo: PathBuf,
    /// Where the sources of the standard library are, if they are installed; and the name that they have without.
    standard_library: (PathBuf, String),
}

/// A program that was built.
pub(crate) struct Built {
    /// Its file.
    pub(crate) path: PathBuf,
    /// The crates that it names in its messages, as `name-version`.
    pub(crate) crates: BTreeSet<String>,
}

/// Where a program for Linux has its C library from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CLibrary {
    /// It is in the program. That of GNU then looks names up by files and DNS only: on a machine whose
    /// `/etc/nsswitch.conf` asks for more it loads that machine's modules, made for another version, and may crash.
    Inside,
    /// It is that of the machine which runs the program, if the target lets programs load it.
    OfMachine,
}

/// Builds the program for a target and checks that it names no folder of this machine.
pub(crate) fn release(target: &Target, c_library: CLibrary) -> Result<Built> {
    target.check_installed()?;
    let folders = Folders::here()?;
    let flags =
        flags(target, c_library, &folders).context("a path is no text: use folders with plain names")?;
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--release", "--package", "portolan", "--bin", "portolan"]);
    cargo.args(["--target", target.triple]);
    // Settings of the user would change the program.
    for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("CARGO_PROFILE_")) {
        cargo.env_remove(name);
    }
    cargo.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // The C compiler writes paths too.
    let variable = format!("CFLAGS_{}", target.triple.replace('-', "_"));
    if !target.triple.ends_with("-msvc") {
        cargo.env(variable, c_flags(&folders).join(" "));
    }
    run(&mut cargo)?;
    let path = folders.target.join(target.triple).join("release").join(target.program("portolan"));
    let program = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    for folder in [&folders.workspace, &folders.target, &folders.cargo] {
        ensure!(
            !holds(&program, folder.to_string_lossy().as_bytes()),
            "{} names the folder {}: elsewhere it would be another program",
            path.display(),
            folder.display()
        );
    }
    Ok(Built { crates: crates(&program), path })
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let arguments = ["metadata", "--no-deps", "--format-version", "1", "--offline", "--locked"];
    let metadata = output(Command::new(env!("CARGO")).args(arguments).current_dir(root()))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let folder = metadata["target_directory"].as_str();
    Ok(PathBuf::from(folder.context("cargo metadata names no target directory")?))
}

impl Folders {
    fn here() -> Result<Self> {
        let cargo = match env::var_os("CARGO_HOME").filter(|path| !path.is_empty()) {
            Some(path) => PathBuf::from(path),
            None => home()?.join(".cargo"),
        };
        let sysroot = output(rustc().args(["--print", "sysroot"]))?;
        let version = output(rustc().arg("-vV"))?;
        let Some(hash) = version.lines().find_map(|line| line.strip_prefix("commit-hash: ")) else {
            bail!("rustc -vV names no commit");
        };
        Ok(Self {
            workspace: root(),
            target: target_directory()?,
            cargo,
            standard_library: (
                Path::new(sysroot.trim()).join("lib/rustlib/src/rust"),
                format!("/rustc/{hash}"),
            ),
        })
    }

    /// What each folder is called in the program. The last one that fits counts.
    fn names(&self) -> [(&Path, &str); 4] {
        [
            (&self.cargo, CARGO),
            (&self.standard_library.0, &self.standard_library.1),
            (&self.workspace, "/portolan"),
            (&self.target, "/target"),
        ]
    }
}

fn home() -> Result<PathBuf> {
    let home = env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    home.context("HOME is not set: set it, or CARGO_HOME")
}

/// What the compiler is told; none if a folder's name is no text.
fn flags(target: &Target, c_library: CLibrary, folders: &Folders) -> Option<Vec<String>> {
    let renamed = folders
        .names()
        .into_iter()
        .map(|(folder, name)| folder.to_str().map(|folder| format!("--remap-path-prefix={folder}={name}")));
    let mut flags: Vec<String> = renamed.collect::<Option<_>>()?;
    // Programs of musl always hold it. Those of MSVC would need a package on the machine that runs them.
    let by_choice = target.triple.ends_with("-linux-gnu") && c_library == CLibrary::Inside;
    if by_choice || target.triple.ends_with("-msvc") {
        flags.push("-Ctarget-feature=+crt-static".to_owned());
    }
    Some(flags)
}

fn c_flags(folders: &Folders) -> Vec<String> {
    let renamed = folders.names().into_iter();
    renamed.map(|(folder, name)| format!("-ffile-prefix-map={}={name}", folder.display())).collect()
}

/// Whether `program` holds these bytes.
fn holds(program: &[u8], bytes: &[u8]) -> bool {
    positions(program, bytes).next().is_some()
}

fn positions<'a>(program: &'a [u8], bytes: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = bytes.first().copied();
    let starts = program.iter().enumerate().filter(move |(_, byte)| Some(**byte) == first);
    starts.map(|(at, _)| at).filter(move |at| program[*at..].starts_with(bytes))
}

/// The crates whose source files a program names.
fn crates(program: &[u8]) -> BTreeSet<String> {
    let registry = format!("{CARGO}/registry/src/");
    let named = positions(program, registry.as_bytes()).filter_map(|at| {
        let rest = &program[at + registry.len()..];
        // The name of the registry, then that of the crate.
        let name = rest.split(|byte| *byte == b'/').nth(1)?;
        std::str::from_utf8(name).ok().map(str::to_owned)
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> Folders {
        Folders {
            workspace: "/home/a b/portolan".into(),
            target: "/home/a b/portolan/target".into(),
            cargo: "/home/a b/.cargo".into(),
            standard_library: ("/rust/lib/rustlib/src/rust".into(), "/rustc/abc".to_owned()),
        }
    }

    #[test]
    fn folders_have_fixed_names_and_an_inner_one_comes_after_its_outer_one() {
        let target = Target::named("x86_64-unknown-linux-gnu").unwrap();
        let flags = flags(target, CLibrary::OfMachine, &folders()).unwrap();
        let at = |flag: &str| flags.iter().position(|each| each == flag).unwrap();
        assert!(
            at("--remap-path-prefix=/home/a b/portolan=/portolan")
                < at("--remap-path-prefix=/home/a b/portolan/target=/target")
        );
        at("--remap-path-prefix=/home/a b/.cargo=/cargo");
    }

    #[test]
    fn only_an_image_holds_the_c_library_of_gnu() {
        let is_static = |triple, c_library| {
            let flags = flags(Target::named(triple).unwrap(), c_library, &folders()).unwrap();
            flags.contains(&"-Ctarget-feature=+crt-static".to_owned())
        };
        assert!(is_static("x86_64-unknown-linux-gnu", CLibrary::Inside));
        assert!(!is_static("x86_64-unknown-linux-gnu", CLibrary::OfMachine));
        assert!(is_static("x86_64-pc-windows-msvc", CLibrary::OfMachine));
        assert!(!is_static("aarch64-apple-darwin", CLibrary::Inside), "there is none to link");
    }

    #[test]
    fn folders_and_crates_are_found_in_a_program() {
        let program = b"\0\x01/cargo/registry/src/index-1/serde_json-1.0.1/src/de.rs\0/cargo/registry/src/index-1/a+b-2/x//cargo";
        assert!(holds(program, b"/cargo") && !holds(program, b"/home"));
        assert_eq!(crates(program).into_iter().collect::<Vec<_>>(), ["a+b-2", "serde_json-1.0.1"]);
        assert!(crates(b"/cargo/registry/src/").is_empty());
    }
}
