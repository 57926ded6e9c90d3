//! Where a service would be, by what the controller goes by.

use super::Services;
use super::follow::follow;
use super::observe::Seen;
use crate::preview::planned;
use portolan_api::MultiClusterService;
use portolan_runtime::Key;

/// Where a service belongs, and what serves it.
#[derive(Debug)]
pub struct ServiceOutlook {
    /// The MultiClusterDeployments that it follows.
    pub follows: Vec<String>,
    /// Every cluster of the fleet; nothing if one was lost sight of.
    pub parts: Option<Vec<ServicePart>>,
}

/// A service in one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServicePart {
    /// The cluster.
    pub cluster: String,
    /// Whether the Service is there, by what was last seen.
    pub there: bool,
    /// Whether it belongs there and is let in.
    pub belongs: bool,
    /// Why it is not let in although it belongs there: a word and a sentence.
    pub refused: Option<(&'static str, String)>,
    /// Whether the cluster answers; if not, these are the last numbers known.
    pub answers: bool,
    /// Endpoints that are ready.
    pub ready: i32,
    /// Endpoints that are not.
    pub not_ready: i32,
    /// What the controller said last of the Service there, if all was not well.
    pub note: Option<String>,
    /// Why, in a sentence.
    pub verdict: String,
}

impl Services {
    /// Where a service of the hub belongs now; nothing if it is not there.
    pub(crate) fn explain(&self, key: &Key) -> Option<ServiceOutlook> {
        let service = self.controller.services.get(key)?;
        Some(self.outlook(key, &service))
    }

    /// Where this service would belong if it were applied, which need not be there yet.
    pub(crate) fn plan_ahead(&self, object: &MultiClusterService) -> ServiceOutlook {
        let (key, mut object) = (Key::of(object), object.clone());
        let existing = self.controller.services.get(&key);
        planned(&mut object.metadata, existing.as_ref().map(|known| &known.metadata));
        object.status = existing.and_then(|known| known.status.clone());
        self.outlook(&key, &object)
    }

    /// Whether all services of the hub are known.
    pub(crate) fn synced(&self) -> bool {
        self.controller.services.synced()
    }

    fn outlook(&self, key: &Key, service: &MultiClusterService) -> ServiceOutlook {
        let following = follow(service, key, &self.controller.workloads);
        let uid = service.metadata.uid.as_deref().unwrap_or_default();
        let part = |(cluster, seen): (String, Seen)| {
            let wanted = following.wanted.contains(&cluster);
            let refused = seen.closed.filter(|_| wanted && seen.copy.is_none());
            let last = service.status.iter().flat_map(|status| &status.clusters);
            let note =
                last.into_iter().find(|each| each.cluster == cluster).and_then(|each| each.message.clone());
            let verdict = match (&refused, wanted, following.lingering.contains(&cluster)) {
                (Some((_, why)), ..) => format!("not there: {why}"),
                (None, true, _) => "there: pods that it selects are placed there".to_owned(),
                (None, false, true) => "going: the pods that it selects are being taken away".to_owned(),
                (None, false, false) if following.workloads.is_empty() => {
                    "not there: no MultiClusterDeployment of the namespace has pods that it selects"
                        .to_owned()
                }
                (None, false, false) => "not there: no pods that it selects are placed there".to_owned(),
            };
            ServicePart {
                there: seen.copy.is_some(),
                belongs: wanted && refused.is_none(),
                answers: seen.member.is_some(),
                ready: seen.ready,
                not_ready: seen.not_ready,
                cluster,
                refused,
                note,
                verdict,
            }
        };
        let seen = self.controller.observe(key, uid);
        let parts = seen.map(|seen| seen.into_iter().map(part).collect());
        ServiceOutlook { follows: following.workloads.clone(), parts }
    }
}
