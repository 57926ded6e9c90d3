//! A tiny Cluster API, with a member that holds pods, for tests.

use super::test_support::shape;
use super::*;
use crate::capacity::{NodeFacts, Shape};
use k8s_openapi::jiff::Timestamp;
use portolan_api::CloudProvisionerStatus;

/// How long a control plane takes.
const CLUSTER_TAKES: i64 = 180;
/// How long a machine takes, once there is a control plane.
const MACHINE_TAKES: i64 = 120;
/// How long a machine exists, and costs money, while it is being deleted.
const DELETION_TAKES: i64 = 60;

#[derive(Clone, Debug, Default)]
pub(crate) struct ModelMachine {
    pub(crate) created: i64,
    pub(crate) ready: Option<i64>,
    pub(crate) marked: bool,
    /// Since when it is being deleted.
    pub(crate) deleting: Option<i64>,
    pub(crate) pods: u32,
    /// Since when its node, which was ready, is not.
    pub(crate) unready: Option<i64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ModelCluster {
    pub(crate) number: u32,
    pub(crate) created: i64,
    pub(crate) deleting: bool,
    /// Whether its parts are still to be created.
    pub(crate) incomplete: bool,
    pub(crate) pools: BTreeMap<String, (u32, BTreeMap<String, ModelMachine>)>,
}

/// The world around one provisioner. Pods are all of one CPU.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) status: CloudProvisionerStatus,
    pub(crate) clock: i64,
    pub(crate) clusters: BTreeMap<String, ModelCluster>,
    pub(crate) member: MemberState,
    /// Whether the ForeignCluster is tainted, so that workloads leave.
    pub(crate) leaving: bool,
    /// How many replicas are to run in the cloud.
    pub(crate) replicas: u32,
    /// Why Cluster API refuses to create a cluster, if it does.
    pub(crate) refused: Option<Failure>,
    /// Why no cluster becomes usable, if none does.
    pub(crate) cluster_fails: Option<Failure>,
    /// The machine types of which no machine becomes ready, and why.
    pub(crate) broken: BTreeMap<String, Failure>,
    /// Whether pods cannot be evicted.
    pub(crate) budget: bool,
    /// How long a machine takes, once there is a control plane.
    pub(crate) boot: i64,
    /// Whether a cluster is created without its parts, as when the controller stops in between.
    pub(crate) piecemeal: bool,
    /// So many pods fewer fit on a node than its type declares.
    pub(crate) smaller: u32,
    /// How many workloads are on record in the cluster, whatever runs there.
    pub(crate) held: u32,
    /// Another CloudProvisioner of the same name.
    pub(crate) rival: Option<String>,
    /// Why nothing may be done about clusters, if nothing may.
    pub(crate) untouchable: Option<Untouchable>,
    /// Whether a member that answers has not listed its nodes to the hub yet.
    pub(crate) unlisted: bool,
    /// What was seen last, if the lists of the hub are of the past.
    pub(crate) outdated: Option<Snapshot>,
    pub(crate) last: Plan,
    pub(crate) events: Vec<Event>,
    names: u32,
    /// How many clusters were created, over all time.
    pub(crate) made: u32,
    /// Machines that Cluster API deleted though they were not marked and were ready.
    pub(crate) wrongly_deleted: u32,
}

pub(crate) fn pod() -> Shape {
    shape(1000, 1024)
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        Self {
            settings,
            status: CloudProvisionerStatus::default(),
            clock: 1_000_000,
            clusters: BTreeMap::new(),
            member: MemberState::Absent,
            leaving: false,
            replicas: 0,
            refused: None,
            cluster_fails: None,
            broken: BTreeMap::new(),
            budget: false,
            boot: MACHINE_TAKES,
            piecemeal: false,
            smaller: 0,
            held: 0,
            rival: None,
            untouchable: None,
            unlisted: false,
            outdated: None,
            last: Plan::default(),
            events: Vec::new(),
            names: 0,
            made: 0,
            wrongly_deleted: 0,
        }
    }

    pub(crate) fn record(&self) -> Record {
        Record::of(&self.status)
    }

    pub(crate) fn machines(&self) -> impl Iterator<Item = (&String, &ModelMachine)> {
        let pools = self.clusters.values().flat_map(|cluster| &cluster.pools);
        pools.flat_map(|(name, (_, machines))| machines.values().map(move |machine| (name, machine)))
    }

    pub(crate) fn nodes(&self) -> usize {
        self.machines().count()
    }

    pub(crate) fn pods(&self) -> u32 {
        self.machines().map(|(_, machine)| machine.pods).sum()
    }

    pub(crate) fn cost(&self) -> u64 {
        let machines: u64 = self
            .machines()
            .map(|(name, _)| self.settings.machine_type(name).map_or(0, |each| each.price))
            .sum();
        machines + self.settings.cluster_price * self.clusters.len() as u64
    }

    pub(crate) fn phase(&self) -> CloudPhase {
        self.status.phase
    }

    /// Plans, writes the record, and carries out all orders; then so many seconds pass.
    pub(crate) fn step(&mut self, seconds: i64) {
        let orders = self.plan();
        for order in orders {
            self.carry_out(&order);
        }
        self.pass(seconds);
    }

    /// Steps of ten seconds.
    pub(crate) fn run(&mut self, seconds: i64) {
        for _ in 0..seconds / 10 {
            self.step(10);
        }
    }

    /// Plans and writes the record, through JSON as the API does.
    pub(crate) fn plan(&mut self) -> Vec<Order> {
        let snapshot = self.snapshot();
        let plan = plan(&self.settings, &self.record(), &snapshot, self.now());
        plan.write(&self.settings, &snapshot, &mut self.status);
        let stored = serde_json::to_value(&self.status).unwrap();
        self.status = serde_json::from_value(stored).unwrap();
        assert_eq!(self.record(), plan.record, "the record reads back as it was");
        self.events.extend(plan.events.clone());
        self.last = plan;
        self.last.orders.clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_second(self.clock).unwrap()
    }

    pub(crate) fn carry_out(&mut self, order: &Order) {
        match order {
            Order::CreateCluster { name, number, pools } => {
                if !self.clusters.contains_key(name) && self.refused.is_none() {
                    self.made += 1;
                    let pools =
                        pools.iter().map(|(name, replicas)| (name.clone(), (*replicas, BTreeMap::new())));
                    let cluster = ModelCluster {
                        number: *number,
                        created: self.clock,
                        deleting: false,
                        incomplete: self.piecemeal,
                        pools: pools.filter(|_| !self.piecemeal).collect(),
                    };
                    self.clusters.insert(name.clone(), cluster);
                }
            }
            Order::CompleteCluster { name } => {
                if let Some(cluster) = self.clusters.get_mut(name).filter(|_| self.refused.is_none()) {
                    assert!(cluster.incomplete, "a cluster is completed twice");
                    (cluster.incomplete, cluster.created) = (false, self.clock);
                }
            }
            Order::SetReplicas { cluster, machine_type, replicas } => {
                if let Some(cluster) = self.clusters.get_mut(cluster) {
                    cluster.pools.entry(machine_type.clone()).or_default().0 = *replicas;
                }
            }
            Order::MarkForDeletion { cluster, machines } => self.mark(cluster, machines, true),
            Order::Unmark { cluster, machines } => self.mark(cluster, machines, false),
            Order::Peer { .. } => (self.member, self.leaving) = (MemberState::Joining, false),
            Order::Unpeer { abandon, .. } => {
                assert!(!abandon || self.clusters.is_empty(), "a cluster that exists is abandoned");
                self.held = if *abandon { 0 } else { self.held };
                self.leaving = true;
                self.member = MemberState::Leaving { workloads: u32::from(self.pods() > 0).max(self.held) };
            }
            Order::KeepPeered { .. } => self.leaving = false,
            Order::DeleteCluster { name } => {
                assert_eq!(self.pods(), 0, "a cluster with pods is deleted");
                if let Some(cluster) = self.clusters.get_mut(name) {
                    cluster.deleting = true;
                }
            }
        }
    }

    fn mark(&mut self, cluster: &str, names: &BTreeSet<String>, marked: bool) {
        let pools = self.clusters.get_mut(cluster).into_iter().flat_map(|cluster| cluster.pools.values_mut());
        for (name, machine) in pools.flat_map(|(_, machines)| machines.iter_mut()) {
            if names.contains(name) {
                machine.marked = marked;
            }
        }
    }

    /// Cluster API, the member and the placement go on.
    pub(crate) fn pass(&mut self, seconds: i64) {
        self.clock += seconds;
        self.clusters.retain(|_, cluster| !cluster.deleting);
        let (clock, fails, broken) = (self.clock, self.cluster_fails.is_some(), &self.broken);
        let boot = self.boot;
        for cluster in self.clusters.values_mut() {
            let up = !fails && !cluster.incomplete && clock >= cluster.created + CLUSTER_TAKES;
            for (kind, (replicas, machines)) in &mut cluster.pools {
                machines
                    .retain(|_, machine| machine.deleting.is_none_or(|since| clock < since + DELETION_TAKES));
                let live = machines.values().filter(|machine| machine.deleting.is_none()).count();
                let wanted = *replicas as usize;
                for _ in live..wanted {
                    self.names += 1;
                    let machine = ModelMachine { created: clock, ..ModelMachine::default() };
                    machines.insert(format!("{kind}-{:04}", self.names), machine);
                }
                let going = live.saturating_sub(wanted);
                let mut order: Vec<String> =
                    machines.keys().filter(|name| machines[*name].deleting.is_none()).cloned().collect();
                order.sort_by_key(|name| {
                    (!machines[name].marked, machines[name].ready.is_some(), name.clone())
                });
                for name in order.iter().take(going) {
                    let machine = machines.get_mut(name).unwrap();
                    machine.deleting = Some(clock);
                    self.wrongly_deleted += u32::from(!machine.marked && machine.ready.is_some());
                    machine.pods = 0;
                }
                for machine in machines.values_mut().filter(|machine| machine.ready.is_none()) {
                    let done = up && !broken.contains_key(kind) && clock >= machine.created + boot;
                    machine.ready = done.then_some(clock);
                }
            }
        }
        self.member = match self.member {
            MemberState::Joining => MemberState::Joined { reachable: true, workloads: 0 },
            MemberState::Leaving { workloads: 0 } => MemberState::Absent,
            other => other,
        };
        self.place();
    }

    /// Puts replicas on nodes with room, or takes away those that are not wanted any more.
    fn place(&mut self) {
        let takes_more = matches!(self.member, MemberState::Joined { reachable: true, .. }) && !self.leaving;
        let mut surplus = self.pods().saturating_sub(self.replicas);
        let mut lacking = if takes_more { self.replicas.saturating_sub(self.pods()) } else { 0 };
        let settings = &self.settings;
        for cluster in self.clusters.values_mut() {
            for (kind, (_, machines)) in &mut cluster.pools {
                let most = settings
                    .machine_type(kind)
                    .map_or(0, |each| each.node.allocatable.times(&pod().requests))
                    .saturating_sub(self.smaller);
                for machine in machines
                    .values_mut()
                    .filter(|machine| machine.ready.is_some() && machine.deleting.is_none())
                {
                    let gone = surplus.min(machine.pods);
                    machine.pods -= gone;
                    surplus -= gone;
                    let most = if machine.unready.is_some() { 0 } else { most };
                    let more = lacking.min(most.saturating_sub(machine.pods));
                    machine.pods += more;
                    lacking -= more;
                }
            }
        }
        let there = u32::from(self.pods() > 0).max(self.held);
        match &mut self.member {
            MemberState::Joined { workloads, .. } | MemberState::Leaving { workloads } => *workloads = there,
            _ => {}
        }
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        if let Some(past) = &self.outdated {
            return Snapshot { outdated: Some("Machines cannot be listed".into()), ..past.clone() };
        }
        let waits = self.replicas.saturating_sub(self.pods());
        let answers = matches!(self.member, MemberState::Joined { reachable: true, .. }) && !self.unlisted;
        let cluster = |(name, cluster): (&String, &ModelCluster)| {
            let up = self.cluster_fails.is_none()
                && !cluster.incomplete
                && self.clock >= cluster.created + CLUSTER_TAKES;
            let pools = cluster.pools.iter().map(|(kind, (replicas, machines))| {
                let machines = machines
                    .iter()
                    .map(|(name, machine)| (name.clone(), self.machine(kind, machine, answers)));
                (kind.clone(), PoolSnapshot { replicas: *replicas, machines: machines.collect() })
            });
            let seen = ClusterSnapshot {
                number: cluster.number,
                usable: up,
                deleting: cluster.deleting,
                incomplete: cluster.incomplete,
                untouchable: self.untouchable.clone(),
                progress: None,
                failure: self.cluster_fails.clone(),
                pools: pools.collect(),
            };
            (name.clone(), seen)
        };
        Snapshot {
            demand: [(pod(), waits)].into_iter().collect(),
            clusters: self.clusters.iter().map(cluster).collect(),
            member: self.member,
            leaving: self.leaving,
            rival: self.rival.clone(),
            refused: self.refused.clone(),
            outdated: None,
        }
    }

    fn machine(&self, kind: &str, machine: &ModelMachine, answers: bool) -> MachineSnapshot {
        let facts = self.settings.machine_type(kind).map(|each| each.node.clone()).unwrap_or_default();
        let mut facts = facts;
        facts.allocatable.add(&pod().requests, -i64::from(self.smaller));
        let second = |second| Timestamp::from_second(second).unwrap();
        let node = machine.ready.filter(|_| answers).map(|_| {
            let mut free = facts.allocatable.clone();
            free.add(&pod().requests, -i64::from(machine.pods));
            let stays = self.budget.then(|| "PodDisruptionBudget web allows none".to_owned());
            let pods = vec![PodSnapshot { shape: pod(), stays }; machine.pods as usize];
            NodeSnapshot { facts: NodeFacts { ready: machine.unready.is_none(), ..facts }, free, pods }
        });
        MachineSnapshot {
            registered: machine.ready.is_some(),
            created_at: Some(second(machine.created)),
            ready_since: machine.ready.filter(|_| answers && machine.unready.is_none()).map(second),
            unready_since: machine
                .unready
                .or((machine.ready.is_none()).then_some(machine.created))
                .map(second),
            deleting: machine.deleting.is_some(),
            marked: machine.marked,
            failure: self.broken.get(kind).filter(|_| machine.ready.is_none()).cloned(),
            node,
        }
    }
}
