//! The paths in a container that its images refer to.

use super::{Incoming, StoreError, Taken};
use crate::replace;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The file with the paths.
const PATHS: &str = "paths.json";

/// No list is longer: as long as the image that it is made from.
const LONGEST: u64 = 64 << 20;

const EXACT: &str = "exact";
const FOLLOWED: &str = "followed";

/// The paths in a container that its images refer to. CRIU looks them up as root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Those of files, mounts and watches. The kernel has named them, so none of them leads through a link.
    pub exact: BTreeSet<String>,
    /// Those of sockets. The container has named them, so they may lead through links in it.
    pub followed: BTreeSet<String>,
}

impl Incoming {
    /// Writes down the paths of the checkpoint.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_paths(&self, paths: &Paths) -> Result<(), StoreError> {
        let all = BTreeMap::from([(EXACT, &paths.exact), (FOLLOWED, &paths.followed)]);
        let path = self.folder.join(PATHS);
        let text = serde_json::to_vec(&all).map_err(io::Error::from);
        text.and_then(|text| replace(&path, &text)).map_err(|error| StoreError::io("write", &path, error))
    }
}

impl Taken {
    /// The paths of the checkpoint.
    ///
    /// # Errors
    /// They are not there, or cannot be read.
    pub fn paths(&self) -> Result<Paths, StoreError> {
        let path = self.work.join(PATHS);
        read(&path).map_err(|error| StoreError::io("read", &path, error))
    }
}

fn read(path: &Path) -> io::Result<Paths> {
    let mut text = Vec::new();
    File::open(path)?.take(LONGEST).read_to_end(&mut text)?;
    let mut all: BTreeMap<String, BTreeSet<String>> = serde_json::from_slice(&text)?;
    let mut one = |name: &str| all.remove(name).ok_or(io::ErrorKind::InvalidData);
    Ok(Paths { exact: one(EXACT)?, followed: one(FOLLOWED)? })
}
