//! What the room of a member rests on.

use super::Watched;
use crate::names::WORKLOAD_LABEL;
use k8s_openapi::api::core::v1::{Node, Pod};
use portolan_core::capacity::{NodeFacts, PodFacts};

impl Watched for Node {
    type Facts = NodeFacts;

    fn facts(self) -> NodeFacts {
        NodeFacts::of(&self)
    }
}

impl Watched for Pod {
    type Facts = PodFacts;

    fn facts(self) -> PodFacts {
        PodFacts::of(&self, WORKLOAD_LABEL)
    }
}
