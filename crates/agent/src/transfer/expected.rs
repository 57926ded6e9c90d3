//! What a session is to bring, and what has arrived of it.

use super::ticket::{SessionKey, Ticket};
use portolan_node::Name;
use std::path::PathBuf;
use tokio::time::Instant;

/// A session that a receiver is to admit.
#[derive(Clone, Debug)]
pub struct ExpectedSession {
    /// The peer that it comes from, by the name that the receiver was told.
    pub peer: String,
    /// What it is called.
    pub key: SessionKey,
    /// What the sender shows.
    pub ticket: Ticket,
    /// Its parts: containers and volumes.
    pub parts: Vec<Name>,
    /// Where the parts are written: a folder that exists, that only this agent may write to, and that is of this session only.
    pub folder: PathBuf,
    /// How much may arrive.
    pub limits: SessionLimits,
    /// Until when.
    pub deadline: Instant,
}

/// How much a session may bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// How many bytes one part may have.
    pub part_bytes: u64,
    /// How many bytes all parts may have together.
    pub session_bytes: u64,
    /// After how many bytes they are brought to disk and acknowledged.
    pub sync_bytes: u64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { part_bytes: 8 << 30, session_bytes: 16 << 30, sync_bytes: 32 << 20 }
    }
}

/// A part that has arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedPart {
    /// Which one.
    pub name: Name,
    /// Its file.
    pub path: PathBuf,
    /// How many bytes it has.
    pub bytes: u64,
    /// Its SHA-256 sum, in hexadecimal digits.
    pub sha256: String,
}
