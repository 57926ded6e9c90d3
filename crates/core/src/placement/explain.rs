//! What a decision saw, cluster by cluster, and what came of it: for people who ask why.

use super::field::Field;
use super::prioritise::rank;
use super::{Candidate, Decision, KeptBecause, Placed, PlacementRequest, Refusal, Standing};
use crate::capacity::Room;
use portolan_api::Reason;
use portolan_api::placement::{Placement, PlacementCause, PlacementPolicy};
use std::time::Duration;

/// One cluster's part in a decision.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// The cluster.
    pub cluster: String,
    /// What was asked of it, in order; the first that it did not pass is the last.
    pub filters: Vec<Filter>,
    /// The most replicas that it can hold, those it has included; none if it takes nothing new.
    pub max_replicas: Option<u32>,
    /// What is free there for the workload.
    pub room: Room,
    /// How many replicas the last decision reserved there.
    pub reserved: u32,
    /// How many pods of the workload, as the present spec asks for them, have a node there.
    pub bound: u32,
    /// Its place in the order of the policy, from 1 on; none where no policy orders clusters, or it is not in it.
    pub rank: Option<usize>,
    /// The traffic that the workload receives there, in thousandths of requests per second, if the cluster tells.
    pub traffic: Option<u64>,
    /// How far it is from the location that it would stand in for.
    pub distance: Option<(String, Duration)>,
    /// What it gets.
    pub placed: Option<Placed>,
    /// For a name that the request has and no member: where it has it, and what would help.
    pub no_member: Option<Refusal>,
    /// Why, in a sentence.
    pub verdict: String,
}

/// Something that was asked of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// What: open, selector, latency, taints or room.
    pub name: &'static str,
    /// Whether it passed.
    pub passed: bool,
    /// With which numbers.
    pub told: String,
}

/// Tells what `decision`, which was taken on these candidates, saw in each of them. Names in the request that no member has
/// come last.
#[must_use]
pub fn explain(request: &PlacementRequest, candidates: &[Candidate], decision: &Decision) -> Vec<Account> {
    let field = Field::of(request, candidates);
    let ranked = match request.placement.effective_policy() {
        PlacementPolicy::ClusterAffinity => Vec::new(),
        policy => rank(policy, request, &field, usize::MAX),
    };
    let away = request.placement.locations.iter().find(|name| {
        let placed = decision.placed.get(*name).map_or(0, |placed| placed.replicas);
        placed < request.replicas
    });
    let account = |(candidate, standing): &(&Candidate, Standing)| {
        let name = candidate.name();
        let placed = decision.placed.get(name).cloned();
        let distance = away.filter(|away| *away != name).and_then(|away| {
            let rtt = field.rtt(away, name)?;
            Some((away.clone(), rtt))
        });
        Account {
            cluster: name.to_owned(),
            filters: filters(request, candidate, standing, decision),
            max_replicas: match standing {
                Standing::Feasible { max_replicas, .. } => Some(*max_replicas),
                Standing::NoNewReplicas(_) | Standing::Evict(_) => None,
            },
            room: candidate.room,
            reserved: candidate.reserved,
            bound: candidate.bound,
            rank: ranked.iter().position(|each| each.name() == name).map(|index| index + 1),
            traffic: candidate.traffic,
            distance,
            verdict: verdict(request, candidate, standing, placed.as_ref(), decision),
            placed,
            no_member: None,
        }
    };
    field.iter().map(account).chain(no_members(request, candidates)).collect()
}

/// The clusters that the request names and the fleet does not have.
fn no_members(request: &PlacementRequest, candidates: &[Candidate]) -> Vec<Account> {
    let is_member = |name: &str| candidates.iter().any(|each| each.name() == name);
    let mut accounts: Vec<Account> = Vec::new();
    let mut add = |name: &String, help: &str| {
        if is_member(name) || accounts.iter().any(|each| each.cluster == *name) {
            return;
        }
        let message = format!("{name} is no member: {help}");
        accounts.push(Account {
            cluster: name.clone(),
            verdict: format!("nothing: {message}"),
            no_member: Some(Refusal { reason: Reason::ClusterNotFound, message }),
            ..Account::default()
        });
    };
    for name in &request.placement.locations {
        add(name, "peer it, or correct spec.locations");
    }
    if let Some(from) = unknown_origin(&request.placement, candidates) {
        add(from, UNKNOWN_ORIGIN);
    }
    accounts
}

/// What is said of an origin that is no member.
const UNKNOWN_ORIGIN: &str =
    "how far it is from clusters is not known, so none takes anything new. Correct spec.maxLatency.from";

/// The origin of `spec.maxLatency` that nobody knows, if it is one. A place outside the fleet will do, if clusters tell how far
/// it is.
fn unknown_origin<'a, 'b>(
    placement: &'a Placement,
    candidates: impl IntoIterator<Item = &'b Candidate>,
) -> Option<&'a String> {
    let from = &placement.max_latency.as_ref()?.from;
    let knows = |each: &Candidate| each.name() == from || each.site.rtt.contains_key(from);
    (!candidates.into_iter().any(knows)).then_some(from)
}

/// What is wrong with the origin of `spec.maxLatency`, if nobody knows it, and what would help.
#[must_use]
pub fn unknown_origin_message<'a>(
    placement: &Placement,
    candidates: impl IntoIterator<Item = &'a Candidate>,
) -> Option<String> {
    unknown_origin(placement, candidates).map(|from| format!("{from} is no member: {UNKNOWN_ORIGIN}"))
}

/// The filters up to the one that it did not pass.
fn filters(
    request: &PlacementRequest,
    candidate: &Candidate,
    standing: &Standing,
    decision: &Decision,
) -> Vec<Filter> {
    let refusal = match standing {
        Standing::NoNewReplicas(refusal) | Standing::Evict(refusal) => Some(refusal),
        Standing::Feasible { .. } => None,
    };
    let failed_at = refusal.map(|refusal| match refusal.reason {
        _ if candidate.closed.as_ref() == Some(refusal) || candidate.refused.as_ref() == Some(refusal) => {
            "open"
        }
        Reason::NotSelected => "selector",
        Reason::LatencyExceeded | Reason::LatencyUnknown => "latency",
        _ => "taints",
    });
    let passes = [
        ("open", "it answers, takes new work and has its namespace open".to_owned()),
        (
            "selector",
            match &request.placement.cluster_selector {
                Some(selector) => {
                    format!("its labels match {}", portolan_api::selector::to_text(selector))
                }
                None => "no spec.clusterSelector".to_owned(),
            },
        ),
        (
            "latency",
            match &request.placement.max_latency {
                Some(bound) => match candidate.site.rtt.get(&bound.from) {
                    Some(rtt) => format!("{rtt:?} to {}, {:?} allowed", bound.from, bound.rtt.0),
                    None => format!("it is {} itself", bound.from),
                },
                None => "no spec.maxLatency".to_owned(),
            },
        ),
        (
            "taints",
            match candidate.site.taints.len() {
                0 => "it has none".to_owned(),
                count => format!("its {count} are tolerated or only discourage"),
            },
        ),
    ];
    let mut filters = Vec::new();
    for (name, told) in passes {
        if let Some(refusal) = refusal.filter(|_| failed_at == Some(name)) {
            filters.push(Filter { name, passed: false, told: refusal.message.clone() });
            return filters;
        }
        filters.push(Filter { name, passed: true, told });
    }
    let mut told = match candidate.bound {
        0 => format!("{} replicas fit", candidate.room.max_replicas),
        bound => {
            format!("{} more replicas fit beside {bound} that have a node", candidate.room.max_replicas)
        }
    };
    let passed = candidate.room.max_replicas > 0 || candidate.bound > 0;
    let short = decision.refusals.get(candidate.name()).filter(|why| why.reason == Reason::NoRoom);
    if let Some(why) = short.filter(|_| !passed) {
        told = format!("{told}: {}", why.message);
    }
    filters.push(Filter { name: "room", passed, told });
    filters
}

/// Why replicas stay where they would not be placed today.
fn stays(placed: &Placed) -> &'static str {
    match placed.kept.map(|kept| kept.because) {
        Some(KeptBecause::NotWanted) => {
            "the workload does not ask for this cluster any more, and no cluster that it asks for takes its replicas"
        }
        Some(KeptBecause::NoRoom) => {
            "they run there, and have no room there or elsewhere as they are wanted now"
        }
        Some(KeptBecause::Refused) => {
            "they run there, and the cluster refuses the workload as it is wanted now"
        }
        Some(KeptBecause::Evicted) | None => "it is to be left, and no other cluster has room yet",
    }
}

fn verdict(
    request: &PlacementRequest,
    candidate: &Candidate,
    standing: &Standing,
    placed: Option<&Placed>,
    decision: &Decision,
) -> String {
    let affine = request.placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    let location = request.placement.locations.iter().any(|name| name == candidate.name());
    match (placed, standing) {
        (Some(placed), _) => {
            let why = match placed.cause {
                PlacementCause::Preferred if !location => "it was one of the locations".to_owned(),
                PlacementCause::Preferred => "it is one of the locations".to_owned(),
                PlacementCause::Policy => "the policy chose it".to_owned(),
                PlacementCause::Substitution => {
                    format!("it stands in for {}, which has no room", placed.stands_in_for.join(" and "))
                }
                PlacementCause::Bursting => "it takes what does not fit in the chosen clusters".to_owned(),
                PlacementCause::Cloud => "it is a cloud cluster, and no other has room".to_owned(),
                PlacementCause::NoAlternative => stays(placed).to_owned(),
                PlacementCause::Replacement => {
                    format!("it replaces {}, which is silent", placed.stands_in_for.join(" and "))
                }
            };
            let kept = match standing {
                Standing::NoNewReplicas(_) if placed.kept.is_some() => String::new(),
                Standing::NoNewReplicas(refusal) if candidate.refused.as_ref() == Some(refusal) => {
                    format!("; it refuses the workload as it is now, and {} run there", candidate.running)
                }
                Standing::NoNewReplicas(_) => "; it takes nothing new and keeps what it has".to_owned(),
                _ => String::new(),
            };
            format!("{} replicas: {why}{kept}", placed.replicas)
        }
        (None, Standing::NoNewReplicas(refusal)) => format!("nothing: {}", refusal.message),
        (None, Standing::Evict(refusal)) if candidate.reserved > 0 => {
            format!("nothing, what it holds goes elsewhere: {}", refusal.message)
        }
        (None, Standing::Evict(refusal)) => format!("nothing: {}", refusal.message),
        (None, Standing::Feasible { max_replicas, .. }) => {
            let refused = decision.refusals.get(candidate.name());
            match refused {
                Some(refusal) => format!("nothing: {}", refusal.message),
                None if affine && !location && !request.may_overflow() => {
                    "nothing: it is not one of spec.locations, and neither enableSubstitution nor enableBursting lets \
                     replicas go elsewhere"
                        .to_owned()
                }
                None if *max_replicas == 0 => "nothing: no replica fits".to_owned(),
                None => "nothing: all replicas have their place in clusters before it".to_owned(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{PodShape, Shortage};
    use crate::placement::{Refusal, decide};
    use portolan_api::placement::{MaxLatency, ReplicasMode};
    use std::collections::BTreeMap;

    fn cluster(name: &str, max_replicas: u32) -> Candidate {
        let room = Room { max_replicas, cpu: i64::from(max_replicas) * 1000, memory: 0 };
        Candidate { room, ..Candidate::default() }.at(|site| site.name = name.to_owned())
    }

    fn request(replicas: u32, placement: Placement) -> PlacementRequest {
        PlacementRequest {
            shape: PodShape::default().into(),
            replicas,
            mode: ReplicasMode::PerLocation,
            weights: BTreeMap::new(),
            placement,
            bursting: false,
        }
    }

    fn told(request: &PlacementRequest, fleet: &[Candidate]) -> Vec<Account> {
        let decision = decide(request, fleet, |_, _| Shortage::default()).unwrap();
        explain(request, fleet, &decision)
    }

    #[test]
    fn every_cluster_is_told_with_its_rank_and_verdict() {
        let mut policy = Placement { number_of_locations: Some(1), ..Placement::default() };
        policy.placement_policy = Some(PlacementPolicy::WorstFit);
        let closed = Some(Refusal { reason: Reason::Unreachable, message: "no answer".into() });
        let silent = Candidate { closed, ..cluster("c", 9) };
        let accounts = told(&request(2, policy), &[cluster("a", 3), cluster("b", 9), silent]);
        let ranks: Vec<_> = accounts.iter().map(|each| (each.cluster.as_str(), each.rank)).collect();
        assert_eq!(ranks, [("a", Some(2)), ("b", Some(1)), ("c", None)]);
        assert_eq!(accounts[1].verdict, "2 replicas: the policy chose it");
        assert_eq!(accounts[0].verdict, "nothing: all replicas have their place in clusters before it");
        assert_eq!(accounts[2].verdict, "nothing: no answer");
        assert_eq!(accounts[2].filters.len(), 1, "what comes after the first refusal is not asked");
        assert!(!accounts[2].filters[0].passed && accounts[0].filters.iter().all(|each| each.passed));
    }

    #[test]
    fn a_name_that_no_member_has_is_told_with_the_field_that_has_it() {
        let locations = vec!["a".to_owned(), "aa".to_owned()];
        let from = "nowhere".to_owned();
        let bound = MaxLatency { from, rtt: portolan_api::Duration(Duration::from_millis(20)) };
        let mut placement = Placement { locations, max_latency: Some(bound), ..Placement::default() };
        let total = |placement: &Placement| PlacementRequest {
            mode: ReplicasMode::Total,
            ..request(2, placement.clone())
        };
        let names = |accounts: &[Account]| -> Vec<String> {
            let unknown = accounts.iter().filter_map(|each| each.no_member.as_ref());
            unknown.map(|why| why.message.clone()).collect()
        };
        let near = cluster("a", 4).at(|site| site.rtt = BTreeMap::from([("office".into(), Duration::ZERO)]));
        let found = names(&told(&total(&placement), std::slice::from_ref(&near)));
        assert_eq!(found[0], "aa is no member: peer it, or correct spec.locations");
        assert!(found[1].starts_with("nowhere is no member") && found[1].contains("spec.maxLatency.from"));
        let message = unknown_origin_message(&placement, std::slice::from_ref(&near));
        assert_eq!(message.as_ref(), Some(&found[1]));
        // A place that clusters tell the distance to need not be a member.
        placement.max_latency.as_mut().unwrap().from = "office".to_owned();
        placement.locations.pop();
        assert!(names(&told(&total(&placement), &[near])).is_empty());
    }

    #[test]
    fn a_stand_in_is_told_with_its_distance() {
        let mut placement = Placement { locations: vec!["a".into()], ..Placement::default() };
        placement.enable_substitution = true;
        let rtt = BTreeMap::from([("a".to_owned(), Duration::from_millis(7))]);
        let near = cluster("b", 9).at(|site| site.rtt = rtt);
        let accounts = told(&request(2, placement), &[cluster("a", 1), near]);
        assert_eq!(accounts[1].distance, Some(("a".to_owned(), Duration::from_millis(7))));
        assert_eq!(accounts[1].verdict, "1 replicas: it stands in for a, which has no room");
        assert_eq!(accounts[0].verdict, "1 replicas: it is one of the locations");
    }
}
