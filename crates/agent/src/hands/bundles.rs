//! The bundles that containerd makes for containers. All functions block.

use super::NodeError;
use super::cgroups::gone_is_none;
use portolan_node::annotations::{CONTAINER_NAME, CONTAINER_TYPE, RESTORE, SANDBOX_UID};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// No configuration of a container is longer.
const LONGEST: u64 = 16 << 20;

/// What the annotations of a bundle say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Labels {
    /// The name of the container in its pod.
    pub(super) name: Option<String>,
    /// The UID of its pod.
    pub(super) pod: Option<String>,
    /// Whether it is the sandbox of a pod.
    pub(super) sandbox: bool,
    /// The migration that it is restored in.
    pub(super) restore: Option<String>,
}

/// All bundles of the node. Their annotations do not change, so each is read once.
pub(super) struct Bundles {
    root: PathBuf,
    known: Mutex<BTreeMap<String, Labels>>,
}

impl Bundles {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), known: Mutex::default() }
    }

    /// The labels of a container; none if it has no bundle (yet, or any more).
    pub(super) fn labels(&self, id: &str) -> Result<Option<Labels>, NodeError> {
        if let Some(labels) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Ok(Some(labels.clone()));
        }
        let Some(config) = self.config(id)? else { return Ok(None) };
        let text = |name: &str| {
            let annotations = config.get("annotations")?.as_object()?;
            Some(annotations.get(name)?.as_str()?.to_owned())
        };
        let sandbox = text(CONTAINER_TYPE).as_deref() == Some("sandbox");
        let (name, pod) = (text(CONTAINER_NAME), text(SANDBOX_UID));
        let labels = Labels { name, pod, sandbox, restore: text(RESTORE) };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(id.to_owned(), labels.clone());
        Ok(Some(labels))
    }

    /// The `config.json` of a container; none if it has no bundle, or if that is being written.
    pub(super) fn config(&self, id: &str) -> Result<Option<Value>, NodeError> {
        let path = self.root.join(id).join("config.json");
        let mut text = Vec::new();
        let read = File::open(&path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut text));
        let Some(length) = gone_is_none(read).map_err(NodeError::io("read", &path))? else { return Ok(None) };
        if length as u64 > LONGEST {
            return Err(NodeError::io("read", &path)(io::ErrorKind::FileTooLarge.into()));
        }
        Ok(serde_json::from_slice(&text).ok())
    }

    /// The containers of the pod with this UID that are restored in a migration, by their names: those that run, and those that
    /// wait. Any pod can carry the annotation of a migration, so that alone does not make it the pod of that migration.
    pub(super) fn restored_in(
        &self,
        migration: &str,
        pod: &str,
    ) -> Result<BTreeMap<String, String>, NodeError> {
        let mut containers = BTreeMap::new();
        let mut ids = Vec::new();
        let entries = gone_is_none(fs::read_dir(&self.root)).map_err(NodeError::io("list", &self.root))?;
        for entry in entries.into_iter().flatten() {
            let entry = entry.map_err(NodeError::io("list", &self.root))?;
            ids.extend(entry.file_name().into_string().ok());
        }
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| ids.contains(id));
        for id in ids {
            let Some(labels) = self.labels(&id)? else { continue };
            if labels.restore.as_deref() == Some(migration)
                && labels.pod.as_deref() == Some(pod)
                && !labels.sandbox
                && let Some(name) = labels.name
            {
                containers.insert(name, id);
            }
        }
        Ok(containers)
    }
}
