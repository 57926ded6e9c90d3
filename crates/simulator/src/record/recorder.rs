//! Samples the state of a simulation.

use super::state::{ClusterState, Key, State};
use super::summary::Recorded;
use super::{Observer, Record, Series, summary};
use crate::engine::{Agent, Stage};
use crate::scenario::Scenario;
use jiff::Timestamp;
use portolan_sandbox::CloudApi;
use std::collections::BTreeSet;
use std::time::Duration;

/// Samples the state of a simulation.
pub(crate) struct Recorder {
    observer: Observer,
    record: Record,
    /// The members in the order of the scenario, and the clouds last.
    clusters: Vec<String>,
    clouds: Vec<String>,
    workloads: Vec<Recorded>,
    sources: Vec<String>,
    submitted: BTreeSet<String>,
    /// The next number goes to this series.
    next: usize,
}

impl Recorder {
    /// A record without samples.
    pub(crate) fn new(scenario: &Scenario, label: &str, seed: u64, observer: Observer) -> Self {
        let clouds: Vec<String> = scenario.all_clouds().map(|cloud| cloud.name.clone()).collect();
        let members = scenario.clusters.iter().map(|each| each.name.clone());
        let record = Record {
            scenario: scenario.name.clone(),
            label: label.to_owned(),
            title: scenario.title.clone(),
            seed,
            seconds: Vec::new(),
            series: Vec::new(),
            summary: Vec::new(),
        };
        Self {
            observer,
            record,
            clusters: members.chain(clouds.clone()).collect(),
            clouds,
            workloads: recorded(scenario.workloads()),
            sources: scenario.traffic.iter().map(|traffic| traffic.name.clone()).collect(),
            submitted: BTreeSet::new(),
            next: 0,
        }
    }

    /// What is followed.
    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Time is counted from now on.
    pub(crate) fn begin(&self, now: Timestamp) {
        self.observer.begin(now);
    }

    /// A task is submitted.
    pub(crate) fn submitted(&mut self, task: &str) {
        self.submitted.insert(task.to_owned());
    }

    /// Records the state as it is.
    pub(crate) fn sample(&mut self, at: Duration, stage: &Stage, agent: &Agent<'_>) {
        let observer = self.observer.clone();
        let mut state = observer.state();
        let gone: Vec<String> =
            state.clusters.keys().filter(|name| stage.world.cluster(name).is_none()).cloned().collect();
        gone.iter().for_each(|name| state.forget(name, at.as_secs_f64()));
        self.record.seconds.push(at.as_secs_f64());
        self.next = 0;
        let (mut requested, mut capacity, mut in_clouds) = (0, 0, 0);
        for name in self.clusters.clone() {
            let found = self.of(&state, &name);
            let sums = Sums::of(&found);
            requested += sums.requested;
            capacity += sums.capacity;
            in_clouds += if self.clouds.contains(&name) { sums.capacity } else { 0 };
            self.put(&format!("cluster.{name}.cpuRequested"), "cores", cores(sums.requested));
            self.put(&format!("cluster.{name}.cpuCapacity"), "cores", cores(sums.capacity));
            self.put(&format!("cluster.{name}.nodes"), "nodes", sums.nodes as f64);
            self.put(&format!("cluster.{name}.podsRunning"), "pods", sums.running as f64);
            self.put(&format!("cluster.{name}.podsPending"), "pods", sums.pending as f64);
        }
        let (pending, all) = self.pending(&state);
        self.put("fleet.cpuAllocatedPercent", "%", percent(requested, capacity));
        self.put("fleet.podsSubmitted", "pods", all as f64);
        self.put("fleet.podsPending", "pods", pending as f64);
        self.put("fleet.pendingPercent", "%", percent(pending, all));
        for Recorded { key, name } in self.workloads.clone() {
            let workload = state.workloads.get(&key).cloned().unwrap_or_default();
            self.put(&format!("workload.{name}.desired"), "replicas", workload.desired as f64);
            self.put(&format!("workload.{name}.ready"), "replicas", workload.ready() as f64);
            for cluster in self.clusters.clone() {
                let here = workload.ready.iter().filter(|(each, _)| self.shown(each) == cluster);
                let ready: i64 = here.map(|(_, ready)| ready).sum();
                self.put(&format!("workload.{name}.ready.{cluster}"), "replicas", ready as f64);
            }
        }
        for source in self.sources.clone() {
            self.put(&format!("traffic.{source}"), "requests/s", agent.requests_per_second(&source));
        }
        if !stage.clouds.is_empty() {
            let sum = |number: &dyn Fn(&CloudApi) -> f64| stage.clouds.values().map(number).sum::<f64>();
            self.put("cloud.machines", "machines", sum(&|cloud| cloud.running().len() as f64));
            self.put("cloud.cost", "money", sum(&|cloud| cloud.cost() as f64 / 1e6));
            self.put("cloud.cpuCapacity", "cores", cores(in_clouds));
        }
        if stage.clouds.len() > 1 {
            for (name, cloud) in &stage.clouds {
                self.put(&format!("cloud.{name}.cost"), "money", cloud.cost() as f64 / 1e6);
            }
        }
    }

    /// The record with its summary.
    pub(crate) fn end(mut self, stage: &Stage) -> Record {
        let state = self.observer.state();
        let shown = |cluster: &str| self.shown(cluster);
        self.record.summary = summary::of(&self.record, &state, &self.workloads, &self.clouds, &shown);
        stage.world.log().listen(None);
        drop(state);
        self.record
    }

    /// The name by which a cluster is recorded: cloud clusters have names that Cluster API gave them.
    fn shown(&self, cluster: &str) -> String {
        if self.clusters.iter().any(|name| name == cluster) {
            return cluster.to_owned();
        }
        match self.clouds.as_slice() {
            [cloud] => cloud.clone(),
            clouds => cloud_of(clouds, cluster).unwrap_or(cluster).to_owned(),
        }
    }

    /// The clusters that are recorded by this name.
    fn of<'a>(&self, state: &'a State, name: &str) -> Vec<&'a ClusterState> {
        state
            .clusters
            .iter()
            .filter(|(cluster, _)| self.shown(cluster) == name)
            .map(|(_, found)| found)
            .collect()
    }

    /// How many pods have no node, and how many were submitted in all: one of each task, and the replicas of workloads.
    fn pending(&self, state: &State) -> (i64, i64) {
        let pods = || state.clusters.values().flat_map(|cluster| cluster.pods.values());
        let bound: BTreeSet<&str> =
            pods().filter(|pod| pod.node.is_some()).filter_map(|pod| pod.task.as_deref()).collect();
        let waits = |task: &&String| !bound.contains(task.as_str()) && !state.finished.contains(*task);
        let tasks = self.submitted.iter().filter(waits).count();
        let workloads = self.workloads.iter().filter_map(|each| state.workloads.get(&each.key));
        let (mut pending, mut desired, mut missing) = (0, 0, 0);
        for workload in workloads {
            pending += workload.pending;
            desired += workload.desired;
            missing += (workload.desired - workload.ready()).max(0);
        }
        let unbound = pods().filter(|pod| pod.node.is_none() && pod.task.is_none()).count();
        let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
        // A cluster that lost its nodes makes pods again of which others run elsewhere by then: nobody waits for these.
        let waiting = (pending + count(unbound)).min(missing);
        (count(tasks) + waiting, count(self.submitted.len()) + desired)
    }

    /// Adds a number to the next series. They are always told in the same order.
    fn put(&mut self, name: &str, unit: &'static str, value: f64) {
        if self.next == self.record.series.len() {
            self.record.series.push(Series { name: name.to_owned(), unit, values: Vec::new() });
        }
        if let Some(series) = self.record.series.get_mut(self.next) {
            series.values.push(value);
        }
        self.next += 1;
    }
}

/// The cloud that a cluster is in: its name begins with that of its CloudProvisioner, which may be cut, and ends in a number
/// after a dash.
fn cloud_of<'a>(clouds: &'a [String], cluster: &str) -> Option<&'a str> {
    let (base, _) = cluster.rsplit_once('-')?;
    let same = |cloud: &&String| cloud.as_str() == base;
    let cut = |cloud: &&String| cloud.starts_with(base);
    clouds.iter().find(same).or_else(|| clouds.iter().find(cut)).map(String::as_str)
}

/// Namesakes in several namespaces are recorded with their namespace.
fn recorded(workloads: Vec<Key>) -> Vec<Recorded> {
    let is_alone = |name: &str| workloads.iter().filter(|(_, other)| other == name).count() == 1;
    let name = |(namespace, name): &Key| match is_alone(name) {
        true => name.clone(),
        false => format!("{namespace}.{name}"),
    };
    workloads.iter().map(|key| Recorded { key: key.clone(), name: name(key) }).collect()
}

/// What is in some clusters together.
#[derive(Default)]
struct Sums {
    requested: i64,
    capacity: i64,
    nodes: usize,
    running: usize,
    pending: usize,
}

impl Sums {
    fn of(clusters: &[&ClusterState]) -> Self {
        let mut sums = Self::default();
        for cluster in clusters {
            sums.nodes += cluster.nodes.len();
            sums.capacity += cluster.nodes.values().sum::<i64>();
            for pod in cluster.pods.values() {
                let is_there = cluster.is_on_a_node(pod);
                sums.requested += if is_there { pod.cpu } else { 0 };
                sums.running += usize::from(pod.running && is_there);
                sums.pending += usize::from(pod.node.is_none());
            }
        }
        sums
    }
}

fn cores(milli: i64) -> f64 {
    milli as f64 / 1000.0
}

fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_is_of_the_cloud_whose_name_its_own_begins_with() {
        let clouds = ["cloud".to_owned(), "cloud-b".to_owned()];
        assert_eq!(cloud_of(&clouds, "cloud-0a1b2c3d4e"), Some("cloud"));
        assert_eq!(cloud_of(&clouds, "cloud-b-0a1b2c3d4e"), Some("cloud-b"));
        assert_eq!(cloud_of(&clouds, "other-0a1b2c3d4e"), None);
    }

    #[test]
    fn namesakes_are_told_apart() {
        let key = |namespace: &str, name: &str| (namespace.to_owned(), name.to_owned());
        let names = recorded(vec![key("shop", "web"), key("blog", "web"), key("shop", "api")]);
        let names: Vec<&str> = names.iter().map(|each| each.name.as_str()).collect();
        assert_eq!(names, ["shop.web", "blog.web", "api"]);
    }
}
