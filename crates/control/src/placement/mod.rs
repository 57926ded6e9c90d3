//! Placing MultiClusterDeployments: from what is declared in the hub to Deployments in members, and back into status.
//!
//! A reconcile observes (indexes only), decides (pure), reserves (the placement is written into the workload's status by
//! compare-and-swap), and only then hands orders to the actuators of the members. Each step can be repeated; killed
//! anywhere, the next run goes on from what the API says.

mod adopt;
mod availability;
mod desired;
mod drift;
mod facts;
mod lately;
mod news;
mod notes;
mod observe;
mod orders;
mod preview;
mod reconcile;
mod refusals;
mod replace;
mod shares;
mod snapshots;
mod stand_in;
mod status;
mod trial;
mod waiting;
mod whereabouts;

pub(crate) use observe::candidate;
pub(crate) use preview::{Outlook, Previews};
pub(crate) use shares::{Division, Shares};
pub(crate) use waiting::asks_for_cloud;

use crate::capacity::{self, Waits};
use crate::copies::Round;
use crate::dependencies::{References, has_dependencies, references};
use crate::driver::{Base, Context, Controller, Declared, Delay, Pending};
use crate::fleet::MemberEvent;
use crate::recovery::Identity;
use drift::Comparisons;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use lately::LatelyReady;
use news::Unwritten;
use portolan_api::placement::{PlacementPolicy, PlacementState, ReplicasMode, Reservation};
use portolan_api::{MultiClusterDeployment, MultiClusterDeploymentSpec, MultiClusterDeploymentStatus};
use portolan_core::capacity::{PodShape, Shape, ShapeError};
use portolan_core::placement::is_shared_out;
use portolan_runtime::{Action, CallError, Key};
use stand_in::{stands_in, waits_to_leave};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use trial::Trials;

/// Namespaces open in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

/// The kind whose claims placement tells the ledger.
const KIND: &str = "MultiClusterDeployment";

/// A copy on its way to readiness changes several times; one look after this long serves the changes of a moment.
const COPY_SETTLES: Duration = Duration::from_millis(200);

/// The same while those who are asked take long to answer.
const COPY_SETTLES_BUSY: Duration = Duration::from_secs(10);

/// While there is more to do, changes are gathered for so long: what nobody has looked at yet goes first.
const SETTLES_AT_LAST: Duration = Duration::from_secs(30);

/// What changes a whole cluster concerns many workloads; what is begun with some is ended before more are begun.
const CLUSTER_SETTLES_AT_LAST: Duration = Duration::from_secs(120);

/// Decides about MultiClusterDeployments.
pub(crate) struct Placement {
    base: Base<Workload, Deployment>,
    /// What members said of templates.
    trials: Trials,
    /// What was compared with what was placed.
    comparisons: Comparisons,
    /// The workloads whose status does not say yet how far their copies have come.
    unwritten: Unwritten,
    lately_ready: LatelyReady,
    /// How autoscalers divide totals.
    shares: Shares,
}

impl Placement {
    /// Placement for a hub.
    pub(crate) fn new(context: &Context) -> Arc<Self> {
        Arc::new(Self {
            base: Base::new(context, "portolan.dev/placement"),
            trials: Trials::default(),
            comparisons: Comparisons::default(),
            unwritten: Unwritten::default(),
            lately_ready: LatelyReady::default(),
            shares: Shares::default(),
        })
    }

    /// How autoscalers divide totals: whoever knows them tells it here.
    pub(crate) fn shares(&self) -> &Shares {
        &self.shares
    }

    /// When to look at a copy that has changed in a cluster: not before those who are asked can keep up with it.
    fn copy_settles(&self, cluster: Option<&str>) -> Delay {
        let member = cluster.and_then(|cluster| self.base.context.fleet.member(cluster));
        let busy = member.map(|member| member.actuator.under_way()).unwrap_or_default();
        let from = self.base.queue.under_way().max(busy).clamp(COPY_SETTLES, COPY_SETTLES_BUSY);
        Delay { from, at_last: SETTLES_AT_LAST }
    }
}

/// A workload of the hub, and the shape of its pods, read once.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) object: MultiClusterDeployment,
    identity: Identity,
    shape: Result<Shape, String>,
    /// The labels of its pods.
    labels: BTreeMap<String, String>,
    references: References,
    /// Whether the last decision asked for a cloud cluster, and the workload is there to stay.
    to_cloud: bool,
    /// The digests of its copies, by replicas, as they are asked for.
    digests: Mutex<BTreeMap<u32, String>>,
}

impl Workload {
    /// Whether users and others who write more than its status left it as it was.
    fn asks_as(&self, other: &Self) -> bool {
        let (one, other) = (&self.object.metadata, &other.object.metadata);
        one.uid == other.uid
            && one.generation == other.generation
            && one.deletion_timestamp == other.deletion_timestamp
            && one.finalizers == other.finalizers
            && one.labels == other.labels
            && one.annotations == other.annotations
    }

    /// Whether room makes a difference: replicas wait for a cluster, or for a node in their cluster.
    fn is_unsettled(&self) -> bool {
        self.waits_for_room()
            || self
                .object
                .status
                .iter()
                .flat_map(|status| &status.placements)
                .any(|placed| placed.state != PlacementState::Ready)
    }

    /// Whether room would be used in some cluster.
    fn waits_for_room(&self) -> bool {
        self.waits().is_somewhere()
    }

    /// Where room would be used: by replicas without a cluster, with one that only stands in until there is room at home,
    /// or with one that has more than its share of them.
    fn waits(&self) -> Waits {
        let Some(status) = &self.object.status else { return Waits::anywhere() };
        if status.pending_replicas > 0 || !self.is_shared_out() {
            return Waits::anywhere();
        }
        waits_to_leave(&self.object.spec.placement.locations, &status.placements)
    }

    /// Whether a cluster of it only stands in until there is room at home.
    pub(crate) fn stands_in(&self) -> bool {
        self.object.status.iter().flat_map(|status| &status.placements).any(stands_in)
    }

    fn is_shared_out(&self) -> bool {
        let spec = &self.object.spec;
        spec.replicas_mode != ReplicasMode::Total
            || is_shared_out(
                &spec.placement,
                u32::try_from(spec.replicas).unwrap_or(0),
                &weights(spec),
                &self.held().filter(|(_, replicas)| *replicas > 0).collect(),
            )
    }

    /// The replicas that each cluster is to hold, by the last decision.
    pub(crate) fn held(&self) -> impl Iterator<Item = (&str, u32)> {
        let placements = self.object.status.iter().flat_map(|status| &status.placements);
        placements.map(|placed| (placed.cluster.as_str(), u32::try_from(placed.replicas).unwrap_or(0)))
    }
}

impl Declared for Workload {
    type Object = MultiClusterDeployment;
    type Status = MultiClusterDeploymentStatus;
    const KIND: &'static str = KIND;
    const HOLDS_ROOM: bool = true;

    fn of(object: MultiClusterDeployment) -> Self {
        let template = object.spec.template.to_typed().map_err(|error| error.to_string());
        let labels = template.as_ref().ok().and_then(|template| template.metadata.as_ref()?.labels.clone());
        let shape = template.and_then(|template| {
            let shape = PodShape::of_template(&template).map(Shape::from);
            shape.map_err(|error: ShapeError| error.to_string())
        });
        let references = references(&object.spec.template.0);
        let (identity, labels) = (Identity::of(&object.metadata), labels.unwrap_or_default());
        let to_cloud =
            asks_for_cloud(&object.metadata, object.status.as_ref().map(|status| &status.conditions));
        Self { object, identity, shape, labels, references, to_cloud, digests: Mutex::default() }
    }

    fn object(&self) -> &MultiClusterDeployment {
        &self.object
    }

    fn status(&self) -> Option<&MultiClusterDeploymentStatus> {
        self.object.status.as_ref()
    }

    fn set_observed_generation(status: &mut Self::Status, generation: Option<i64>) {
        status.observed_generation = generation;
    }

    fn conditions(status: &mut MultiClusterDeploymentStatus) -> &mut Vec<Condition> {
        &mut status.conditions
    }

    fn decided_by(status: &MultiClusterDeploymentStatus) -> Option<&Reservation> {
        status.reservation.as_ref()
    }

    fn set_decided_by(status: &mut MultiClusterDeploymentStatus, by: Reservation) {
        status.reservation = Some(by);
    }

    fn places(status: &MultiClusterDeploymentStatus) -> Vec<(String, i32, i32)> {
        status.placements.iter().map(|placed| (placed.cluster.clone(), placed.replicas, 0)).collect()
    }

    fn pending(&self) -> Option<Pending<'_>> {
        let status = self.object.status.as_ref()?;
        Some(Pending::Replicas(status.pending_replicas, &status.pending))
    }

    fn identity(&self) -> Option<&Identity> {
        Some(&self.identity)
    }

    fn is_in(&self, cluster: &str) -> bool {
        let mut placements = self.object.status.iter().flat_map(|status| &status.placements);
        placements.any(|placed| placed.cluster == cluster)
    }

    fn references(&self) -> Option<&References> {
        Some(&self.references)
    }

    fn has_dependencies(&self) -> bool {
        let conditions = self.object.status.as_ref().map(|status| status.conditions.as_slice());
        has_dependencies(&self.references, conditions)
    }

    fn reserved(&self) -> capacity::Reservation {
        let placements = self.object.status.iter().flat_map(|status| &status.placements);
        let reserved = placements.map(|placed| {
            let replicas = u32::try_from(placed.replicas).unwrap_or(0);
            (placed.cluster.clone(), self.reserves(replicas, placed.ready_replicas))
        });
        capacity::Reservation {
            uid: self.uid().to_owned(),
            version: self.object.metadata.resource_version.clone(),
            shape: self.shape.as_ref().ok().cloned(),
            reserved: reserved.filter(|(_, replicas)| *replicas > 0).collect(),
            waits: self.waits(),
        }
    }
}

impl Controller for Placement {
    type Declared = Workload;
    type Copy = Deployment;

    fn base(&self) -> &Base<Workload, Deployment> {
        &self.base
    }

    async fn prepare(
        self: &Arc<Self>,
        key: &Key,
        workload: &Arc<Workload>,
    ) -> Result<Option<Action>, CallError> {
        self.adopt(key, workload).await
    }

    async fn reconcile(
        self: &Arc<Self>,
        key: &Key,
        workload: &Arc<Workload>,
        round: Round,
    ) -> Result<Action, CallError> {
        self.look(key, workload, round).await
    }

    fn copy_changed(&self, cluster: &str, key: &Key) {
        let delay = self.copy_settles(Some(cluster));
        self.base.queue.add_within(key.clone(), delay.from, delay.at_last);
    }

    fn member_changed(&self, cluster: &str, event: &MemberEvent) {
        let (workloads, queue) = (&self.base.objects, &self.base.queue);
        match event {
            MemberEvent::Namespace(namespace) => workloads.for_each_in(namespace, |key, workload| {
                if workload.is_unsettled() {
                    queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            MemberEvent::Traffic(namespace) => workloads.for_each_in(namespace, |key, workload| {
                let policy = workload.object.spec.placement.effective_policy();
                if policy == PlacementPolicy::TrafficAware {
                    queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            // A workload that has its place asks how far it is only if it may not be too far.
            MemberEvent::Latency => workloads.for_each(|key, workload| {
                if workload.waits_for_room() || workload.object.spec.placement.max_latency.is_some() {
                    queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            MemberEvent::Health => workloads.for_each(|key, workload| {
                if workload.is_unsettled() || workload.held().any(|(name, _)| name == cluster) {
                    queue.add_within(key.clone(), Duration::ZERO, CLUSTER_SETTLES_AT_LAST);
                }
            }),
            _ => {}
        }
    }

    fn delay(&self, before: &Workload, now: &Workload) -> Delay {
        // Only leaders write its status, and whoever wrote it goes on from there.
        if before.asks_as(now) { self.copy_settles(None) } else { Delay::NONE }
    }

    fn forget(&self, key: &Key) {
        self.trials.forget(key);
        self.comparisons.forget(key);
        self.unwritten.forget(key);
        self.lately_ready.forget(key);
    }
}

/// The shares of clusters when a total is divided.
fn weights(spec: &MultiClusterDeploymentSpec) -> BTreeMap<String, u32> {
    let weight = |weight: i32| u32::try_from(weight).unwrap_or(0);
    spec.weights.iter().map(|each| (each.cluster.clone(), weight(each.weight))).collect()
}
