//! What a receiver tells a sender that it refuses.

/// Why the receiver refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The session or its ticket is not the right one.
    #[error(
        "the session is not admitted with this ticket, or has ended: begin another session of the migration"
    )]
    NotAdmitted,
    /// A name is no name.
    #[error("the name of the session or part is not valid: use lower-case letters, digits, '-' and '.'")]
    InvalidName,
    /// The part is not one of the session.
    #[error("the part does not belong to the session: announce it when the session is admitted")]
    UnknownPart,
    /// The part is too large.
    #[error(
        "the part has more than {limit} bytes: raise limits.maxCheckpointSize, or make the checkpoint smaller"
    )]
    PartTooLarge {
        /// How many bytes it may have.
        limit: u64,
    },
    /// All parts together are too large.
    #[error(
        "the parts have more than {limit} bytes together: raise limits.maxCheckpointSize, or make the checkpoint smaller"
    )]
    SessionTooLarge {
        /// How many bytes they may have.
        limit: u64,
    },
    /// What arrived is not what was sent.
    #[error(
        "the SHA-256 sum or the length differs from what was sent: the part is sent again from its beginning"
    )]
    Checksum,
    /// A frame is not what it should be.
    #[error("a frame is not what the protocol allows: use the same version on both agents")]
    Protocol,
    /// The session was closed.
    #[error("the session was closed: begin another session of the migration")]
    Closed,
    /// Another connection sends the part.
    #[error("a newer connection sends the same part")]
    Displaced,
    /// It cannot be written.
    #[error("the part cannot be stored: see the log of the receiving agent, and check the space on its disk")]
    Storage,
    /// It took too long.
    #[error("the deadline of the session has passed: begin another session with a later one")]
    Deadline,
    /// A whole part is there already.
    #[error("another part of that name is there already: begin another session in an empty folder")]
    Exists,
}

impl Refusal {
    /// Whether another try would fail as well.
    pub(super) fn is_permanent(self) -> bool {
        !matches!(self, Self::Checksum | Self::Displaced | Self::Storage)
    }

    /// As it is written in a frame: a code and a number.
    pub(super) fn encode(self) -> (u8, u64) {
        match self {
            Self::NotAdmitted => (1, 0),
            Self::InvalidName => (2, 0),
            Self::UnknownPart => (3, 0),
            Self::PartTooLarge { limit } => (4, limit),
            Self::SessionTooLarge { limit } => (5, limit),
            Self::Checksum => (6, 0),
            Self::Protocol => (7, 0),
            Self::Closed => (8, 0),
            Self::Displaced => (9, 0),
            Self::Storage => (10, 0),
            Self::Deadline => (11, 0),
            Self::Exists => (12, 0),
        }
    }

    /// From a frame; none if the code is unknown.
    pub(super) fn decode(code: u8, limit: u64) -> Option<Self> {
        Some(match code {
            1 => Self::NotAdmitted,
            2 => Self::InvalidName,
            3 => Self::UnknownPart,
            4 => Self::PartTooLarge { limit },
            5 => Self::SessionTooLarge { limit },
            6 => Self::Checksum,
            7 => Self::Protocol,
            8 => Self::Closed,
            9 => Self::Displaced,
            10 => Self::Storage,
            11 => Self::Deadline,
            12 => Self::Exists,
            _ => return None,
        })
    }
}
