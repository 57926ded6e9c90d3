//! Scaling MultiClusterDeployments by the load of their pods in all clusters.
//!
//! A look at an autoscaler reads the pods of its workload and their metrics in every cluster that holds some, decides (pure,
//! see `portolan_core::autoscale`), writes the decision into the status by compare-and-swap, and only then the replicas of
//! the workload, through its scale subresource and with the version that was decided on. Whatever a leader of yesterday still
//! sends is refused for its version: the status by the one that this leader has written, the scale by the claim of the
//! workload (see the driver). Nothing is placed here: that is up to placement, which is told by [`Shares`] how a total is to
//! be divided.

mod custom;
mod external;
mod hung;
mod known;
mod pods;
mod queries;
mod read;
mod reconcile;
mod request;
mod resource;

use crate::driver::{Context, Controller, Delay, watch};
use crate::placement::{Division, Placement, Shares, Workload};
use hung::Hung;
use known::Known;
use portolan_api::MultiClusterHorizontalPodAutoscaler;
use portolan_runtime::{Change, Index, Key, Queue, Recorder, supervise, work};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The kind of autoscalers.
pub(crate) const KIND: &str = "MultiClusterHorizontalPodAutoscaler";

/// An autoscaler is looked at again after this long, as by a HorizontalPodAutoscaler.
const LOOK_AGAIN: Duration = Duration::from_secs(15);

/// How many autoscalers are looked at at the same time. Most of a look is waiting for members.
const WORKERS: usize = 24;

/// What changes nothing but the status is most often written here, and each look changes numbers in it: to look again at
/// once would never end.
const STATUS_CHANGED: Delay = Delay { from: LOOK_AGAIN, at_last: LOOK_AGAIN };

/// Decides about MultiClusterHorizontalPodAutoscalers.
pub(crate) struct Autoscalers {
    context: Context,
    workloads: Index<Workload>,
    objects: Index<MultiClusterHorizontalPodAutoscaler>,
    shares: Shares,
    queue: Queue<Key>,
    recorder: Recorder,
    known: Mutex<BTreeMap<Key, Known>>,
    hung: Hung,
}

impl Autoscalers {
    /// Autoscalers for a hub, of the workloads that placement places.
    pub(crate) fn new(context: &Context, placement: &Arc<Placement>) -> Self {
        let seed = context.seed.child(KIND);
        Self {
            context: context.clone(),
            workloads: placement.base().objects.clone(),
            objects: Index::fed_by(placement.shares().health().clone()),
            shares: placement.shares().clone(),
            queue: context.fleet.queues.show(KIND, Queue::new(seed.child("queue"))),
            recorder: Recorder::new(
                context.hub.client.clone(),
                context.clock.clone(),
                "portolan.dev/autoscaling",
            ),
            known: Mutex::default(),
            hung: Hung::default(),
        }
    }

    /// Looks at autoscalers for ever.
    pub(crate) async fn run(self, placement: Arc<Placement>) {
        let mut tasks = JoinSet::new();
        let (shares, divided) = (self.shares.clone(), placement);
        let objects = self.objects.clone();
        let first = move |change: &Change<MultiClusterHorizontalPodAutoscaler>| {
            let changed = shares.take(change, division);
            changed.into_iter().for_each(|workload| divided.base().queue.add(workload));
            due(&objects, change)
        };
        let seed = self.context.seed.child(KIND);
        let hub = &self.context.hub.client;
        tasks.spawn(watch(hub, |object| object, &self.objects, &self.queue, first, |_| (), seed));
        let work = work(&self.queue, WORKERS, &self.context.clock, |key| self.look(key));
        supervise(tasks, work).await;
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Key, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When to look at an autoscaler that has changed, given those that were known before.
fn due(
    objects: &Index<MultiClusterHorizontalPodAutoscaler>,
    change: &Change<MultiClusterHorizontalPodAutoscaler>,
) -> Delay {
    match change {
        Change::Set(key, now) if objects.get(key).is_some_and(|before| asks_alike(&before, now)) => {
            STATUS_CHANGED
        }
        Change::Set(..) | Change::Gone(_) | Change::Listed(_) => Delay::NONE,
    }
}

/// Whether users left an autoscaler as it was.
fn asks_alike(
    before: &MultiClusterHorizontalPodAutoscaler,
    now: &MultiClusterHorizontalPodAutoscaler,
) -> bool {
    let (before, now) = (&before.metadata, &now.metadata);
    before.uid == now.uid
        && before.generation == now.generation
        && before.deletion_timestamp == now.deletion_timestamp
}

/// The workload that an autoscaler scales.
fn target(object: &MultiClusterHorizontalPodAutoscaler) -> Key {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    Key::new(namespace, &object.spec.scale_target_ref.name)
}

/// How the status of an autoscaler divides a total.
fn division(object: &MultiClusterHorizontalPodAutoscaler) -> Division {
    let clusters = object.status.iter().flat_map(|status| &status.clusters);
    let share = |share: i32| u32::try_from(share).unwrap_or(0);
    let shares = clusters.filter_map(|each| Some((each.cluster.clone(), share(each.share?)))).collect();
    let deleted = object.metadata.deletion_timestamp.is_some();
    Division { workload: target(object), shares, deleted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_of_the_status_alone_is_not_looked_at_at_once() {
        let object = |generation: i64, replicas: i32| -> MultiClusterHorizontalPodAutoscaler {
            serde_json::from_value(json!({
                "apiVersion": "portolan.dev/v1alpha1", "kind": KIND,
                "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": generation},
                "spec": {"scaleTargetRef": {"kind": "MultiClusterDeployment", "name": "web"}, "maxReplicas": 9},
                "status": {"currentReplicas": replicas, "desiredReplicas": replicas},
            }))
            .unwrap()
        };
        let (listed, objects) = (object(1, 3), Index::default());
        let delay = |now| due(&objects, &Change::Set(Key::new("shop", "web"), now));
        assert_eq!(delay(object(1, 3)), Delay::NONE, "it is new");
        objects.take(Change::Set(Key::new("shop", "web"), listed));
        assert_eq!(delay(object(1, 4)), STATUS_CHANGED, "an own write of the status");
        assert_eq!(delay(object(2, 4)), Delay::NONE, "a user has changed it");
    }
}
