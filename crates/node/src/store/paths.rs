//! The paths in a container that its images refer to.

use super::{Incoming, StoreError, Taken};
use crate::replace;
use serde_json::{Value, from_value, json};
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
const LINKS: &str = "links";

/// The paths in a container that its images refer to. CRIU looks them up as root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Those of files, mounts and watches. The kernel has named them, so none of them leads through a link.
    pub exact: BTreeSet<String>,
    /// Those of sockets. The container has named them, so they may lead through links in it.
    pub followed: BTreeSet<String>,
    /// The symbolic links in file systems that CRIU makes, with what they point to: before that, nobody can look them up.
    pub links: BTreeMap<String, String>,
}

impl Incoming {
    /// Writes down the paths of the checkpoint.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write_paths(&self, paths: &Paths) -> Result<(), StoreError> {
        let Paths { exact, followed, links } = paths;
        let all = BTreeMap::from([(EXACT, json!(exact)), (FOLLOWED, json!(followed)), (LINKS, json!(links))]);
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
    let mut all: BTreeMap<String, Value> = serde_json::from_slice(&text)?;
    // What is not there is no list.
    let mut one = |name: &str| all.remove(name).unwrap_or_default();
    Ok(Paths {
        exact: from_value(one(EXACT))?,
        followed: from_value(one(FOLLOWED))?,
        links: from_value(one(LINKS))?,
    })
}
