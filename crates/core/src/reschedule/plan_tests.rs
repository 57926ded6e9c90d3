use super::*;
use crate::reschedule::{Budgets, Held};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portolan_api::{MultiClusterReschedulerStatus, Reason};
use std::time::Duration;

fn settings() -> Settings {
    Settings {
        interval: Duration::from_secs(30),
        minimum_stay: Duration::from_secs(300),
        room_stable_for: Duration::from_secs(30),
        margin: 10,
        move_timeout: Duration::from_secs(600),
        max_concurrent: 1,
        selector: None,
        dry_run: false,
        paused: false,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn key(name: &str) -> WorkloadKey {
    WorkloadKey { kind: "MultiClusterDeployment".into(), namespace: "shop".into(), name: name.into() }
}

/// A workload with so many replicas in a cloud cluster, and a home that has room for so many.
fn in_cloud(replicas: u32, fits: u32) -> WorkloadSnapshot {
    let held = Held { replicas, ready: replicas, away: true, cloud: true, reachable: true };
    WorkloadSnapshot {
        held: BTreeMap::from([("cloud1".to_owned(), held)]),
        budgets: BTreeMap::from([("cloud1".to_owned(), Budgets::new())]),
        homes: BTreeMap::from([("rennes".to_owned(), Home { lacks: replicas, fits })]),
        settled: true,
        ..WorkloadSnapshot::default()
    }
}

/// A PodDisruptionBudget of the cloud cluster that lets so many pods go.
fn allowing(pods: u32) -> BTreeMap<String, Budgets> {
    BTreeMap::from([("cloud1".to_owned(), Budgets::from([("web".to_owned(), pods)]))])
}

fn workloads(all: &[(&str, WorkloadSnapshot)]) -> BTreeMap<WorkloadKey, WorkloadSnapshot> {
    all.iter().map(|(name, workload)| (key(name), workload.clone())).collect()
}

/// The record after workloads that have been away since 0 were seen with room since 0.
fn noted(all: &BTreeMap<WorkloadKey, WorkloadSnapshot>) -> Record {
    plan(&settings(), &Record::default(), all, at(0)).record
}

fn reason(settings: &Settings, record: &Record, workload: &WorkloadSnapshot, now: i64) -> StayReason {
    let plan = plan(settings, record, &workloads(&[("web", workload.clone())]), at(now));
    assert!(plan.record.moves.is_empty() || !record.moves.is_empty(), "{:?}", plan.record.moves);
    plan.staying[&key("web")].1.clone()
}

#[test]
fn a_workload_comes_home_after_its_stay_when_there_was_room_for_long_enough() {
    let all = workloads(&[("web", in_cloud(3, 4))]);
    let first = plan(&settings(), &Record::default(), &all, at(0));
    assert_eq!(first.staying[&key("web")].1, StayReason::MinimumStay { until: at(300) });
    assert_eq!(first.next, Some(at(30)), "the interval");
    let early = plan(&settings(), &first.record, &all, at(299));
    assert_eq!(early.next, Some(at(300)), "the end of the stay");
    let begun = plan(&settings(), &early.record, &all, at(300));
    let moving = &begun.record.moves[&key("web")];
    assert_eq!(
        (moving.phase, moving.replicas, &moving.from),
        (MovePhase::Surging, 3, &vec!["cloud1".to_owned()])
    );
    assert_eq!(moving.targets, BTreeMap::from([("rennes".to_owned(), 3)]));
    assert_eq!((begun.decide, begun.staying.len()), (vec![key("web")], 0));
}

#[test]
fn room_must_last_and_hold_a_margin() {
    let record = noted(&workloads(&[("web", in_cloud(10, 0))]));
    let none = StayReason::NoRoom { replicas: 10, fits: 0, margin: 10 };
    assert_eq!(reason(&settings(), &record, &in_cloud(10, 0), 400), none);
    assert_eq!(
        reason(&settings(), &record, &in_cloud(10, 1), 400).reason(),
        Reason::NoRoom,
        "one replica and a tenth"
    );
    let all = workloads(&[("web", in_cloud(10, 11))]);
    let seen = plan(&settings(), &record, &all, at(400));
    assert_eq!(seen.staying[&key("web")].1, StayReason::RoomNotStable { until: at(430) });
    let gone = plan(&settings(), &seen.record, &workloads(&[("web", in_cloud(10, 0))]), at(420));
    let again = plan(&settings(), &gone.record, &all, at(425));
    assert_eq!(again.staying[&key("web")].1, StayReason::RoomNotStable { until: at(455) }, "it begins again");
    let begun = plan(&settings(), &again.record, &all, at(455));
    assert_eq!(begun.record.moves[&key("web")].replicas, 10);
    let less = plan(&settings(), &again.record, &workloads(&[("web", in_cloud(10, 6))]), at(455));
    assert_eq!(less.record.moves[&key("web")].replicas, 5, "partial beats nothing: 5 and a half of 6");
}

#[test]
fn every_reason_to_stay() {
    let record = noted(&workloads(&[("web", in_cloud(3, 9))]));
    let of = |settings: &Settings, change: &dyn Fn(&mut WorkloadSnapshot)| {
        let mut workload = in_cloud(3, 9);
        change(&mut workload);
        reason(settings, &record, &workload, 400)
    };
    let same = |_: &mut WorkloadSnapshot| {};
    assert_eq!(of(&Settings { paused: true, ..settings() }, &same), StayReason::ReschedulerPaused);
    let would = StayReason::DryRun { replicas: 3, to: vec!["rennes".into()] };
    assert_eq!(of(&Settings { dry_run: true, ..settings() }, &same), would);
    assert_eq!(of(&settings(), &|workload| workload.paused = true), StayReason::WorkloadPaused);
    assert_eq!(of(&settings(), &|workload| workload.settled = false), StayReason::NotSettled);
    let silent = |workload: &mut WorkloadSnapshot| workload.held.get_mut("cloud1").unwrap().reachable = false;
    assert_eq!(of(&settings(), &silent), StayReason::Unreachable { cluster: "cloud1".into() });
    let unknown = |workload: &mut WorkloadSnapshot| workload.budgets.clear();
    assert_eq!(of(&settings(), &unknown), StayReason::BudgetsUnknown { cluster: "cloud1".into() });
    let budget = |workload: &mut WorkloadSnapshot| workload.budgets = allowing(0);
    let (cluster, budget_name) = ("cloud1".to_owned(), "web".to_owned());
    let forbidden = StayReason::DisruptionBudget { cluster, budget: budget_name, allows: 0, leaves: 3 };
    assert_eq!(of(&settings(), &budget), forbidden);
    assert_eq!(forbidden.to_string(), "PodDisruptionBudget web in cluster cloud1 allows no disruption");
}

#[test]
fn a_budget_lets_replicas_go_a_few_at_a_time() {
    let mut workload = in_cloud(5, 9);
    workload.budgets = allowing(2);
    let all = workloads(&[("web", workload)]);
    let begun = plan(&settings(), &noted(&all), &all, at(300));
    assert_eq!(begun.record.moves[&key("web")].replicas, 2);
}

/// A workload with so many replicas ready at home, and as many in the cloud that are to leave under budgets.
fn replaced(replicas: u32, budgets: &BTreeMap<String, Budgets>) -> WorkloadSnapshot {
    let mut workload = in_cloud(0, 0);
    let home = Held { replicas, ready: replicas, reachable: true, ..Held::default() };
    workload.held = BTreeMap::from([("rennes".to_owned(), home)]);
    workload.leaving = BTreeMap::from([("cloud1".to_owned(), replicas)]);
    (workload.budgets, workload.settled) = (budgets.clone(), false);
    workload
}

#[test]
fn replicas_wait_in_the_cloud_while_a_budget_does_not_let_them_go() {
    let mut workload = in_cloud(3, 9);
    workload.budgets = allowing(3);
    let all = workloads(&[("web", workload)]);
    let begun = plan(&settings(), &noted(&all), &all, at(300)).record;
    let then = |record: &Record, budgets: &BTreeMap<String, Budgets>, now| {
        let plan = plan(&settings(), record, &workloads(&[("web", replaced(3, budgets))]), at(now));
        (plan.record.moves[&key("web")].phase, plan)
    };
    let (phase, held) = then(&begun, &allowing(2), 400);
    assert_eq!(phase, MovePhase::Surging, "the budget has changed since the move began");
    let mut status = MultiClusterReschedulerStatus::default();
    held.write(&mut status);
    assert_eq!(
        status.moves[0].message.as_deref(),
        Some(
            "the replicas in rennes are ready; those in cloud1 still run: PodDisruptionBudget web in cluster cloud1 allows 2 \
             disruptions, and 3 pods are to leave"
        )
    );
    assert_eq!(then(&begun, &BTreeMap::new(), 400).0, MovePhase::Surging);
    assert_eq!(then(&held.record, &allowing(0), 900).0, MovePhase::Returning, "it is given back in the end");
    let (phase, drains) = then(&held.record, &allowing(3), 410);
    assert_eq!((phase, drains.waiting.len()), (MovePhase::Draining, 0));
    assert_eq!(then(&drains.record, &allowing(1), 420).0, MovePhase::Surging, "they have not left yet");
}

#[test]
fn two_workloads_do_not_both_take_what_one_budget_allows() {
    let settings = Settings { max_concurrent: 2, ..settings() };
    let mut here = in_cloud(3, 9);
    here.budgets = allowing(4);
    let mut there = here.clone();
    there.homes = BTreeMap::from([("lille".to_owned(), Home { lacks: 3, fits: 9 })]);
    let all = workloads(&[("a", here.clone()), ("b", there)]);
    let begun = plan(&settings, &noted(&all), &all, at(300)).record;
    let moving = |name: &str| begun.moves[&key(name)].replicas;
    assert_eq!((moving("a"), moving("b")), (3, 1), "four in all");

    let both = workloads(&[("a", replaced(3, &allowing(3))), ("b", replaced(1, &allowing(3)))]);
    let mut record = begun.clone();
    record.moves.get_mut(&key("b")).unwrap().targets = BTreeMap::from([("rennes".to_owned(), 1)]);
    let phases = |record: &Record, all| {
        let plan = plan(&settings, record, all, at(310));
        (["a", "b"].map(|name| plan.record.moves[&key(name)].phase), plan.record)
    };
    let (first, record) = phases(&record, &both);
    assert_eq!(first, [MovePhase::Draining, MovePhase::Surging]);
    let mut gone = both.clone();
    gone.get_mut(&key("a")).unwrap().leaving.clear();
    let (then, mut record) = phases(&record, &gone);
    assert_eq!(then, [MovePhase::Draining, MovePhase::Surging], "the budget may not tell of it yet");
    record.moves.remove(&key("a"));
    let alone = plan(&settings, &record, &gone, at(320));
    assert_eq!(alone.record.moves[&key("b")].phase, MovePhase::Draining);
}

#[test]
fn only_so_many_at_once_and_those_in_the_cloud_first() {
    let substitute = |replicas| {
        let mut workload = in_cloud(replicas, 9);
        workload.held.get_mut("cloud1").unwrap().cloud = false;
        workload
    };
    let mut other_home = in_cloud(1, 9);
    other_home.homes = BTreeMap::from([("lille".to_owned(), Home { lacks: 1, fits: 9 })]);
    let all =
        workloads(&[("a", substitute(3)), ("b", in_cloud(2, 9)), ("c", in_cloud(2, 9)), ("d", other_home)]);
    let record = noted(&all);
    let one = plan(&settings(), &record, &all, at(300));
    assert_eq!(one.record.moves.keys().collect::<Vec<_>>(), [&key("b")]);
    assert_eq!(one.staying[&key("a")].1, StayReason::HomeBusy, "its room is about to be reserved");
    assert_eq!(one.staying[&key("d")].1, StayReason::MaxConcurrentMoves { moves: 1 });
    let two = plan(&Settings { max_concurrent: 2, ..settings() }, &record, &all, at(300));
    assert_eq!(two.record.moves.keys().collect::<Vec<_>>(), [&key("b"), &key("d")]);
    let labelled =
        LabelSelector { match_labels: Some([("tier".into(), "back".into())].into()), ..Default::default() };
    let none = plan(&Settings { selector: Some(labelled), ..settings() }, &record, &all, at(300));
    assert!(none.record.moves.is_empty() && none.staying.is_empty(), "others are not looked at");
}

#[test]
fn a_move_ends_when_all_is_ready_and_is_given_back_when_it_is_not() {
    let all = workloads(&[("web", in_cloud(3, 9))]);
    let begun = plan(&settings(), &noted(&all), &all, at(300));
    let seen = |home: u32, ready: u32, cloud: u32, settled: bool| {
        let mut workload = in_cloud(cloud, 9 - home);
        workload.held.retain(|_, held| held.replicas > 0);
        let held = Held { replicas: home, ready, reachable: true, ..Held::default() };
        workload.held.insert("rennes".into(), held);
        workload.settled = settled;
        workloads(&[("web", workload)])
    };
    let phase = |record: &Record, workloads, now| {
        let plan = plan(&settings(), record, &workloads, at(now));
        let moving =
            plan.record.moves.get(&key("web")).or(plan.record.ended.first().map(|(_, moving)| moving));
        (moving.unwrap().phase, plan)
    };
    assert_eq!(phase(&begun.record, seen(3, 1, 0, false), 310).0, MovePhase::Surging);
    assert_eq!(phase(&begun.record, seen(3, 3, 0, false), 320).0, MovePhase::Draining);
    let (done, ended) = phase(&begun.record, seen(3, 3, 0, true), 330);
    assert_eq!((done, ended.record.moved, ended.record.moves.len()), (MovePhase::Done, 1, 0));

    let (late, back) = phase(&begun.record, seen(3, 1, 0, false), 900);
    assert_eq!((late, back.decide), (MovePhase::Returning, vec![key("web")]));
    let (failed, given_up) = phase(&back.record, seen(0, 0, 3, true), 930);
    assert_eq!((failed, given_up.record.moved), (MovePhase::Failed, 0));
    assert_eq!(given_up.staying[&key("web")].1, StayReason::RetryLater { until: at(1230) });
    let (never, _) = phase(&begun.record, seen(0, 0, 3, true), 900);
    assert_eq!(never, MovePhase::Failed, "the room was gone before it was reserved");
}

#[test]
fn a_workload_of_the_same_name_inherits_neither_stay_nor_move() {
    let of = |uid: &str| {
        let workload = WorkloadSnapshot { uid: uid.to_owned(), ..in_cloud(3, 9) };
        workloads(&[("web", workload)])
    };
    let record = noted(&of("1"));
    let begun = plan(&settings(), &record, &of("1"), at(300)).record;
    assert_eq!(begun.moves.len(), 1);
    let new = plan(&settings(), &begun, &of("2"), at(310));
    assert!(new.record.moves.is_empty() && new.record.ended.is_empty(), "{:?}", new.record);
    assert_eq!(new.staying[&key("web")].1, StayReason::MinimumStay { until: at(610) });
    let stays = plan(&settings(), &record, &of("2"), at(310));
    assert_eq!(stays.staying[&key("web")].1, StayReason::MinimumStay { until: at(610) });
    let mut unknown = record.clone();
    unknown.stays.get_mut(&key("web")).unwrap().uid = None;
    assert_eq!(plan(&settings(), &unknown, &of("1"), at(310)).record.moves.len(), 1, "an older record");
}

#[test]
fn the_record_reads_back_from_the_status() {
    let all = workloads(&[("a", in_cloud(3, 9)), ("b", in_cloud(2, 0))]);
    let begun = plan(&settings(), &noted(&all), &all, at(300));
    let late = plan(&settings(), &begun.record, &all, at(900));
    assert_eq!(late.record.ended.len(), 1);
    for plan in [begun, late] {
        let mut status = MultiClusterReschedulerStatus::default();
        plan.write(&mut status);
        let stored = serde_json::to_value(&status).unwrap();
        let status: MultiClusterReschedulerStatus = serde_json::from_value(stored).unwrap();
        assert_eq!(Record::of(&status), plan.record);
    }
}

#[test]
fn more_workloads_than_the_status_lists_come_home_too() {
    let mut all: BTreeMap<WorkloadKey, WorkloadSnapshot> =
        (0..1000).map(|index| (key(&format!("a{index}")), in_cloud(2, 0))).collect();
    all.insert(key("last"), in_cloud(2, 100));
    let (mut status, mut stays) = (MultiClusterReschedulerStatus::default(), BTreeMap::new());
    let mut looks = (0..=330).step_by(30).map(|now| {
        let record = Record::of(&status).recalling(&stays);
        let plan = plan(&settings(), &record, &all, at(now));
        plan.write(&mut status);
        stays.clone_from(&plan.record.stays);
        plan.record.moves.contains_key(&key("last"))
    });
    assert!(looks.any(|moves| moves), "the last one has had room for long");
}
