//! How many replicas a workload is to have, by the load of its pods in all clusters.

mod conflicts;
mod cron;
mod cron_field;
mod division;
mod schedule;

pub use conflicts::{AutoscalerTarget, Conflict, conflicts};
pub use cron::{Cron, InvalidCron};
pub use division::{Share, divide_by_load};
pub use schedule::{InvalidSchedule, Minimum, minimum};
