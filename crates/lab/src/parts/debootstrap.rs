//! Finding debootstrap and Debian's keys, and installing them where that can be done.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Missing, PartsError, process};

const SCRIPT: &str = "/usr/share/debootstrap/scripts/sid";
/// Where Debian's package and those of other distributions put the keys.
const KEYRINGS: &[&str] =
    &["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

/// What makes a Debian root.
#[derive(Debug, Clone)]
pub(super) struct Tools {
    pub(super) program: PathBuf,
    /// The steps for unstable do for every newer suite, also for one that this debootstrap does not know by name.
    pub(super) script: PathBuf,
    /// Without it debootstrap would take packages unchecked.
    pub(super) keyring: PathBuf,
}

/// Gives the tools, installing them by apt when they are missing.
pub(super) fn ensure() -> Result<Tools, PartsError> {
    if let Some(tools) = find() {
        return Ok(tools);
    }
    if let Some(missing) = missing() {
        return Err(PartsError::Missing { missing: vec![missing] });
    }
    install()?;
    find().ok_or_else(|| PartsError::Missing {
        missing: vec![Missing::new("debootstrap was installed but is not complete", FIX)],
    })
}

/// Says what is missing when the tools are neither there nor to be had by apt.
pub(super) fn missing() -> Option<Missing> {
    let can_install = process::find("apt-get").is_some() && nix::unistd::geteuid().is_root();
    (find().is_none() && !can_install).then(|| Missing::new("no debootstrap or no keys of Debian", FIX))
}

const FIX: &str = "install the packages debootstrap and debian-archive-keyring (apt-get install debootstrap \
                   debian-archive-keyring)";

fn find() -> Option<Tools> {
    let keyring = KEYRINGS.iter().map(Path::new).find(|path| path.is_file())?;
    let script = Path::new(SCRIPT);
    script.exists().then_some(())?;
    Some(Tools {
        program: process::find("debootstrap")?,
        script: script.to_path_buf(),
        keyring: keyring.to_path_buf(),
    })
}

fn install() -> Result<(), PartsError> {
    let apt = |words: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
        process::run("debootstrap", &mut command, FIX).map(drop)
    };
    let install =
        ["install", "--yes", "--no-install-recommends", "debootstrap", "debian-archive-keyring", "gpgv"];
    if apt(&install).is_ok() {
        return Ok(());
    }
    // A fresh container has no package lists, an old one lists what is no longer there. That some other list cannot be had
    // matters only if the packages cannot be had either.
    let updated = apt(&["update"]);
    apt(&install).map_err(|error| updated.err().unwrap_or(error))
}
