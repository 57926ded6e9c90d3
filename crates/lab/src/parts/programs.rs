//! One directory with the programs of all modules, as hard links.

use std::fs;
use std::path::{Path, PathBuf};

use super::cache::{Key, Part, clear};
use super::{PartsError, Step};

/// The programs of these directories together.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    kubernetes: String,
    directories: Vec<PathBuf>,
}

impl Programs {
    pub(super) fn new(kubernetes: &str, directories: Vec<PathBuf>) -> Self {
        Self { kubernetes: kubernetes.to_owned(), directories }
    }
}

impl Part for Programs {
    fn directory(&self) -> String {
        let name = |path: &PathBuf| path.file_name().unwrap_or_default().as_encoded_bytes().to_vec();
        let key = self.directories.iter().fold(Key::new(), |key, path| key.with("part", &name(path)));
        format!("bin-{}-{}", self.kubernetes, key.finish())
    }

    fn title(&self) -> Option<String> {
        None
    }

    fn make(&self, partial: &Path, _: &mut dyn FnMut(Step)) -> Result<(), PartsError> {
        clear(partial)?;
        fs::create_dir(partial).map_err(PartsError::io("create", partial))?;
        for directory in &self.directories {
            let failed = || PartsError::io("read", directory);
            for entry in fs::read_dir(directory).map_err(failed())? {
                let entry = entry.map_err(failed())?;
                let to = partial.join(entry.file_name());
                fs::hard_link(entry.path(), &to).map_err(PartsError::io("link", &to))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::cache::Cache;

    #[test]
    fn programs_of_all_directories_come_together() {
        let directory = tempfile::tempdir().unwrap();
        let made = ["kubernetes-1-aa", "kwok-1-bb"].map(|name| directory.path().join(name));
        for (path, program) in made.iter().zip(["kubelet", "kwok"]) {
            fs::create_dir(path).unwrap();
            fs::write(path.join(program), program).unwrap();
        }
        let cache = Cache::at(directory.path().to_path_buf());
        let bin = cache.ensure(&Programs::new("1", made.to_vec()), &mut |_| ()).unwrap();
        assert_eq!(fs::read_to_string(bin.join("kubelet")).unwrap(), "kubelet");
        assert_eq!(fs::read_to_string(bin.join("kwok")).unwrap(), "kwok");
        let fewer = Programs::new("1", made[..1].to_vec());
        assert_ne!(cache.path(&fewer), bin);
    }
}
