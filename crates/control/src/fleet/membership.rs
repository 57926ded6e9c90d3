//! From ForeignClusters to members, and back into their status.

use super::connect::{Refreshed, reference};
use super::doubt;
use super::findings::{self, cannot_connect, not_heard_yet};
use super::identity::Identity;
use super::member::Watcher;
use super::observed::Observed;
use super::registry::{Connected, MadeOf};
use super::report::{Asked, Others};
use super::secrets::Secrets;
use super::sites::{hub_name, news};
use super::{Connect, ConnectError, Fleet, Hub, Member, MemberEvent, Needs, Registration};
use crate::capacity::growth;
use crate::names::FIELD_MANAGER;
use crate::recovery::{self};
use crate::sharing::{judge, recorded_quota, tell_provider};
use kube::Api;
use kube::api::PostParams;
use kube::runtime::watcher;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::foreigncluster::OutgoingStatus;
use portolan_api::{ForeignCluster, ForeignClusterStatus, Reason};
use portolan_core::report::Report;
use portolan_runtime::{
    Action, CallError, Change, Clock, EventType, Index, Key, Queue, Recorder, Seed, call, follow_with,
    supervise, work,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How often the numbers of a cluster are looked at without any news of it, such as round-trip times.
const STATUS_PERIOD: Duration = Duration::from_secs(10);

/// How many ForeignClusters are looked at at the same time. Most of a look is waiting for the hub; a member that does not
/// answer takes a worker for a few seconds at most.
const WORKERS: usize = 16;

/// How long a member has to accept a new credential.
const PROVEN_WITHIN: Duration = Duration::from_secs(3);

/// When to look again at a ForeignCluster that somebody else has changed meanwhile: by then it has come to us.
const CHANGED_MEANWHILE: Duration = Duration::from_millis(200);

/// How old `lastSeen` of a member that answers may grow in a fleet of this many clusters: a minute, and longer in a fleet of
/// more than a thousand, so that the hub is asked for no more than seventeen such writes a second.
fn last_seen_lag(clusters: usize) -> Duration {
    let shared = Duration::from_millis(60).saturating_mul(u32::try_from(clusters).unwrap_or(u32::MAX));
    shared.max(Duration::from_secs(60))
}

/// How long changes of a cluster's numbers are gathered, so that one write serves them all: a second, and longer in a fleet
/// of more than fifty clusters, so that the hub is never asked for more than fifty such writes a second; and a hub that is
/// slow to answer has better things to do than to be told numbers for more than a twentieth of the time.
fn status_lag(clusters: usize, took: Duration) -> Duration {
    let shared = Duration::from_millis(20).saturating_mul(u32::try_from(clusters).unwrap_or(u32::MAX));
    shared.max(took.saturating_mul(20)).clamp(Duration::from_secs(1), STATUS_PERIOD)
}

/// How long the last write of numbers took.
#[derive(Clone, Debug, Default)]
struct WriteLatency(Arc<AtomicU64>);

impl WriteLatency {
    fn took(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    fn note(&self, took: Duration) {
        self.0.store(u64::try_from(took.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// Keeps the fleet connected and the status of ForeignClusters true, for ever; tells what changes in which cluster.
pub(crate) async fn keep(
    hub: Hub,
    fleet: Fleet,
    registrations: &'static [Registration],
    connect: Arc<dyn Connect>,
    clock: Clock,
    seed: Seed,
    on_event: impl Fn(&str, MemberEvent) + Clone + Send + Sync + 'static,
) {
    let queue = fleet.queues.show("ForeignCluster", Queue::<String>::new(seed.child("clusters")));
    let pace = WriteLatency::default();
    let mut tasks = JoinSet::new();
    let (changed, told, known, paced) = (queue.clone(), on_event.clone(), fleet.clone(), pace.clone());
    tasks.spawn(follow_with(
        Api::<ForeignCluster>::all(hub.client.clone()),
        watcher::Config::default(),
        |cluster| cluster,
        move |change| {
            let change = members_only(with_unreadable(change, &known.clusters));
            // Numbers in the status of a ForeignCluster change all the time; they are no news to workloads.
            let news = match &change {
                Change::Set(key, cluster) => news(known.clusters.get(key).as_deref(), cluster),
                Change::Gone(_) | Change::Listed(_) => Some(MemberEvent::Health),
            };
            let keys = known.clusters.take(change);
            if news.is_some() {
                known.look();
                for key in &keys {
                    let cluster = known.clusters.get(key);
                    let growth = cluster.as_ref().map(|cluster| growth(cluster)).unwrap_or_default();
                    let recorded = cluster.as_ref().and_then(|cluster| recorded_quota(cluster));
                    known.ledger.transact(|book| {
                        book.set_growth(&key.name, growth);
                        // What was read of an offer since goes before what is on record.
                        if recorded.is_none() || book.quota(&key.name).is_none() {
                            book.set_quota(&key.name, recorded);
                        }
                    });
                }
            }
            // What is only told by its status is mostly what we wrote there ourselves.
            let wait = match news {
                Some(MemberEvent::Health) => Duration::ZERO,
                _ => status_lag(known.clusters.len(), paced.took()),
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
    let stale = Stale::default();
    let (known, changed, marked) = (fleet.clusters.clone(), queue.clone(), stale.clone());
    let secrets = Secrets::new(hub.client.clone(), seed.child("secrets"), move |key| {
        known.for_each(|cluster, foreign| {
            let of_it = matches!(reference(foreign), Ok(Some(secret))
                if secret.namespace == key.namespace && secret.name == key.name);
            if of_it {
                marked.mark(&cluster.name);
                changed.add(cluster.name.clone());
            }
        });
    });
    let watcher = Watcher {
        hub: hub.id.clone(),
        registrations,
        ledger: fleet.ledger.clone(),
        spawner: fleet.spawner.clone(),
        clock: clock.clone(),
        seed,
    };
    let context = Context {
        recorder: Recorder::new(hub.client.clone(), clock.clone(), "portolan.dev/fleet"),
        secrets,
        stale,
        hub,
        fleet,
        connect,
        clock: clock.clone(),
        watcher,
        queue: queue.clone(),
        on_event,
        pace,
    };
    supervise(tasks, work(&queue, WORKERS, &clock, |name| context.reconcile(name))).await;
}

/// ForeignClusters that exist and cannot be read have not left: of those that a list lacks, what was last read stands, or
/// no more than the name. So what they hold stays on record, and nothing new is placed there.
fn with_unreadable(
    change: Change<ForeignCluster>,
    clusters: &Index<ForeignCluster>,
) -> Change<ForeignCluster> {
    let Change::Listed(mut all) = change else { return change };
    for (key, _) in clusters.health().all_unreadable() {
        if !all.contains_key(&key) {
            let last = clusters.get(&key).map(|cluster| cluster.as_ref().clone());
            all.extend(last.or_else(|| by_name_alone(&key)).map(|cluster| (key, cluster)));
        }
    }
    Change::Listed(all)
}

/// Consumers of this cluster, and providers that gave it no more than a tenant namespace, are not members.
fn members_only(change: Change<ForeignCluster>) -> Change<ForeignCluster> {
    match change {
        Change::Set(key, cluster) if !cluster.spec.is_member() => Change::Gone(key),
        Change::Listed(mut all) => {
            all.retain(|_, cluster| cluster.spec.is_member());
            Change::Listed(all)
        }
        other => other,
    }
}

/// A ForeignCluster of which no more than the name is known. It has no credential, so that nobody connects to it.
fn by_name_alone(key: &Key) -> Option<ForeignCluster> {
    let identity = json!({"clusterID": "unknown", "clusterName": key.name});
    let spec = serde_json::from_value(json!({ "clusterIdentity": identity })).ok()?;
    Some(ForeignCluster::new(&key.name, spec))
}

/// The clusters whose Secret has changed since their connection last looked at it.
#[derive(Clone, Default)]
struct Stale(Arc<Mutex<BTreeSet<String>>>);

impl Stale {
    fn mark(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
    }

    fn take(&self, name: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name)
    }
}

struct Context<F> {
    hub: Hub,
    fleet: Fleet,
    connect: Arc<dyn Connect>,
    clock: Clock,
    watcher: Watcher,
    queue: Queue<String>,
    on_event: F,
    pace: WriteLatency,
    secrets: Secrets,
    stale: Stale,
    recorder: Recorder,
}

impl<F: Fn(&str, MemberEvent) + Clone + Send + Sync + 'static> Context<F> {
    async fn reconcile(&self, name: String) -> Result<Action, CallError> {
        let Some(cluster) = self.fleet.clusters.get(&Key::cluster(&name)) else {
            self.fleet.leave(&name);
            let all = self.fleet.clusters.all();
            self.secrets.keep_only(all.iter().filter_map(|(_, each)| reference(each).ok().flatten()));
            (self.on_event)(&name, MemberEvent::Health);
            return Ok(Action::AwaitChange);
        };
        let key = Key::cluster(&name);
        if let Some(unreadable) = self.fleet.clusters.health().unreadable(&key) {
            let problem = unreadable.problem;
            let note = format!(
                "it cannot be read, and nothing new is placed there until it is mended; what is there stays: {problem}"
            );
            self.recorder.record(cluster.as_ref(), EventType::Warning, Reason::Invalid, &note).await;
            if self.fleet.member(&name).is_none() {
                self.fleet.cannot_join(&name);
                (self.on_event)(&name, MemberEvent::Health);
            }
            return Ok(Action::AwaitChange);
        }
        let secret = reference(&cluster).ok().flatten();
        // Who only looks is gone before a credential changes.
        if let Some(secret) = secret {
            self.secrets.watch(secret);
        }
        let made_of = MadeOf::of(&cluster);
        let stale = self.stale.take(&name);
        let open = self.fleet.connected(&name, &made_of);
        let mut open = open.filter(|open| !open.member.is_to_be_connected_again());
        if stale && open.is_some() {
            let version = secret.and_then(|secret| self.secrets.version(secret));
            match self.connect.refresh(&cluster, version.as_deref()).await {
                Ok(Refreshed::Open) => {}
                Ok(Refreshed::Outdated) => open = None,
                Err(ConnectError::Call(error)) if !error.is_not_found() => {
                    // It is the hub that does not answer: what is open stays open.
                    self.stale.mark(&name);
                    return Err(error);
                }
                Err(error) => return self.refuse(&cluster, &error).await,
            }
        }
        let open = match open {
            Some(open) => open,
            None => match self.connect.connect(&cluster).await {
                Ok(client) => {
                    let open = self.open(&name, client, &cluster, made_of);
                    self.fleet.join(open.clone());
                    open
                }
                // What is wrong may be mended without the ForeignCluster changing: a Secret that appears, say.
                Err(error) => return self.refuse(&cluster, &error).await,
            },
        };
        self.tell(&cluster, &open).await
    }

    /// There is no connection, and why.
    async fn refuse(&self, cluster: &ForeignCluster, error: &ConnectError) -> Result<Action, CallError> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        self.fleet.cannot_join(name);
        (self.on_event)(name, MemberEvent::Health);
        let message = portolan_runtime::chain(error);
        // Nobody asks it for its report any more.
        let observed = Observed { reported: Some(Report::default()), ..Observed::default() };
        self.report(cluster, &cannot_connect(message), &observed).await
    }

    /// Tells what a connection shows.
    async fn tell(&self, cluster: &ForeignCluster, open: &Connected) -> Result<Action, CallError> {
        let Connected { member, identity, made_of, .. } = open;
        if let Some(identity) = identity
            && member.health.unreachable_reason().is_some()
        {
            identity.forget();
        }
        let found = findings::connected(member, identity.as_deref(), &made_of.id);
        let told = cluster.status.as_ref().map(|status| &status.conditions);
        let told = told.and_then(|told| conditions::find(told, ConditionType::Ready));
        let found = match (found, told) {
            (Some(found), _) => found,
            // A connection that is new says nothing about the member before its first probe has ended.
            (None, Some(_)) => return Ok(Action::RequeueAfter(STATUS_PERIOD)),
            (None, None) => not_heard_yet(),
        };
        let silent = member.health.is_silent();
        let found: Vec<Finding> =
            found.into_iter().chain(doubt::finding(&self.fleet, cluster, silent)).collect();
        let found: Vec<Finding> =
            found.into_iter().chain(recovery::finding(&self.fleet, member, cluster)).collect();
        let proven = self.prove(open).await;
        let (outgoing, judged) = self.judge_offer(cluster, member).await;
        let found: Vec<Finding> = found.into_iter().chain(judged).collect();
        let observed = Observed { credential: proven, outgoing, ..self.observed(member) };
        self.report(cluster, &found, &observed).await
    }

    /// Decides about what the member offers: it bounds the room there. Answers what is told of it.
    async fn judge_offer(
        &self,
        cluster: &ForeignCluster,
        member: &Member,
    ) -> (Option<OutgoingStatus>, Option<Finding>) {
        let judged = cluster.spec.outgoing.as_ref().zip(member.offers.as_ref());
        let judged = judged.and_then(|(outgoing, offers)| judge(outgoing, offers, &self.clock));
        let Some(mut judged) = judged else { return (None, None) };
        if let Some(quota) = judged.quota.take() {
            self.fleet.ledger.transact(|book| {
                if book.quota(&member.name) != Some(&quota) {
                    book.set_quota(&member.name, Some(quota));
                }
            });
        }
        if member.health.is_reachable() {
            tell_provider(&member.client, &judged, &self.clock).await;
        }
        (judged.status, Some(judged.finding))
    }

    /// The version of the Secret whose credential the member has accepted: a new one is tried once.
    async fn prove(&self, open: &Connected) -> Option<String> {
        let (member, version) = (&open.member, self.connect.credential_version(&open.member.name));
        if version == open.proven || version.is_none() || !member.health.is_reachable() {
            return open.proven.clone();
        }
        match tokio::time::timeout(PROVEN_WITHIN, member.client.apiserver_version()).await {
            Ok(Ok(_)) => {
                self.fleet.prove(&member.name, version.clone());
                version
            }
            answer => {
                tracing::debug!(member = member.name, ?answer, "a credential is not accepted");
                open.proven.clone()
            }
        }
    }

    fn open(&self, name: &str, client: kube::Client, foreign: &ForeignCluster, made_of: MadeOf) -> Connected {
        let (queue, on_event, cluster) = (self.queue.clone(), self.on_event.clone(), name.to_owned());
        let (known, pace) = (self.fleet.clusters.clone(), self.pace.clone());
        let tell = move |what: MemberEvent| {
            match what {
                // It matters to the status of the ForeignCluster only.
                MemberEvent::Capacity => {
                    return queue.add_after(cluster.clone(), status_lag(known.len(), pace.took()));
                }
                MemberEvent::Offer => return queue.add(cluster.clone()),
                MemberEvent::Health => queue.add(cluster.clone()),
                _ => {}
            }
            on_event(&cluster, what);
        };
        let (queue, cluster) = (self.queue.clone(), name.to_owned());
        let (client, identity) = Identity::guard(client, &made_of.id, move || queue.add(cluster.clone()));
        let (traffic, tenant) = (foreign.spec.traffic.as_ref(), made_of.tenant.as_ref());
        let others = Others::of(foreign, self.fleet.clusters.clone(), Arc::clone(&self.connect));
        let others = others.filter(|_| self.fleet.is_measuring);
        let was_summarised =
            foreign.status.as_ref().is_some_and(|status| status.capacity_observed_at.is_some());
        let asked = Asked { others, summary: made_of.summary.clone(), was_summarised };
        let member = self.watcher.watch(name, client, traffic, tenant, asked, tell);
        Connected { member: Arc::new(member), made_of, identity, proven: None }
    }

    fn observed(&self, member: &Member) -> Observed {
        let hub = hub_name(self.fleet.clusters.all().iter().map(|(_, cluster)| cluster.as_ref()));
        let known = member.is_known(Needs::ROOM);
        let summary = self.fleet.ledger.transact(|book| book.summary(&member.name)).filter(|_| known);
        let round_trip = (member.name != hub).then(|| (hub, member.health.round_trip()));
        let now = self.clock.now();
        let reported = member.reported.last();
        // One that has grown old says nothing any more.
        let reported = reported.map(|report| if report.is_fresh(now) { report } else { Report::default() });
        Observed {
            version: member.health.version(),
            summary,
            round_trip,
            reported,
            credential: None,
            outgoing: None,
        }
    }

    /// Tells what was found, if it is new; says when to look again.
    async fn report(
        &self,
        cluster: &ForeignCluster,
        findings: &[Finding],
        observed: &Observed,
    ) -> Result<Action, CallError> {
        let before = cluster.status.clone().unwrap_or_default();
        let mut status =
            ForeignClusterStatus { observed_generation: cluster.metadata.generation, ..before.clone() };
        observed.tell(&mut status, &self.clock.time());
        let now = self.clock.time().0;
        for finding in findings {
            conditions::set(&mut status.conditions, finding.clone(), cluster.metadata.generation, now);
        }
        let limit = last_seen_lag(self.fleet.clusters.len());
        let is_old = before
            .last_seen
            .as_ref()
            .is_none_or(|seen| Duration::try_from(now.duration_since(seen.0)).is_ok_and(|age| age >= limit));
        let reachable = conditions::is_true(&status.conditions, ConditionType::Reachable);
        if status == before && !(reachable && is_old) {
            return Ok(Action::RequeueAfter(STATUS_PERIOD));
        }
        if reachable {
            status.last_seen = Some(self.clock.time());
        }
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let api: Api<ForeignCluster> = Api::all(self.hub.client.clone());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let news = findings::news(&before, &status);
        let update = ForeignCluster { status: Some(status), ..cluster.clone() };
        let what = format!("write status of ForeignCluster {name}");
        let started = Instant::now();
        let written = call(what, api.replace_status(&name, &params, &update)).await;
        self.pace.note(started.elapsed());
        match written {
            Err(error) if error.is_conflict() || error.is_not_found() => {
                return Ok(Action::RequeueAfter(CHANGED_MEANWHILE));
            }
            other => other?,
        };
        for news in news {
            self.recorder.record(cluster, news.weight, news.reason, &news.note).await;
        }
        Ok(Action::RequeueAfter(STATUS_PERIOD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_told_at_a_pace_that_the_hub_keeps_up_with() {
        let (fast, slow) = (Duration::from_millis(5), Duration::from_millis(200));
        assert_eq!(status_lag(5, fast), Duration::from_secs(1));
        assert_eq!(status_lag(200, fast), Duration::from_secs(4), "fifty a second for all");
        assert_eq!(status_lag(5, slow), Duration::from_secs(4), "a twentieth of the time");
        assert_eq!(status_lag(5, Duration::MAX), STATUS_PERIOD);
    }

    #[test]
    fn last_seen_is_written_at_most_seventeen_times_a_second() {
        for clusters in [1, 100, 1000, 10_000] {
            let writes = clusters as f64 / last_seen_lag(clusters).as_secs_f64();
            assert!(writes <= 17.0, "{clusters}: {writes}");
        }
        assert_eq!(last_seen_lag(1), Duration::from_secs(60));
    }
}
