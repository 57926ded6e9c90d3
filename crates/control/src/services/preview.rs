//! Where a service would be, by what the controller goes by.

use super::Services;
use super::desired::{desired, holds, unchangeable};
use super::follow::follow_with;
use super::observe::{ClusterSnapshot, Observed};
use crate::driver::PreparedCopy;
use crate::placement::Workload;
use portolan_api::MultiClusterService;
use portolan_api::Reason;
use portolan_runtime::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a service belongs, and what serves it.
#[derive(Debug)]
pub(crate) struct ServiceOutlook {
    /// The MultiClusterDeployments that it follows.
    pub(crate) follows: Vec<String>,
    /// The MultiClusterDeployments that it followed, if it selects no pods any more.
    pub(crate) followed: Vec<String>,
    /// Every cluster of the fleet; nothing if one was lost sight of.
    pub(crate) parts: Option<Vec<ServicePart>>,
}

/// A service in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServicePart {
    /// The cluster.
    pub(crate) cluster: String,
    /// Whether the Service is there, by what was last seen.
    pub(crate) there: bool,
    /// Whether pods that it selects are placed there.
    pub(crate) wanted: bool,
    /// Whether it belongs there and is let in.
    pub(crate) belongs: bool,
    /// Why it is not let in although it belongs there: a word and a sentence.
    pub(crate) refused: Option<(Reason, String)>,
    /// What is wanted of the Service there and no Service lets be changed, in a sentence.
    pub(crate) immutable: Option<String>,
    /// Whether the cluster answers; if not, these are the last numbers known.
    pub(crate) is_known: bool,
    /// Endpoints that are ready.
    pub(crate) ready: i32,
    /// Endpoints that are not.
    pub(crate) not_ready: i32,
    /// What the controller said last of the Service there, if all was not well: a word and a sentence.
    pub(crate) note: Option<(Option<String>, String)>,
    /// Why, in a sentence.
    pub(crate) verdict: String,
}

/// Answers where services would be, on what the controller knows.
#[derive(Clone)]
pub(crate) struct Previews(pub(crate) Arc<Services>);

impl Previews {
    /// The service of the hub, if it is there.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<MultiClusterService>> {
        self.0.base.objects.get(key)
    }

    /// Where this service belongs, if these workloads were in the place of those of the same name.
    pub(crate) fn outlook(
        &self,
        key: &Key,
        service: &MultiClusterService,
        instead: &BTreeMap<Key, Workload>,
    ) -> ServiceOutlook {
        let following = follow_with(service, key, &self.0.workloads, instead);
        let context = &self.0.base.context;
        let desired = desired(service, key, &context.hub.id, context.term.epoch());
        let part = |(cluster, seen): (String, ClusterSnapshot)| {
            let wanted = following.wanted.contains(&cluster);
            let refused = seen.closed.filter(|_| wanted && seen.copy.is_none());
            let last = service.status.iter().flat_map(|status| &status.clusters);
            let note = last
                .into_iter()
                .find(|each| each.cluster == cluster)
                .and_then(|each| Some((each.reason.clone(), each.message.clone()?)));
            let verdict = match (&refused, wanted, following.lingering.contains(&cluster)) {
                (Some((_, why)), ..) => format!("not there: {why}"),
                (None, true, _) => "there: pods that it selects are placed there".to_owned(),
                (None, false, _) if following.kept.contains(&cluster) => {
                    "there as it was: the selector selects no pods any more".to_owned()
                }
                (None, false, true) => "going: the pods that it selects are being taken away".to_owned(),
                (None, false, false) if following.workloads.is_empty() => {
                    "not there: no MultiClusterDeployment of the namespace has pods that it selects"
                        .to_owned()
                }
                (None, false, false) => "not there: no pods that it selects are placed there".to_owned(),
            };
            let copy = seen.copy.as_ref().filter(|_| wanted);
            ServicePart {
                immutable: copy.and_then(|copy| unchangeable(copy, &desired)),
                there: seen.copy.is_some(),
                belongs: (wanted && refused.is_none()) || following.kept.contains(&cluster),
                wanted,
                is_known: seen.member.is_some(),
                ready: seen.ready,
                not_ready: seen.not_ready,
                cluster,
                refused,
                note,
                verdict,
            }
        };
        let parts = match self.0.observe(key, service) {
            Observed::Clusters(seen) => Some(seen.into_iter().map(part).collect()),
            Observed::NotSynced | Observed::WorkloadUnreadable => None,
        };
        let selects = following.kept.is_empty() && !following.workloads.is_empty();
        let followed = service.status.iter().flat_map(|status| &status.follows).cloned();
        ServiceOutlook {
            follows: if selects { following.workloads.clone() } else { Vec::new() },
            followed: if selects { Vec::new() } else { followed.collect() },
            parts,
        }
    }

    /// The Services that clusters would be asked to hold.
    pub(crate) fn copies(
        &self,
        key: &Key,
        service: &MultiClusterService,
        outlook: &ServiceOutlook,
    ) -> BTreeMap<String, PreparedCopy> {
        let Observed::Clusters(mut seen) = self.0.observe(key, service) else { return BTreeMap::new() };
        let context = &self.0.base.context;
        let wanted = desired(service, key, &context.hub.id, context.term.epoch());
        let parts = outlook.parts.iter().flatten();
        let parts = parts.filter(|part| part.wanted && part.refused.is_none() && part.immutable.is_none());
        let copy = |part: &ServicePart| {
            let seen = seen.remove(&part.cluster)?;
            let copy = match seen.member {
                None => PreparedCopy::Unreachable,
                Some(_) if seen.copy.as_ref().is_some_and(|copy| holds(copy, &wanted)) => PreparedCopy::Held,
                Some(member) => PreparedCopy::ToApply {
                    member,
                    object: wanted.object.clone(),
                    owned: seen.copy.is_some(),
                },
            };
            Some((part.cluster.clone(), copy))
        };
        parts.filter_map(copy).collect()
    }
}
