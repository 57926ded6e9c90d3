//! Services over clusters: a MultiClusterService becomes a Service in every member that holds the pods it selects.
//!
//! It follows the MultiClusterDeployments whose template it selects: where they are placed, a Service is applied; where
//! their copy is gone, the Service goes too, once pods elsewhere answer. What serves it is read from EndpointSlices.

mod desired;
mod facts;
mod follow;
mod observe;
mod preview;
mod reconcile;
mod status;

pub(crate) use preview::{Previews, ServiceOutlook, ServicePart};

use crate::copies::Round;
use crate::driver::{Base, Context, Controller, Declared};
use crate::fleet::MemberEvent;
use crate::placement::{Placement, Workload};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use portolan_api::placement::Reservation;
use portolan_api::{MultiClusterService, MultiClusterServiceStatus};
use portolan_runtime::{Action, CallError, Index, Key, Queue};
use std::sync::Arc;
use std::time::Duration;

const KIND: &str = "MultiClusterService";

/// Namespaces open in bursts; one look after this long serves them all.
const ROOM_SETTLES: Duration = Duration::from_millis(100);

/// Decides about MultiClusterServices.
pub(crate) struct Services {
    base: Base<MultiClusterService, Service>,
    workloads: Index<Workload>,
}

impl Services {
    /// Services for a hub, following the workloads that placement places.
    pub(crate) fn new(context: &Context, placement: &Placement) -> Arc<Self> {
        let base = Base::new(context, "portolan.dev/services");
        let workloads = placement.base().objects.clone();
        let (services, known, queue) = (base.objects.clone(), workloads.clone(), base.queue.clone());
        placement.base().on_change(move |key| workload_changed(&services, &known, &queue, key));
        Arc::new(Self { base, workloads })
    }
}

impl Declared for MultiClusterService {
    type Object = Self;
    type Status = MultiClusterServiceStatus;
    const KIND: &'static str = KIND;
    const HOLDS_ROOM: bool = false;

    fn of(object: Self) -> Self {
        object
    }

    fn object(&self) -> &Self {
        self
    }

    fn status(&self) -> Option<&MultiClusterServiceStatus> {
        self.status.as_ref()
    }

    fn set_observed_generation(status: &mut Self::Status, generation: Option<i64>) {
        status.observed_generation = generation;
    }

    fn conditions(status: &mut MultiClusterServiceStatus) -> &mut Vec<Condition> {
        &mut status.conditions
    }

    fn decided_by(status: &MultiClusterServiceStatus) -> Option<&Reservation> {
        status.reservation.as_ref()
    }

    fn set_decided_by(status: &mut MultiClusterServiceStatus, by: Reservation) {
        status.reservation = Some(by);
    }

    fn places(status: &MultiClusterServiceStatus) -> Vec<(String, i32, i32)> {
        status.clusters.iter().map(|each| (each.cluster.clone(), 1, 0)).collect()
    }
}

impl Controller for Services {
    type Declared = MultiClusterService;
    type Copy = Service;

    fn base(&self) -> &Base<MultiClusterService, Service> {
        &self.base
    }

    async fn reconcile(
        self: &Arc<Self>,
        key: &Key,
        service: &Arc<MultiClusterService>,
        round: Round,
    ) -> Result<Action, CallError> {
        self.look(key, service, round).await
    }

    fn member_changed(&self, cluster: &str, event: &MemberEvent) {
        let (services, queue) = (&self.base.objects, &self.base.queue);
        match event {
            MemberEvent::Health => services.for_each(|key, service| {
                if service.is_in(cluster) {
                    queue.add(key.clone());
                }
            }),
            // A namespace that is open now lets in a Service that waits for it.
            MemberEvent::Namespace(namespace) => services.for_each_in(namespace, |key, service| {
                let known = service.status.iter().flat_map(|status| &status.clusters);
                if known.into_iter().any(|each| each.cluster == cluster && each.reason.is_some()) {
                    queue.add_after(key.clone(), ROOM_SETTLES);
                }
            }),
            _ => {}
        }
    }
}

/// A MultiClusterDeployment of the hub has changed: looks again at the services that follow it, or followed it.
fn workload_changed(
    services: &Index<MultiClusterService>,
    workloads: &Index<Workload>,
    queue: &Queue<Key>,
    key: &Key,
) {
    let workload = workloads.get(key);
    services.for_each_in(&key.namespace, |service_key, service| {
        let followed = service.status.iter().flat_map(|status| &status.follows);
        let selected = workload.as_ref().is_some_and(|workload| follow::selects(service, workload));
        if selected || followed.into_iter().any(|name| *name == key.name) {
            queue.add(service_key.clone());
        }
    });
}
