//! One step of the plan, in the making.

use super::{Plan, Settings, Snapshot};
use k8s_openapi::jiff::Timestamp;

/// One step: what is asked for and seen, and what comes of it.
pub(super) struct Step<'a> {
    pub(super) settings: &'a Settings,
    pub(super) snapshot: &'a Snapshot,
    pub(super) now: Timestamp,
    pub(super) plan: Plan,
}
