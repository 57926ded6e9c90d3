//! From ForeignClusters to members, and back into their status.

use super::observed::Observed;
use super::sites::{hub_name, news, sites};
use super::{Connect, Hub, KNOWN_WITHIN, Member, Needs, Readable, Touched};
use crate::capacity::Ledger;
use crate::names::FIELD_MANAGER;
use kube::api::PostParams;
use kube::runtime::watcher;
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionStatus, ConditionType, Finding};
use portolan_api::{ForeignCluster, ForeignClusterStatus};
use portolan_core::placement::Site;
use portolan_runtime::{
    CallError, Change, Clock, Index, Key, Next, Queue, Seed, call, follow_with, supervise, work,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often the numbers of a cluster are looked at without any news of it, such as round-trip times.
const NUMBERS_EVERY: Duration = Duration::from_secs(10);

/// When to look again at a ForeignCluster that somebody else has changed meanwhile: by then it has come to us.
const CHANGED_MEANWHILE: Duration = Duration::from_millis(200);

/// How long changes of a cluster's numbers are gathered, so that one write serves them all: a second, and longer in a fleet
/// of more than fifty clusters, so that the hub is never asked for more than fifty such writes a second; and a hub that is
/// slow to answer has better things to do than to be told numbers for more than a twentieth of the time.
fn told_within(clusters: usize, took: Duration) -> Duration {
    let shared = Duration::from_millis(20).saturating_mul(u32::try_from(clusters).unwrap_or(u32::MAX));
    shared.max(took.saturating_mul(20)).clamp(Duration::from_secs(1), NUMBERS_EVERY)
}

/// How long the last write of numbers took.
#[derive(Clone, Debug, Default)]
struct Pace(Arc<AtomicU64>);

impl Pace {
    fn took(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn note(&self, took: Duration) {
        self.0.store(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// The fleet as it is known: ForeignClusters and the members they stand for.
#[derive(Clone, Default)]
pub struct Fleet {
    /// All ForeignClusters of the hub.
    pub clusters: Index<ForeignCluster>,
    /// The room in its members, and what workloads hold there.
    pub ledger: Ledger,
    sites: Arc<RwLock<BTreeMap<String, Arc<Site>>>>,
    members: Arc<RwLock<BTreeMap<String, Connected>>>,
    unconnected: Arc<RwLock<BTreeSet<String>>>,
    /// When it was first known which clusters there are.
    started: Arc<OnceLock<Instant>>,
    /// Whether those who are not known yet are waited for no longer.
    hurries: Arc<AtomicBool>,
}

struct Connected {
    member: Arc<Member>,
    /// The spec that the connection was made by: another one needs another connection.
    generation: Option<i64>,
}

impl Fleet {
    /// The member of this name, once it is connected.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<Arc<Member>> {
        self.members
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .map(|each| Arc::clone(&each.member))
    }

    /// What placement sees of a ForeignCluster.
    #[must_use]
    pub fn site(&self, cluster: &ForeignCluster) -> Arc<Site> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let seen = self.sites.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        // One that came this moment is looked at by itself.
        seen.or_else(|| sites(std::iter::once(cluster)).remove(name)).unwrap_or_default()
    }

    /// Whether the process began so lately that all members may still become known: until then nobody decides without
    /// those who are.
    #[must_use]
    pub fn is_starting(&self) -> bool {
        !self.hurries() && self.started.get().is_none_or(|started| started.elapsed() < KNOWN_WITHIN)
    }

    /// Decides from now on without those members that are not known yet.
    pub fn hurry(&self) {
        self.hurries.store(true, Ordering::SeqCst);
    }

    pub(super) fn hurries(&self) -> bool {
        self.hurries.load(Ordering::SeqCst)
    }

    fn look(&self) {
        self.started.get_or_init(Instant::now);
        let all = self.clusters.all();
        let seen = sites(all.iter().map(|(_, cluster)| cluster.as_ref()));
        *self.sites.write().unwrap_or_else(PoisonError::into_inner) = seen;
    }

    /// Whether a connection to this cluster was tried and could not be made.
    #[must_use]
    pub fn is_unconnected(&self, name: &str) -> bool {
        self.unconnected.read().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    fn connected(&self, name: &str, generation: Option<i64>) -> Option<Arc<Member>> {
        let members = self.members.read().unwrap_or_else(PoisonError::into_inner);
        members.get(name).filter(|each| each.generation == generation).map(|each| Arc::clone(&each.member))
    }

    fn join(&self, member: Arc<Member>, generation: Option<i64>) {
        self.unconnected.write().unwrap_or_else(PoisonError::into_inner).remove(&member.name);
        let mut members = self.members.write().unwrap_or_else(PoisonError::into_inner);
        members.insert(member.name.clone(), Connected { member, generation });
    }

    #[cfg(test)]
    pub(super) fn add_for_tests(&self, member: &Arc<Member>) {
        self.join(Arc::clone(member), None);
    }

    fn cannot_join(&self, name: &str) {
        self.members.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.unconnected.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    fn leave(&self, name: &str) {
        self.unconnected.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        self.members.write().unwrap_or_else(PoisonError::into_inner).remove(name);
    }
}

/// Keeps the fleet connected and the status of ForeignClusters true, for ever; tells what changes in which cluster.
pub async fn keep(
    hub: Hub,
    fleet: Fleet,
    connect: Arc<dyn Connect>,
    clock: Clock,
    seed: Seed,
    touched: impl Fn(&str, Touched) + Clone + Send + Sync + 'static,
) {
    follow_clusters(hub, fleet, connect, clock, seed, touched, true).await;
}

/// Keeps the fleet connected, for ever, and writes nothing.
pub async fn look(hub: Hub, fleet: Fleet, connect: Arc<dyn Connect>, clock: Clock, seed: Seed) {
    follow_clusters(hub, fleet, connect, clock, seed, |_, _| (), false).await;
}

async fn follow_clusters(
    hub: Hub,
    fleet: Fleet,
    connect: Arc<dyn Connect>,
    clock: Clock,
    seed: Seed,
    touched: impl Fn(&str, Touched) + Clone + Send + Sync + 'static,
    reports: bool,
) {
    let (queue, pace) = (Queue::<String>::new(seed.child("clusters")), Pace::default());
    let mut tasks = JoinSet::new();
    let (changed, told, known, paced) = (queue.clone(), touched.clone(), fleet.clone(), pace.clone());
    tasks.spawn(follow_with(
        Api::<ForeignCluster>::all(hub.client.clone()),
        watcher::Config::default(),
        |cluster| cluster,
        move |change| {
            // Numbers in the status of a ForeignCluster change all the time; they are no news to workloads.
            let news = match &change {
                Change::Set(key, cluster) => news(known.clusters.get(key).as_deref(), cluster),
                Change::Gone(_) | Change::Listed(_) => Some(Touched::Reach),
            };
            let keys = known.clusters.take(change);
            if news.is_some() {
                known.look();
            }
            // What is only told by its status is mostly what we wrote there ourselves.
            let wait = match news {
                Some(Touched::Reach) => Duration::ZERO,
                _ => told_within(known.clusters.len(), paced.took()),
            };
            for key in keys {
                changed.add_after(key.name.clone(), wait);
                if let Some(news) = &news {
                    told(&key.name, news.clone());
                }
            }
        },
        seed.child("foreignclusters"),
        fleet.clusters.health().clone(),
    ));
    let context = Context {
        hub,
        fleet,
        connect,
        clock: clock.clone(),
        seed,
        queue: queue.clone(),
        touched,
        reports,
        pace,
    };
    supervise(tasks, work(&queue, 4, &clock, |name| context.reconcile(name))).await;
}

struct Context<F> {
    hub: Hub,
    fleet: Fleet,
    connect: Arc<dyn Connect>,
    clock: Clock,
    seed: Seed,
    queue: Queue<String>,
    touched: F,
    /// Whether what is found goes into the status of ForeignClusters.
    reports: bool,
    pace: Pace,
}

impl<F: Fn(&str, Touched) + Clone + Send + Sync + 'static> Context<F> {
    async fn reconcile(&self, name: String) -> Result<Next, CallError> {
        let Some(cluster) = self.fleet.clusters.get(&Key::cluster(&name)) else {
            self.fleet.leave(&name);
            (self.touched)(&name, Touched::Reach);
            return Ok(Next::Done);
        };
        let generation = cluster.metadata.generation;
        let member = match self.fleet.connected(&name, generation) {
            Some(member) => member,
            None => match self.connect.connect(&cluster).await {
                Ok(client) => {
                    let member = Arc::new(self.watch(&name, client, &cluster));
                    self.fleet.join(Arc::clone(&member), generation);
                    member
                }
                Err(error) => {
                    self.fleet.cannot_join(&name);
                    (self.touched)(&name, Touched::Reach);
                    let message = portolan_runtime::chain(&error);
                    // What is wrong may be mended without the ForeignCluster changing: a Secret that appears, say.
                    return self.report(&cluster, &[refused(message)], &Observed::default()).await;
                }
            },
        };
        self.report(&cluster, &findings(&member), &self.observed(&member)).await
    }

    fn watch(&self, name: &str, client: Client, foreign: &ForeignCluster) -> Member {
        let (queue, touched, cluster) = (self.queue.clone(), self.touched.clone(), name.to_owned());
        let (known, pace) = (self.fleet.clusters.clone(), self.pace.clone());
        let tell = move |what: Touched| {
            match what {
                // It matters to the status of the ForeignCluster only.
                Touched::Numbers => {
                    return queue.add_after(cluster.clone(), told_within(known.len(), pace.took()));
                }
                Touched::Reach => queue.add(cluster.clone()),
                _ => {}
            }
            touched(&cluster, what);
        };
        Member::watch(
            name,
            client,
            &self.hub.id,
            &self.fleet.ledger,
            foreign.spec.traffic.as_ref(),
            &self.clock,
            self.seed.child(name),
            tell,
        )
    }

    fn observed(&self, member: &Member) -> Observed {
        let hub = hub_name(self.fleet.clusters.all().iter().map(|(_, cluster)| cluster.as_ref()));
        let known = member.reach.answers() && member.known();
        let summary = self.fleet.ledger.transact(|book| book.summary(&member.name)).filter(|_| known);
        let round_trip = (member.name != hub).then(|| (hub, member.reach.round_trip()));
        Observed { version: member.reach.version(), summary, round_trip }
    }

    /// Tells what was found, if it is new; says when to look again.
    async fn report(
        &self,
        cluster: &ForeignCluster,
        findings: &[Finding],
        observed: &Observed,
    ) -> Result<Next, CallError> {
        if !self.reports {
            return Ok(Next::After(NUMBERS_EVERY));
        }
        let before = cluster.status.clone().unwrap_or_default();
        let mut status =
            ForeignClusterStatus { observed_generation: cluster.metadata.generation, ..before.clone() };
        observed.tell(&mut status, &self.clock.time());
        let now = self.clock.time().0;
        for finding in findings {
            conditions::set(&mut status.conditions, finding.clone(), cluster.metadata.generation, now);
        }
        if status == before {
            return Ok(Next::After(NUMBERS_EVERY));
        }
        if conditions::is_true(&status.conditions, ConditionType::Reachable) {
            status.last_seen = Some(self.clock.time());
        }
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let api: Api<ForeignCluster> = Api::all(self.hub.client.clone());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let update = ForeignCluster { status: Some(status), ..cluster.clone() };
        let what = format!("write status of ForeignCluster {name}");
        let started = Instant::now();
        let written = call(what, api.replace_status(&name, &params, &update)).await;
        self.pace.note(started.elapsed());
        match written {
            Err(error) if error.is_conflict() || error.is_not_found() => Ok(Next::After(CHANGED_MEANWHILE)),
            other => other.map(|_| Next::After(NUMBERS_EVERY)),
        }
    }
}

fn findings(member: &Member) -> Vec<Finding> {
    let finding =
        |type_, status: ConditionStatus, reason, message: &str| Finding::new(type_, status, reason, message);
    let both = |status: ConditionStatus, reason, message: &str| {
        vec![
            finding(ConditionType::Ready, status, reason, message),
            finding(ConditionType::Reachable, status, reason, message),
        ]
    };
    match (member.reach.silence(), member.reach.version()) {
        (Some(problem), _) => {
            let message = format!("its API server does not answer: {problem}");
            both(ConditionStatus::Unknown, "Silent", &message)
        }
        (None, Some(version)) => {
            let message = format!("its API server answers: {version}");
            match member.readable(Needs::All) {
                Readable::Known => both(ConditionStatus::True, "Answers", &message),
                // What is on record stands until it is known or known not to be.
                Readable::Joining => {
                    vec![finding(ConditionType::Reachable, ConditionStatus::True, "Answers", &message)]
                }
                Readable::Not(problem) => vec![
                    finding(ConditionType::Ready, ConditionStatus::False, "CannotList", &problem),
                    finding(ConditionType::Reachable, ConditionStatus::True, "Answers", &message),
                ],
            }
        }
        (None, None) => both(ConditionStatus::Unknown, "NotHeardYet", "it has not answered yet"),
    }
}

fn refused(message: String) -> Finding {
    Finding::new(ConditionType::Ready, ConditionStatus::False, "CannotConnect", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_at_a_pace_that_the_hub_keeps_up_with() {
        let (fast, slow) = (Duration::from_millis(5), Duration::from_millis(200));
        assert_eq!(told_within(5, fast), Duration::from_secs(1));
        assert_eq!(told_within(200, fast), Duration::from_secs(4), "fifty a second for all");
        assert_eq!(told_within(5, slow), Duration::from_secs(4), "a twentieth of the time");
        assert_eq!(told_within(5, Duration::MAX), NUMBERS_EVERY);
    }
}
