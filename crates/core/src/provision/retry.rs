//! How long failures are waited for.

use std::time::Duration;

/// A failure that Cluster API reports must last so long: many pass by themselves.
pub const FAILURE_GRACE: Duration = Duration::from_secs(120);

/// After a failure nothing is tried for at most so many times `retryAfter`.
pub(super) const MOST_RETRY: u32 = 8;
