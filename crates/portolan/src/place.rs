//! A kubeconfig for clusters that this process serves.

use crate::failure::Failure;
use portolan_sandbox::{Served, kubeconfig};
use std::fs::OpenOptions;
use std::io::Write;
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

    /// Writes the kubeconfig so that only its owner can read the tokens in it.
    pub(crate) fn write(&self, served: &[Served]) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&kubeconfig(served)).map_err(Failure::other)?;
        private(&self.file, &text)
            .map_err(|error| Failure::other(format!("cannot write {}: {error}", self.file.display())))
    }
}

/// Writes a file that only its owner can read, also if it was there before.
fn private(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut open = options.open(file)?;
    #[cfg(unix)]
    open.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    open.set_len(0)?;
    open.write_all(text.as_bytes())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_that_others_could_read_is_theirs_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("kubeconfig");
        std::fs::write(&file, "a longer text than the next one").unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).unwrap();
        private(&file, "tokens").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "tokens");
    }
}
