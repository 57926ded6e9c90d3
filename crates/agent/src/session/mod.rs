//! The sessions of an agent: it does on a node what the two pure machines of [`portolan_core::migration`] decide.
//!
//! [`Sessions`] has at most one session for each pod and [`Role`]. An order begins one (its goal is `Reserved` or
//! `Prepared`, and nothing is known of the pod yet), moves it on, or ends it (`Forgotten`). Each session is a task that
//! looks at the pod through its [`SourceHands`] or [`DestinationHands`], asks the pure function, and then does three things
//! in this order:
//!
//! 1. it writes the record to the [`Journal`], and is sure that it is on the disk;
//! 2. it takes the actions, long ones in the background, so that orders still arrive and an abort stops them;
//! 3. it answers.
//!
//! # What fails
//! - **The agent dies.** The sessions of the journal go on when the agent starts. How long a pod has stood still is counted
//!   on the clock of the process and is not known then: a source that is not committed gives up at once.
//! - **The journal cannot be written.** Nothing is done that follows from it, and it is tried again. There is one exception:
//!   a source that gives up thaws its pod all the same, because checkpoints fill disks and the pod must not stand still for
//!   that. If the write that failed was the commit, the disk may have it, and then the pod is not thawed either until
//!   the journal says for certain that it was given up.
//! - **The disk or the kernel hangs.** What hangs keeps its thread; whoever tries again gets an error and no other thread. A write
//!   that hangs counts as one that failed, and as one that may be on the disk.
//! - **The pod cannot be looked at.** A source whose time is over, or that is ordered to give up, gives up without a look.

mod destination;
mod error;
mod hands;
mod jobs;
mod journal;
mod new_pod;
mod pod;
mod run;
mod sessions;
mod side;
mod source;
mod table;
#[cfg(test)]
mod tests;

pub use error::{JournalError, SessionError};
pub use hands::{DestinationHands, HandsError, SessionInfo, SourceHands, SourceLook};
pub use journal::{Disk, Journal, LocalDisk};
pub use pod::{Pod, Role};
pub use sessions::Sessions;

use std::time::Duration;

/// How patient sessions are, and how many there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How often a pod is looked at while nothing is to be done.
    pub poll: Duration,
    /// How often it is looked at while the pod stands still and only looks show that what takes milliseconds is done. All of it
    /// is downtime.
    pub brief_poll: Duration,
    /// How long to wait after something failed.
    pub retry: Duration,
    /// How long one look at a pod may take.
    pub look: Duration,
    /// How many sessions there may be in each role.
    pub max_sessions: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(200),
            brief_poll: Duration::from_millis(5),
            retry: Duration::from_secs(1),
            look: Duration::from_secs(5),
            max_sessions: 64,
        }
    }
}
