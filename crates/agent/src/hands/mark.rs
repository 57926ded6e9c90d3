//! Small files whose presence or content says something. All functions block.

use super::NodeError;
use super::cgroups::gone_is_none;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Writes a file that appears whole, and is sure that it is on the disk.
pub(super) fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    portolan_node::replace(path, &serde_json::to_vec(content)?)
}

/// Reads such a file; none if it is not there.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, NodeError> {
    let text = gone_is_none(fs::read(path)).map_err(NodeError::io("read", path))?;
    let Some(text) = text else { return Ok(None) };
    let read = serde_json::from_slice(&text);
    read.map(Some).map_err(|error| NodeError::io("understand", path)(error.into()))
}

/// Makes a folder that only root can look into: memory of strangers lies in it.
pub(super) fn folder(path: &Path) -> Result<(), NodeError> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(NodeError::io("make", path))
}

/// Brings a file or folder to the disk.
pub(super) fn sync(path: &Path) -> Result<(), NodeError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(NodeError::io("write to the disk", path))
}
