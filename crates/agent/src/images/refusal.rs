//! Why a checkpoint is refused.

use super::rule::Rule;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a checkpoint is refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The folder or a file in it cannot be read.
    #[error("cannot read {path:?}: {source}")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file may not be part of a checkpoint.
    #[error("{image:?} is refused: {unfit}")]
    Unfit {
        /// The name of the file, as far as it can be shown.
        image: String,
        /// Why.
        unfit: Unfit,
    },
    /// An image cannot be decoded.
    #[error("{image} is damaged: {damage}; make a new checkpoint with CRIU 4.2")]
    Damaged {
        /// The name of the file.
        image: String,
        /// Why.
        damage: Damage,
    },
    /// What would be restored has more rights than the pod spec gives.
    #[error("{image}{}: {rule}: the checkpoint has {found}, the pod spec allows {allowed}; {}", OfProcess(.pid), .rule.help())]
    Rights {
        /// The name of the file.
        image: String,
        /// The process or thread, as the container numbers it, if it is one's right.
        pid: Option<u32>,
        /// Which rule is broken.
        rule: Rule,
        /// What the checkpoint has.
        found: String,
        /// What is allowed.
        allowed: String,
    },
}

/// Why a file may not be part of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// It is a link, a folder, a pipe, a socket or a device.
    #[error("it is not a regular file; make the checkpoint without --parent-path")]
    NotRegular,
    /// CRIU 4.2 writes no file with this name.
    #[error("CRIU 4.2 writes no such file; make the checkpoint with CRIU 4.2")]
    UnknownName,
    /// Nothing of a container belongs into such a file.
    #[error(
        "a container in a pod has nothing that is kept in such a file; remove what made it from the container"
    )]
    Kind,
    /// It is of no process and no namespace of the container.
    #[error("no process and no namespace of the container has this number; make a new checkpoint")]
    Stray,
    /// It has data of a network that the container does not own.
    #[error(
        "it has {bytes} bytes, and must be empty: the network of a pod is not restored; make the checkpoint with runc"
    )]
    Network {
        /// Its size.
        bytes: u64,
    },
    /// It is missing.
    #[error("it is missing; send the checkpoint again")]
    Missing,
    /// It is too large.
    #[error("it has {bytes} bytes, and may have {limit}; reduce what the container has open")]
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// With it all files are too large.
    #[error(
        "with it the checkpoint has {bytes} bytes, and may have {limit}; reduce the memory of the container"
    )]
    TooManyBytes {
        /// The sum.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// There are too many files.
    #[error("the checkpoint has more than {limit} files; reduce the number of processes")]
    TooManyFiles {
        /// The limit.
        limit: usize,
    },
}

/// Why an image cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It ends too early.
    #[error("it ends in the middle")]
    Truncated,
    /// It has bytes after its end.
    #[error("{bytes} bytes follow its end")]
    Rest {
        /// How many.
        bytes: usize,
    },
    /// It is of another kind.
    #[error("its kind is {found:#010x}, not {expected:#010x}")]
    Magic {
        /// What it has.
        found: u32,
        /// What it should have.
        expected: u32,
    },
    /// It is of another version.
    #[error("its version is {found}, not {expected}")]
    Version {
        /// What it has.
        found: u32,
        /// What it should have.
        expected: u32,
    },
    /// A number has more than 64 bits, or is not written in its shortest form.
    #[error("a number is too long")]
    Varint,
    /// A field has no type that is read.
    #[error("a field has the type {wire_type}")]
    WireType {
        /// The type.
        wire_type: u32,
    },
    /// Messages lie too deep in each other.
    #[error("more than {limit} messages lie in each other")]
    TooDeep {
        /// The limit.
        limit: u8,
    },
    /// There are too many messages or fields.
    #[error("there are more than {limit} messages or fields")]
    TooMany {
        /// The limit.
        limit: usize,
    },
    /// A field has another type.
    #[error("field {field} has another type")]
    Type {
        /// The number of the field.
        field: u32,
    },
    /// A field is missing.
    #[error("field {field} is missing")]
    Missing {
        /// The number of the field.
        field: u32,
    },
    /// A field is there twice.
    #[error("field {field} is there twice")]
    Twice {
        /// The number of the field.
        field: u32,
    },
    /// A number is too large for its field.
    #[error("the number in field {field} is too large")]
    TooLarge {
        /// The number of the field.
        field: u32,
    },
    /// A text is not UTF-8, or has a zero byte.
    #[error("field {field} is no text")]
    Text {
        /// The number of the field.
        field: u32,
    },
    /// Two entries have one number.
    #[error("number {number} is there twice")]
    SameNumber {
        /// The number.
        number: u32,
    },
    /// It is not JSON of the right form.
    #[error("it is not a list of the names of three descriptors")]
    Descriptors,
}

impl Refusal {
    pub(super) fn damaged(image: &str, damage: Damage) -> Self {
        Self::Damaged { image: image.to_owned(), damage }
    }

    pub(super) fn unfit(image: &str, unfit: Unfit) -> Self {
        Self::Unfit { image: shown(&image), unfit }
    }

    pub(super) fn rights(
        image: &str,
        pid: Option<u32>,
        rule: Rule,
        found: impl fmt::Display,
        allowed: impl fmt::Display,
    ) -> Self {
        Self::Rights { image: image.to_owned(), pid, rule, found: shown(&found), allowed: shown(&allowed) }
    }

    /// The rule that is broken, if it is one about rights.
    #[must_use]
    pub fn rule(&self) -> Option<Rule> {
        match self {
            Self::Rights { rule, .. } => Some(*rule),
            _ => None,
        }
    }
}

/// What comes from outside, short enough and without control characters.
fn shown(value: &dyn fmt::Display) -> String {
    let text = value.to_string();
    text.chars().take(256).map(|shown| if shown.is_control() { '?' } else { shown }).collect()
}

struct OfProcess<'a>(&'a Option<u32>);

impl fmt::Display for OfProcess<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(pid) => write!(f, ", process {pid}"),
            None => Ok(()),
        }
    }
}
