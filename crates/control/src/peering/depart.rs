//! A ForeignCluster that is deleted waits until nothing of the fleet's workloads is left in its member.
//!
//! Without that, `kubectl delete foreigncluster` would leave copies running that nobody knows of. What moves them away, or
//! leaves them behind on purpose, is `portolan unpeer`.

use super::finalizer::{has_finalizer, set_finalizers, without_ours};
use super::leave::{Holding, forget_credential, holdings};
use crate::monitor::Monitor;
use crate::names::{FIELD_MANAGER, MEMBERSHIP_FINALIZER, ON_DELETE_ANNOTATION, ORPHAN};
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::Reason;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::{ForeignCluster, ForeignClusterStatus};
use portolan_runtime::{
    Action, CallError, Clock, EventType, Index, Key, Queue, Recorder, Seed, call, feed, supervise, work,
};
use std::time::Duration;
use tokio::task::JoinSet;

/// How soon to look again whether something is still there.
const AGAIN: Duration = Duration::from_secs(5);

/// How many workloads are named.
const NAMED: usize = 10;

/// Keeps ForeignClusters that are deleted until nothing is left in their members, for ever.
pub async fn depart(hub: Client, clock: Clock, seed: Seed) {
    depart_with(hub, clock, seed, &Monitor::default()).await;
}

/// The same, seen by a monitor.
pub(super) async fn depart_with(hub: Client, clock: Clock, seed: Seed, monitor: &Monitor) {
    let queue = Queue::<String>::new(seed.child("departures"));
    let _shown = monitor.show_queue("Departure", &queue);
    let clusters = Index::<ForeignCluster>::default();
    let mut tasks = JoinSet::new();
    let changed = queue.clone();
    tasks.spawn(feed(
        Api::<ForeignCluster>::all(hub.clone()),
        watcher::Config::default(),
        |cluster| cluster,
        clusters.clone(),
        move |key| changed.add(key.name.clone()),
        seed.child("watch"),
    ));
    let recorder = Recorder::new(hub.clone(), clock.clone(), "portolan.dev/peering");
    let departures = Departures { hub, clusters, clock: clock.clone(), recorder };
    supervise(tasks, work(&queue, 2, &clock, |name| departures.reconcile(name))).await;
}

struct Departures {
    hub: Client,
    clusters: Index<ForeignCluster>,
    clock: Clock,
    recorder: Recorder,
}

impl Departures {
    async fn reconcile(&self, name: String) -> Result<Action, super::PeerError> {
        let Some(cluster) = self.clusters.get(&Key::cluster(&name)) else { return Ok(Action::AwaitChange) };
        match (cluster.metadata.deletion_timestamp.is_some(), has_finalizer(&cluster)) {
            (false, true) | (true, false) => Ok(Action::AwaitChange),
            (false, false) => {
                let mut finalizers = cluster.metadata.finalizers.clone().unwrap_or_default();
                finalizers.push(MEMBERSHIP_FINALIZER.to_owned());
                set_finalizers(&self.hub, &cluster, &finalizers).await?;
                Ok(Action::AwaitChange)
            }
            (true, true) => self.leave(&name, &cluster).await,
        }
    }

    async fn leave(&self, name: &str, cluster: &ForeignCluster) -> Result<Action, super::PeerError> {
        let held: Vec<Holding> = if leaves_copies(cluster) {
            Vec::new()
        } else {
            let all = holdings(&self.hub, name).await?;
            all.into_iter().filter(|each| !waits_in_turn(cluster, each)).collect()
        };
        if held.is_empty() {
            forget_credential(&self.hub, name).await?;
            let kept = without_ours(cluster);
            set_finalizers(&self.hub, cluster, &kept).await?;
            return Ok(Action::AwaitChange);
        }
        let message = waits(name, &held);
        self.tell(cluster, &message).await?;
        self.recorder.record(cluster, EventType::Warning, Reason::WorkloadsRemain, &message).await;
        Ok(Action::RequeueAfter(AGAIN))
    }

    async fn tell(&self, cluster: &ForeignCluster, message: &str) -> Result<(), CallError> {
        let mut status: ForeignClusterStatus = cluster.status.clone().unwrap_or_default();
        let finding = Finding::new(ConditionType::Leaving, true, Reason::WorkloadsRemain, message);
        let now = self.clock.time().0;
        if !conditions::set(&mut status.conditions, finding, cluster.metadata.generation, now) {
            return Ok(());
        }
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let api: Api<ForeignCluster> = Api::all(self.hub.clone());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let update = ForeignCluster { status: Some(status), ..cluster.clone() };
        let what = format!("write status of ForeignCluster {name}");
        match call(what, api.replace_status(&name, &params, &update)).await {
            // Somebody else has changed it meanwhile: the next look finds that.
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(()),
            other => other.map(|_| ()),
        }
    }
}

/// What holds a deletion up, and what helps.
fn waits(name: &str, held: &[Holding]) -> String {
    let one = |each: &Holding| format!("{}/{} in {}", each.kind, each.name, each.namespace);
    let mut named: Vec<String> = held.iter().take(NAMED).map(one).collect();
    if held.len() > NAMED {
        named.push(format!("{} more", held.len() - NAMED));
    }
    format!(
        "deletion waits for {} workloads in {name}: {}; `portolan unpeer {name} --drain` moves them to other members, \
         `portolan unpeer {name} --force` or annotation {ON_DELETE_ANNOTATION}: {ORPHAN} leaves them running there",
        held.len(),
        named.join(", "),
    )
}

/// Whether the user said that copies stay behind.
fn leaves_copies(cluster: &ForeignCluster) -> bool {
    let annotations = cluster.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(ON_DELETE_ANNOTATION)).is_some_and(|value| value == ORPHAN)
}

/// Whether a workload that is deleted waits for this member in turn, which is away or cannot be read: neither would go.
///
/// A member that answers may be read well enough to delete the copy: what the workload says tells that.
fn waits_in_turn(cluster: &ForeignCluster, holding: &Holding) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    let is = |type_| conditions::is_true(conditions, type_);
    let (reachable, ready) = (is(ConditionType::Reachable), is(ConditionType::Ready));
    holding.deleting && (!reachable || (!ready && holding.awaiting))
}
