//! Jobs over clusters: a MultiClusterJob becomes a Job in every member that has a part of the work.
//!
//! A reconcile observes (indexes only), plans (pure, see [`portolan_core::jobs`]), writes the plan into the status by
//! compare-and-swap, and only then touches members. So what was counted once is on record before the Job that brought
//! it can go, and a Job is made only by a record that is the last one: finished work is never run again.

mod desired;
mod facts;
mod missing;
mod observe;
mod orders;
mod preview;
mod reconcile;
mod record;
mod status;
mod supposed;
mod waiting;

pub(crate) use preview::{JobOutlook, Previews};

use crate::capacity::{self, Waits};
use crate::copies::Round;
use crate::dependencies::{References, has_dependencies, references};
use crate::driver::{Base, Context, Controller, Declared, Pending};
use crate::fleet::MemberEvent;
use crate::placement::asks_for_cloud;
use crate::recovery::Identity;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::MultiClusterJob;
use portolan_api::multiclusterjob::{JobPlacementStatus, MultiClusterJobStatus};
use portolan_api::placement::{ReplicasMode, Reservation};
use portolan_core::capacity::{PodShape, Shape};
use portolan_runtime::{Action, CallError, Key};
use record::{count, signed};
use std::sync::Arc;
use std::time::Duration;

/// The kind, as the ledger of reservations knows it.
pub(crate) const KIND: &str = "MultiClusterJob";

/// Namespaces open in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

/// Decides about MultiClusterJobs.
pub(crate) struct Jobs {
    base: Base<DeclaredJob, Job>,
}

impl Jobs {
    /// Jobs for a hub.
    pub(crate) fn new(context: &Context) -> Arc<Self> {
        Arc::new(Self { base: Base::new(context, "portolan.dev/jobs") })
    }
}

/// A job of the hub, and the shape of its pods, read once.
#[derive(Debug)]
pub(crate) struct DeclaredJob {
    object: MultiClusterJob,
    identity: Identity,
    shape: Result<Shape, String>,
    references: References,
    /// Whether the last decision asked for a cloud cluster, and the job is there to stay.
    to_cloud: bool,
}

impl DeclaredJob {
    /// For how many locations the numbers of the spec count.
    fn times(&self) -> u32 {
        match self.object.spec.completions_mode {
            ReplicasMode::PerLocation => {
                u32::try_from(self.object.spec.placement.effective_locations()).unwrap_or(u32::MAX)
            }
            ReplicasMode::Total => 1,
        }
    }

    /// The clusters in which it still runs.
    pub(crate) fn runs_in(&self) -> Vec<String> {
        let record = record::record(self.object.status.as_ref());
        let open = record.parts.iter().filter(|(_, part)| record.end.is_none() && part.open() > 0);
        open.map(|(cluster, _)| cluster.clone()).collect()
    }

    /// Whether a change of clusters makes a difference: completions wait for a cluster, or in one that cannot run them.
    fn is_unsettled(&self) -> bool {
        let stuck = |placed: &JobPlacementStatus| {
            placed.completions > placed.succeeded && (placed.reason.is_some() || placed.active == 0)
        };
        self.object
            .status
            .as_ref()
            .is_none_or(|status| status.pending_completions > 0 || status.placements.iter().any(stuck))
    }
}

impl Declared for DeclaredJob {
    type Object = MultiClusterJob;
    type Status = MultiClusterJobStatus;
    const KIND: &'static str = KIND;
    const HOLDS_ROOM: bool = true;

    fn of(object: MultiClusterJob) -> Self {
        let shape = match object.spec.template.to_typed() {
            Ok(template) => {
                PodShape::of_template(&template).map(Shape::from).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        let references = references(&object.spec.template.0);
        let to_cloud =
            asks_for_cloud(&object.metadata, object.status.as_ref().map(|status| &status.conditions));
        Self { identity: Identity::of(&object.metadata), object, shape, references, to_cloud }
    }

    fn object(&self) -> &MultiClusterJob {
        &self.object
    }

    fn status(&self) -> Option<&MultiClusterJobStatus> {
        self.object.status.as_ref()
    }

    fn set_observed_generation(status: &mut Self::Status, generation: Option<i64>) {
        status.observed_generation = generation;
    }

    fn conditions(status: &mut MultiClusterJobStatus) -> &mut Vec<Condition> {
        &mut status.conditions
    }

    fn decided_by(status: &MultiClusterJobStatus) -> Option<&Reservation> {
        status.reservation.as_ref()
    }

    fn set_decided_by(status: &mut MultiClusterJobStatus, by: Reservation) {
        status.reservation = Some(by);
    }

    fn places(status: &MultiClusterJobStatus) -> Vec<(String, i32, i32)> {
        let placements = status.placements.iter();
        placements.map(|placed| (placed.cluster.clone(), placed.completions, placed.attempt)).collect()
    }

    fn first_status(&self) -> MultiClusterJobStatus {
        let total = signed(count(self.object.spec.completions).saturating_mul(self.times()));
        MultiClusterJobStatus { completions: total, pending_completions: total, ..Default::default() }
    }

    fn pending(&self) -> Option<Pending<'_>> {
        let status = self.object.status.as_ref()?;
        Some(Pending::Completions(status.pending_completions, &status.pending))
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

    // For the pods that may run at the same time.
    fn reserved(&self) -> capacity::Reservation {
        let record = record::record(self.object.status.as_ref());
        let spec = &self.object.spec;
        let (used, open) = record.parts.values().fold((0u32, 0u32), |(used, open), part| {
            (used.saturating_add(part.in_use()), open.saturating_add(part.open()))
        });
        let most = record::count(spec.parallelism).saturating_mul(self.times());
        let slow = used < open.min(most);
        let waits = record.end.is_none() && !spec.suspend && (self.is_unsettled() || slow);
        capacity::Reservation {
            uid: self.uid().to_owned(),
            version: self.object.metadata.resource_version.clone(),
            shape: self.shape.as_ref().ok().cloned(),
            reserved: record.reserved(),
            waits: if waits { Waits::anywhere() } else { Waits::nowhere() },
        }
    }
}

impl Controller for Jobs {
    type Declared = DeclaredJob;
    type Copy = Job;

    fn base(&self) -> &Base<DeclaredJob, Job> {
        &self.base
    }

    async fn reconcile(
        self: &Arc<Self>,
        key: &Key,
        job: &Arc<DeclaredJob>,
        round: Round,
    ) -> Result<Action, CallError> {
        self.look(key, job, round).await
    }

    fn member_changed(&self, cluster: &str, event: &MemberEvent) {
        let (jobs, queue) = (&self.base.objects, &self.base.queue);
        match event {
            MemberEvent::Health | MemberEvent::Latency => jobs.for_each(|key, job| {
                if job.is_unsettled() || job.is_in(cluster) {
                    queue.add(key.clone());
                }
            }),
            MemberEvent::Namespace(namespace) => jobs.for_each_in(namespace, |key, job| {
                if job.is_unsettled() {
                    queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            _ => {}
        }
    }
}
