//! What the room of a member rests on.

use super::Watched;
use crate::names::WORKLOAD_LABEL;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use portolan_core::capacity::{NodeFacts, PodFacts};

impl Watched for Node {
    type Facts = NodeFacts;

    fn facts(self) -> NodeFacts {
        NodeFacts::of(&self)
    }

    fn in_place(client: Client, _: &str, config: Config) -> (Api<Self>, Config) {
        (Api::all(client), config)
    }
}

impl Watched for Pod {
    type Facts = PodFacts;

    fn facts(self) -> PodFacts {
        PodFacts::of(&self, WORKLOAD_LABEL)
    }

    fn in_place(client: Client, place: &str, config: Config) -> (Api<Self>, Config) {
        (Api::namespaced(client, place), config)
    }
}
