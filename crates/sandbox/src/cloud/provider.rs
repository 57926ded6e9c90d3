//! The cloud itself: what it has made, what it is making, and what it refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use portolan_runtime::Seed;

use super::config::{CloudConfig, CloudFailure};
use super::ledger::{Ledger, MachineRecord};

/// The machine type under which control planes are recorded.
const CONTROL_PLANE: &str = "control-plane";
/// When something that was refused is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(10);

/// The cloud.
pub(super) struct Provider {
    pub(super) config: CloudConfig,
    pub(super) ledger: Ledger,
    /// Why no cluster is made, if none is.
    pub(super) refuses_clusters: Option<CloudFailure>,
    /// Why no machine of a type is made.
    pub(super) refuses_machines: BTreeMap<String, CloudFailure>,
    seed: Seed,
    /// By namespace and name of the Cluster.
    clusters: BTreeMap<(String, String), CloudCluster>,
    /// By namespace and name of the Machine.
    machines: BTreeMap<(String, String), Booting>,
    /// Times at which something is due.
    due: BTreeSet<Timestamp>,
    numbers: BTreeMap<String, u64>,
}

/// A cluster in the cloud.
struct CloudCluster {
    infrastructure_at: Timestamp,
    control_plane_at: Option<Timestamp>,
}

/// A machine in the cloud.
struct Booting {
    cluster: String,
    provisioned_at: Timestamp,
    node_at: Timestamp,
    failure: Option<CloudFailure>,
    hangs: bool,
}

/// How far something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The cloud refuses, and says why.
    Refused(CloudFailure),
    /// It takes its time.
    Pending,
    /// A machine is made, and has no node yet.
    Provisioned,
    /// It is there.
    Done,
}

impl Provider {
    pub(super) fn new(config: CloudConfig, seed: Seed) -> Self {
        Self {
            config,
            ledger: Ledger::default(),
            refuses_clusters: None,
            refuses_machines: BTreeMap::new(),
            seed,
            clusters: BTreeMap::new(),
            machines: BTreeMap::new(),
            due: BTreeSet::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// The network and address of a cluster, which are asked for the first time.
    pub(super) fn infrastructure(&mut self, key: (&str, &str), taken: bool, now: Timestamp) -> Progress {
        let id = (key.0.to_owned(), key.1.to_owned());
        if let Some(cluster) = self.clusters.get(&id) {
            return done(cluster.infrastructure_at, now);
        }
        if let Some(failure) = self.refuses_cluster(key.1, taken) {
            self.wake(now, TRY_AGAIN);
            return Progress::Refused(failure);
        }
        let time = self.config.infrastructure.draw(&self.seed.child("infrastructure").child(&label(key)));
        let infrastructure_at = self.wake(now, time);
        self.clusters.insert(id, CloudCluster { infrastructure_at, control_plane_at: None });
        done(infrastructure_at, now)
    }

    /// The control plane of a cluster whose network is there, which begins to boot the first time.
    pub(super) fn control_plane(&mut self, key: (&str, &str), now: Timestamp) -> Progress {
        let time = self.config.control_plane.draw(&self.seed.child("control plane").child(&label(key)));
        let Some(cluster) = self.clusters.get_mut(&(key.0.to_owned(), key.1.to_owned())) else {
            return Progress::Pending;
        };
        if cluster.infrastructure_at > now {
            return Progress::Pending;
        }
        if let Some(at) = cluster.control_plane_at {
            return done(at, now);
        }
        let at = after(now, time);
        cluster.control_plane_at = Some(at);
        self.due.insert(at);
        self.ledger.begin(MachineRecord {
            cluster: label(key),
            name: format!("{}-{CONTROL_PLANE}", key.1),
            machine_type: CONTROL_PLANE.to_owned(),
            price: self.config.control_plane_price,
            created: now,
            removed: None,
        });
        done(at, now)
    }

    /// Removes the control plane of a cluster.
    pub(super) fn remove_control_plane(&mut self, key: (&str, &str), now: Timestamp) {
        self.ledger.end(&label(key), &format!("{}-{CONTROL_PLANE}", key.1), now);
    }

    /// Removes what is left of a cluster: its network and address.
    pub(super) fn remove_infrastructure(&mut self, key: (&str, &str)) {
        self.clusters.remove(&(key.0.to_owned(), key.1.to_owned()));
    }

    /// A machine, which is asked for the first time.
    pub(super) fn machine(
        &mut self,
        key: (&str, &str),
        cluster: &str,
        machine_type: &str,
        now: Timestamp,
    ) -> Progress {
        let id = (key.0.to_owned(), key.1.to_owned());
        if !self.machines.contains_key(&id) {
            if let Some(failure) = self.refuses_machine(machine_type) {
                self.wake(now, TRY_AGAIN);
                return Progress::Refused(failure);
            }
            self.begin(id.clone(), cluster, machine_type, now);
        }
        let Some(machine) = self.machines.get(&id) else { return Progress::Pending };
        match &machine.failure {
            Some(failure) if machine.provisioned_at <= now => Progress::Refused(failure.clone()),
            Some(_) => Progress::Pending,
            None if machine.node_at <= now && !machine.hangs => Progress::Done,
            None if machine.provisioned_at <= now => Progress::Provisioned,
            None => Progress::Pending,
        }
    }

    fn begin(&mut self, id: (String, String), cluster: &str, machine_type: &str, now: Timestamp) {
        let Some(offered) = self.config.machine_types.get(machine_type) else { return };
        let course = offered.draw(&self.seed.child("machine").child(&label((&id.0, &id.1))));
        let cluster = label((&id.0, cluster));
        self.ledger.begin(MachineRecord {
            cluster: cluster.clone(),
            name: id.1.clone(),
            machine_type: machine_type.to_owned(),
            price: offered.price,
            created: now,
            removed: None,
        });
        let provisioned_at = self.wake(now, course.boot / 3);
        let node_at = self.wake(now, course.boot);
        let (failure, hangs) = (course.failure, course.hangs);
        self.machines.insert(id, Booting { cluster, provisioned_at, node_at, failure, hangs });
    }

    /// Removes a machine; answers whether there was one.
    pub(super) fn remove_machine(&mut self, key: (&str, &str), now: Timestamp) -> bool {
        let removed = self.machines.remove(&(key.0.to_owned(), key.1.to_owned()));
        if let Some(machine) = &removed {
            self.ledger.end(&machine.cluster, key.1, now);
        }
        removed.is_some()
    }

    /// The number that the next machine of this owner gets: the same until it was used.
    pub(super) fn next_number(&self, owner: &str) -> u64 {
        self.numbers.get(owner).copied().unwrap_or(0)
    }

    /// Notes that the number was used.
    pub(super) fn use_number(&mut self, owner: &str) {
        *self.numbers.entry(owner.to_owned()).or_default() += 1;
    }

    /// Has everything looked at again so long after `now`; answers when.
    pub(super) fn wake(&mut self, now: Timestamp, time: Duration) -> Timestamp {
        let at = after(now, time);
        self.due.insert(at);
        at
    }

    /// The next time at which something is due, of those after `now`.
    pub(super) fn next_due(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.due.retain(|at| *at > now);
        self.due.first().copied()
    }

    fn refuses_cluster(&self, name: &str, taken: bool) -> Option<CloudFailure> {
        let exist = self.clusters.len();
        let quota = self.config.max_clusters.filter(|most| exist >= *most).map(|most| {
            let message = format!("the quota of the cloud is {most} clusters, and {exist} exist");
            CloudFailure::new("QuotaExceeded", message)
        });
        let taken = taken.then(|| {
            let message = format!("a cluster named {name} exists already in this world: choose another name");
            CloudFailure::new("NameInUse", message)
        });
        self.refuses_clusters.clone().or(quota).or(taken)
    }

    fn refuses_machine(&self, machine_type: &str) -> Option<CloudFailure> {
        let exist = self.machines.len();
        if !self.config.machine_types.contains_key(machine_type) {
            let known: Vec<&str> = self.config.machine_types.keys().map(String::as_str).collect();
            let message = format!("there is no machine type {machine_type:?}, only {}", known.join(", "));
            return Some(CloudFailure::new("InvalidMachineType", message));
        }
        let quota = self.config.max_machines.filter(|most| exist >= *most).map(|most| {
            let message = format!("the quota of the cloud is {most} machines, and {exist} exist");
            CloudFailure::new("QuotaExceeded", message)
        });
        self.refuses_machines.get(machine_type).cloned().or(quota)
    }
}

fn label((namespace, name): (&str, &str)) -> String {
    format!("{namespace}/{name}")
}

fn after(now: Timestamp, time: Duration) -> Timestamp {
    let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX);
    now.checked_add(time).unwrap_or(Timestamp::MAX)
}

fn done(at: Timestamp, now: Timestamp) -> Progress {
    if at <= now { Progress::Done } else { Progress::Pending }
}
