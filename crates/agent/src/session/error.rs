//! Why a session cannot be kept, or an order cannot be answered.

use super::{HandsError, Pod, Role};
use crate::lane::LaneError;
use portolan_node::NameError;
use std::io;
use std::path::PathBuf;

/// Why the journal cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The system refuses it.
    #[error("cannot {what} {path:?}: {source}")]
    Io {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The disk hangs, or there are too many that wait for it. What was to be written may be there later.
    #[error("cannot {what} {path:?}: {source}")]
    Hangs {
        /// What was to be done.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why.
        source: LaneError,
    },
    /// A file is not what the agent writes.
    #[error(
        "{path:?} cannot be read as a session: {why}. Look at the pod, thaw or delete it by hand, then remove the file"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file was written by another version.
    #[error(
        "{path:?} has version {version}, and this agent reads version {supported}: run the version of the agent that wrote \
         it until its migration is over"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        version: u64,
        /// The version that can be read.
        supported: u64,
    },
    /// A file does not belong here.
    #[error("{path:?} is not a file of the journal of the agent: remove it")]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A session is too large.
    #[error("{path:?} has {bytes} bytes or more, and a session may have {limit}")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        limit: usize,
    },
    /// There are too many files.
    #[error("{folder:?} has {count} files, and {limit} are read: remove the ones that are not the agent's")]
    TooMany {
        /// The folder of the journal.
        folder: PathBuf,
        /// How many there are.
        count: usize,
        /// How many are read.
        limit: usize,
    },
}

impl JournalError {
    pub(super) fn io(what: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { what, path: path.into(), source }
    }
}

impl SessionError {
    /// Whether the session that was to begin is refused, so that another try soon would fail as well. What may have been written
    /// down of it all the same is found by an order that gives up.
    pub(super) fn is_refusal(&self) -> bool {
        match self {
            Self::Name(_) | Self::LongUid { .. } | Self::TooMany { .. } | Self::Journal { .. } => true,
            Self::Look { source, .. } => source.is_refusal(),
            Self::NoAnswer { .. } => false,
        }
    }
}

/// Why an order is not answered.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// A name cannot be one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A UID is too long.
    #[error("the UID of the pod has {length} characters, and may have {limit}")]
    LongUid {
        /// How many characters it has.
        length: usize,
        /// How many it may have.
        limit: usize,
    },
    /// There are too many sessions.
    #[error(
        "pod {pod} cannot be reserved at the {role}: the node has {count} sessions there and may have {limit}. Wait until \
         another migration of the node is over"
    )]
    TooMany {
        /// The pod.
        pod: Pod,
        /// The role of the node.
        role: Role,
        /// How many there are.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// The session cannot be begun, because it cannot be written down or what is written cannot be read.
    #[error("the session of pod {pod} at the {role} cannot be kept: {source}")]
    Journal {
        /// The pod.
        pod: Pod,
        /// The role of the node.
        role: Role,
        /// Why.
        source: Box<JournalError>,
    },
    /// The session cannot be begun, because the pod cannot be looked at.
    #[error("pod {pod} at the {role} cannot be looked at, so no session {session} is begun: {source}")]
    Look {
        /// The pod.
        pod: Pod,
        /// The role of the node.
        role: Role,
        /// The session that was to begin.
        session: u64,
        /// Why.
        source: HandsError,
    },
    /// The session ended while it was to answer.
    #[error(
        "the session of pod {pod} at the {role} ended before it answered {attempts} times: order it again"
    )]
    NoAnswer {
        /// The pod.
        pod: Pod,
        /// The role of the node.
        role: Role,
        /// How often it was asked.
        attempts: usize,
    },
}
