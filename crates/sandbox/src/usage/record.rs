//! What became of traffic over time, for each cluster that users are in and each service.

use std::collections::BTreeMap;
use std::time::Duration;

use super::histogram::Histogram;

/// The natural logarithm of 1 / (1 - u) in thousandths, for u in the middle of each of twenty parts: the times of an
/// exponential distribution, without drawing any.
const EXPONENTIAL: [u32; 20] =
    [25, 78, 134, 192, 255, 322, 393, 470, 553, 644, 744, 856, 981, 1124, 1291, 1492, 1743, 2079, 2590, 3689];

/// What became of the requests from one cluster to one service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Where the users are.
    pub cluster: String,
    /// The service's namespace.
    pub namespace: String,
    /// The service's name.
    pub service: String,
    /// How many requests were sent.
    pub requests: u64,
    /// How many found no endpoint, or only ones with more to do than they can.
    pub errors: u64,
    /// How long those took that were answered: the way and back, and the time they were worked on.
    pub latency: Histogram,
}

/// Where users are, and which service they use.
pub(super) type Route = (String, String, String);

#[derive(Default)]
struct Tally {
    requests: u128,
    errors: u128,
    latency: Histogram,
}

/// All that was recorded.
#[derive(Default)]
pub(super) struct Record(BTreeMap<Route, Tally>);

/// Requests that shared a fate for a while, in millionths.
pub(super) struct Batch {
    pub(super) requests: u128,
    /// How many of a thousand were not answered.
    pub(super) lost_per_1000: u64,
    pub(super) round_trip: Duration,
    /// How long one was worked on, on average.
    pub(super) service_time: Duration,
}

impl Record {
    pub(super) fn add(&mut self, route: &Route, batch: &Batch) {
        let tally = self.0.entry(route.clone()).or_default();
        let lost = batch.requests * u128::from(batch.lost_per_1000.min(1000)) / 1000;
        tally.requests += batch.requests;
        tally.errors += lost;
        let answered = batch.requests - lost;
        let share = answered / EXPONENTIAL.len() as u128;
        if batch.service_time.is_zero() {
            tally.latency.add(batch.round_trip, answered);
            return;
        }
        for thousandths in EXPONENTIAL {
            tally.latency.add(batch.round_trip + batch.service_time * thousandths / 1000, share);
        }
    }

    pub(super) fn told(&self) -> Vec<Served> {
        let whole = |millionths: u128| u64::try_from(millionths / 1_000_000).unwrap_or(u64::MAX);
        self.0
            .iter()
            .map(|((cluster, namespace, service), tally)| Served {
                cluster: cluster.clone(),
                namespace: namespace.clone(),
                service: service.clone(),
                requests: whole(tally.requests),
                errors: whole(tally.errors),
                latency: tally.latency.clone(),
            })
            .collect()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
