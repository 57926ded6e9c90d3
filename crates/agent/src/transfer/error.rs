//! Why a part is not sent or received.

use super::file::FileError;
use super::frame::FrameError;
use super::handshake::HandshakeError;
use super::identity::PeerIdentity;
use super::refusal::Refusal;
use super::ticket::SessionKey;
use portolan_node::Name;
use std::io;
use std::time::Duration;

/// Why one connection fails.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No connection can be made.
    #[error("the address cannot be reached ({}): check the network between the nodes", .0.kind())]
    Connect(io::Error),
    /// The other side is not the peer, or does not accept this side.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// What arrives is no frame, or the connection ends.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A frame comes at the wrong time, or says what cannot be.
    #[error("{0} was not expected: use the same version on both agents")]
    Unexpected(&'static str),
    /// The receiver refuses.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing goes on.
    #[error("nothing has arrived for {0:?}: check the network between the nodes")]
    Idle(Duration),
    /// It took too long.
    #[error("the deadline of the session has passed: begin another session with a later one")]
    Deadline,
    /// The source cannot be read.
    #[error("the part cannot be read ({}): check the disk of the sending node", .0.kind())]
    Source(io::Error),
    /// What arrives cannot be stored.
    #[error(transparent)]
    File(#[from] FileError),
    /// The process ends.
    #[error("this agent is stopping: the part goes on when the agent runs again")]
    Stopping,
}

impl Failure {
    /// Whether another try would fail as well.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::Handshake(error) => error.is_permanent(),
            Self::Refused(refusal) => refusal.is_permanent(),
            Self::Frame(error) => !matches!(error, FrameError::Ended | FrameError::Io(_)),
            Self::Connect(_) | Self::Idle(_) => false,
            Self::Unexpected(_) | Self::Deadline | Self::Source(_) | Self::File(_) | Self::Stopping => true,
        }
    }

    /// What the other side is told; none if it cannot be reached or is not to know.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Refused(refusal) => Some(*refusal),
            Self::Frame(FrameError::Name(_)) => Some(Refusal::InvalidName),
            Self::Frame(FrameError::TooLong { .. } | FrameError::Unknown(_) | FrameError::Malformed(_))
            | Self::Unexpected(_) => Some(Refusal::Protocol),
            Self::Deadline => Some(Refusal::Deadline),
            Self::File(_) | Self::Stopping => Some(Refusal::Storage),
            _ => None,
        }
    }
}

/// Why a session is not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// A part is not sent.
    #[error("part {part} cannot be sent to {peer} ({tries} of {most} tries): {failure}")]
    Part {
        /// To whom.
        peer: PeerIdentity,
        /// Which part.
        part: Name,
        /// How many tries there were.
        tries: u32,
        /// How many there may be.
        most: u32,
        /// Why the last one failed.
        failure: Box<Failure>,
    },
    /// A session has no parts, or the same one twice.
    #[error("{session} has no part, or part names that are not unique: list every part once")]
    Parts {
        /// Which session.
        session: SessionKey,
    },
    /// The process ends.
    #[error("{session} is not sent, because this agent is stopping")]
    Stopping {
        /// Which session.
        session: SessionKey,
    },
}

/// Why a connection brings no part.
#[derive(Debug, thiserror::Error)]
#[error("{subject} cannot be received from {peer}: {failure}")]
pub struct ReceiveError {
    /// From whom it should have come.
    pub peer: String,
    /// Which part of which session, if that was told.
    pub subject: String,
    /// Why.
    pub failure: Box<Failure>,
}

/// Why a session is not admitted, or does not become whole.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// It is there already.
    #[error("{session} is admitted already: close it before it is admitted again")]
    Exists {
        /// Which session.
        session: SessionKey,
    },
    /// Too many are there already.
    #[error(
        "{session} cannot be admitted: {limit} sessions are open, and no more may be; wait until one has ended"
    )]
    TooMany {
        /// Which session.
        session: SessionKey,
        /// How many there may be.
        limit: usize,
    },
    /// It has no parts, too many, or the same one twice.
    #[error("{session} lists {parts} parts, and may list 1 to {limit}, each once")]
    Parts {
        /// Which session.
        session: SessionKey,
        /// How many it lists.
        parts: usize,
        /// How many it may list.
        limit: usize,
    },
    /// Acknowledgements are too seldom or too often.
    #[error("{session} acknowledges every {bytes} bytes, and may do so every 1 to {limit} bytes")]
    SyncBytes {
        /// Which session.
        session: SessionKey,
        /// What was given.
        bytes: u64,
        /// The most.
        limit: u64,
    },
    /// It was closed.
    #[error(
        "{session} was closed before all of its parts had arrived: begin another session of the migration"
    )]
    Closed {
        /// Which session.
        session: SessionKey,
    },
    /// It took too long.
    #[error(
        "{session} has passed its deadline, and these parts are missing: {missing}; begin another with a later one"
    )]
    Deadline {
        /// Which session.
        session: SessionKey,
        /// Which parts.
        missing: String,
    },
    /// Its files cannot be looked at or removed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The process ends.
    #[error("{session} is left as it is, because this agent is stopping")]
    Stopping {
        /// Which session.
        session: SessionKey,
    },
}
