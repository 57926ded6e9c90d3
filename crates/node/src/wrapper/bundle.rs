//! The bundle of a container: the folder with its `config.json`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// No configuration of a container is longer.
const LONGEST: u64 = 16 << 20;

/// Tells runc which configuration file CRIU takes for this container.
const CRIU_CONFIG: &str = "org.criu.config";

/// A bundle whose configuration was read.
#[derive(Clone, Debug)]
pub struct Bundle {
    folder: PathBuf,
    config: Value,
}

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The configuration cannot be read or written.
    #[error("cannot {what} {path:?}: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is too long.
    #[error("{path:?} has more than {LONGEST} bytes")]
    TooLong {
        /// The file.
        path: PathBuf,
    },
    /// It is not a configuration.
    #[error("{path:?} is not the configuration of a container: {why}")]
    Invalid {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl Bundle {
    /// Reads a bundle.
    ///
    /// # Errors
    /// Its configuration cannot be read.
    pub fn read(folder: &Path) -> Result<Self, BundleError> {
        let path = folder.join("config.json");
        let io = |source| BundleError::Io { what: "read", path: path.clone(), source };
        let mut text = Vec::new();
        File::open(&path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text)).map_err(io)?;
        if text.len() as u64 > LONGEST {
            return Err(BundleError::TooLong { path });
        }
        match serde_json::from_slice::<Value>(&text) {
            Ok(config) if config.is_object() => Ok(Self { folder: folder.to_owned(), config }),
            Ok(_) => Err(BundleError::Invalid { path, why: "it is no object".to_owned() }),
            Err(error) => Err(BundleError::Invalid { path, why: error.to_string() }),
        }
    }

    /// The annotations that are text.
    #[must_use]
    pub fn annotations(&self) -> BTreeMap<String, String> {
        let all = self.config.get("annotations").and_then(Value::as_object).into_iter().flatten();
        all.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
    }

    /// The root file system.
    #[must_use]
    pub fn rootfs(&self) -> PathBuf {
        let path = self.config.pointer("/root/path").and_then(Value::as_str).unwrap_or("rootfs");
        // A path that is absolute replaces the folder, as it does for runc.
        self.folder.join(path)
    }

    /// The path of its cgroup, if it is one.
    #[must_use]
    pub fn cgroup(&self) -> Option<String> {
        self.config.pointer("/linux/cgroupsPath").and_then(Value::as_str).map(str::to_owned)
    }

    /// Where file systems are mounted in the container, in their order, and which folder or file of the node is seen there; none
    /// for a new file system.
    #[must_use]
    pub fn mounts(&self) -> Vec<(PathBuf, Option<PathBuf>)> {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let all = self.config.get("mounts").and_then(Value::as_array).into_iter().flatten();
        let mounts = all.filter_map(|mount| {
            let options = mount.get("options").and_then(Value::as_array).into_iter().flatten();
            let mut options = options.filter_map(Value::as_str);
            let binds = text(mount.get("type")).as_deref() == Some("bind")
                || options.any(|option| matches!(option, "bind" | "rbind"));
            let source = text(mount.get("source")).filter(|_| binds).map(|source| self.folder.join(source));
            Some((PathBuf::from(text(mount.get("destination"))?), source))
        });
        mounts.collect()
    }

    /// Has CRIU take its configuration from a file.
    ///
    /// # Errors
    /// The configuration of the container cannot be replaced.
    pub fn set_criu_config(&mut self, file: &Path) -> Result<(), BundleError> {
        let path = self.folder.join("config.json");
        let invalid = |why: &str| BundleError::Invalid { path: path.clone(), why: why.to_owned() };
        let file = file.to_str().ok_or_else(|| invalid("the path of CRIU's configuration is no text"))?;
        let config = self.config.as_object_mut().ok_or_else(|| invalid("it is no object"))?;
        let annotations =
            config.entry("annotations").or_insert_with(|| Value::Object(serde_json::Map::new()));
        let annotations =
            annotations.as_object_mut().ok_or_else(|| invalid("its annotations are no object"))?;
        annotations.insert(CRIU_CONFIG.to_owned(), Value::from(file));
        let text = serde_json::to_vec(&self.config).map_err(|error| invalid(&error.to_string()))?;
        let whole = self.folder.join(".config.json.portolan");
        let io = |source| BundleError::Io { what: "replace", path: path.clone(), source };
        fs::write(&whole, text).and_then(|()| fs::rename(&whole, &path)).map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_read_and_gets_the_configuration_of_criu() {
        let folder = tempfile::tempdir().unwrap();
        let config = r#"{"ociVersion":"1.2.0","annotations":{"a":"b","n":1},"root":{"path":"rootfs"},
            "linux":{"resources":{"memory":{"limit":9223372036854775807},"cpu":{"shares":2}}}}"#;
        fs::write(folder.path().join("config.json"), config).unwrap();
        let mut bundle = Bundle::read(folder.path()).unwrap();
        assert_eq!(bundle.annotations(), BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        assert_eq!(bundle.rootfs(), folder.path().join("rootfs"));
        bundle.set_criu_config(Path::new("/run/x.conf")).unwrap();
        let again = Bundle::read(folder.path()).unwrap();
        assert_eq!(again.annotations().get(CRIU_CONFIG).map(String::as_str), Some("/run/x.conf"));
        let limit = again.config.pointer("/linux/resources/memory/limit").and_then(Value::as_u64);
        assert_eq!(limit, Some(9_223_372_036_854_775_807), "what is not ours stays as it is");
    }

    #[test]
    fn what_is_no_bundle_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(Bundle::read(folder.path()), Err(BundleError::Io { .. })));
        for text in ["", "[]", "{", "\"x\"", "null"] {
            fs::write(folder.path().join("config.json"), text).unwrap();
            assert!(matches!(Bundle::read(folder.path()), Err(BundleError::Invalid { .. })), "{text}");
        }
    }
}
