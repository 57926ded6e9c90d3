//! Container images made from files on this machine, without any registry.
//!
//! An [`Image`] is one layer and a configuration. [`Image::write_tar`] writes it as an OCI image layout in a tar, which
//! `ctr -n k8s.io images import` and `docker load` take under the image's name. Same content, same bytes.

mod elf;
mod error;
mod layer;
mod layout;
mod libraries;
mod portolan;

pub use elf::{Linkage, linkage};
pub use error::ImageError;
pub use portolan::portolan;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use layer::{Entry, Source};

/// An image to be written.
#[derive(Debug, Clone)]
pub struct Image {
    name: String,
    entries: BTreeMap<String, Entry>,
    entrypoint: Vec<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    user: String,
    working_dir: String,
    created: String,
    annotations: BTreeMap<String, String>,
}

/// What identifies a written image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Digest of the manifest, `sha256:…`: what a pod names by `@sha256:…`.
    pub manifest: String,
    /// Digest of the configuration, `sha256:…`: the image ID that the container runtime shows.
    pub id: String,
}

impl Image {
    /// An empty image. The name is a full reference: `host/path:tag`.
    pub fn new(name: &str) -> Result<Self, ImageError> {
        layout::check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            entries: BTreeMap::new(),
            entrypoint: Vec::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            user: String::new(),
            working_dir: "/".to_owned(),
            created: "1970-01-01T00:00:00Z".to_owned(),
            annotations: BTreeMap::new(),
        })
    }

    /// An image whose root holds the program at `path` alone, as its entry point. A program that needs a dynamic linker
    /// could not start there and is refused.
    pub fn from_static_binary(name: &str, path: &Path) -> Result<Self, ImageError> {
        let program = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| ImageError::NoFileName { path: path.to_path_buf() })?;
        let target = format!("/{program}");
        Ok(Self::new(name)?.static_binary(&target, path)?.entrypoint([target.as_str()]))
    }

    /// The reference under which the image is imported.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a static program. A dynamically linked one is refused.
    pub fn static_binary(self, target: &str, path: &Path) -> Result<Self, ImageError> {
        match linkage(path)? {
            Linkage::Static => self.file_from(target, 0o755, path),
            Linkage::Dynamic { interpreter } => {
                Err(ImageError::Dynamic { path: path.to_path_buf(), interpreter, image: self.name })
            }
        }
    }

    /// Adds a program. If it is dynamically linked, its dynamic linker and the shared objects that it needs are added
    /// where they are on this machine.
    pub fn program(self, target: &str, path: &Path) -> Result<Self, ImageError> {
        let Linkage::Dynamic { interpreter } = linkage(path)? else {
            return self.file_from(target, 0o755, path);
        };
        libraries::of(path, &interpreter)?
            .iter()
            .try_fold(self.file_from(target, 0o755, path)?, |image, library| {
                image.file_from(&library.to_string_lossy(), 0o755, library)
            })
    }

    /// Adds a file with the content of the one at `path`, read when the image is written.
    pub fn file_from(self, target: &str, mode: u32, path: &Path) -> Result<Self, ImageError> {
        self.entry(target, Entry::File { mode, source: Source::Path(path.to_path_buf()) })
    }

    /// Adds a file with this content.
    pub fn file(self, target: &str, mode: u32, content: impl Into<Vec<u8>>) -> Result<Self, ImageError> {
        self.entry(target, Entry::File { mode, source: Source::Bytes(content.into()) })
    }

    /// Adds a directory; those above an entry are made without being asked for.
    pub fn directory(self, target: &str, mode: u32) -> Result<Self, ImageError> {
        self.entry(target, Entry::Directory { mode })
    }

    /// Adds a symbolic link.
    pub fn symlink(self, target: &str, points_to: &str) -> Result<Self, ImageError> {
        self.entry(target, Entry::Symlink { points_to: PathBuf::from(points_to) })
    }

    /// What is run in a container (`command` of a pod replaces it).
    #[must_use]
    pub fn entrypoint<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.entrypoint = words.into_iter().map(str::to_owned).collect();
        self
    }

    /// The arguments of what is run (`args` of a pod replace them).
    #[must_use]
    pub fn args<'a>(mut self, words: impl IntoIterator<Item = &'a str>) -> Self {
        self.args = words.into_iter().map(str::to_owned).collect();
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// The user, `uid` or `uid:gid`; root when not given.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// The working directory; `/` when not given.
    #[must_use]
    pub fn working_dir(mut self, path: &str) -> Self {
        path.clone_into(&mut self.working_dir);
        self
    }

    /// When it was made, as RFC 3339 has it; 1970 when not given.
    #[must_use]
    pub fn created(mut self, time: &str) -> Self {
        time.clone_into(&mut self.created);
        self
    }

    /// Adds an annotation to the manifest.
    #[must_use]
    pub fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Writes the OCI layout; a file that is already there is replaced as a whole or not at all.
    pub fn write_tar(&self, path: &Path) -> Result<Written, ImageError> {
        layout::write(self, path)
    }

    fn entry(mut self, target: &str, entry: Entry) -> Result<Self, ImageError> {
        let target = layer::normalise(target)
            .ok_or_else(|| ImageError::BadPath { image: self.name.clone(), path: target.to_owned() })?;
        self.entries.insert(target, entry);
        Ok(self)
    }
}

#[cfg(test)]
mod tests;
