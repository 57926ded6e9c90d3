//! The invariant of ready replicas: one goes only if the user asked for fewer, or a replacement is ready elsewhere, or
//! the user said to give it up, or something outside of Portolan took it.
//!
//! What Portolan can take is what it writes: it deletes a copy, or lowers its replicas. Each such write is held against
//! what was asked for and what was ready at that moment, and shortly before it, since a controller decides on what it
//! was told last. What a member's own controllers do with a copy (a rollout by the user's strategy, nodes that fail), and
//! what somebody else wrote, is not Portolan's doing.

use super::{CONTROLLER, STANDBY};
use jiff::{SignedDuration, Timestamp};
use portolan_sandbox::{Change, LogEntry, World};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How old what a controller goes by may be.
const WINDOW: SignedDuration = SignedDuration::from_secs(60);

/// Follows the copies of all workloads.
#[derive(Clone, Default)]
pub(super) struct Readiness(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Who acts in which cluster now.
    acting: Option<(String, String)>,
    /// By cluster, namespace and name.
    copies: BTreeMap<(String, Name), Copy>,
    workloads: BTreeMap<Name, Workload>,
    clusters: BTreeMap<String, Recent<bool>>,
    /// Members that controllers may see as they were: cut off, or with faults, until then.
    unseen: BTreeMap<String, Option<Timestamp>>,
    problems: Vec<String>,
}

type Name = (String, String);

/// A value with those before it that are not older than the window.
struct Recent<T>(Vec<(Timestamp, T)>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Clone + PartialEq> Recent<T> {
    fn set(&mut self, now: Timestamp, value: T) {
        if self.0.last().is_some_and(|(_, last)| *last == value) {
            return;
        }
        // A value holds until the next one begins.
        let old = self.0.windows(2).take_while(|pair| now.duration_since(pair[1].0) > WINDOW).count();
        self.0.drain(..old);
        self.0.push((now, value));
    }

    fn within(&self, now: Timestamp) -> impl Iterator<Item = &T> {
        let next = self.0.iter().skip(1).map(|(time, _)| Some(*time)).chain([None]);
        let ended = move |end: Option<Timestamp>| end.is_some_and(|end| now.duration_since(end) > WINDOW);
        self.0.iter().zip(next).filter(move |(_, end)| !ended(*end)).map(|((_, value), _)| value)
    }
}

/// A copy in a member.
#[derive(Default)]
struct Copy {
    owner: String,
    /// How many Portolan asked for last.
    ours: i64,
    ready: Recent<i64>,
    /// How many there are by the record of the hub.
    recorded: i64,
    /// How many locations it serves by the record of the hub.
    locations: Recent<i64>,
}

/// A workload in the hub.
#[derive(Default)]
struct Workload {
    uid: String,
    /// How many replicas are asked for in all; none if it goes or is gone.
    asked: Recent<i64>,
    /// How many are asked for in each location, if none may stand in for another.
    in_each: Recent<Option<i64>>,
}

impl Readiness {
    /// Follows a world from now on.
    pub(super) fn follow(&self, world: &World) {
        let state = self.clone();
        world.log().listen(Some(Box::new(move |entry| state.state().take(entry))));
    }

    /// What controllers know of a member may be old from now on.
    pub(super) fn unseen(&self, member: &str) {
        self.state().unseen.insert(member.to_owned(), None);
    }

    /// Controllers see a member again.
    pub(super) fn seen(&self, member: &str, now: Timestamp) {
        if let Some(until) = self.state().unseen.get_mut(member) {
            *until = Some(now);
        }
    }

    /// What must not have been since the last look.
    pub(super) fn look(&self) -> Vec<String> {
        std::mem::take(&mut self.state().problems)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self, entry: &LogEntry<'_>) {
        match entry {
            LogEntry::Begins { cluster, party } => {
                self.acting = Some(((*cluster).to_owned(), (*party).to_owned()));
            }
            LogEntry::Ends { .. } => self.acting = None,
            LogEntry::Change(change) => match change.table {
                "apps/deployments" => self.copy(change),
                "portolan.dev/multiclusterdeployments" => self.workload(change),
                "portolan.dev/foreignclusters" => self.cluster(change),
                _ => {}
            },
        }
    }

    /// Whether a controller does what changes in a cluster now.
    fn is_ours(&self, cluster: &str) -> bool {
        let acting = self.acting.as_ref().filter(|(place, _)| place == cluster);
        acting.is_some_and(|(_, party)| party == CONTROLLER || party == STANDBY)
    }

    fn workload(&mut self, change: &Change<'_>) {
        let object = change.object();
        let (name, uid) = (name(&object), text(&object["metadata"]["uid"]));
        let gone = change.is_deletion() || object["metadata"]["deletionTimestamp"].is_string();
        let asked = if gone { 0 } else { asked(&object["spec"]) };
        let known = self.workloads.entry(name.clone()).or_default();
        if known.uid != uid {
            *known = Workload { uid, ..Workload::default() };
        }
        known.asked.set(change.now, asked);
        known.in_each.set(change.now, in_each(&object["spec"]));
        for ((_, copy), found) in &mut self.copies {
            if *copy == name {
                found.recorded = 0;
            }
        }
        for placed in object["status"]["placements"].as_array().into_iter().flatten() {
            let copy = self.copies.get_mut(&(text(&placed["cluster"]), name.clone()));
            if let Some(copy) = copy {
                copy.recorded = placed["replicas"].as_i64().unwrap_or(0);
                let stands_in_for =
                    placed["substituteFor"].as_str().map_or(0, |names| names.split(',').count());
                copy.locations.set(change.now, i64::try_from(stands_in_for).unwrap_or(0) + 1);
            }
        }
    }

    /// Notes whether a cluster is to be left: it is deleted, or has a taint that evicts.
    fn cluster(&mut self, change: &Change<'_>) {
        let object = change.object();
        let taints = object["spec"]["taints"].as_array();
        let evicts = taints.into_iter().flatten().any(|taint| taint["effect"] == "NoExecute");
        let left = change.is_deletion() || object["metadata"]["deletionTimestamp"].is_string() || evicts;
        self.clusters.entry(name(&object).1).or_default().set(change.now, left);
    }

    fn copy(&mut self, change: &Change<'_>) {
        let object = change.object();
        let key = (change.cluster.to_owned(), name(&object));
        let gone = change.is_deletion() || object["metadata"]["deletionTimestamp"].is_string();
        let replicas = if gone { 0 } else { object["spec"]["replicas"].as_i64().unwrap_or(1) };
        let ours = self.is_ours(change.cluster);
        if ours && let Some(problem) = self.loses(&key, replicas, change.now) {
            self.problems.push(problem);
        }
        let ready = if gone { 0 } else { object["status"]["readyReplicas"].as_i64().unwrap_or(0) };
        let copy = self.copies.entry(key).or_default();
        copy.owner = text(&object["metadata"]["labels"]["portolan.dev/workload"]);
        copy.ready.set(change.now, ready);
        if ours || gone {
            copy.ours = replicas;
        }
    }

    /// What is wrong with a write of Portolan that leaves so many replicas of a copy.
    fn loses(&self, key: &(String, Name), left: i64, now: Timestamp) -> Option<String> {
        let (cluster, name) = key;
        let copy = self.copies.get(key)?;
        let workload = self.workloads.get(name).filter(|workload| workload.uid == copy.owner)?;
        // What somebody else asked for in the member is set back.
        let ready = copy.ready.0.last().map_or(0, |(_, ready)| *ready).min(copy.ours);
        if ready <= left {
            return None;
        }
        if self.clusters.get(cluster).is_none_or(|recent| recent.within(now).any(|left| *left)) {
            return None;
        }
        // A location has what was asked for each, and for those that it stood in for; more than that is asked for no more.
        let locations = copy.locations.within(now).copied().max().unwrap_or(1);
        if workload.in_each.within(now).any(|each| each.is_some_and(|each| left >= each * locations)) {
            return None;
        }
        let asked = workload.asked.within(now).copied().min().unwrap_or(0);
        let elsewhere: i64 = self
            .copies
            .iter()
            .filter(|((place, copy), _)| copy == name && place != cluster)
            .map(|((place, _), copy)| {
                let ready = copy.ready.within(now).copied().max().unwrap_or(0);
                if self.is_unseen(place, now) { ready.max(copy.recorded).max(copy.ours) } else { ready }
            })
            .sum();
        (elsewhere + left < asked).then(|| {
            format!(
                "{now}: {} in {cluster}: {ready} replicas were ready and {left} are left, with {elsewhere} elsewhere of \
                 {asked} that are asked for",
                name.1
            )
        })
    }

    fn is_unseen(&self, cluster: &str, now: Timestamp) -> bool {
        let until = self.unseen.get(cluster);
        until.is_some_and(|until| until.is_none_or(|until| now.duration_since(until) <= WINDOW))
    }
}

fn asked(spec: &Value) -> i64 {
    let replicas = spec["replicas"].as_i64().unwrap_or(1);
    let named = spec["locations"].as_array().map_or(0, Vec::len);
    let locations = match named {
        0 => spec["numberOfLocations"].as_i64().unwrap_or(1).max(1),
        named => i64::try_from(named).unwrap_or(i64::MAX),
    };
    if spec["replicasMode"] == "Total" { replicas } else { replicas.saturating_mul(locations) }
}

/// How many are asked for in each location, if none may stand in for another.
fn in_each(spec: &Value) -> Option<i64> {
    let overflows = spec["enableBursting"] == true || spec["enableSubstitution"] == true;
    (spec["replicasMode"] != "Total" && !overflows).then(|| spec["replicas"].as_i64().unwrap_or(1))
}

fn name(object: &Value) -> Name {
    (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Fleet, apply};
    use crate::{NAMESPACE, workload};
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::Api;
    use kube::api::{Patch, PatchParams};
    use portolan_sandbox::{NodeConfig, WorldConfig};
    use serde_json::json;

    async fn fleet() -> (Fleet, Readiness, String) {
        let world = World::new(WorldConfig::default());
        let readiness = Readiness::default();
        readiness.follow(&world);
        let fleet = Fleet::new(
            world,
            &[("m1", 1, NodeConfig::new("4", "8Gi")), ("m2", 1, NodeConfig::new("4", "8Gi"))],
        )
        .await;
        apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["m1"]}))).await;
        let uid = fleet.workloads().await[0].metadata.uid.clone().unwrap_or_default();
        (fleet, readiness, uid)
    }

    async fn copy(fleet: &Fleet, member: usize, uid: &str, replicas: i32) {
        let mut copy = workload("web", replicas, json!({}));
        copy["apiVersion"] = json!("apps/v1");
        copy["kind"] = json!("Deployment");
        copy["metadata"]["labels"] = json!({"portolan.dev/workload": uid});
        apply(&fleet.members[member].client(CONTROLLER), &copy).await;
        tokio::time::sleep(std::time::Duration::from_secs(100)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_deletion_without_a_replacement_is_found_and_one_with_is_not() {
        let (fleet, readiness, uid) = fleet().await;
        copy(&fleet, 0, &uid, 2).await;
        let first: Api<Deployment> = Api::namespaced(fleet.members[0].client(CONTROLLER), NAMESPACE);
        first.delete("web", &Default::default()).await.expect("there is one");
        let found = readiness.look();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("web in m1: 2 replicas were ready and 0 are left"), "{found:?}");
        copy(&fleet, 0, &uid, 2).await;
        copy(&fleet, 1, &uid, 2).await;
        first.delete("web", &Default::default()).await.expect("there is one");
        assert_eq!(readiness.look(), Vec::<String>::new(), "two are ready in m2");
    }

    #[tokio::test(start_paused = true)]
    async fn fewer_are_taken_when_fewer_are_asked_for_and_others_may_take_what_they_like() {
        let (fleet, readiness, uid) = fleet().await;
        copy(&fleet, 0, &uid, 2).await;
        apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["m1"]}))).await;
        copy(&fleet, 0, &uid, 1).await;
        assert_eq!(readiness.look(), Vec::<String>::new());
        copy(&fleet, 0, &uid, 0).await;
        assert_eq!(readiness.look().len(), 1, "nobody asked for none");
        copy(&fleet, 0, &uid, 1).await;
        let users: Api<Deployment> = Api::namespaced(fleet.members[0].client("user"), NAMESPACE);
        let grow = Patch::Merge(json!({"spec": {"replicas": 3}}));
        users.patch("web", &PatchParams::default(), &grow).await.expect("it is there");
        copy(&fleet, 0, &uid, 1).await;
        users.delete("web", &Default::default()).await.expect("it is there");
        assert_eq!(readiness.look(), Vec::<String>::new());
    }
}
