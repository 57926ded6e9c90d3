use super::*;
use crate::capacity::{Amounts, CPU, ClusterRoom, NodeFacts, PODS, PodShape, Room};
use crate::placement::{KeptBecause, Refusal, Site, Standing};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use portolan_api::Reason;
use portolan_api::placement::Placement;
use portolan_api::placement::{ClusterSpread, ClusterTaint, TaintEffect, WhenUnsatisfiable};
use proptest::prelude::*;
use std::time::Duration;

#[path = "decide_kept_tests.rs"]
mod kept;

/// A cluster of one node with so much CPU, for replicas of one CPU each.
fn cluster(name: &str, cpus: i64) -> Candidate {
    let room = Room { max_replicas: u32::try_from(cpus).unwrap(), cpu: cpus * 1000, memory: 0 };
    Candidate { room, ..Candidate::default() }.at(|site| site.name = name.to_owned())
}

impl Candidate {
    /// The same at another site.
    pub(crate) fn at(mut self, change: impl FnOnce(&mut Site)) -> Self {
        change(std::sync::Arc::make_mut(&mut self.site));
        self
    }
}

/// Decides, and counts the shortages of such clusters.
fn decide(request: &PlacementRequest, fleet: &[Candidate]) -> Result<Decision, Undecided> {
    super::decide(request, fleet, |name, more| {
        let candidate = fleet.iter().find(|each| each.name() == name).unwrap();
        let mut allocatable = Amounts::of(CPU, candidate.room.cpu);
        allocatable.set(PODS, 110_000);
        let node = NodeFacts { name: "n".into(), allocatable, ready: true, ..NodeFacts::default() };
        let mut room = ClusterRoom::count(&[node], &[]);
        room.reserve(&request.shape, more);
        room.shortage(&request.shape)
    })
}

fn silent(candidate: Candidate, reserved: u32) -> Candidate {
    let closed = Some(Refusal { reason: Reason::Unreachable, message: "no answer".into() });
    Candidate { closed, reserved, silent: true, ..candidate }
}

fn request(replicas: u32, locations: &[&str]) -> PlacementRequest {
    let mut requests = Amounts::of(CPU, 1000);
    requests.set(PODS, 1000);
    let locations = locations.iter().map(|name| (*name).to_owned()).collect();
    PlacementRequest {
        shape: PodShape { requests, ..PodShape::default() }.into(),
        replicas,
        mode: ReplicasMode::default(),
        weights: BTreeMap::new(),
        placement: Placement { locations, ..Placement::default() },
        bursting: false,
    }
}

fn by_policy(replicas: u32, policy: PlacementPolicy, locations: i32) -> PlacementRequest {
    let mut request = request(replicas, &[]);
    request.placement.placement_policy = Some(policy);
    request.placement.number_of_locations = Some(locations);
    request
}

fn counts(decision: &Decision) -> Vec<(&str, u32)> {
    decision.placed.iter().map(|(name, placed)| (name.as_str(), placed.replicas)).collect()
}

#[test]
fn every_preferred_cluster_gets_all_replicas() {
    let decision =
        decide(&request(3, &["b", "c"]), &[cluster("a", 9), cluster("b", 9), cluster("c", 9)]).unwrap();
    assert_eq!(counts(&decision), [("b", 3), ("c", 3)]);
    assert_eq!(decision.pending, 0);
    assert_eq!(decision.placed["b"].cause, PlacementCause::Preferred);
}

#[test]
fn what_fits_is_placed_and_the_rest_waits_with_a_reason_per_cluster() {
    let decision = decide(&request(5, &["a", "b", "x"]), &[cluster("a", 2), cluster("b", 0)]).unwrap();
    assert_eq!(counts(&decision), [("a", 2)]);
    assert_eq!(decision.pending, 13);
    let reasons: Vec<_> = decision.refusals.iter().map(|(name, why)| (name.as_str(), why.reason)).collect();
    assert_eq!(reasons, [("a", Reason::NoRoom), ("b", Reason::NoRoom), ("x", Reason::ClusterNotFound)]);
    assert_eq!(decision.refusals["b"].message, "a replica needs cpu 1 and the freest of 1 nodes has 0");
    let full = "2 replicas are placed there; a replica needs cpu 1 and the freest of 1 nodes has 0";
    assert_eq!(decision.refusals["a"].message, full);
}

#[test]
fn a_total_is_divided_exactly_and_flows_around_full_clusters() {
    let total = PlacementRequest { mode: ReplicasMode::Total, ..request(10, &["a", "b", "c"]) };
    let all = decide(&total, &[cluster("a", 9), cluster("b", 9), cluster("c", 9)]).unwrap();
    assert_eq!(counts(&all), [("a", 4), ("b", 3), ("c", 3)]);
    let full = decide(&total, &[cluster("a", 1), cluster("b", 9), cluster("c", 9)]).unwrap();
    assert_eq!(counts(&full), [("a", 1), ("b", 5), ("c", 4)]);
}

#[test]
fn worst_fit_takes_the_roomiest_and_best_fit_the_tightest() {
    let fleet = [cluster("a", 4), cluster("b", 9), cluster("c", 6)];
    let worst = decide(&by_policy(2, PlacementPolicy::WorstFit, 2), &fleet).unwrap();
    assert_eq!(counts(&worst), [("b", 2), ("c", 2)]);
    let best = decide(&by_policy(2, PlacementPolicy::BestFit, 1), &fleet).unwrap();
    assert_eq!(counts(&best), [("a", 2)]);
    let only_large_enough = decide(&by_policy(5, PlacementPolicy::BestFit, 1), &fleet).unwrap();
    assert_eq!(counts(&only_large_enough), [("c", 5)]);
}

#[test]
fn a_decision_stays_when_room_changes_elsewhere() {
    let reserved = Candidate { reserved: 2, ..cluster("a", 4) };
    let decision =
        decide(&by_policy(2, PlacementPolicy::WorstFit, 1), &[reserved, cluster("b", 90)]).unwrap();
    assert_eq!(counts(&decision), [("a", 2)]);
}

#[test]
fn a_silent_cluster_keeps_what_it_holds_and_gets_nothing_new() {
    let fleet = [silent(cluster("a", 9), 2), cluster("b", 9)];
    let grown = decide(&request(5, &["a", "b"]), &fleet).unwrap();
    assert_eq!(counts(&grown), [("a", 2), ("b", 5)]);
    assert_eq!(grown.refusals["a"].reason, Reason::Unreachable);
    let chosen = decide(&by_policy(2, PlacementPolicy::WorstFit, 1), &fleet).unwrap();
    assert_eq!(counts(&chosen), [("a", 2)]);
    let never_there = decide(&request(5, &["a"]), &[silent(cluster("a", 9), 0)]).unwrap();
    assert_eq!((counts(&never_there), never_there.pending), (vec![], 5));
}

#[test]
fn replicas_that_never_got_a_node_are_decided_anew() {
    let stuck = Candidate { reserved: 2, bound: 0, ..cluster("a", 0) };
    let elsewhere =
        decide(&by_policy(2, PlacementPolicy::WorstFit, 1), &[stuck.clone(), cluster("b", 9)]).unwrap();
    assert_eq!(counts(&elsewhere), [("b", 2)]);
    let nowhere = decide(&request(2, &["a"]), &[stuck]).unwrap();
    assert_eq!((counts(&nowhere), nowhere.pending), (vec![], 2));
    let half = Candidate { reserved: 2, bound: 1, ..cluster("a", 0) };
    assert_eq!(counts(&decide(&request(2, &["a"]), &[half]).unwrap()), [("a", 1)]);
}

#[test]
fn a_closed_cluster_keeps_no_more_than_fits_after_replicas_have_grown() {
    let closed = Some(Refusal { reason: Reason::NamespaceClosed, message: "no label".into() });
    let grown = Candidate { closed, reserved: 5, running: 1, ..cluster("a", 2) };
    let kept = decide(&request(3, &["a"]), std::slice::from_ref(&grown)).unwrap();
    assert_eq!((counts(&kept), kept.pending), (vec![("a", 2)], 1));
    let by_policy = decide(&by_policy(3, PlacementPolicy::BestFit, 1), &[grown, cluster("b", 9)]).unwrap();
    assert_eq!(by_policy.placed.get("a").map_or(0, |placed| placed.replicas), 2, "{by_policy:?}");
}

#[test]
fn a_closed_cluster_does_not_get_a_copy_back_that_was_deleted_there() {
    let closed = Some(Refusal { reason: Reason::NamespaceClosed, message: "no label".into() });
    let deleted = Candidate { closed, reserved: 2, running: 0, ..cluster("a", 9) };
    let nowhere = decide(&request(2, &["a"]), std::slice::from_ref(&deleted)).unwrap();
    assert_eq!((counts(&nowhere), nowhere.pending), (vec![], 2));
    let silent = Candidate { silent: true, ..deleted };
    assert_eq!(counts(&decide(&request(2, &["a"]), &[silent]).unwrap()), [("a", 2)], "it may be there");
}

#[test]
fn taints_and_selectors_keep_workloads_away() {
    let taint = portolan_api::placement::ClusterTaint {
        key: "edge".into(),
        value: None,
        effect: portolan_api::placement::TaintEffect::NoSchedule,
    };
    let tainted = cluster("a", 9).at(|site| site.taints = vec![taint]);
    let refused = decide(&request(1, &["a"]), &[tainted]).unwrap();
    assert_eq!(refused.refusals["a"].reason, Reason::TaintNotTolerated);

    let mut selecting = by_policy(1, PlacementPolicy::WorstFit, 1);
    let labels = BTreeMap::from([("region".to_owned(), "eu".to_owned())]);
    selecting.placement.cluster_selector =
        Some(LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() });
    let decision =
        decide(&selecting, &[cluster("a", 9), cluster("b", 2).at(|site| site.labels = labels)]).unwrap();
    assert_eq!(counts(&decision), [("b", 1)]);
}

#[test]
fn replicas_leave_a_cluster_that_is_not_selected_any_more_if_another_one_takes_them() {
    let mut selecting = by_policy(2, PlacementPolicy::WorstFit, 1);
    let labels = BTreeMap::from([("region".to_owned(), "eu".to_owned())]);
    selecting.placement.cluster_selector =
        Some(LabelSelector { match_labels: Some(labels.clone()), ..LabelSelector::default() });
    let home = Candidate { reserved: 2, bound: 2, ..cluster("a", 9) };
    let other = |cpus| cluster("b", cpus).at(|site| site.labels = labels.clone());
    let decide = |cpus| decide(&selecting, &[home.clone(), other(cpus)]).unwrap();
    assert_eq!(counts(&decide(9)), [("b", 2)]);
    assert_eq!(counts(&decide(0)), [("a", 2)], "nothing is lost where nobody else has room");
}

#[test]
fn a_policy_without_its_measurements_chooses_as_worst_fit_does_and_says_so() {
    let fleet = [cluster("a", 4), cluster("b", 9)];
    let decision = decide(&by_policy(1, PlacementPolicy::TrafficAware, 1), &fleet).unwrap();
    assert_eq!(counts(&decision), [("b", 1)]);
    assert!(decision.fallback.is_some_and(|why| why.starts_with("no cluster tells the traffic")));
    let reserved = [Candidate { reserved: 1, bound: 1, ..cluster("a", 4) }, cluster("b", 9)];
    assert_eq!(
        counts(&decide(&by_policy(1, PlacementPolicy::TrafficAware, 1), &reserved).unwrap()),
        [("a", 1)]
    );
}

/// The sites of the mck8s paper, with the round-trip times of its Table II.
fn sites(rooms: [i64; 5]) -> Vec<Candidate> {
    let names = ["rennes", "nantes", "lille", "luxembourg", "grenoble"];
    let table = [
        [0.0, 2.16, 23.26, 27.41, 17.45],
        [2.16, 0.0, 22.21, 26.29, 16.38],
        [23.26, 22.21, 0.0, 11.88, 12.06],
        [27.41, 26.29, 11.88, 0.0, 15.33],
        [17.45, 16.38, 12.06, 15.33, 0.0],
    ];
    let site = |index: usize| {
        let to =
            |other: usize| (names[other].to_owned(), Duration::from_secs_f64(table[index][other] / 1000.0));
        let rtt: BTreeMap<_, _> = (0..5).filter(|other| *other != index).map(to).collect();
        cluster(names[index], rooms[index]).at(|site| site.rtt = rtt)
    };
    (0..5).map(site).collect()
}

fn substituting(replicas: u32, locations: &[&str]) -> PlacementRequest {
    let mut request = request(replicas, locations);
    request.placement.enable_substitution = true;
    request
}

#[test]
fn the_nearest_cluster_stands_in_for_a_full_one() {
    let decision = decide(&substituting(4, &["nantes"]), &sites([9, 1, 9, 9, 9])).unwrap();
    assert_eq!(counts(&decision), [("nantes", 1), ("rennes", 3)]);
    assert_eq!(decision.placed["rennes"].cause, PlacementCause::Substitution);
    assert_eq!(decision.placed["rennes"].stands_in_for, ["nantes"]);
    let further = decide(&substituting(4, &["nantes"]), &sites([2, 1, 9, 9, 9])).unwrap();
    assert_eq!(counts(&further), [("grenoble", 1), ("nantes", 1), ("rennes", 2)]);
}

#[test]
fn two_full_clusters_share_a_substitute_without_losing_or_doubling_replicas() {
    let decision = decide(&substituting(3, &["nantes", "lille"]), &sites([4, 0, 0, 9, 1])).unwrap();
    assert_eq!(decision.pending, 0);
    assert_eq!(counts(&decision), [("luxembourg", 3), ("rennes", 3)]);
    let tight = decide(&substituting(3, &["nantes", "lille"]), &sites([4, 0, 0, 0, 0])).unwrap();
    assert_eq!((counts(&tight), tight.pending), (vec![("rennes", 4)], 2));
    assert_eq!(tight.placed["rennes"].stands_in_for, ["nantes", "lille"]);
    assert!(tight.to_cloud, "nothing but a further cluster would help");
}

#[test]
fn without_substitution_nothing_leaves_its_location() {
    let decision = decide(&request(4, &["nantes"]), &sites([9, 1, 9, 9, 9])).unwrap();
    assert_eq!((counts(&decision), decision.pending, decision.to_cloud), (vec![("nantes", 1)], 3, false));
}

#[test]
fn bursting_goes_to_the_nearest_then_to_the_cloud_then_asks_for_one() {
    let mut fleet = sites([2, 2, 0, 0, 1]);
    fleet.push(cluster("cloud1", 2).at(|site| site.cloud = true));
    let mut request = PlacementRequest { bursting: true, ..request(6, &["nantes"]) };
    let six = decide(&request, &fleet).unwrap();
    assert_eq!(counts(&six), [("cloud1", 1), ("grenoble", 1), ("nantes", 2), ("rennes", 2)]);
    assert_eq!(six.placed["cloud1"].cause, PlacementCause::Cloud);
    assert_eq!(six.placed["rennes"].cause, PlacementCause::Bursting);
    request.replicas = 9;
    let nine = decide(&request, &fleet).unwrap();
    assert_eq!((nine.pending, nine.to_cloud), (2, true));
    assert_eq!(nine.refusals["lille"].reason, Reason::NoRoom);
}

#[test]
fn the_cloud_is_used_last() {
    let fleet = [cluster("cloud1", 90).at(|site| site.cloud = true), cluster("a", 4)];
    let decision = decide(&by_policy(2, PlacementPolicy::WorstFit, 1), &fleet).unwrap();
    assert_eq!(counts(&decision), [("a", 2)]);
}

#[test]
fn a_bound_on_latency_keeps_far_clusters_out() {
    let mut near = by_policy(1, PlacementPolicy::WorstFit, 5);
    let bound = portolan_api::placement::MaxLatency {
        from: "nantes".into(),
        rtt: portolan_api::Duration::from_millis(17),
    };
    near.placement.max_latency = Some(bound);
    let decision = decide(&near, &sites([9; 5])).unwrap();
    assert_eq!(counts(&decision), [("grenoble", 1), ("nantes", 1), ("rennes", 1)]);
    assert_eq!(decision.refusals["lille"].reason, Reason::LatencyExceeded);
    let unknown = decide(&near, &[cluster("x", 9)]).unwrap();
    assert_eq!(unknown.refusals["x"].reason, Reason::LatencyUnknown);
}

#[test]
fn chosen_clusters_are_spread_over_regions() {
    let at = |name: &str, cpus: i64, region: &str| {
        let labels = BTreeMap::from([("region".to_owned(), region.to_owned())]);
        cluster(name, cpus).at(|site| site.labels = labels)
    };
    let fleet = [at("a", 9, "west"), at("b", 8, "west"), at("c", 7, "west"), at("d", 2, "east")];
    let mut spread = by_policy(1, PlacementPolicy::WorstFit, 3);
    let constraint = ClusterSpread {
        topology_key: "region".into(),
        max_skew: 1,
        min_domains: None,
        when_unsatisfiable: WhenUnsatisfiable::DoNotSchedule,
    };
    spread.placement.spread = vec![constraint.clone()];
    assert_eq!(counts(&decide(&spread, &fleet).unwrap()), [("a", 1), ("b", 1), ("d", 1)]);
    spread.placement.number_of_locations = Some(4);
    assert_eq!(
        decide(&spread, &fleet).unwrap().pending,
        1,
        "a third in the west would be two more than in the east"
    );
    spread.placement.spread =
        vec![ClusterSpread { when_unsatisfiable: WhenUnsatisfiable::ScheduleAnyway, ..constraint }];
    assert_eq!(decide(&spread, &fleet).unwrap().pending, 0);
}

fn busy(name: &str, traffic: u64) -> Candidate {
    Candidate { traffic: Some(traffic * 1000), ..cluster(name, 9) }
}

#[test]
fn replicas_go_where_most_traffic_is_received() {
    let by_traffic = |locations| by_policy(2, PlacementPolicy::TrafficAware, locations);
    let fleet = [busy("a", 5), busy("b", 50), busy("c", 20), cluster("d", 90)];
    assert_eq!(counts(&decide(&by_traffic(1), &fleet).unwrap()), [("b", 2)]);
    assert_eq!(counts(&decide(&by_traffic(2), &fleet).unwrap()), [("b", 2), ("c", 2)]);
    let full = [busy("a", 5), Candidate { room: Room::default(), ..busy("b", 50) }, busy("c", 20)];
    assert_eq!(counts(&decide(&by_traffic(1), &full).unwrap()), [("c", 2)], "no room comes before traffic");
    let silent_ones = [cluster("a", 9), cluster("b", 9)];
    assert!(decide(&by_traffic(1), &silent_ones).unwrap().fallback.is_some());
    assert!(decide(&by_traffic(1), &fleet).unwrap().fallback.is_none());
}

#[test]
fn traffic_that_moves_is_followed_but_not_back_and_forth() {
    let by_traffic = by_policy(2, PlacementPolicy::TrafficAware, 1);
    let at = |reserved: u64, other: u64| {
        let fleet = [Candidate { reserved: 2, bound: 2, ..busy("a", reserved) }, busy("b", other)];
        counts(&decide(&by_traffic, &fleet).unwrap())[0].0.to_owned()
    };
    assert_eq!(at(10, 10), "a");
    assert_eq!(at(10, 15), "a", "half as much again is not enough");
    assert_eq!(at(10, 16), "b");
    assert_eq!(at(0, 0), "a");
    assert_eq!(at(0, 1), "b");
    let gone = [silent(busy("a", 0), 2), busy("b", 50)];
    assert_eq!(
        counts(&decide(&by_traffic, &gone).unwrap()),
        [("a", 2)],
        "what a silent cluster holds is not moved"
    );
}

prop_compose! {
    fn fleets()(sizes in proptest::collection::vec((0i64..12, 0u32..6, proptest::bool::weighted(0.2), 0u64..50, 0u32..6), 0..8)) -> Vec<Candidate> {
        let candidate = |(index, (size, reserved, gone, traffic, running)): (usize, (i64, u32, bool, u64, u32))| {
            let running = running.saturating_sub(2);
            let candidate = Candidate { reserved, running, traffic: Some(traffic), ..cluster(&format!("c{index}"), size) };
            if gone { silent(candidate, reserved) } else { candidate }
        };
        sizes.into_iter().enumerate().map(candidate).collect()
    }
}

prop_compose! {
    fn wishes()(replicas in 0u32..20, total in any::<bool>(), policy in 0..4, locations in 1i32..5, overflow in 0..3) -> PlacementRequest {
        let mut request = match policy {
            0 => request(replicas, &(0..locations).map(|i| ["c0", "c1", "c2", "c3", "c9"][i as usize]).collect::<Vec<_>>()),
            1 => by_policy(replicas, PlacementPolicy::WorstFit, locations),
            2 => by_policy(replicas, PlacementPolicy::TrafficAware, locations),
            _ => by_policy(replicas, PlacementPolicy::BestFit, locations),
        };
        request.mode = if total { ReplicasMode::Total } else { ReplicasMode::PerLocation };
        request.bursting = overflow == 1;
        request.placement.enable_substitution = overflow == 2 && policy == 0;
        request
    }
}

#[test]
fn a_total_divided_by_policy_is_not_divided_anew_because_it_was() {
    let total = PlacementRequest { mode: ReplicasMode::Total, ..by_policy(7, PlacementPolicy::WorstFit, 3) };
    let mut fleet = [cluster("a", 9), cluster("b", 9), cluster("c", 9)];
    let first = decide(&total, &fleet).unwrap();
    for (candidate, cpus) in fleet.iter_mut().zip([6, 7, 7]) {
        let reserved = first.placed[candidate.name()].replicas;
        *candidate = Candidate { reserved, bound: reserved, ..cluster(candidate.name(), cpus) };
    }
    assert_eq!(decide(&total, &fleet).unwrap(), first);
}

/// The same clusters once the decision has been carried out in those that answer.
fn carried_out(fleet: &[Candidate], decision: &Decision) -> Vec<Candidate> {
    let carry = |candidate: &Candidate| {
        let reserved = decision.placed.get(candidate.name()).map_or(0, |placed| placed.replicas);
        if candidate.silent {
            return Candidate { reserved, ..candidate.clone() };
        }
        let size = candidate.bound + candidate.room.max_replicas;
        let bound = reserved.min(size);
        let room = cluster("x", i64::from(size - bound)).room;
        Candidate { reserved, bound, running: reserved, room, ..candidate.clone() }
    };
    fleet.iter().map(carry).collect()
}

#[test]
fn a_location_and_its_stand_in_do_not_change_places_for_ever() {
    let request = PlacementRequest { bursting: true, ..by_policy(4, PlacementPolicy::WorstFit, 2) };
    let mut fleet = vec![cluster("a", 4), cluster("b", 3), cluster("c", 3)];
    let mut told = Vec::new();
    for _ in 0..4 {
        let decision = decide(&request, &fleet).unwrap();
        fleet = carried_out(&fleet, &decision);
        told.push(decision);
    }
    assert_eq!(counts(&told[3]), [("a", 4), ("b", 3), ("c", 1)]);
    assert_eq!(told[1..3], told[2..4]);
}

#[test]
fn what_a_lost_location_held_is_replaced_elsewhere_and_elsewhere_first() {
    let lost = |candidate: Candidate| Candidate { lost: true, ..silent(candidate, 0) };
    let fleet = [cluster("a", 9), lost(cluster("b", 9)), cluster("c", 1), cluster("d", 9)];
    let decision = decide(&request(3, &["a", "b"]), &fleet).unwrap();
    assert_eq!(
        counts(&decision),
        [("a", 3), ("c", 1), ("d", 2)],
        "no substitution is asked for, yet it is replaced"
    );
    assert_eq!(decision.placed["d"].cause, PlacementCause::Replacement);
    assert_eq!(decision.placed["d"].stands_in_for, ["b"]);
    let alone = decide(&request(3, &["a", "b"]), &fleet[..2]).unwrap();
    assert_eq!(counts(&alone), [("a", 6)], "where there is nobody else, the other locations take it");
    let full = decide(&request(6, &["a", "b"]), &fleet[..2]).unwrap();
    assert_eq!((counts(&full), full.pending), (vec![("a", 9)], 3), "as far as there is room");
    let policy = decide(&by_policy(3, PlacementPolicy::WorstFit, 2), &fleet[..2]).unwrap();
    assert_eq!(counts(&policy), [("a", 6)]);
    let stands_in_for = vec!["b".to_owned()];
    let stands_in = Candidate { running: 6, reserved: 6, bound: 6, stands_in_for, ..cluster("a", 9) };
    let gone = decide(&request(3, &["a", "b"]), &[stands_in]).unwrap();
    assert_eq!((counts(&gone), gone.pending), (vec![("a", 6)], 0), "it stands in until the other is back");
    assert_eq!(gone.placed["a"].stands_in_for, ["b"], "and the next decision knows");
}

proptest! {
    #[test]
    fn replicas_are_conserved_and_room_is_never_exceeded(request in wishes(), fleet in fleets()) {
        let decision = decide(&request, &fleet).unwrap();
        let placed: u32 = decision.placed.values().map(|placed| placed.replicas).sum();
        let locations = request.placement.effective_locations() as u32;
        let asked = if request.mode == ReplicasMode::Total { request.replicas } else { request.replicas * locations };
        prop_assert_eq!(placed + decision.pending, asked);
        for candidate in &fleet {
            let replicas = decision.placed.get(candidate.name()).map_or(0, |placed| placed.replicas);
            match candidate.stands(&request, &fleet) {
                Standing::Feasible { max_replicas, .. } => prop_assert!(replicas <= max_replicas.max(candidate.running)),
                Standing::NoNewReplicas(_) | Standing::Evict(_) => {
                    prop_assert!(replicas <= candidate.keeps().max(candidate.running))
                }
            }
        }
        prop_assert!(decision.pending == 0 || !decision.refusals.is_empty() || fleet.len() < locations as usize);
    }

    #[test]
    fn decisions_that_are_carried_out_come_to_rest(request in wishes(), fleet in fleets()) {
        let mut fleet = fleet;
        let mut told = Vec::new();
        for _ in 0..6 {
            let decision = decide(&request, &fleet).unwrap();
            fleet = carried_out(&fleet, &decision);
            told.push(decision.placed);
        }
        prop_assert_eq!(&told[3..5], &told[4..6], "{:?}", told);
    }

    #[test]
    fn the_order_of_candidates_does_not_matter(request in wishes(), fleet in fleets()) {
        let reversed: Vec<_> = fleet.iter().rev().cloned().collect();
        prop_assert_eq!(decide(&request, &fleet), decide(&request, &reversed));
    }

    #[test]
    fn more_room_never_places_fewer(request in wishes(), fleet in fleets(), grown in 0usize..8) {
        // What stays where it is not wanted may go when there is room for it elsewhere.
        let count = |fleet: &[Candidate]| {
            let decision = decide(&request, fleet).unwrap();
            decision.pending + decision.staying
        };
        let mut larger = fleet.clone();
        if let Some(candidate) = larger.get_mut(grown) {
            candidate.room = cluster("x", 40).room;
        }
        prop_assert!(count(&larger) <= count(&fleet));
    }
}
