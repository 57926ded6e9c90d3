//! The platforms that Portolan is released for.

use super::output;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

/// A platform, under the names of Rust and of Kubernetes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) triple: &'static str,
    /// As `kubectl` and Krew name it.
    pub(crate) os: &'static str,
    /// As `kubectl` and Krew name it.
    pub(crate) arch: &'static str,
}

const TARGETS: [Target; 9] = [
    Target { triple: "x86_64-unknown-linux-gnu", os: "linux", arch: "amd64" },
    Target { triple: "aarch64-unknown-linux-gnu", os: "linux", arch: "arm64" },
    Target { triple: "x86_64-unknown-linux-musl", os: "linux", arch: "amd64" },
    Target { triple: "aarch64-unknown-linux-musl", os: "linux", arch: "arm64" },
    Target { triple: "x86_64-apple-darwin", os: "darwin", arch: "amd64" },
    Target { triple: "aarch64-apple-darwin", os: "darwin", arch: "arm64" },
    Target { triple: "x86_64-pc-windows-msvc", os: "windows", arch: "amd64" },
    Target { triple: "x86_64-pc-windows-gnu", os: "windows", arch: "amd64" },
    Target { triple: "aarch64-pc-windows-msvc", os: "windows", arch: "arm64" },
];

impl Target {
    /// The target with this name.
    pub(crate) fn named(triple: &str) -> Result<&'static Self> {
        let known = TARGETS.iter().find(|target| target.triple == triple);
        known.with_context(|| {
            let all = TARGETS.map(|target| target.triple).join(", ");
            format!("Portolan is not released for {triple}; it is for {all}")
        })
    }

    /// The target that programs are built for on this machine when nothing is said.
    pub(crate) fn host() -> Result<&'static Self> {
        let version = output(rustc().arg("-vV"))?;
        let host = version.lines().find_map(|line| line.strip_prefix("host: "));
        Self::named(host.context("rustc -vV names no host")?)
    }

    /// Fails if there is no standard library for this target on this machine.
    pub(crate) fn check_installed(&self) -> Result<()> {
        if !self.is_installed()? {
            bail!("no standard library for {0}: run `rustup target add {0}`", self.triple);
        }
        Ok(())
    }

    /// Whether there is a standard library for this target on this machine.
    pub(crate) fn is_installed(&self) -> Result<bool> {
        let folder = output(rustc().args(["--print", "target-libdir", "--target", self.triple]))?;
        Ok(PathBuf::from(folder.trim()).exists())
    }

    /// The file of a program with this name.
    pub(crate) fn program(&self, name: &str) -> String {
        if self.os == "windows" { format!("{name}.exe") } else { name.to_owned() }
    }

    /// `linux-amd64`, for the names of files.
    pub(crate) fn platform(&self) -> String {
        format!("{}-{}", self.os, self.arch)
    }
}

/// The compiler that cargo would take.
pub(crate) fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| OsString::from("rustc")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_known_and_installed_and_an_unknown_target_is_refused() {
        assert!(Target::host().unwrap().is_installed().unwrap());
        let error = Target::named("mips-unknown-none").unwrap_err().to_string();
        assert!(error.contains("x86_64-apple-darwin"), "{error}");
    }

    #[test]
    fn programs_have_the_name_of_their_platform() {
        let name = |triple| Target::named(triple).unwrap().program("portolan");
        assert_eq!(name("x86_64-unknown-linux-gnu"), "portolan");
        assert_eq!(name("x86_64-pc-windows-msvc"), "portolan.exe");
    }
}
