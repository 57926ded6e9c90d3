//! A kubeconfig for clusters that this process serves.

use crate::failure::Failure;
use portolan_sandbox::{Served, kubeconfig};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Where the kubeconfig is; what was made for it goes with it.
pub(crate) struct Place {
    file: PathBuf,
    _made: Option<TempDir>,
}

impl Place {
    /// The file that was asked for, or one in a directory of its own, called after what it is for.
    pub(crate) fn new(what: &str, asked: Option<&Path>) -> Result<Self, Failure> {
        if let Some(file) = asked {
            return Ok(Self { file: std::path::absolute(file)?, _made: None });
        }
        let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        // A new directory with a name that nobody can guess, for its owner only.
        let folder =
            tempfile::Builder::new().prefix(&format!("portolan-{what}-")).tempdir_in(&base).map_err(
                |error| Failure::other(format!("cannot make a directory in {}: {error}", base.display())),
            )?;
        Ok(Self { file: folder.path().join("kubeconfig"), _made: Some(folder) })
    }

    /// Where it is.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Writes the kubeconfig so that only its owner can read the tokens in it. A file that is there already may hold the
    /// credentials of other clusters, and stays as it is.
    pub(crate) fn write(&self, served: &[Served]) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&kubeconfig(served)).map_err(Failure::other)?;
        private(&self.file, &text).map_err(|error| {
            let failure = Failure::other(format!("cannot write {}: {error}", self.file.display()));
            match error.kind() {
                ErrorKind::AlreadyExists => failure.hint(
                    "--kubeconfig names the file that is written here: give one that does not exist, or leave it out",
                ),
                _ => failure,
            }
        })
    }
}

/// Writes a new file that only its owner can read.
fn private(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file)?.write_all(text.as_bytes())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_kubeconfig_is_for_its_owner_and_takes_the_place_of_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        private(&file, "tokens").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(private(&file, "others").is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "tokens");
        let place = Place::new("sandbox", Some(&file)).unwrap();
        assert!(place.write(&[]).unwrap_err().message().contains("exists"));
    }
}
