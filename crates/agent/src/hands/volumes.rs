//! The emptyDir volumes of a pod, as the kubelet keeps them. All functions block.

use super::cgroups::{children, exists};
use super::{NodeError, Settings};
use portolan_node::Name;
use std::path::PathBuf;

/// Where they are.
pub(super) fn folder(settings: &Settings, uid: &str) -> Result<PathBuf, NodeError> {
    let uid = Name::new("UID of a pod", uid)?;
    Ok(settings.kubelet.join("pods").join(uid.as_str()).join("volumes/kubernetes.io~empty-dir"))
}

/// Which there are.
pub(super) fn list(settings: &Settings, uid: &str) -> Result<Vec<Name>, NodeError> {
    let folder = folder(settings, uid)?;
    if !exists(&folder)? {
        return Ok(Vec::new());
    }
    children(&folder)?.iter().map(|name| Ok(Name::new("volume", name)?)).collect()
}
