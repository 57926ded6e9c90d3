//! A cluster as a workload sees it, and whether it can take replicas.

use super::PlacementRequest;
use crate::capacity::Room;
use portolan_api::Reason;
use portolan_api::placement::{ClusterTaint, TaintEffect};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What is known of a member of the fleet whatever workload is placed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Site {
    /// The name of its ForeignCluster.
    pub name: String,
    /// The labels of its ForeignCluster.
    pub labels: BTreeMap<String, String>,
    /// Its taints.
    pub taints: Vec<ClusterTaint>,
    /// Round-trip times to other clusters, where they are known.
    pub rtt: BTreeMap<String, Duration>,
    /// The round-trip time to the hub, where it is known. Two clusters whose distance is not known are no farther apart
    /// than both ways through the hub.
    pub from_hub: Option<Duration>,
    /// Whether it was made in a cloud and is used last.
    pub cloud: bool,
}

/// A member of the fleet, considered for one workload.
#[derive(Clone, Debug, Default)]
pub struct Candidate {
    /// What all workloads see alike.
    pub site: Arc<Site>,
    /// Why nothing new may be placed there whatever room there is: it is silent, leaving, or keeps its namespace closed.
    pub closed: Option<Refusal>,
    /// Whether what it holds is to go elsewhere if it is closed: its ForeignCluster is being deleted.
    pub leaving: bool,
    /// Why it refuses the workload as it is now, if it was tried there: other clusters are tried first.
    pub refused: Option<Refusal>,
    /// Whether it does not answer: then what is known of its room is of the past.
    pub silent: bool,
    /// What is free there beside the workload's bound pods; its pods that are to be replaced take no room.
    pub room: Room,
    /// How many pods of the workload, as the present spec asks for them, have a node there already.
    pub bound: u32,
    /// How many replicas the workload holds there by its last decision.
    pub reserved: u32,
    /// How many replicas the workload's copy there is asked to run, of whichever template; 0 if it has none.
    pub running: u32,
    /// The clusters that it stands in for by the last decision.
    pub stands_in_for: Vec<String>,
    /// Whether it has been silent for so long that its replicas are to be replaced elsewhere; then nothing is reserved there.
    pub lost: bool,
    /// The traffic that the application receives there, in thousandths of a request per second; nothing if nobody tells.
    pub traffic: Option<u64>,
}

/// Why a cluster does not take replicas, or no more of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason in a word.
    pub reason: Reason,
    /// A sentence with the numbers, and what would help.
    pub message: String,
}

/// Whether a cluster may get replicas of the workload, and keep those that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The cluster can take up to `max_replicas` replicas in all, its present replicas included.
    Feasible {
        /// The most replicas it can hold.
        max_replicas: u32,
        /// What is free there, for putting clusters in order.
        room: Room,
    },
    /// The cluster keeps its replicas, as far as they have room there, and gets no new ones.
    NoNewReplicas(Refusal),
    /// The cluster gets no new replicas, and its replicas move to other clusters if these have room.
    Evict(Refusal),
}

impl Candidate {
    /// The name of its ForeignCluster.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.site.name
    }

    /// Filters: can this cluster take the workload, and how much of it? The other clusters tell how far away they are.
    #[must_use]
    pub fn stands(&self, request: &PlacementRequest, all: &[Candidate]) -> Standing {
        // Nothing can be moved away from a silent cluster: what it holds is not known.
        if let Some(closed) = self.closed.as_ref().filter(|_| self.silent) {
            return Standing::NoNewReplicas(closed.clone());
        }
        if let Some(refusal) = self.not_selected(request).or_else(|| self.evicted(request)) {
            return Standing::Evict(refusal);
        }
        if let Some(refusal) = self.closed.as_ref().or(self.refused.as_ref()) {
            return Standing::NoNewReplicas(refusal.clone());
        }
        match self.too_far(request, all).or_else(|| self.tainted(request)) {
            Some(refusal) => Standing::NoNewReplicas(refusal),
            None => Standing::Feasible { max_replicas: self.max_replicas(), room: self.room },
        }
    }

    /// Whether a taint that is not tolerated asks to use other clusters first.
    pub(super) fn is_discouraged(&self, request: &PlacementRequest) -> bool {
        self.untolerated(request).any(|taint| taint.effect == TaintEffect::PreferNoSchedule)
    }

    /// How many of the replicas that it holds it can keep if nothing new may go there: those that have room. What a
    /// silent cluster holds stays on record, whatever room there was; one that refuses the workload keeps what runs there. A
    /// closed one from which the copy was deleted does not get it back.
    pub(super) fn keeps(&self) -> u32 {
        if self.silent {
            self.reserved
        } else if self.closed.is_some() && self.running == 0 {
            0
        } else if self.refused.is_some() {
            self.reserved.min(self.running)
        } else {
            self.reserved.min(self.max_replicas())
        }
    }

    /// How many replicas have room there, those that are there included.
    pub(super) fn max_replicas(&self) -> u32 {
        self.bound.saturating_add(self.room.max_replicas)
    }

    /// The round-trip time to another cluster: as one of them knows it, or both ways through the hub.
    #[must_use]
    pub fn round_trip(&self, other: &Candidate) -> Option<Duration> {
        let known = self.site.rtt.get(other.name()).or_else(|| other.site.rtt.get(self.name()));
        known.copied().or_else(|| Some(self.site.from_hub? + other.site.from_hub?))
    }

    /// The labels of the cluster, or the selector, were changed on purpose: what runs there goes where it may.
    fn not_selected(&self, request: &PlacementRequest) -> Option<Refusal> {
        let message = "its labels do not match spec.clusterSelector".to_owned();
        (!request.selects(&self.site.labels)).then_some(Refusal { reason: Reason::NotSelected, message })
    }

    /// Workloads are moved away from a cluster with a taint that evicts, and from one that leaves the fleet.
    fn evicted(&self, request: &PlacementRequest) -> Option<Refusal> {
        let taint = self.untolerated(request).find(|taint| taint.effect == TaintEffect::NoExecute);
        let by_taint = taint.map(|taint| Refusal { reason: Reason::Evicted, message: not_tolerated(taint) });
        by_taint.or_else(|| self.closed.clone().filter(|_| self.leaving))
    }

    fn tainted(&self, request: &PlacementRequest) -> Option<Refusal> {
        let taint = self.untolerated(request).find(|taint| taint.effect == TaintEffect::NoSchedule)?;
        Some(Refusal { reason: Reason::TaintNotTolerated, message: not_tolerated(taint) })
    }

    fn untolerated<'a>(&'a self, request: &'a PlacementRequest) -> impl Iterator<Item = &'a ClusterTaint> {
        let tolerations = &request.placement.cluster_tolerations;
        let tolerated =
            |taint: &ClusterTaint| tolerations.iter().any(|toleration| toleration.tolerates(taint));
        self.site.taints.iter().filter(move |taint| !tolerated(taint))
    }

    fn too_far(&self, request: &PlacementRequest, all: &[Candidate]) -> Option<Refusal> {
        let bound = request.placement.max_latency.as_ref().filter(|bound| bound.from != self.name())?;
        let (from, most) = (&bound.from, bound.rtt.0);
        let other = all.iter().find(|each| each.name() == from);
        let known = self.site.rtt.get(from).copied();
        match known.or_else(|| other.and_then(|other| self.round_trip(other))) {
            Some(rtt) if rtt <= most => None,
            Some(rtt) => {
                let message =
                    format!("its round-trip time to {from} is {rtt:?}; spec.maxLatency allows {most:?}");
                Some(Refusal { reason: Reason::LatencyExceeded, message })
            }
            None => {
                let message =
                    format!("its round-trip time to {from} is not known, and spec.maxLatency bounds it");
                Some(Refusal { reason: Reason::LatencyUnknown, message })
            }
        }
    }
}

fn not_tolerated(taint: &ClusterTaint) -> String {
    format!(
        "its taint {} is not tolerated: add it to spec.clusterTolerations to place replicas there",
        taint.key
    )
}
