//! When to look again.

use portolan_runtime::Action;
use std::time::Duration;

/// How soon to look again while a cluster is still being listed.
pub(crate) const SYNC_POLL_INTERVAL: Duration = Duration::from_millis(250);

/// How soon to look again at an object that somebody else changed; usually the change itself brings us back earlier.
pub(crate) const CHANGED_MEANWHILE: Duration = Duration::from_secs(1);

/// How often an object is looked at without any news, in case some were missed.
pub(crate) const RESYNC_PERIOD: Duration = Duration::from_secs(300);

/// The earlier of two times to look again.
pub(crate) fn earlier(one: Action, other: Action) -> Action {
    match (one, other) {
        (Action::RequeueAfter(one), Action::RequeueAfter(other)) => Action::RequeueAfter(one.min(other)),
        (Action::AwaitChange, next) | (next, Action::AwaitChange) => next,
    }
}
