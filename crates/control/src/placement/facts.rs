//! What placement keeps of the Deployments in members.

use crate::copies::{Copied, copy_event, selector};
use crate::fleet::{CopyMeta, MemberEvent, Needs, Watched, resource};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use portolan_runtime::{Key, foreign_text};
use std::collections::BTreeSet;

/// The most replicas that a member is believed to have of one copy: as many as the schema lets anybody ask for. Sums over
/// clusters stay far from the end of 32 bits.
const REPLICAS_AT_MOST: i32 = 1_000_000;

/// How many images of one copy are told at most.
const IMAGES_AT_MOST: usize = 64;

/// The strategy of Deployments whose pods all end before new ones start.
pub(super) const RECREATE: &str = "Recreate";

/// What placement needs to know of a Deployment in a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeploymentFacts {
    /// Whose it is.
    pub meta: CopyMeta,
    /// Whether its numbers reflect its spec.
    pub settled: bool,
    /// Replicas asked for.
    pub replicas: i32,
    /// Replicas that are ready.
    pub ready: i32,
    /// Replicas of the present template.
    pub updated: i32,
    /// Replicas of an older template that are still there.
    pub outdated: i32,
    /// Replicas that are available.
    pub available: i32,
    /// Whether all its pods end before new ones start.
    pub recreates: bool,
    /// The images of its template, each once, in order.
    pub images: Vec<String>,
    /// Why pods of it cannot be created, if that is so.
    pub failure: Option<String>,
}

impl DeploymentFacts {
    /// Whether so many replicas of the present template are ready, as far as the numbers tell: Kubernetes counts ready
    /// ones of any template, so none of an older one may be left.
    #[must_use]
    pub(crate) fn rolled_out(&self, replicas: i32) -> bool {
        self.settled && self.updated >= replicas && self.outdated <= 0 && self.ready >= replicas
    }

    pub(crate) fn of(deployment: &Deployment) -> Self {
        let meta = &deployment.metadata;
        let status = deployment.status.clone().unwrap_or_default();
        let spec = deployment.spec.as_ref();
        let generation = meta.generation.unwrap_or_default();
        let containers = spec.and_then(|spec| spec.template.spec.as_ref()).map(|pod| &pod.containers);
        let images = containers.into_iter().flatten().filter_map(|container| container.image.as_deref());
        let images: BTreeSet<String> = images.map(foreign_text).collect();
        Self {
            meta: CopyMeta::of(meta),
            settled: status.observed_generation.is_some_and(|observed| observed >= generation),
            replicas: spec.and_then(|spec| spec.replicas).unwrap_or(1).clamp(0, REPLICAS_AT_MOST),
            ready: count(status.ready_replicas),
            updated: count(status.updated_replicas),
            outdated: count(status.replicas) - count(status.updated_replicas),
            available: count(status.available_replicas),
            recreates: spec.and_then(|spec| spec.strategy.as_ref()?.type_.as_deref()) == Some(RECREATE),
            images: images.into_iter().take(IMAGES_AT_MOST).collect(),
            failure: status.conditions.iter().flatten().find_map(failure),
        }
    }
}

/// What a condition says of pods that cannot be created: a quota, Pod Security or a webhook denies them.
fn failure(condition: &DeploymentCondition) -> Option<String> {
    let fails = condition.type_ == "ReplicaFailure" && condition.status == "True";
    let why = condition.message.as_deref().or(condition.reason.as_deref()).unwrap_or_default();
    fails.then(|| foreign_text(why))
}

/// A number that a member tells, within bounds.
fn count(number: Option<i32>) -> i32 {
    number.unwrap_or(0).clamp(0, REPLICAS_AT_MOST)
}

impl Watched for Deployment {
    type Facts = DeploymentFacts;

    fn selector(hub: &str) -> Option<String> {
        Some(selector(hub))
    }

    fn facts(self) -> DeploymentFacts {
        DeploymentFacts::of(&self)
    }

    fn in_place(client: Client, place: &str, config: Config) -> (Api<Self>, Config) {
        (Api::namespaced(client, place), config)
    }

    fn event(key: &Key, facts: &DeploymentFacts) -> Option<MemberEvent> {
        Some(copy_event::<Self>(key, facts))
    }
}

impl Copied for Deployment {
    const NAME: &'static str = "Deployment";
    const OWNER: &'static str = super::KIND;
    const RUNS_PODS: bool = true;
    const NEEDS: Needs =
        Needs(&[resource::<Node>(), resource::<Pod>(), resource::<Namespace>(), resource::<Self>()]);

    fn copy_meta(facts: &DeploymentFacts) -> &CopyMeta {
        &facts.meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_and_images_of_a_member_are_bounded() {
        let container = |name: &str, image: &str| json!({"name": name, "image": image});
        let deployment = json!({
            "metadata": {"name": "web"},
            "spec": {"selector": {}, "replicas": i32::MIN, "template": {"spec": {"containers": [
                container("b", "app:2"), container("a", "app:1\u{1b}"), container("c", "app:2"),
            ]}}},
            "status": {"replicas": i32::MIN, "updatedReplicas": i32::MAX, "readyReplicas": i32::MAX},
        });
        let facts = DeploymentFacts::of(&serde_json::from_value(deployment).unwrap());
        assert_eq!(facts.images, ["app:1\\u{1b}", "app:2"], "each once, in order, clean");
        assert_eq!((facts.replicas, facts.ready), (0, REPLICAS_AT_MOST));
        assert_eq!(facts.outdated, -REPLICAS_AT_MOST);
    }
}
