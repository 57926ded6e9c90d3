//! What a plan saw, cluster by cluster, and what came of it: for people who ask why.

use super::{End, Part, Plan, Release, Work};
use crate::placement::{self, Account, Candidate, Decision, Placed, Standing};
use portolan_api::placement::{PlacementCause, PlacementPolicy};

/// Tells what `plan`, which was made on these candidates, saw in each of them.
#[must_use]
pub fn explain(work: &Work, candidates: &[Candidate], plan: &Plan) -> Vec<Account> {
    let mut request = work.request.clone();
    request.replicas = work.completions.min(work.parallelism.max(1));
    let decision =
        Decision { placed: plan.record.parts.iter().filter_map(placed).collect(), ..Decision::default() };
    let away = work
        .request
        .placement
        .locations
        .iter()
        .find(|name| plan.record.parts.get(*name).is_none_or(|part| part.completions < work.completions));
    let away = away.and_then(|away| candidates.iter().find(|each| each.site.name == *away));
    let mut accounts = placement::explain(&request, candidates, &decision);
    for account in &mut accounts {
        let Some(candidate) = candidates.iter().find(|each| each.site.name == account.cluster) else {
            continue;
        };
        let room = account.filters.iter_mut().find(|filter| filter.name == "room");
        if let Some(room) = room {
            room.told = match candidate.bound {
                0 => format!("{} pods fit", candidate.room.max_replicas),
                bound => {
                    format!("{} more pods fit beside {bound} that have a node", candidate.room.max_replicas)
                }
            };
        }
        account.distance = away
            .filter(|away| away.site.name != candidate.site.name)
            .and_then(|away| Some((away.site.name.clone(), away.round_trip(candidate)?)));
        account.verdict = match plan.record.parts.get(&account.cluster) {
            Some(part) => with_a_part(work, part, &account.cluster, plan),
            None => without(work, candidate, &candidate.stands(&request, candidates), plan),
        };
    }
    accounts
}

fn placed((cluster, part): (&String, &Part)) -> Option<(String, Placed)> {
    let cause = part.cause.unwrap_or(PlacementCause::Policy);
    let placed = Placed { replicas: part.completions, ..Placed::new(cause) };
    (part.completions > 0).then(|| (cluster.clone(), placed))
}

fn with_a_part(work: &Work, part: &Part, cluster: &str, plan: &Plan) -> String {
    let given_away = part.released.filter(|_| part.open() == 0).map(|release| match release {
        Release::Failed => "its Job has failed",
        Release::Silent => "it was silent for too long, or left the fleet",
        Release::NoRoom => "no pod of its part found a node",
        Release::Refused => "it did not take the Job",
    });
    if let Some(why) = given_away {
        let kept = match part.succeeded {
            0 => "nothing".to_owned(),
            count => format!("{count} completions, all finished"),
        };
        return format!("{kept}: {why}, and what was open went to other clusters");
    }
    let completions = match part.completions {
        1 => "1 completion".to_owned(),
        count => format!("{count} completions"),
    };
    if part.open() == 0 {
        return format!("{completions}, all finished");
    }
    if plan.record.end.is_some() {
        return format!("{completions}, {} left open: the job has ended", part.open());
    }
    let location = work.request.placement.locations.iter().any(|name| name == cluster);
    let cause = match part.cause {
        Some(PlacementCause::Preferred) if !location => {
            "it was one of the locations when they were given to it, and they stay there"
        }
        Some(PlacementCause::Preferred) => "it is one of the locations",
        Some(PlacementCause::Policy) | None => "the policy chose it",
        Some(PlacementCause::Substitution) => "it stands in for a location that has no room",
        Some(PlacementCause::Bursting) => "it takes what does not fit in the chosen clusters",
        Some(PlacementCause::Cloud) => "it is a cloud cluster, and no other has room",
        Some(PlacementCause::NoAlternative) => "it is to be left, and no other cluster has room yet",
        Some(PlacementCause::Replacement) => "it replaces a cluster that is silent or left the fleet",
    };
    let stuck = plan.stuck.get(cluster).map(|why| format!("; for now {}", why.message));
    format!("{completions}, {} at a time: {cause}{}", part.parallelism, stuck.unwrap_or_default())
}

fn without(work: &Work, candidate: &Candidate, standing: &Standing, plan: &Plan) -> String {
    let placement = &work.request.placement;
    let affine = placement.effective_policy() == PlacementPolicy::ClusterAffinity;
    let location = placement.locations.iter().any(|name| *name == candidate.site.name);
    match (plan.refusals.get(&candidate.site.name), standing) {
        _ if matches!(plan.record.end, Some(End::Complete)) => "nothing: all completions are finished".to_owned(),
        _ if plan.record.end.is_some() => "nothing: the job has ended".to_owned(),
        (Some(refusal), _) | (None, Standing::NoNewReplicas(refusal) | Standing::Evict(refusal)) => {
            format!("nothing: {}", refusal.message)
        }
        (None, Standing::Feasible { .. }) if affine && !location && !placement.enable_substitution => {
            "nothing: it is not one of spec.locations, and enableSubstitution does not let completions go elsewhere"
                .to_owned()
        }
        (None, Standing::Feasible { max_replicas: 0, .. }) => "nothing: no pod fits".to_owned(),
        (None, Standing::Feasible { .. }) if work.suspended => "nothing: the job is suspended".to_owned(),
        (None, Standing::Feasible { .. }) => {
            "nothing: all completions have their place in clusters before it".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{PodShape, Room, Shortage};
    use crate::jobs::{JobSnapshot, MemberJobState, Record, plan};
    use crate::placement::{PlacementRequest, Refusal, Site};
    use portolan_api::Reason;
    use portolan_api::placement::{Placement, ReplicasMode};
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    fn cluster(name: &str, max_replicas: u32) -> Candidate {
        let room = Room { max_replicas, cpu: i64::from(max_replicas) * 1000, memory: 0 };
        let site = Site { name: name.into(), ..Site::default() };
        Candidate { site: site.into(), room, ..Candidate::default() }
    }

    fn work(locations: &[&str]) -> Work {
        let placement = Placement {
            locations: locations.iter().map(|name| (*name).to_owned()).collect(),
            enable_substitution: true,
            ..Placement::default()
        };
        Work {
            request: PlacementRequest {
                shape: PodShape::default().into(),
                replicas: 0,
                mode: ReplicasMode::PerLocation,
                weights: BTreeMap::new(),
                placement,
                bursting: false,
            },
            completions: 6,
            parallelism: 2,
            indexed: false,
            suspended: false,
            retries: Some(3),
            leaving: BTreeSet::new(),
        }
    }

    fn told(
        work: &Work,
        record: &Record,
        seen: &[(&str, MemberJobState)],
        fleet: &[Candidate],
    ) -> Vec<Account> {
        let states = seen.iter().map(|(name, state)| ((*name).to_owned(), state.clone())).collect();
        let plan = plan(work, record, &states, fleet, |_, _| Shortage::default()).unwrap();
        explain(work, fleet, &plan)
    }

    #[test]
    fn every_cluster_is_told_with_its_part_or_why_it_has_none() {
        let rtt = BTreeMap::from([("a".to_owned(), Duration::from_millis(7))]);
        let site = Site { name: "b".into(), rtt, ..Site::default() };
        let near = Candidate { site: site.into(), ..cluster("b", 4) };
        let closed = Some(Refusal { reason: Reason::Unreachable, message: "no answer".into() });
        let silent = Candidate { closed, ..cluster("c", 9) };
        let states = ["a", "b", "c"].map(|name| (name, MemberJobState::NoJob));
        let accounts = told(&work(&["a"]), &Record::default(), &states, &[cluster("a", 0), near, silent]);
        assert_eq!(
            accounts[1].verdict,
            "6 completions, 2 at a time: it stands in for a location that has no room"
        );
        assert_eq!(accounts[1].distance, Some(("a".to_owned(), Duration::from_millis(7))));
        assert_eq!(accounts[2].verdict, "nothing: no answer");
        let room = accounts[0].filters.last().unwrap();
        assert!(!room.passed && room.told == "0 pods fit", "{room:?}");
    }

    #[test]
    fn what_failed_or_finished_in_a_cluster_is_told() {
        let part = Part {
            completions: 6,
            parallelism: 2,
            cause: Some(PlacementCause::Preferred),
            ..Part::default()
        };
        let parts = BTreeMap::from([("a".to_owned(), part.clone()), ("b".to_owned(), part)]);
        let record = Record { parts, ..Record::default() };
        let failure = Some("BackoffLimitExceeded".to_owned());
        let failed = JobSnapshot {
            completions: 6,
            succeeded: 2,
            failed: 7,
            over: true,
            failure,
            ..JobSnapshot::default()
        };
        let done = JobSnapshot {
            completions: 6,
            succeeded: 6,
            complete: true,
            over: true,
            ..JobSnapshot::default()
        };
        let seen = [
            ("a", MemberJobState::Job(failed)),
            ("b", MemberJobState::Job(done)),
            ("c", MemberJobState::NoJob),
        ];
        let fleet = [cluster("a", 9), cluster("b", 0), cluster("c", 9)];
        let accounts = told(&work(&["a", "b"]), &record, &seen, &fleet);
        let failed =
            "2 completions, all finished: its Job has failed, and what was open went to other clusters";
        assert_eq!(accounts[0].verdict, failed);
        assert_eq!(accounts[1].verdict, "6 completions, all finished");
        assert!(accounts[2].verdict.starts_with("4 completions, 2 at a time"), "{}", accounts[2].verdict);
    }

    #[test]
    fn a_cluster_that_is_no_location_any_more_is_not_called_one() {
        let part = Part {
            completions: 6,
            parallelism: 2,
            cause: Some(PlacementCause::Preferred),
            ..Part::default()
        };
        let record = Record { parts: BTreeMap::from([("a".to_owned(), part)]), ..Record::default() };
        let running = JobSnapshot { completions: 6, ..JobSnapshot::default() };
        let accounts =
            told(&work(&["aa"]), &record, &[("a", MemberJobState::Job(running))], &[cluster("a", 9)]);
        assert_eq!(
            accounts[0].verdict,
            "6 completions, 2 at a time: it was one of the locations when they were given to it, and they stay there"
        );
        assert_eq!(accounts[1].verdict, "nothing: aa is no member: peer it, or correct spec.locations");
    }
}
