//! What users of the hub do.

use super::Story;
use crate::simulation::tally::Drawn;
use crate::simulation::wishes::{Wishes, config, reference};
use crate::simulation::{apply, try_apply};
use crate::{NAMESPACE, job, service};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use portolan_api::placement::DriftPolicy;
use portolan_api::{MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use rand::RngExt;
use serde_json::{Value, json};

/// How often users try again what somebody else's change kept them from.
const TRIES: usize = 5;

impl Story {
    fn workloads(&self) -> Api<MultiClusterDeployment> {
        Api::namespaced(self.fleet.hub.client("user"), NAMESPACE)
    }

    /// Changes a workload that may be there.
    async fn change(&mut self, name: &str, drawn: Drawn, spec: Value) -> bool {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let changed = self.workloads().patch(name, &PatchParams::default(), &patch).await.is_ok();
        if changed {
            self.count(drawn);
        }
        changed
    }

    /// A workload as users mean it.
    pub(super) async fn wish(&mut self, name: &str) {
        let members = self.names();
        let wish = Wishes { members: &members, rng: &mut self.rng, tally: &mut self.tally }.draw(name);
        self.mistaken.remove(name);
        // What was patched meanwhile belongs to nobody who applies: the whole spec is replaced, as `kubectl replace` does.
        for _ in 0..TRIES {
            let Some(mut object) = self.workloads().get_opt(name).await.ok().flatten() else { break };
            object.spec = serde_json::from_value(wish["spec"].clone()).expect("a wish is a workload");
            // A controller may have written its status meanwhile.
            if self.workloads().replace(name, &PostParams::default(), &object).await.is_ok() {
                return;
            }
        }
        apply(&self.fleet.hub.client("user"), &wish).await;
    }

    /// A workload is made, changed or deleted.
    pub(super) async fn ask(&mut self, name: &str) {
        let replicas = self.rng.random_range(0..=4);
        match self.rng.random_range(0..13) {
            0..=6 => {
                self.count(Drawn::WorkloadApplied);
                self.wish(name).await;
            }
            7 => {
                self.change(name, Drawn::WorkloadScaled, json!({"replicas": replicas})).await;
            }
            8 => {
                let image = format!("app:{}", self.rng.random_range(1..=3));
                let requests = json!({"cpu": "200m"});
                let containers =
                    json!([{"name": "main", "image": image, "resources": {"requests": requests}}]);
                let template = json!({"spec": {"containers": containers}});
                self.change(name, Drawn::ImageChanged, json!({"template": template})).await;
            }
            9 => {
                let policy = json!({
                    "locations": null, "enableSubstitution": null,
                    "placementPolicy": "worst-fit", "numberOfLocations": 1,
                });
                self.change(name, Drawn::PolicyChanged, policy).await;
            }
            10 => {
                let removed = json!({
                    "maxLatency": null, "onUnreachable": null, "replaceAfter": null, "enableBursting": null,
                });
                self.change(name, Drawn::FieldsRemoved, removed).await;
            }
            11 => {
                let pauses = self.rng.random_bool(0.6);
                let drawn = if pauses { Drawn::Paused } else { Drawn::Unpaused };
                self.change(name, drawn, json!({"paused": pauses})).await;
            }
            _ => {
                if self.workloads().delete(name, &Default::default()).await.is_ok() {
                    self.count(Drawn::WorkloadDeleted);
                    self.mistaken.remove(name);
                }
            }
        }
    }

    /// A workload is changed into one that cannot be, or not as it was meant.
    pub(super) async fn mistake(&mut self, name: &str) {
        let asking = |requests: Value| {
            json!({"template": {"spec": {
                "initContainers": null,
                "containers": [{"name": "main", "image": "app:1", "resources": {"requests": requests}}],
            }}})
        };
        let nowhere = json!({
            "placementPolicy": null, "numberOfLocations": null, "maxLatency": null, "locations": ["nowhere"],
            "spread": null, "weights": null,
        });
        let (drawn, spec) = match self.rng.random_range(0..10) {
            0 => (Drawn::CpuMistyped, asking(json!({"cpu": "50"}))),
            1 => (Drawn::MemoryBeyond, asking(json!({"cpu": "50m", "memory": "32Gi"}))),
            2 => (Drawn::UnknownLocation, nowhere),
            3 => {
                let selector = json!({"matchLabels": {"nobody": "has-this"}});
                (Drawn::SelectorUnmatched, json!({"clusterSelector": selector}))
            }
            4 => {
                let containers = json!([{"name": "main", "image": "broken:1", "resources": {"requests": {"cpu": "100m"}}}]);
                (Drawn::ImageBroken, json!({"template": {"spec": {"containers": containers}}}))
            }
            5 => {
                let selector = json!({"disk": "none-has-this"});
                (Drawn::NodeSelectorUnmatched, json!({"template": {"spec": {"nodeSelector": selector}}}))
            }
            6 => {
                // A member whose room is not counted is given all of them, and a sandbox has to run them.
                let uncounted = self.tally.has(Drawn::ClusterUncounted);
                (Drawn::HugeReplicas, json!({"replicas": if uncounted { 500 } else { 100_000 }}))
            }
            7 => {
                let containers = json!([{"name": "Not A Name", "image": "app:1"}]);
                (Drawn::TemplateInvalid, json!({"template": {"spec": {"containers": containers}}}))
            }
            8 => return self.remove_finalizer(name).await,
            _ => {
                self.count(Drawn::EditRefused);
                let mut wrong = crate::workload(name, 1, json!({"locations": ["m1"]}));
                wrong["spec"]["replicas"] = json!("three");
                let refused = try_apply(&self.fleet.hub.client("user"), &wrong).await;
                assert!(refused.is_err(), "the hub takes a text for a number");
                return;
            }
        };
        if self.change(name, drawn, spec).await {
            self.mistaken.insert(name.to_owned());
        }
    }

    /// Users let go on what they have paused, and have corrected what somebody changed in a member.
    pub(super) async fn unpause(&mut self) {
        let found = self.workloads().list(&Default::default()).await.map(|list| list.items);
        for workload in found.unwrap_or_default() {
            let name = workload.metadata.name.clone().unwrap_or_default();
            if workload.spec.paused {
                self.change(&name, Drawn::Unpaused, json!({"paused": false})).await;
            }
            if workload.spec.drift_policy == DriftPolicy::Report && self.changed_there.contains(&name) {
                let patch = Patch::Merge(json!({"spec": {"driftPolicy": "Correct"}}));
                let _ = self.workloads().patch(&name, &PatchParams::default(), &patch).await;
            }
        }
    }

    /// Somebody who finds a finalizer in the way removes it.
    async fn remove_finalizer(&mut self, name: &str) {
        let found = self.workloads().get_opt(name).await.ok().flatten();
        let stays = found.is_some_and(|found| {
            found.metadata.deletion_timestamp.is_none() && found.metadata.finalizers.is_some()
        });
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        if stays && self.workloads().patch(name, &PatchParams::default(), &patch).await.is_ok() {
            self.count(Drawn::FinalizerRemoved);
        }
    }

    /// ConfigMaps, services and jobs.
    pub(super) async fn ask_for_more(&mut self) {
        let user = self.fleet.hub.client("user");
        match self.rng.random_range(0..8) {
            0 => {
                self.count(Drawn::ConfigChanged);
                let object = config(self.rng.random_range(0..3), self.rng.random_range(0..100));
                apply(&user, &object).await;
            }
            1 => {
                let api: Api<ConfigMap> = Api::namespaced(user, NAMESPACE);
                let name = format!("config{}", self.rng.random_range(0..3));
                if api.delete(&name, &Default::default()).await.is_ok() {
                    self.count(Drawn::ConfigChanged);
                }
            }
            2 => {
                self.count(Drawn::ServiceChanged);
                apply(&user, &service("web", json!({"app": "any"}))).await;
            }
            3 => {
                let api: Api<MultiClusterService> = Api::namespaced(user, NAMESPACE);
                if api.delete("web", &Default::default()).await.is_ok() {
                    self.count(Drawn::ServiceChanged);
                }
            }
            4..=6 => {
                self.count(Drawn::JobChanged);
                self.ask_for_work().await;
            }
            _ => {
                let api: Api<MultiClusterJob> = Api::namespaced(user, NAMESPACE);
                if api.delete("batch0", &Default::default()).await.is_ok() {
                    self.count(Drawn::JobChanged);
                }
            }
        }
    }

    /// A job is made, or one that is there is held, let go or run at another pace.
    async fn ask_for_work(&mut self) {
        let user = self.fleet.hub.client("user");
        let name = format!("batch{}", self.rng.random_range(0..2));
        let (completions, parallelism) = (self.rng.random_range(1..=5), self.rng.random_range(1..=3));
        let (suspend, total) = (self.rng.random_bool(0.2), self.rng.random_bool(0.5));
        let members = self.names();
        let count = self.rng.random_range(1..=members.len());
        let by_name = self.rng.random_bool(0.6);
        let api: Api<MultiClusterJob> = Api::namespaced(user.clone(), NAMESPACE);
        if api.get_opt(&name).await.is_ok_and(|found| found.is_some()) {
            let patch = json!({"spec": {"parallelism": parallelism, "suspend": suspend}});
            // It may be gone by now.
            let _ = api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await;
            return;
        }
        let mut more = if by_name {
            json!({"locations": members[..count]})
        } else {
            json!({"placementPolicy": "worst-fit", "numberOfLocations": 1})
        };
        more["countMode"] = json!(if total { "Total" } else { "PerLocation" });
        let mut wish = job(&name, completions, parallelism, more);
        if let Some(reference) = reference(&mut self.rng) {
            wish["spec"]["template"]["spec"]["containers"][0]["envFrom"] = reference;
        }
        apply(&user, &wish).await;
    }
}
