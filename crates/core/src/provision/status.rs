//! The record as it stands in the status of the CloudProvisioner.

use super::record::cluster_name;
use super::snapshot::count;
use super::{
    BurstCost, ClusterRecord, Ending, Failure, Meter, Plan, Pool, Record, Settings, Snapshot, Unhelped,
};
use crate::capacity::Amounts;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use portolan_api::cloudprovisioner::{
    Burst, CloudCluster, CloudProvisionerStatus, Deprovisioning, LeftOut, NodePool, ProvisionFailure,
    UnhelpedPods,
};
use portolan_api::money::Money;

/// So many kinds of pods without a node are listed.
const LEFT_OUT_AT_MOST: usize = 100;

impl Record {
    /// Reads the record from the status.
    #[must_use]
    pub fn of(status: &CloudProvisionerStatus) -> Self {
        Self {
            clusters: unsigned(status.clusters),
            cluster: status.cluster.as_ref().map(cluster_of),
            pools: status.pools.iter().map(|pool| (pool.machine_type.clone(), pool_of(pool))).collect(),
            idle_since: read(&status.idle_since),
            silent_since: read(&status.silent_since),
            failures: unsigned(i64::from(status.failures)),
            last_failure: status.last_failure.as_ref().map(|failure| {
                let message = failure.message.clone().unwrap_or_default();
                (Failure { reason: failure.reason.clone(), message }, failure.time.0)
            }),
            retry_at: read(&status.retry_at),
            unhelped: status.unhelped.iter().filter_map(unhelped_of).collect(),
            meter: Meter {
                counted: u64::try_from(status.cost_counted).unwrap_or(0),
                until: read(&status.cost_counted_until),
                rate: status.cost_per_hour.micros,
                bursts: status.bursts.iter().map(burst_of).collect(),
            },
        }
    }
}

impl Plan {
    /// Writes the record and what is seen into the status. Conditions, workloads that wait and orphans are not touched.
    pub fn write(&self, settings: &Settings, snapshot: &Snapshot, status: &mut CloudProvisionerStatus) {
        let record = &self.record;
        status.phase = self.phase;
        status.clusters = i64::from(record.clusters);
        status.cluster = record.cluster.as_ref().map(|cluster| written(settings, cluster));
        let own = status.cluster.as_ref().and_then(|cluster| snapshot.clusters.get(&cluster.name));
        status.pools = record
            .pools
            .iter()
            .map(|(name, pool)| {
                let seen = own.and_then(|own| own.pools.get(name));
                let mut written = pool_written(name, pool);
                written.nodes = signed(seen.map_or(0, |seen| count(seen.machines.len())));
                written.ready = signed(seen.map_or(0, super::PoolSnapshot::ready));
                written
            })
            .collect();
        status.nodes = status.pools.iter().map(|pool| pool.nodes).sum();
        status.ready_nodes = status.pools.iter().map(|pool| pool.ready).sum();
        status.desired_nodes = status.pools.iter().map(|pool| pool.desired).sum();
        let joined = record.cluster.as_ref().is_some_and(|cluster| cluster.ready_at.is_some());
        status.foreign_cluster = joined.then(|| settings.cluster_name.clone());
        status.requested = snapshot.demand.requests().quantities();
        status.left_out = self
            .left
            .iter()
            .take(LEFT_OUT_AT_MOST)
            .map(|left| LeftOut {
                pods: signed(left.pods),
                requests: left.shape.requests.quantities(),
                reason: left.because.reason().to_owned(),
                message: Some(left.because.to_string()),
            })
            .collect();
        status.idle_since = record.idle_since.map(Time);
        status.silent_since = record.silent_since.map(Time);
        status.failures = signed(record.failures);
        status.last_failure = record.last_failure.as_ref().map(|(failure, time)| ProvisionFailure {
            time: Time(*time),
            reason: failure.reason.clone(),
            message: Some(failure.message.clone()),
        });
        status.retry_at = record.retry_at.map(Time);
        status.unhelped = record.unhelped.iter().take(LEFT_OUT_AT_MOST).map(unhelped_written).collect();
        let meter = &record.meter;
        status.cost_per_hour = meter.per_hour();
        status.cost_so_far = meter.so_far();
        status.cost_counted = i64::try_from(meter.counted).unwrap_or(i64::MAX);
        status.cost_counted_until = meter.until.map(Time);
        status.bursts = meter.bursts.iter().map(burst_written).collect();
    }
}

fn cluster_of(cluster: &CloudCluster) -> ClusterRecord {
    ClusterRecord {
        number: unsigned(cluster.number),
        requested_at: cluster.requested_at.0,
        created: cluster.created,
        ready_at: read(&cluster.ready_at),
        failing_since: read(&cluster.failing_since),
        ending: cluster.deprovisioning.as_ref().map(|ending| (Ending::parse(&ending.reason), ending.since.0)),
    }
}

fn written(settings: &Settings, cluster: &ClusterRecord) -> CloudCluster {
    CloudCluster {
        name: cluster_name(&settings.cluster_name, &settings.uid, cluster.number),
        number: i64::from(cluster.number),
        requested_at: Time(cluster.requested_at),
        created: cluster.created,
        ready_at: cluster.ready_at.map(Time),
        failing_since: cluster.failing_since.map(Time),
        deprovisioning: cluster
            .ending
            .map(|(ending, since)| Deprovisioning { since: Time(since), reason: ending.reason().to_owned() }),
    }
}

fn pool_of(pool: &NodePool) -> Pool {
    Pool {
        desired: unsigned(i64::from(pool.desired)),
        price: pool.price_per_hour.micros,
        short_since: read(&pool.short_since),
        failing_since: read(&pool.failing_since),
        retry_at: read(&pool.retry_at),
        removing: pool.removing.iter().cloned().collect(),
        lowered: pool.lowered,
        little_used: pool.little_used.iter().map(|(name, since)| (name.clone(), since.0)).collect(),
    }
}

fn pool_written(name: &str, pool: &Pool) -> NodePool {
    NodePool {
        machine_type: name.to_owned(),
        desired: signed(pool.desired),
        nodes: 0,
        ready: 0,
        price_per_hour: Money::from_micros(pool.price),
        short_since: pool.short_since.map(Time),
        failing_since: pool.failing_since.map(Time),
        retry_at: pool.retry_at.map(Time),
        removing: pool.removing.iter().cloned().collect(),
        lowered: pool.lowered,
        little_used: pool.little_used.iter().map(|(name, since)| (name.clone(), Time(*since))).collect(),
    }
}

/// An entry that cannot be read is forgotten: it is found out again.
fn unhelped_of(unhelped: &UnhelpedPods) -> Option<Unhelped> {
    Some(Unhelped {
        requests: Amounts::parse(&unhelped.requests).ok()?,
        since: unhelped.since.0,
        times: unsigned(i64::from(unhelped.times)),
        until: read(&unhelped.until),
    })
}

fn unhelped_written(unhelped: &Unhelped) -> UnhelpedPods {
    UnhelpedPods {
        requests: unhelped.requests.quantities(),
        since: Time(unhelped.since),
        times: signed(unhelped.times),
        until: unhelped.until.map(Time),
    }
}

fn burst_of(burst: &Burst) -> BurstCost {
    BurstCost {
        number: unsigned(burst.number),
        started_at: burst.started_at.0,
        ended_at: read(&burst.ended_at),
        most_nodes: unsigned(i64::from(burst.most_nodes)),
        counted: u64::try_from(burst.counted).unwrap_or(0),
    }
}

fn burst_written(burst: &BurstCost) -> Burst {
    Burst {
        number: i64::from(burst.number),
        started_at: Time(burst.started_at),
        ended_at: burst.ended_at.map(Time),
        most_nodes: signed(burst.most_nodes),
        cost: burst.cost(),
        counted: i64::try_from(burst.counted).unwrap_or(i64::MAX),
    }
}

fn read(time: &Option<Time>) -> Option<Timestamp> {
    time.as_ref().map(|time| time.0)
}

fn unsigned(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn signed(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
