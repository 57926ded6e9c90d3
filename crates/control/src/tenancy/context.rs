//! What the controller of a provider works with.

use super::waits::Waits;
use kube::Client;
use portolan_runtime::{Clock, Recorder, Term};

/// The controller of a provider.
pub(super) struct Provider {
    pub(super) client: Client,
    pub(super) term: Term,
    pub(super) clock: Clock,
    pub(super) recorder: Recorder,
    pub(super) waits: Waits,
}
