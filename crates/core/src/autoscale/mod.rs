//! How many replicas a workload is to have, by the load of its pods in all clusters.
//!
//! Each cluster is looked at as the HorizontalPodAutoscaler looks at its own: every metric proposes a number of replicas,
//! and the largest one is the wish of the cluster. The wishes of all clusters give the one number that the scale
//! subresource takes: the largest wish where replicas count for each location, their sum where they are a total. In a
//! total the wishes are the division, too. Windows, policies and bounds apply to the one number.
//!
//! [`decide`] takes all that is known, with the [`Memory`] that the status keeps, and answers a [`Decision`].
//!
//! Where the rules differ from upstream, they are stricter, so that constant load gives a constant number:
//! - ratios are exact. Upstream cuts utilization to whole percents first, and with a target of 5 percent the replicas then
//!   go up and down for ever;
//! - a load above the target never proposes fewer replicas, and one below it never more, also while there are more or
//!   fewer pods than replicas;
//! - the value of an object proposes no change while not a single pod is ready; upstream proposes 0 replicas.

mod assess;
mod behavior;
mod bounds;
mod cluster;
mod combine;
mod conditions;
mod conflicts;
mod cron;
mod cron_field;
mod decide;
mod decision;
mod division;
mod memory;
mod metric;
mod pods;
mod proposal;
mod ratio;
mod report;
mod schedule;
mod snapshot;
mod stabilize;
mod total;

#[cfg(test)]
mod test_support;

pub use cluster::ClusterWish;
pub use conditions::update_failed;
pub use conflicts::Conflict;
pub use cron::{Cron, InvalidCron};
pub use decide::{Known, decide};
pub use decision::Decision;
pub use division::{Share, divide_by_load};
pub use memory::{Memory, Recommended, ScaleChange};
pub use metric::effective as effective_metrics;
pub use schedule::{InvalidSchedule, Minimum, minimum};
pub use snapshot::{
    ClusterSnapshot, MemberClock, NUMBERS_VALID_FOR, PodPhase, PodRequests, PodSnapshot, Readiness, Reading,
    Sample, usage,
};
