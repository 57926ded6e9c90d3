//! What the two directions of a connection that sends a part know of each other.

use super::frame::Sha256Sum;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// What writing and reading share.
pub(super) struct Flow {
    /// How many bytes were sent, those that the receiver had before included.
    pub(super) sent: AtomicU64,
    acknowledged: AtomicU64,
    room: Notify,
    /// When something was written or read last.
    moved: Mutex<Instant>,
    /// What the end of the part says, once it is written.
    pub(super) end: Mutex<Option<(u64, Sha256Sum)>>,
}

impl Flow {
    pub(super) fn new(offset: u64) -> Self {
        Self {
            sent: AtomicU64::new(offset),
            acknowledged: AtomicU64::new(offset),
            room: Notify::new(),
            moved: Mutex::new(Instant::now()),
            end: Mutex::new(None),
        }
    }

    pub(super) fn touch(&self) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Notes an acknowledgement, if it is possible.
    pub(super) fn acknowledge(&self, offset: u64) -> bool {
        let before = self.acknowledged.load(Ordering::SeqCst);
        if offset < before || offset > self.sent.load(Ordering::SeqCst) {
            return false;
        }
        self.acknowledged.store(offset, Ordering::SeqCst);
        self.room.notify_waiters();
        true
    }

    /// Waits until no more than `window` bytes before `offset` are not acknowledged.
    pub(super) async fn room(&self, offset: u64, window: u64) {
        loop {
            let more = self.room.notified();
            if offset.saturating_sub(self.acknowledged.load(Ordering::SeqCst)) <= window {
                return;
            }
            more.await;
        }
    }

    /// Waits until nothing has moved for so long.
    pub(super) async fn stalled(&self, idle: Duration) {
        loop {
            let end = *self.moved.lock().unwrap_or_else(PoisonError::into_inner) + idle;
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}
