//! What happens in an elastic world: users, loads, clouds and members act, one at a time.

use super::draw::{Plan, tenant};
use super::judge::Judge;
use super::stage::Stage;
use crate::simulation::readiness::Readiness;
use crate::simulation::tally::{Drawn, Tally};
use crate::simulation::{CONTROLLER, apply, try_apply};
use crate::{NAMESPACE, autoscaler, service};
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use portolan_sandbox::{
    CloudFailure, FaultAnswer, HostileAnswer, HostileRule, PartialFault, RequestFilter, Source,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

const CAPI: &str = "cluster.x-k8s.io/v1beta2";
const OURS: &str = "portolan.dev/v1alpha1";
const METRICS: &str = "pods.metrics.k8s.io";

/// One world and what goes on in it.
pub(super) struct Story {
    pub(super) stage: Stage,
    pub(super) plan: Plan,
    pub(super) rng: ChaCha8Rng,
    pub(super) tally: Tally,
    pub(super) readiness: Readiness,
    pub(super) judge: Judge,
    /// The faults that hold, by name.
    faults: Vec<String>,
    /// The members that are cut off.
    cut: Vec<String>,
}

impl Story {
    pub(super) fn new(stage: Stage, plan: Plan, rng: ChaCha8Rng, tally: Tally, readiness: Readiness) -> Self {
        let judge = Judge::default();
        Self { stage, plan, rng, tally, readiness, judge, faults: Vec::new(), cut: Vec::new() }
    }

    /// Users declare what they want. In most worlds the first rush has begun.
    pub(super) async fn begin(&mut self) {
        self.wish().await;
        if self.rng.random_bool(0.7) {
            self.send("home", 100);
            self.apply(&tenant(6)).await;
        }
        if self.rng.random_bool(0.7) {
            self.tally.add(Drawn::Rescheduler);
            self.apply(&self.plan.rescheduler.clone()).await;
        }
    }

    /// All that users mean to have, but for the rescheduler.
    async fn wish(&mut self) {
        self.apply(&self.plan.web.clone()).await;
        self.apply(&service("web", json!({"app": "web"}))).await;
        self.apply(&self.plan.autoscaler.clone()).await;
        for provisioner in self.plan.provisioners.clone() {
            self.judge.allow(&provisioner);
            self.apply(&provisioner).await;
        }
    }

    pub(super) async fn apply(&self, object: &Value) {
        apply(&self.stage.hub.client("user"), object).await;
    }

    pub(super) fn objects(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let user = self.stage.hub.client("user");
        match namespace {
            Some(namespace) => Api::namespaced_with(user, namespace, &resource),
            None => Api::all_with(user, &resource),
        }
    }

    async fn delete(&mut self, drawn: Drawn, kind: &str, namespace: Option<&str>, name: &str) {
        if self.objects(OURS, kind, namespace).delete(name, &Default::default()).await.is_ok() {
            self.tally.add(drawn);
        }
    }

    async fn change(
        &mut self,
        drawn: Drawn,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        spec: Value,
    ) -> bool {
        let patch = Patch::Merge(json!({ "spec": spec }));
        let api = self.objects(OURS, kind, namespace);
        let changed = api.patch(name, &PatchParams::default(), &patch).await.is_ok();
        if changed {
            self.tally.add(drawn);
        }
        changed
    }

    /// One thing happens.
    pub(super) async fn act(&mut self) {
        match self.rng.random_range(0..100) {
            0..=17 => self.load(),
            18..=28 => self.fill().await,
            29..=41 => self.edit_autoscaler().await,
            42..=51 => self.spoil_metrics(),
            52..=66 => self.edit_provisioner().await,
            67..=79 => self.spoil_cloud(),
            80..=92 => self.meddle().await,
            93..=96 => self.edit_rescheduler().await,
            _ => self.cut_or_heal(),
        }
    }

    /// The load of a cluster changes.
    fn load(&mut self) {
        self.tally.add(Drawn::LoadChanged);
        let members = &self.plan.members;
        let from = members[self.rng.random_range(0..members.len())].0;
        let requests = [0, 0, 5, 20, 60, 120][self.rng.random_range(0..6)];
        self.send(from, requests);
    }

    pub(super) fn send(&self, from: &str, requests: u64) {
        let source = Source {
            cluster: from.to_owned(),
            namespace: NAMESPACE.to_owned(),
            service: "web".to_owned(),
            requests_per_1000s: requests * 1000,
        };
        self.stage.world.send_traffic(from, source);
    }

    /// Somebody else takes room at home, or leaves it.
    async fn fill(&mut self) {
        self.tally.add(Drawn::HomeFilled);
        let replicas = self.rng.random_range(0..=8);
        self.apply(&tenant(replicas)).await;
    }

    async fn edit_autoscaler(&mut self) {
        let (kind, within) = ("MultiClusterHorizontalPodAutoscaler", Some(NAMESPACE));
        match self.rng.random_range(0..6) {
            0 => {
                let most = self.rng.random_range(3..=20);
                let limits = json!({"minReplicas": self.rng.random_range(1..=3), "maxReplicas": most});
                self.change(Drawn::AutoscalerChanged, kind, within, "web", limits).await;
            }
            1 => self.delete(Drawn::AutoscalerDeleted, kind, within, "web").await,
            2 => {
                self.tally.add(Drawn::SecondAutoscaler);
                self.apply(&autoscaler("again", "web", 1, 4)).await;
            }
            3 => {
                self.tally.add(Drawn::AutoscalerRefused);
                let wrong = autoscaler("web", "web", 5, 2);
                let refused = try_apply(&self.stage.hub.client("user"), &wrong).await;
                assert!(refused.is_err(), "the hub takes a minimum above the maximum");
            }
            4 => {
                let replicas = json!({"replicas": self.rng.random_range(0..=9)});
                self.change(Drawn::WorkloadScaled, "MultiClusterDeployment", within, "web", replicas).await;
            }
            _ => {
                self.tally.add(Drawn::AutoscalerChanged);
                self.apply(&self.plan.autoscaler.clone()).await;
            }
        }
    }

    /// The metrics of a member are missing, late or absurd.
    fn spoil_metrics(&mut self) {
        let members = &self.plan.members;
        let member = members[self.rng.random_range(0..members.len())].0;
        let requests = RequestFilter::any().cluster(member).resource(METRICS).party(CONTROLLER);
        let (drawn, answer) = match self.rng.random_range(0..6) {
            0 => (Drawn::MetricsMissing, FaultAnswer::Status(404)),
            1 => (Drawn::MetricsMissing, FaultAnswer::Status(503)),
            2 => (Drawn::MetricsLate, FaultAnswer::Hang),
            3 => (Drawn::MetricsLate, FaultAnswer::Slow(self.rng.random_range(1..=40))),
            _ => {
                self.tally.add(Drawn::MetricsAbsurd);
                let used = ["-3", "1e30", "many", "999999999", "", "0"][self.rng.random_range(0..6)];
                let edit = HostileAnswer::edit(move |object| {
                    for container in object["containers"].as_array_mut().into_iter().flatten() {
                        container["usage"]["cpu"] = json!(used);
                    }
                });
                self.stage.world.hostile(member, vec![HostileRule::new(requests, edit)]);
                return;
            }
        };
        self.tally.add(drawn);
        let name = format!("{} in {member}", drawn.name());
        self.stage.world.add_fault(PartialFault::new(&name, requests, answer));
        self.faults.push(name);
    }

    async fn edit_provisioner(&mut self) {
        let place = self.rng.random_range(0..self.plan.provisioners.len());
        let declared = self.plan.provisioners[place].clone();
        let name = declared["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let kind = "CloudProvisioner";
        match self.rng.random_range(0..7) {
            0 => {
                let paused = json!({"paused": self.rng.random_bool(0.5)});
                self.change(Drawn::ProvisionerPaused, kind, None, &name, paused).await;
            }
            1 | 2 => {
                let nodes = json!({"maxNodes": self.rng.random_range(1..=6)});
                let mut allowed = declared.clone();
                allowed["spec"]["maxNodes"] = nodes["maxNodes"].clone();
                self.judge.allow(&allowed);
                self.change(Drawn::ProvisionerLimited, kind, None, &name, nodes).await;
            }
            3 => self.delete(Drawn::ProvisionerDeleted, kind, None, &name).await,
            4 => {
                self.tally.add(Drawn::ProvisionerRefused);
                let mut wrong = declared;
                wrong["spec"]["minNodes"] = json!(9);
                let refused = try_apply(&self.stage.hub.client("user"), &wrong).await;
                assert!(refused.is_err(), "the hub takes a minimum above the maximum");
            }
            _ => {
                // One that is being deleted is made anew when it is gone.
                let _ = try_apply(&self.stage.hub.client("user"), &declared).await;
            }
        }
    }

    fn spoil_cloud(&mut self) {
        let cloud = &self.stage.cloud;
        let failure = CloudFailure::new("QuotaExceeded", "40 of 40 cores are used");
        match self.rng.random_range(0..5) {
            0 => {
                self.tally.add(Drawn::CloudRefusesClusters);
                cloud.refuse_clusters(Some(failure));
            }
            1 => {
                self.tally.add(Drawn::CloudRefusesMachines);
                cloud.refuse_machines("small", Some(failure));
            }
            2 => {
                self.tally.add(Drawn::CloudQuota);
                cloud.limit_machines(Some(self.rng.random_range(0..=3)));
            }
            _ => self.restore_cloud(),
        }
    }

    fn restore_cloud(&self) {
        let cloud = &self.stage.cloud;
        cloud.refuse_clusters(None);
        cloud.refuse_machines("small", None);
        cloud.limit_machines(None);
    }

    /// Somebody deletes what Portolan has made.
    async fn meddle(&mut self) {
        let first = async |api: Api<DynamicObject>| {
            let all = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
            let name = all.into_iter().next().and_then(|object| object.metadata.name)?;
            api.delete(&name, &Default::default()).await.ok()
        };
        let within = Some(super::CLOUDS);
        match self.rng.random_range(0..4) {
            0 => {
                if first(self.objects(CAPI, "Cluster", within)).await.is_some() {
                    self.tally.add(Drawn::CloudClusterDeleted);
                }
            }
            1 => {
                if first(self.objects(CAPI, "Machine", within)).await.is_some() {
                    self.tally.add(Drawn::MachineDeleted);
                }
            }
            2 => self.delete(Drawn::CloudMemberDeleted, "ForeignCluster", None, "cloud1").await,
            _ => self.keep_by_budget().await,
        }
    }

    /// A PodDisruptionBudget in the cloud cluster allows no disruption.
    async fn keep_by_budget(&mut self) {
        let cloud = self.cloud_clusters().into_iter().next();
        if let Some(cluster) = cloud.and_then(|name| self.stage.world.cluster(&name)) {
            let budget = json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                "metadata": {"name": "web", "namespace": NAMESPACE},
                "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "web"}}},
            });
            // The namespace comes with the first copy.
            if try_apply(&cluster.client("user"), &budget).await.is_ok() {
                self.tally.add(Drawn::Budget);
            }
        }
    }

    /// The sandbox clusters that the cloud runs, by name.
    fn cloud_clusters(&self) -> Vec<String> {
        let running = self.stage.cloud.running();
        let names = running.iter().filter_map(|machine| machine.cluster.split('/').next_back());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.dedup();
        names
    }

    async fn edit_rescheduler(&mut self) {
        let kind = "MultiClusterRescheduler";
        match self.rng.random_range(0..4) {
            0 => self.delete(Drawn::ReschedulerChanged, kind, None, "back").await,
            1 => {
                self.change(Drawn::ReschedulerChanged, kind, None, "back", json!({"dryRun": true})).await;
            }
            2 => {
                self.change(Drawn::ReschedulerChanged, kind, None, "back", json!({"paused": true})).await;
            }
            _ => {
                self.tally.add(Drawn::Rescheduler);
                self.apply(&self.plan.rescheduler.clone()).await;
            }
        }
    }

    fn cut_or_heal(&mut self) {
        if self.rng.random_bool(0.4) {
            return self.heal();
        }
        let mut names: Vec<String> = self.plan.members.iter().map(|(name, ..)| (*name).to_owned()).collect();
        names.extend(self.cloud_clusters());
        let name = names[self.rng.random_range(0..names.len())].clone();
        self.tally.add(Drawn::CutOff);
        self.readiness.unseen(&name);
        self.readiness.unseen("cloud1");
        self.readiness.unseen("cloud2");
        self.stage.world.partition(CONTROLLER, &name);
        self.cut.push(name);
    }

    fn heal(&mut self) {
        let now = self.stage.world.clock().now();
        for name in self.cut.drain(..) {
            self.stage.world.heal(CONTROLLER, &name);
            [name.as_str(), "cloud1", "cloud2"].iter().for_each(|name| self.readiness.seen(name, now));
        }
    }

    /// All that was broken is whole again, users correct their mistakes, and the load stays as it is.
    pub(super) async fn mend(&mut self) {
        self.heal();
        self.faults.drain(..).for_each(|name| self.stage.world.end_fault(&name));
        for (name, ..) in &self.plan.members {
            self.stage.world.hostile(name, Vec::new());
        }
        self.stage.world.stop_faults();
        self.restore_cloud();
        for name in self.cloud_clusters() {
            if let Some(cluster) = self.stage.world.cluster(&name) {
                let api: Api<k8s_openapi::api::policy::v1::PodDisruptionBudget> =
                    Api::namespaced(cluster.client("user"), NAMESPACE);
                let _ = api.delete("web", &Default::default()).await;
            }
        }
        let scalers = self.objects(OURS, "MultiClusterHorizontalPodAutoscaler", Some(NAMESPACE));
        let _ = scalers.delete("again", &Default::default()).await;
        let provisioners = self.objects(OURS, "CloudProvisioner", None);
        for provisioner in self.plan.provisioners.clone() {
            let name = provisioner["metadata"]["name"].as_str().unwrap_or_default();
            // What was deleted is gone before it is made anew.
            for _ in 0..240 {
                let found = provisioners.get_opt(name).await.ok().flatten();
                if found.is_none_or(|found| found.metadata.deletion_timestamp.is_none()) {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            }
            let unpause = Patch::Merge(json!({"spec": {"paused": false}}));
            let _ = provisioners.patch(name, &PatchParams::default(), &unpause).await;
        }
        self.wish().await;
        let rescheduler = self.objects(OURS, "MultiClusterRescheduler", None);
        let _ = rescheduler.delete("back", &Default::default()).await;
        self.apply(&self.plan.rescheduler.clone()).await;
        for (name, ..) in self.plan.members.clone() {
            let requests = self.rng.random_range(0..=30);
            self.send(name, requests);
        }
    }

    /// The load goes, and others leave the home.
    pub(super) async fn leave(&mut self) {
        for (name, ..) in self.plan.members.clone() {
            self.send(name, 0);
        }
        self.apply(&tenant(0)).await;
    }
}
