//! A kubeconfig for clusters that this process serves.

use crate::failure::Failure;
use portolan_sandbox::{Served, kubeconfig};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the kubeconfig is; what was made for it goes with it.
pub(crate) struct Place {
    file: PathBuf,
    made: Option<PathBuf>,
}

impl Place {
    /// The file that was asked for, or one in a directory of its own, called after what it is for.
    pub(crate) fn new(what: &str, asked: Option<&Path>) -> Result<Self, Failure> {
        if let Some(file) = asked {
            return Ok(Self { file: std::path::absolute(file)?, made: None });
        }
        let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let folder = base.join(format!("portolan-{what}-{}", std::process::id()));
        fs::create_dir_all(&folder)
            .map_err(|error| Failure::other(format!("cannot make {}: {error}", folder.display())))?;
        Ok(Self { file: folder.join("kubeconfig"), made: Some(folder) })
    }

    /// Where it is.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Writes the kubeconfig so that only its owner can read the tokens in it.
    pub(crate) fn write(&self, served: &[Served]) -> Result<(), Failure> {
        let text = serde_json::to_string_pretty(&kubeconfig(served)).map_err(Failure::other)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&self.file).and_then(|mut file| file.write_all(text.as_bytes()));
        written.map_err(|error| Failure::other(format!("cannot write {}: {error}", self.file.display())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(folder) = &self.made {
            // It is in a place for temporary files; what stays there does no harm.
            let _ = fs::remove_dir_all(folder);
        }
    }
}
