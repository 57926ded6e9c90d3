//! What every shell runs on: clock, seed, ordered indexes fed by watches, a work queue, and leader election.
//!
//! Controllers made of these parts are deterministic: the same seed on the same world gives the same calls in the same
//! order. Nothing here reads the wall clock, draws from the system's randomness or depends on the order of a hash map.

mod backoff;
mod body;
mod call;
mod change;
mod clock;
mod events;
mod health;
mod index;
mod json;
mod key;
mod lease;
pub mod metrics;
mod parts;
mod published;
mod queue;
mod seed;
mod standing;
mod supervise;
mod term;
mod text;
mod watch;

pub use backoff::Backoff;
pub use body::{BODY_LIMIT, LINE_LIMIT};
pub use call::{CallError, REQUEST_LIMIT, call};
pub use change::Change;
pub use clock::Clock;
pub use events::{EventType, Recorder};
pub use health::{Unreadable, WatchFailure, WatchHealth};
pub use index::{Changed, Index, feed, follow};
pub use key::Key;
pub use lease::Election;
pub use parts::{Places, follow_places};
pub use published::{Followed, Published};
pub use queue::{Action, Queue, QueueStats, QueueView, chain, work, work_in_tasks};
pub use seed::Seed;
pub use standing::{LEASE_DURATION, Standing};
pub use supervise::supervise;
pub use term::Term;
pub use text::{FOREIGN_TEXT_LIMIT, bounded_text, foreign_text};
pub use watch::follow_with;
