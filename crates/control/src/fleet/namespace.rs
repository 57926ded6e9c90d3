//! Which namespaces of a member let workloads in.

use super::{MemberEvent, Watched};
use crate::names::{OPT_IN, OPT_IN_LABEL};
use k8s_openapi::api::core::v1::Namespace;
use kube::runtime::watcher::Config;
use kube::{Api, Client};
use portolan_runtime::Key;

/// Whether a namespace lets workloads be placed in it.
impl Watched for Namespace {
    type Facts = bool;

    fn facts(self) -> bool {
        let label = self.metadata.labels.as_ref().and_then(|labels| labels.get(OPT_IN_LABEL));
        label.is_some_and(|value| value == OPT_IN) && self.metadata.deletion_timestamp.is_none()
    }

    fn in_place(client: Client, place: &str, config: Config) -> (Api<Self>, Config) {
        (Api::all(client), config.fields(&format!("metadata.name={place}")))
    }

    fn event(key: &Key, _: &bool) -> Option<MemberEvent> {
        Some(MemberEvent::Namespace(key.name.clone()))
    }
}
