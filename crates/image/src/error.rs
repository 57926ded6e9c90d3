//! Why an image could not be made.

use std::io;
use std::path::{Path, PathBuf};

/// Why an image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The name is no full reference with a tag.
    #[error("image name \"{name}\": {problem}; a full name looks like portolan.test/app:1")]
    BadName {
        /// As it was given.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A path inside the image that cannot be.
    #[error(
        "image {image}: \"{path}\" is no path inside an image: it must be absolute, without `..`, and not `/`"
    )]
    BadPath {
        /// The image.
        image: String,
        /// The path as it was given.
        path: String,
    },
    /// A path lies below another entry that is no directory.
    #[error("image {image}: /{path} lies below /{parent}, which is no directory")]
    BelowFile {
        /// The image.
        image: String,
        /// The entry.
        path: String,
        /// The file or link above it.
        parent: String,
    },
    /// A program needs a dynamic linker.
    #[error(
        "{} is dynamically linked (it asks for {interpreter}) and cannot start in image {image}, which holds no libraries: \
         build it statically (Rust: --target x86_64-unknown-linux-musl; Go: CGO_ENABLED=0; C: -static)",
        path.display()
    )]
    Dynamic {
        /// The program.
        path: PathBuf,
        /// The dynamic linker it asks for.
        interpreter: String,
        /// The image.
        image: String,
    },
    /// The shared objects of a program were not found.
    #[error("{}: its shared objects were not found: {problem}", path.display())]
    Libraries {
        /// The program.
        path: PathBuf,
        /// What the dynamic linker says.
        problem: String,
    },
    /// A file that should be a program is none.
    #[error("{} is no ELF program: {problem}", path.display())]
    NotElf {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A path without a file name (in UTF-8).
    #[error("{} has no file name that could be one in an image", path.display())]
    NoFileName {
        /// The path.
        path: PathBuf,
    },
    /// A part of the image's description was refused.
    #[error("image {image}: its description was refused: {source}")]
    Description {
        /// The image.
        image: String,
        /// Why.
        source: oci_spec::OciSpecError,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl ImageError {
    /// Wraps an I/O error with the file it happened on; for `map_err`.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}
