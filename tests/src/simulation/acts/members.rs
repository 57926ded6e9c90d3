//! What administrators and tenants of members do.

use super::Story;
use crate::simulation::apply;
use crate::simulation::tally::Drawn;
use crate::{NAMESPACE, open_namespace};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ResourceQuota};
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_control::names::{HUB_LABEL, WORKLOAD_LABEL};
use portolan_sandbox::{DenyingPolicy, HostileAnswer, HostileRule, MutatingHook, RequestFilter};
use rand::RngExt;
use serde_json::json;

/// Hooks, policies, LimitRanges and quotas of simulations are called so.
const NAME: &str = "drawn";

impl Story {
    fn copies(&self, member: usize) -> Api<Deployment> {
        Api::namespaced(self.fleet.members[member].client("user"), NAMESPACE)
    }

    /// Somebody changes a copy in a member, or deletes it.
    pub(super) async fn meddle(&mut self, member: usize, name: &str) {
        match self.rng.random_range(0..8) {
            0..=2 => {
                if self.scale_copy(member, name).await {
                    self.count(Drawn::CopyScaled);
                }
            }
            3 => {
                if self.copies(member).delete(name, &Default::default()).await.is_ok() {
                    self.count(Drawn::CopyDeleted);
                    self.observer.excuse(self.fleet.members[member].name(), name);
                }
            }
            4 => {
                let label = [HUB_LABEL, WORKLOAD_LABEL][self.rng.random_range(0..2)];
                let patch = Patch::Merge(json!({"metadata": {"labels": {label: null}}}));
                if self.copies(member).patch(name, &PatchParams::default(), &patch).await.is_ok() {
                    self.count(Drawn::CopyLabelRemoved);
                    self.observer.excuse(self.fleet.members[member].name(), name);
                }
            }
            5..=6 => self.delete_a_pod(member).await,
            _ => {
                self.count(Drawn::Autoscaler);
                self.autoscaled.insert((member, name.to_owned()));
            }
        }
    }

    pub(super) async fn scale_copy(&mut self, member: usize, name: &str) -> bool {
        let patch = json!({"spec": {"replicas": self.rng.random_range(0..=5)}});
        let scaled =
            self.copies(member).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.is_ok();
        if scaled {
            self.changed_there.insert(name.to_owned());
        }
        scaled
    }

    async fn delete_a_pod(&mut self, member: usize) {
        let api: Api<Pod> = Api::namespaced(self.fleet.members[member].client("user"), NAMESPACE);
        let pods = api.list(&Default::default()).await.map(|list| list.items).unwrap_or_default();
        let of_copies = pods.iter().filter(|pod| {
            pod.metadata.owner_references.iter().flatten().any(|owner| owner.kind == "ReplicaSet")
        });
        let names: Vec<_> = of_copies.filter_map(|pod| pod.metadata.name.clone()).collect();
        if !names.is_empty() {
            self.count(Drawn::PodDeleted);
            let _ = api.delete(&names[self.rng.random_range(0..names.len())], &Default::default()).await;
        }
    }

    /// An administrator closes, bounds or empties the namespace, or installs what changes or denies objects.
    pub(super) async fn administer(&mut self, member: usize) {
        let cluster = self.fleet.members[member].clone();
        let client = cluster.client("user");
        let in_namespace = json!({"name": NAME, "namespace": NAMESPACE});
        match self.rng.random_range(0..10) {
            0..=1 if self.emptied.contains(&member) => {}
            0 => {
                self.count(Drawn::NamespaceClosed);
                let mut namespace = open_namespace();
                namespace["metadata"]["labels"]["portolan.dev/placement"] = json!("closed");
                apply(&client, &namespace).await;
                self.closed.insert(member);
            }
            1 => {
                self.count(Drawn::NamespaceDeleted);
                let api: Api<Namespace> = Api::all(client);
                let _ = api.delete(NAMESPACE, &Default::default()).await;
                self.emptied.insert(member);
                self.closed.remove(&member);
                self.admitting.remove(&member);
                cluster.remove_admission(NAME);
                self.observer.excuse_all(cluster.name());
            }
            2 => {
                self.count(Drawn::OldVersion);
                let older = HostileAnswer::edit(|version| version["gitVersion"] = json!("v1.29.1"));
                let asked = RequestFilter::any().resource("/version");
                self.fleet.world.hostile(cluster.name(), vec![HostileRule::new(asked, older)]);
            }
            _ if self.emptied.contains(&member) => {}
            3 => {
                self.count(Drawn::LimitRange);
                self.admitting.insert(member);
                let limit = json!({"type": "Container", "defaultRequest": {"memory": "64Mi"}, "max": {"cpu": "700m"}});
                apply(
                    &client,
                    &json!({
                        "apiVersion": "v1", "kind": "LimitRange", "metadata": in_namespace,
                        "spec": {"limits": [limit]},
                    }),
                )
                .await;
            }
            4 => {
                self.count(Drawn::Quota);
                self.admitting.insert(member);
                let hard =
                    json!({"requests.cpu": format!("{}00m", self.rng.random_range(3..=20)), "pods": "6"});
                apply(
                    &client,
                    &json!({
                        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": in_namespace,
                        "spec": {"hard": hard},
                    }),
                )
                .await;
            }
            5 => {
                self.count(Drawn::Hook);
                self.admitting.insert(member);
                let proxy =
                    json!({"name": "proxy", "image": "proxy:1", "resources": {"requests": {"cpu": "50m"}}});
                cluster.add_hook(MutatingHook::inject_container(NAME, proxy));
            }
            6 => self.define_a_kind(member).await,
            7 => self.make_it_a_hub(member).await,
            _ => {
                self.count(Drawn::Policy);
                self.admitting.insert(member);
                let policy = DenyingPolicy::new(NAME, &["Deployment"], "not in this cluster");
                let by_403 = self.rng.random_bool(0.5);
                cluster.add_policy(if by_403 { policy.forbidden() } else { policy });
            }
        }
    }

    /// Nothing is bounded, changed or denied any more, and pods that were changed are made anew.
    pub(super) async fn stop_admission(&self, member: usize) {
        let cluster = &self.fleet.members[member];
        cluster.remove_admission(NAME);
        let client = cluster.client("user");
        let ranges: Api<LimitRange> = Api::namespaced(client.clone(), NAMESPACE);
        let quotas: Api<ResourceQuota> = Api::namespaced(client.clone(), NAMESPACE);
        // There may be one of them only.
        let _ = ranges.delete(NAME, &Default::default()).await;
        let _ = quotas.delete(NAME, &Default::default()).await;
        let pods: Api<Pod> = Api::namespaced(client, NAMESPACE);
        for pod in pods.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
            let injected = pod.spec.iter().flat_map(|spec| &spec.containers).any(|each| each.name == "proxy");
            let set =
                pod.metadata.annotations.is_some_and(|all| all.contains_key("kubernetes.io/limit-ranger"));
            if injected || set {
                let _ = pods.delete(&pod.metadata.name.unwrap_or_default(), &Default::default()).await;
            }
        }
    }

    /// Whoever took the labels off a copy gives up what is left of it.
    pub(super) async fn take_back_copies(&self) {
        for member in 0..self.fleet.members.len() {
            let copies = self.copies(member);
            for copy in copies.list(&Default::default()).await.map(|list| list.items).unwrap_or_default() {
                let labels = copy.metadata.labels.unwrap_or_default();
                if !labels.contains_key(HUB_LABEL) || !labels.contains_key(WORKLOAD_LABEL) {
                    let _ = copies.delete(&copy.metadata.name.unwrap_or_default(), &Default::default()).await;
                }
            }
        }
    }
}
