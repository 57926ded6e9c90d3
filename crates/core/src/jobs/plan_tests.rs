use super::super::JobSnapshot;
use super::*;
use crate::capacity::{PodShape, Room};
use crate::placement::PlacementRequest;
use portolan_api::Reason;
use portolan_api::placement::{Placement, ReplicasMode};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn work(completions: u32, parallelism: u32, mode: ReplicasMode, locations: &[&str]) -> Work {
    let locations = locations.iter().map(|name| (*name).to_owned()).collect();
    let request = PlacementRequest {
        shape: PodShape::default().into(),
        replicas: 0,
        mode,
        weights: BTreeMap::new(),
        placement: Placement { locations, ..Placement::default() },
        bursting: false,
    };
    Work {
        request,
        completions,
        parallelism,
        indexed: false,
        suspended: false,
        retries: None,
        leaving: BTreeSet::new(),
    }
}

fn cluster(name: &str, max_replicas: u32) -> Candidate {
    let room = Room { max_replicas, ..Room::default() };
    Candidate { room, ..Candidate::default() }.at(|site| site.name = name.to_owned())
}

fn nothing(names: &[&str]) -> BTreeMap<String, MemberJobState> {
    names.iter().map(|name| ((*name).to_owned(), MemberJobState::NoJob)).collect()
}

fn first(work: &Work, candidates: &[Candidate]) -> Plan {
    let names: Vec<&str> = candidates.iter().map(|each| each.name()).collect();
    plan(work, &Record::default(), &nothing(&names), candidates, |_, _| Shortage::default()).unwrap()
}

fn shares(plan: &Plan) -> Vec<(&str, u32, u32)> {
    let parts = plan.record.parts.iter();
    parts.map(|(name, part)| (name.as_str(), part.completions, part.parallelism)).collect()
}

/// What follows when these Jobs are seen on this record.
fn next(work: &Work, before: &Plan, candidates: &[Candidate], jobs: &[(&str, JobSnapshot)]) -> Plan {
    let names: Vec<&str> = candidates.iter().map(|each| each.name()).collect();
    let mut states = nothing(&names);
    for (name, job) in jobs {
        states.insert((*name).to_owned(), MemberJobState::Job(job.clone()));
    }
    plan(work, &before.record, &states, candidates, |_, _| Shortage::default()).unwrap()
}

#[test]
fn a_total_is_divided_exactly_and_every_location_gets_all_otherwise() {
    let fleet = [cluster("a", 9), cluster("b", 9), cluster("c", 9)];
    let total = first(&work(10, 4, ReplicasMode::Total, &["a", "b", "c"]), &fleet);
    assert_eq!(shares(&total), [("a", 5, 2), ("b", 3, 1), ("c", 2, 1)]);
    let each = first(&work(10, 4, ReplicasMode::PerLocation, &["a", "c"]), &fleet);
    assert_eq!(shares(&each), [("a", 10, 4), ("c", 10, 4)]);
    let made = Order::Create { attempt: 0, finished_before: 0, completions: 10, parallelism: 4 };
    assert_eq!(each.orders["a"], made);
    let one_at_a_time = first(&work(4, 1, ReplicasMode::Total, &["a", "b"]), &fleet);
    assert_eq!(shares(&one_at_a_time), [("a", 2, 1), ("b", 2, 0)]);
}

#[test]
fn less_room_is_less_at_the_same_time_and_none_is_pending_with_a_reason() {
    let work = work(6, 4, ReplicasMode::PerLocation, &["a", "b"]);
    let fleet = [cluster("a", 1), cluster("b", 0)];
    let tight = first(&work, &fleet);
    assert_eq!((shares(&tight), tight.pending), (vec![("a", 6, 1)], 6));
    assert_eq!(tight.refusals["b"].reason, Reason::NoRoom);
    let roomy = next(&work, &tight, &[cluster("a", 9), cluster("b", 2)], &[]);
    assert_eq!((shares(&roomy), roomy.pending), (vec![("a", 6, 4), ("b", 6, 2)], 0));
}

#[test]
fn a_job_that_vanishes_is_made_again_for_what_is_open_only() {
    let (work, fleet) = (work(10, 2, ReplicasMode::PerLocation, &["a"]), [cluster("a", 9)]);
    let begun = first(&work, &fleet);
    let seen = JobSnapshot { completions: 10, succeeded: 7, ..JobSnapshot::default() };
    let counted = next(&work, &begun, &fleet, &[("a", seen)]);
    assert_eq!(counted.record.parts["a"].succeeded, 7);
    let lost = next(&work, &counted, &fleet, &[]);
    let again = Order::Create { attempt: 1, finished_before: 7, completions: 3, parallelism: 2 };
    assert_eq!(lost.orders["a"], again);
    let done = JobSnapshot {
        attempt: 1,
        finished_before: 7,
        completions: 3,
        succeeded: 3,
        complete: true,
        over: true,
        ..JobSnapshot::default()
    };
    let done = next(&work, &lost, &fleet, &[("a", done)]);
    assert_eq!((&done.record.end, &done.orders["a"]), (&Some(End::Complete), &Order::Noop));
    assert_eq!(next(&work, &done, &fleet, &[]).orders["a"], Order::Noop, "finished work is never run again");
}

#[test]
fn what_a_failed_job_left_open_goes_elsewhere_until_the_limit() {
    let mut work = work(6, 3, ReplicasMode::PerLocation, &["a"]);
    let fleet = [cluster("a", 9), cluster("b", 9)];
    let failed = |succeeded, attempt| JobSnapshot {
        completions: 6,
        succeeded,
        attempt,
        failure: Some("BackoffLimitExceeded".into()),
        over: true,
        ..JobSnapshot::default()
    };
    let begun = first(&work, &fleet);
    let ended = next(&work, &begun, &fleet, &[("a", failed(2, 0))]);
    assert!(matches!(&ended.record.end, Some(End::Failed { reason, .. }) if *reason == Reason::JobFailed));
    work.retries = Some(1);
    let moved = next(&work, &begun, &fleet, &[("a", failed(2, 0))]);
    assert_eq!(shares(&moved), [("a", 2, 0), ("b", 4, 3)]);
    assert_eq!((moved.record.retries, moved.pending), (1, 0));
    let again = next(&work, &moved, &fleet, &[("a", failed(2, 0)), ("b", failed(1, 0))]);
    assert!(
        matches!(&again.record.end, Some(End::Failed { reason, .. }) if *reason == Reason::RetryLimitReached)
    );
    work.retries = Some(9);
    let nowhere = next(&work, &moved, &fleet, &[("a", failed(2, 0)), ("b", failed(1, 0))]);
    assert!(
        matches!(&nowhere.record.end, Some(End::Failed { reason, .. }) if *reason == Reason::FailedInAllClusters)
    );
}

#[test]
fn a_cluster_that_returns_after_its_work_was_given_away_is_counted_once() {
    let work = work(6, 6, ReplicasMode::PerLocation, &["a"]);
    let fleet = [cluster("a", 9), cluster("b", 3)];
    let begun = first(&work, &fleet);
    let seen = JobSnapshot { completions: 6, succeeded: 1, ..JobSnapshot::default() };
    let counted = next(&work, &begun, &fleet, &[("a", seen.clone())]);
    let silent = |too_long| {
        BTreeMap::from([
            ("a".to_owned(), MemberJobState::Unreachable { too_long }),
            ("b".to_owned(), MemberJobState::NoJob),
        ])
    };
    let closed = Candidate {
        closed: Some(crate::placement::Refusal { reason: Reason::Unreachable, message: String::new() }),
        ..cluster("a", 0)
    };
    let fleet_now = [closed, cluster("b", 3)];
    let kept = plan(&work, &counted.record, &silent(false), &fleet_now, |_, _| Shortage::default()).unwrap();
    assert_eq!(shares(&kept), [("a", 6, 6)], "silence is not absence");
    let given = plan(&work, &kept.record, &silent(true), &fleet_now, |_, _| Shortage::default()).unwrap();
    assert_eq!(shares(&given), [("a", 1, 0), ("b", 5, 3)]);
    let back = JobSnapshot { succeeded: 4, ..seen };
    let running = JobSnapshot { completions: 5, ..JobSnapshot::default() };
    let suspended = next(&work, &given, &fleet, &[("a", back.clone()), ("b", running.clone())]);
    assert_eq!((&suspended.orders["a"], suspended.record.parts["a"].succeeded), (&Order::Suspend, 1));
    let over = JobSnapshot { suspended: true, over: true, ..back };
    let removed = next(&work, &suspended, &fleet, &[("a", over), ("b", running)]);
    assert_eq!(
        (&removed.orders["a"], removed.record.parts["a"].succeeded),
        (&Order::Delete, 1),
        "never twice"
    );
}

#[test]
fn an_attempt_beyond_the_record_is_not_believed_and_changes_nothing() {
    let work = work(6, 2, ReplicasMode::PerLocation, &["a"]);
    let fleet = [cluster("a", 9)];
    let begun = first(&work, &fleet);
    let honest = JobSnapshot { completions: 6, succeeded: 1, failed: 1, ..JobSnapshot::default() };
    let counted = next(&work, &begun, &fleet, &[("a", honest.clone())]);
    let forged = JobSnapshot { attempt: u32::MAX, finished_before: 5, ..honest };
    let once = next(&work, &counted, &fleet, &[("a", forged.clone())]);
    assert_eq!(once.record, counted.record, "neither another attempt nor finished completions nor failures");
    let twice = next(&work, &once, &fleet, &[("a", forged)]);
    assert_eq!(twice.record, once.record);
    assert_eq!(twice.orders["a"], Order::Resume { parallelism: 2 });
}

#[test]
fn a_cluster_is_credited_with_no_more_than_it_ever_had() {
    let work = work(9, 9, ReplicasMode::Total, &["a", "b"]);
    let fleet = [cluster("a", 3), cluster("b", 6)];
    let begun = first(&work, &fleet);
    let given = begun.record.parts["a"].completions;
    assert!((1..9).contains(&given), "{begun:?}");
    let silent = |too_long: bool| {
        let states = [
            ("a", MemberJobState::Unreachable { too_long }),
            ("b", MemberJobState::Unreachable { too_long: false }),
        ];
        states.map(|(name, state)| (name.to_owned(), state)).into()
    };
    let closed = |name: &str| Candidate {
        closed: Some(crate::placement::Refusal { reason: Reason::Unreachable, message: String::new() }),
        ..cluster(name, 0)
    };
    let away = [closed("a"), closed("b")];
    let lost = plan(&work, &begun.record, &silent(true), &away, |_, _| Shortage::default()).unwrap();
    assert_eq!((lost.pending, lost.record.parts["a"].given), (given, given));
    let lie = JobSnapshot {
        completions: 1_000,
        succeeded: 1_000,
        over: true,
        complete: true,
        ..JobSnapshot::default()
    };
    let mut more = lost.clone();
    more.record.parts.get_mut("b").unwrap().release(super::Release::Silent);
    let states = BTreeMap::from([
        ("a".to_owned(), MemberJobState::Job(lie)),
        ("b".to_owned(), MemberJobState::Unreachable { too_long: true }),
    ]);
    let back = plan(&work, &more.record, &states, &away, |_, _| Shortage::default()).unwrap();
    assert_eq!(back.record.parts["a"].succeeded, given, "what it had, and none of b's");
}

#[test]
fn suspended_work_is_held_and_goes_on_with_another_template_for_what_is_open() {
    let mut work = work(5, 2, ReplicasMode::PerLocation, &["a"]);
    let fleet = [cluster("a", 9)];
    let begun = first(&work, &fleet);
    work.suspended = true;
    let running = JobSnapshot { completions: 5, succeeded: 2, ..JobSnapshot::default() };
    let suspended = next(&work, &begun, &fleet, &[("a", running.clone())]);
    assert_eq!((&suspended.orders["a"], suspended.record.parts["a"].parallelism), (&Order::Suspend, 0));
    let outdated = JobSnapshot { suspended: true, over: true, outdated: true, ..running };
    let changed = next(&work, &suspended, &fleet, &[("a", outdated.clone())]);
    assert_eq!(changed.orders["a"], Order::Delete);
    work.suspended = false;
    let resumed = next(&work, &changed, &fleet, &[]);
    assert_eq!(
        resumed.orders["a"],
        Order::Create { attempt: 1, finished_before: 2, completions: 3, parallelism: 2 }
    );
    work.indexed = true;
    let pinned = next(&work, &suspended, &fleet, &[("a", outdated)]);
    assert_eq!(pinned.orders["a"], Order::Resume { parallelism: 2 });
}

#[test]
fn a_cluster_that_leaves_is_held_first_and_its_rest_goes_elsewhere_once() {
    let mut work = work(5, 2, ReplicasMode::PerLocation, &["a"]);
    let fleet = [cluster("a", 9), cluster("b", 9)];
    let begun = first(&work, &fleet);
    work.leaving.insert("a".to_owned());
    let running = JobSnapshot { completions: 5, succeeded: 2, ..JobSnapshot::default() };
    let suspended = next(&work, &begun, &fleet, &[("a", running.clone())]);
    assert_eq!((shares(&suspended), &suspended.orders["a"]), (vec![("a", 5, 2)], &Order::Suspend));
    let tainted = Candidate {
        closed: Some(crate::placement::Refusal { reason: Reason::TaintNotTolerated, message: String::new() }),
        ..cluster("a", 9)
    };
    let over = JobSnapshot { suspended: true, over: true, succeeded: 3, ..running };
    let moved = next(&work, &suspended, &[tainted, cluster("b", 9)], &[("a", over)]);
    assert_eq!((shares(&moved), &moved.orders["a"]), (vec![("a", 3, 0), ("b", 2, 2)], &Order::Delete));
}

#[test]
fn work_that_finds_no_node_is_held_first_and_its_rest_goes_elsewhere() {
    let mut work = work(5, 2, ReplicasMode::PerLocation, &["a"]);
    let begun = first(&work, &[cluster("a", 9), cluster("b", 9)]);
    let fleet = [cluster("a", 0), cluster("b", 9)];
    let waiting = JobSnapshot { completions: 5, succeeded: 2, ..JobSnapshot::default() };
    let pinned = next(&work, &begun, &fleet, &[("a", waiting.clone())]);
    assert_eq!(
        (shares(&pinned), &pinned.orders["a"]),
        (vec![("a", 5, 2)], &Order::Resume { parallelism: 2 })
    );
    assert_eq!(
        pinned.stuck["a"].reason,
        Reason::NoRoom,
        "the policy lets it go nowhere else, and it is told"
    );
    work.request.placement.enable_substitution = true;
    let suspended = next(&work, &begun, &fleet, &[("a", waiting.clone())]);
    assert_eq!((shares(&suspended), &suspended.orders["a"]), (vec![("a", 5, 2)], &Order::Suspend));
    let bound = Candidate { bound: 1, ..cluster("a", 0) };
    let slow = next(&work, &begun, &[bound, cluster("b", 9)], &[("a", waiting.clone())]);
    assert_eq!(slow.orders["a"], Order::Resume { parallelism: 2 }, "one pod runs: it comes to its end");
    let over = JobSnapshot { suspended: true, over: true, succeeded: 3, ..waiting };
    let moved = next(&work, &suspended, &fleet, &[("a", over.clone())]);
    assert_eq!((shares(&moved), &moved.orders["a"]), (vec![("a", 3, 0), ("b", 2, 2)], &Order::Delete));
    assert_eq!(moved.record.parts["a"].released, Some(Release::NoRoom));
    let nowhere = next(&work, &suspended, &[cluster("a", 0), cluster("b", 0)], &[("a", over)]);
    assert_eq!(shares(&nowhere), [("a", 5, 2)], "it is no better off anywhere else");
    assert_eq!(nowhere.orders["a"], Order::Resume { parallelism: 2 });
}

#[test]
fn work_whose_turn_has_not_come_does_not_wait_for_room() {
    let mut work = work(4, 1, ReplicasMode::Total, &["a", "b"]);
    work.request.placement.enable_substitution = true;
    let begun = first(&work, &[cluster("a", 9), cluster("b", 9), cluster("c", 9)]);
    assert_eq!(shares(&begun), [("a", 2, 1), ("b", 2, 0)]);
    let fleet = [Candidate { bound: 1, ..cluster("a", 8) }, cluster("b", 0), cluster("c", 9)];
    let running = JobSnapshot { completions: 2, ..JobSnapshot::default() };
    let later = next(&work, &begun, &fleet, &[("a", running.clone())]);
    assert_eq!((shares(&later), later.stuck.len()), (vec![("a", 2, 1), ("b", 2, 0)], 0));
    let done = JobSnapshot { succeeded: 2, complete: true, over: true, ..running };
    let turn = next(&work, &later, &fleet, &[("a", done)]);
    assert_eq!(turn.stuck["b"].reason, Reason::NoRoom, "now it is its turn");
    assert_eq!(turn.record.parts["b"].released, Some(Release::NoRoom));
}

#[test]
fn work_that_a_cluster_does_not_take_goes_to_another_one() {
    let work = work(4, 2, ReplicasMode::Total, &["a", "b"]);
    let begun = first(&work, &[cluster("a", 9), cluster("b", 9)]);
    assert_eq!(shares(&begun), [("a", 2, 1), ("b", 2, 1)]);
    let refusal = crate::placement::Refusal { reason: Reason::NameTaken, message: "rename one".to_owned() };
    let closed = Candidate { closed: Some(refusal.clone()), ..cluster("a", 9) };
    let running = JobSnapshot { completions: 2, ..JobSnapshot::default() };
    let moved = next(&work, &begun, &[closed, cluster("b", 9)], &[("b", running)]);
    assert_eq!(shares(&moved), [("a", 0, 0), ("b", 4, 2)]);
    assert_eq!((moved.record.parts["a"].released, &moved.stuck["a"]), (Some(Release::Refused), &refusal));
}

/// A cluster of the model, with what really happens in it.
#[derive(Clone, Debug, Default)]
struct Member {
    job: Option<JobSnapshot>,
    parallelism: u32,
    silent: bool,
    long: bool,
    closed: bool,
    room: u32,
}

struct Model {
    work: Work,
    record: Record,
    members: BTreeMap<String, Member>,
    /// Pods that have finished successfully, ever.
    ran: u32,
    /// Of those: which nobody could know of, or which were given to others in the meantime.
    excused: u32,
}

impl Model {
    fn states(&self) -> BTreeMap<String, MemberJobState> {
        let state = |member: &Member| match (&member.job, member.silent) {
            (_, true) => MemberJobState::Unreachable { too_long: member.long },
            (None, false) => MemberJobState::NoJob,
            (Some(job), false) => MemberJobState::Job(job.clone()),
        };
        self.members.iter().map(|(name, member)| (name.clone(), state(member))).collect()
    }

    /// Plans, checks and does what was planned.
    fn step(&mut self) -> Result<(), TestCaseError> {
        let candidates: Vec<_> = self
            .members
            .iter()
            .map(|(name, member)| {
                let closed = member.silent || member.closed;
                let closed = closed.then(|| crate::placement::Refusal {
                    reason: Reason::Unreachable,
                    message: String::new(),
                });
                Candidate { closed, ..cluster(name, member.room) }
            })
            .collect();
        let states = self.states();
        let new = plan(&self.work, &self.record, &states, &candidates, |_, _| Shortage::default()).unwrap();
        let same = plan(&self.work, &self.record, &states, &candidates, |_, _| Shortage::default()).unwrap();
        prop_assert_eq!(&new, &same, "deterministic");
        let total = self.work.total();
        let parts = &new.record.parts;
        let sum = |count: fn(&Part) -> u32| parts.values().map(count).sum::<u32>();
        prop_assert_eq!(sum(|part| part.completions) + new.pending, total, "conserved");
        prop_assert!(sum(|part| part.succeeded) <= total);
        prop_assert!(sum(Part::in_use) <= self.work.parallelism.saturating_mul(self.work.times()));
        for (name, part) in &self.record.parts {
            prop_assert!(parts[name].succeeded >= part.succeeded, "what is finished stays finished");
            let taken_away = part.completions - parts[name].completions.min(part.completions);
            if taken_away > 0 && self.members[name].silent {
                // What it brings from now on is brought elsewhere, too.
                let job = self.members[name].job.as_ref();
                self.excused += job.map_or(0, |job| job.completions);
            }
        }
        self.record = new.record.clone();
        for (name, order) in &new.orders {
            let part = &new.record.parts[name];
            let member = self.members.get_mut(name).unwrap();
            prop_assert!(!member.silent || *order == Order::Noop);
            match order {
                Order::Noop => {}
                Order::Create { attempt, finished_before, completions, parallelism } => {
                    prop_assert!(member.job.is_none());
                    prop_assert_eq!(*completions, part.open(), "no more than what is open");
                    prop_assert_eq!(*finished_before, part.succeeded);
                    if member.closed {
                        continue;
                    }
                    member.job = Some(JobSnapshot {
                        attempt: *attempt,
                        finished_before: *finished_before,
                        completions: *completions,
                        ..JobSnapshot::default()
                    });
                    member.parallelism = *parallelism;
                }
                Order::Resume { parallelism } => {
                    member.job.as_mut().unwrap().suspended = false;
                    member.job.as_mut().unwrap().over = false;
                    member.parallelism = *parallelism;
                }
                Order::Suspend => {
                    let job = member.job.as_mut().unwrap();
                    (job.suspended, job.over) = (true, true);
                }
                Order::Delete => {
                    let job = member.job.take().unwrap();
                    prop_assert!(job.over, "a Job that runs is not deleted");
                    let unknown = (job.finished_before + job.succeeded).saturating_sub(part.succeeded);
                    self.excused += unknown;
                }
            }
        }
        Ok(())
    }

    fn happen(&mut self, what: u8, where_: usize, much: u32) {
        let name = self.members.keys().nth(where_ % self.members.len()).unwrap().clone();
        let recorded = self.record.parts.get(&name).map_or(0, |part| part.succeeded);
        let member = self.members.get_mut(&name).unwrap();
        match what {
            0..=3 => {
                let Some(job) = member.job.as_mut().filter(|job| !job.over && !job.suspended) else { return };
                let more = much.min(member.parallelism).min(job.completions - job.succeeded);
                job.succeeded += more;
                self.ran += more;
                if job.succeeded == job.completions {
                    (job.complete, job.over) = (true, true);
                }
            }
            4 => {
                if let Some(job) = member.job.take() {
                    self.excused += (job.finished_before + job.succeeded).saturating_sub(recorded);
                }
            }
            5 => {
                if let Some(job) = member.job.as_mut().filter(|job| !job.over) {
                    (job.failure, job.over) = (Some("BackoffLimitExceeded".into()), true);
                    job.failed += 1;
                }
            }
            6 => member.silent = !member.silent,
            7 => member.long = !member.long,
            8 => self.work.suspended = !self.work.suspended,
            9 => self.work.parallelism = much,
            10 => member.closed = !member.closed,
            _ => member.room = much,
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_nothing_is_lost_doubled_or_run_again(
        completions in 0u32..12,
        parallelism in 0u32..6,
        total in any::<bool>(),
        affine in any::<bool>(),
        substitution in any::<bool>(),
        retries in proptest::option::of(1u32..4),
        rooms in proptest::collection::vec(0u32..6, 1..4),
        events in proptest::collection::vec((0u8..14, 0usize..4, 0u32..6), 0..40),
    ) {
        let names = ["a", "b", "c", "d"];
        let mode = if total { ReplicasMode::Total } else { ReplicasMode::PerLocation };
        let locations = if affine { &names[..rooms.len().min(2)] } else { &[] };
        let mut work = work(completions, parallelism, mode, locations);
        work.retries = retries;
        work.request.placement.enable_substitution = affine && substitution;
        work.request.placement.number_of_locations = (!affine).then_some(2);
        let members = names.iter().zip(&rooms).map(|(name, room)| ((*name).to_owned(), Member { room: *room, ..Member::default() }));
        let mut model = Model { work, record: Record::default(), members: members.collect(), ran: 0, excused: 0 };
        model.step()?;
        for (what, where_, much) in events {
            model.happen(what, where_, much);
            model.step()?;
            prop_assert!(model.ran <= model.work.total() + model.excused, "{} pods ran for {}", model.ran, model.work.total());
        }
        // Once the storm is over, all that has a place is brought to an end.
        model.work.suspended = false;
        model.work.parallelism = model.work.parallelism.max(2);
        for member in model.members.values_mut() {
            (member.silent, member.closed, member.room) = (false, false, 9);
        }
        for _ in 0..60 {
            for index in 0..4 {
                model.happen(0, index, 3);
            }
            model.step()?;
        }
        let enough = affine || total || model.members.len() >= 2 || model.work.total() == 0;
        prop_assert!(model.record.end.is_some() || !enough, "{:?}", model.record);
    }
}
