//! What must hold in an elastic world: nothing costs more than it may, nothing is made twice, nothing goes back and forth,
//! and nothing is left behind.

use super::acts::Story;
use super::{CLOUDS, LOOK};
use crate::NAMESPACE;
use kube::Api;
use kube::api::ListParams;
use portolan_api::{CloudProvisioner, ForeignCluster, MultiClusterDeployment};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The most that each CloudProvisioner was ever allowed, by the name of its cluster.
#[derive(Default)]
pub(super) struct Judge {
    limits: BTreeMap<String, Limits>,
}

#[derive(Default)]
struct Limits {
    nodes: u64,
    /// In millionths per hour; none if it was not limited at some time.
    cost: Option<u64>,
    is_limited: bool,
}

impl Judge {
    /// A CloudProvisioner is declared as this.
    pub(super) fn allow(&mut self, provisioner: &Value) {
        let spec = &provisioner["spec"];
        let name = spec["cloudClusterName"].as_str().unwrap_or_default().to_owned();
        let limits = self.limits.entry(name).or_default();
        limits.nodes = limits.nodes.max(spec["maxNodes"].as_u64().unwrap_or(10));
        if let Some(cost) =
            spec["maxCostPerHour"].as_str().and_then(|cost| cost.parse::<portolan_api::money::Money>().ok())
        {
            limits.cost = limits.cost.max(Some(cost.micros));
            limits.is_limited = true;
        }
    }
}

impl Story {
    /// Lets time pass, and looks all the while.
    pub(super) async fn pass(&self, time: Duration) -> Vec<String> {
        let mut problems = BTreeSet::new();
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(LOOK);
            tokio::time::sleep(step).await;
            left -= step;
            problems.extend(self.spends());
            problems.extend(self.readiness.look());
        }
        problems.into_iter().collect()
    }

    /// What the cloud runs is within all limits, and no CloudProvisioner has two clusters.
    fn spends(&self) -> Vec<String> {
        let mut by_cluster: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for machine in self.stage.cloud.running() {
            let (nodes, cost) = by_cluster.entry(machine.cluster).or_default();
            *nodes += u64::from(machine.machine_type != "control-plane");
            *cost += machine.price;
        }
        let mut problems = Vec::new();
        for (name, limits) in &self.judge.limits {
            let prefix = format!("{CLOUDS}/{name}-");
            let own: Vec<_> = by_cluster.iter().filter(|(cluster, _)| cluster.starts_with(&prefix)).collect();
            if own.len() > 1 {
                let names: Vec<_> = own.iter().map(|(cluster, _)| cluster.as_str()).collect();
                problems.push(format!("{name} exists more than once: {}", names.join(", ")));
            }
            for (cluster, (nodes, cost)) in own {
                if *nodes > limits.nodes {
                    problems.push(format!("{cluster} has {nodes} nodes, and {} are allowed", limits.nodes));
                }
                if limits.is_limited && limits.cost.is_some_and(|most| *cost > most) {
                    problems
                        .push(format!("{cluster} costs {cost} an hour, and {:?} is allowed", limits.cost));
                }
            }
        }
        problems
    }

    /// Under a load that stays the same nothing changes.
    pub(super) async fn steady(&self, time: Duration) -> Vec<String> {
        let before = self.state().await;
        let machines = self.stage.cloud.machines().len();
        let mut problems = self.pass(time).await;
        let after = self.state().await;
        if before != after {
            problems.push(format!("the load is the same, and what was {before:?} is {after:?}"));
        }
        let made = self.stage.cloud.machines().len() - machines;
        if made > 0 {
            problems.push(format!("the load is the same, and {made} machines were made"));
        }
        problems
    }

    /// Replicas and places of the workload, and the numbers of its generation.
    async fn state(&self) -> Option<(i32, Option<i64>, Option<String>)> {
        let api: Api<MultiClusterDeployment> = Api::namespaced(self.stage.hub.client("user"), NAMESPACE);
        let web = api.get("web").await.ok()?;
        let places = web.status.and_then(|status| status.locations_summary);
        Some((web.spec.replicas, web.metadata.generation, places))
    }

    /// The objects of the hub as they are in the end, for whoever looks for the cause of a problem.
    pub(super) async fn last_state(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (kind, namespace) in [
            ("MultiClusterDeployment", Some(NAMESPACE)),
            ("MultiClusterHorizontalPodAutoscaler", Some(NAMESPACE)),
            ("MultiClusterRescheduler", None),
            ("CloudProvisioner", None),
        ] {
            let api = self.objects("portolan.dev/v1alpha1", kind, namespace);
            for mut object in
                api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
            {
                object.metadata.managed_fields = None;
                lines.push(format!("in the end: {}", serde_json::json!(object)));
            }
        }
        lines
    }

    /// Nothing of a burst is left, but for room that is to be kept free.
    pub(super) async fn settled(&self) -> Vec<String> {
        let user = self.stage.hub.client("user");
        let mut problems = Vec::new();
        let keeps = |provisioner: &Value| !provisioner["spec"]["headroom"].is_null();
        let kept: BTreeSet<&str> = self
            .plan
            .provisioners
            .iter()
            .filter(|each| keeps(each))
            .filter_map(|each| each["spec"]["cloudClusterName"].as_str())
            .collect();
        for machine in self.stage.cloud.running() {
            let name = machine.cluster.split('/').next_back().unwrap_or_default();
            if !kept.iter().any(|kept| name.starts_with(&format!("{kept}-"))) {
                problems.push(format!("machine {} of {} runs for nothing", machine.name, machine.cluster));
            }
        }
        let clusters = self.objects("cluster.x-k8s.io/v1beta2", "Cluster", Some(CLOUDS));
        let clusters = clusters.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        for name in clusters.into_iter().filter_map(|cluster| cluster.metadata.name) {
            if !kept.iter().any(|kept| name.starts_with(&format!("{kept}-"))) {
                problems.push(format!("Cluster {name} is left"));
            }
        }
        let members: Api<ForeignCluster> = Api::all(user.clone());
        let members = members.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
        for name in members.into_iter().filter_map(|member| member.metadata.name) {
            if name.starts_with("cloud") && !kept.contains(name.as_str()) {
                problems.push(format!("ForeignCluster {name} is left"));
            }
        }
        let workloads: Api<MultiClusterDeployment> = Api::namespaced(user.clone(), NAMESPACE);
        if let Ok(web) = workloads.get("web").await {
            let least = self.plan.autoscaler["spec"]["minReplicas"].as_i64().unwrap_or(1);
            let status = web.status.unwrap_or_default();
            if i64::from(web.spec.replicas) != least {
                problems.push(format!(
                    "web has {} replicas without a load, and the least is {least}",
                    web.spec.replicas
                ));
            }
            if status.pending_replicas > 0 || i64::from(status.ready_replicas) != least {
                problems.push(format!(
                    "web is not ready at home: {:?}, {} of {least} are ready",
                    status.locations_summary, status.ready_replicas
                ));
            }
            if status.placements.iter().any(|placed| placed.cluster != "home") {
                problems.push(format!("web has not come home: {:?}", status.locations_summary));
            }
        }
        let provisioners: Api<CloudProvisioner> = Api::all(user);
        for found in
            provisioners.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default()
        {
            let orphans = found.status.unwrap_or_default().orphans;
            if !orphans.is_empty() {
                problems.push(format!("orphans are left: {}", orphans.join(", ")));
            }
        }
        problems
    }
}
