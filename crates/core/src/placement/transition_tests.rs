use super::*;
use crate::placement::{Kept, KeptBecause};
use portolan_api::placement::PlacementCause;
use proptest::prelude::*;

fn decided(places: &[(&str, u32)], pending: u32) -> Decision {
    let place = |replicas| Placed { replicas, ..Placed::new(PlacementCause::Policy) };
    let placed = places.iter().map(|(name, replicas)| ((*name).to_owned(), place(*replicas))).collect();
    Decision { placed, pending, ..Decision::default() }
}

fn copy(replicas: u32, ready: u32) -> CopySnapshot {
    CopySnapshot {
        replicas,
        ready,
        lately_ready: ready,
        rolling: false,
        current: true,
        stays: false,
        reachable: true,
    }
}

fn copies(all: &[(&str, CopySnapshot)]) -> BTreeMap<String, CopySnapshot> {
    all.iter().map(|(name, copy)| ((*name).to_owned(), *copy)).collect()
}

#[test]
fn a_cluster_shrinks_as_the_others_become_ready() {
    let decision = decided(&[("a", 2), ("b", 2)], 0);
    let run = |ready| transition(&decision, &copies(&[("a", copy(4, 4)), ("b", copy(2, ready))]))["a"];
    let runs = [0, 1, 2].map(run);
    assert_eq!(runs, [4, 3, 2].map(|replicas| Order::Apply { replicas }));
}

#[test]
fn a_copy_that_stays_gives_nothing_up_even_if_all_is_replaced() {
    let stays = |decision: &Decision| {
        let cloud = CopySnapshot { stays: true, ..copy(3, 3) };
        transition(decision, &copies(&[("cloud", cloud), ("home", copy(3, 3))]))["cloud"]
    };
    assert_eq!(stays(&decided(&[("home", 3)], 0)), Order::Keep);
    assert_eq!(stays(&decided(&[("cloud", 1), ("home", 3)], 0)), Order::Apply { replicas: 3 });
}

#[test]
fn what_is_lowered_everywhere_shrinks_at_once() {
    let orders =
        transition(&decided(&[("a", 1), ("b", 1)], 0), &copies(&[("a", copy(4, 4)), ("b", copy(4, 4))]));
    assert_eq!((orders["a"], orders["b"]), (Order::Apply { replicas: 1 }, Order::Apply { replicas: 1 }));
}

#[test]
fn a_silent_cluster_counts_as_last_known_and_gets_no_order() {
    let silent = CopySnapshot { reachable: false, ..copy(2, 2) };
    let orders = transition(&decided(&[("a", 2), ("b", 2)], 0), &copies(&[("a", copy(4, 4)), ("b", silent)]));
    assert_eq!(orders.get("a"), Some(&Order::Apply { replicas: 2 }));
    assert_eq!(orders.get("b"), None);
}

#[test]
fn a_copy_that_is_not_wanted_goes_when_what_was_asked_for_is_ready() {
    let run = |ready| {
        transition(&decided(&[("b", 2)], 0), &copies(&[("a", copy(2, 2)), ("b", copy(2, ready))]))["a"]
    };
    assert_eq!([0, 1, 2].map(run), [Order::Keep, Order::Keep, Order::Delete]);
}

#[test]
fn a_removed_location_does_not_wait_for_a_silent_one() {
    let silent = CopySnapshot { reachable: false, ..copy(2, 2) };
    let orders = transition(
        &decided(&[("a", 2), ("b", 2)], 0),
        &copies(&[("a", copy(2, 2)), ("b", silent), ("c", copy(2, 2))]),
    );
    assert_eq!(orders["c"], Order::Delete);
}

#[test]
fn nothing_goes_while_what_was_asked_for_has_no_place() {
    let orders = transition(&decided(&[], 2), &copies(&[("a", copy(2, 2))]));
    assert_eq!(orders["a"], Order::Keep);
    assert_eq!(
        transition(&decided(&[], 0), &copies(&[("a", copy(2, 2))]))["a"],
        Order::Delete,
        "none is asked for"
    );
}

#[test]
fn what_is_not_wanted_and_was_not_ready_lately_does_not_wait() {
    let dips = |ready, lately_ready| CopySnapshot { lately_ready, ..copy(2, ready) };
    for decision in [decided(&[], 2), decided(&[("b", 2)], 0)] {
        let order = |copy| transition(&decision, &copies(&[("a", copy)]))["a"];
        assert_eq!(order(dips(0, 0)), Order::Delete, "it serves nobody");
        assert_eq!(order(dips(0, 2)), Order::Keep, "it may be back in a moment");
        assert_eq!(order(dips(1, 1)), Order::Scale { replicas: 1 }, "one of the two serves nobody");
    }
}

#[test]
fn a_dip_lowers_no_copy_that_stands_in() {
    let decision = decided(&[("a", 3), ("b", 3)], 0);
    let dip = CopySnapshot { lately_ready: 6, ..copy(6, 5) };
    let order = |copy| transition(&decision, &copies(&[("a", copy), ("b", self::copy(3, 0))]))["a"];
    assert_eq!(order(dip), Order::Apply { replicas: 6 });
    assert_eq!(order(copy(6, 5)), Order::Apply { replicas: 5 }, "it lasts");
}

#[test]
fn what_is_ready_in_a_rollout_is_not_scaled_down() {
    let rolling = |ready| CopySnapshot { rolling: true, ..copy(4, ready) };
    let order = |copy| transition(&decided(&[("a", 2)], 2), &copies(&[("a", copy)]))["a"];
    assert_eq!(order(rolling(2)), Order::Apply { replicas: 2 }, "fewer are asked for");
    let order = |copy| transition(&decided(&[("a", 2), ("b", 2)], 0), &copies(&[("a", copy)]))["a"];
    assert_eq!(order(copy(4, 2)), Order::Apply { replicas: 2 }, "the others are not ready");
    assert_eq!(order(rolling(2)), Order::Apply { replicas: 4 }, "ready ones of the former template might go");
    assert_eq!(order(rolling(0)), Order::Apply { replicas: 2 });
}

#[test]
fn a_template_that_has_no_room_leaves_the_former_one_running() {
    let mut decision = decided(&[("a", 2)], 0);
    let kept = Kept { replicas: 2, because: KeptBecause::NoRoom, as_they_are: true };
    decision.placed.get_mut("a").unwrap().kept = Some(kept);
    let former = CopySnapshot { current: false, ..copy(2, 2) };
    assert_eq!(transition(&decision, &copies(&[("a", former)]))["a"], Order::Keep);
    let larger = CopySnapshot { current: false, ..copy(4, 4) };
    assert_eq!(transition(&decision, &copies(&[("a", larger)]))["a"], Order::Scale { replicas: 2 });
    let mut elsewhere = decision.clone();
    elsewhere.placed.insert("b".to_owned(), Placed { replicas: 1, ..Placed::new(PlacementCause::Policy) });
    assert_eq!(
        transition(&elsewhere, &copies(&[("a", larger)]))["a"],
        Order::Scale { replicas: 3 },
        "no running replica goes before another one is ready elsewhere"
    );
    assert_eq!(
        transition(&decision, &copies(&[("a", copy(2, 0))]))["a"],
        Order::Apply { replicas: 2 },
        "a copy of the present template is what was asked for"
    );
}

#[test]
fn a_copy_that_is_about_to_be_updated_does_not_count_as_ready_for_others() {
    let outdated = CopySnapshot { current: false, ..copy(2, 2) };
    let orders = transition(&decided(&[("b", 2)], 0), &copies(&[("a", copy(2, 2)), ("b", outdated)]));
    assert_eq!((orders["a"], orders["b"]), (Order::Keep, Order::Apply { replicas: 2 }));
}

prop_compose! {
    fn worlds()(clusters in proptest::collection::vec((0u32..5, 0u32..5, 0u32..5, 0u32..5, [any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()]), 1..6), pending in 0u32..4)
        -> (Decision, BTreeMap<String, CopySnapshot>)
    {
        let names = ["a", "b", "c", "d", "e"];
        let mut decision = decided(&[], pending);
        let mut all = BTreeMap::new();
        for (name, (target, replicas, ready, lately, [current, silent, kept, rolling])) in names.iter().zip(clusters) {
            if target > 0 {
                let staying = Kept { replicas: 1 + ready % target, because: KeptBecause::NoRoom, as_they_are: current };
                let kept = kept.then_some(staying);
                let place = Placed { replicas: target, kept, ..Placed::new(PlacementCause::Policy) };
                decision.placed.insert((*name).to_owned(), place);
            }
            if replicas > 0 {
                let copy = CopySnapshot { current, rolling, reachable: !silent, ..copy(replicas, ready.min(replicas)) };
                let lately_ready = copy.ready.max(lately.min(replicas));
                let copy = CopySnapshot { lately_ready, ..copy };
                all.insert((*name).to_owned(), copy);
            }
        }
        (decision, all)
    }
}

/// What is ready once the orders are carried out and nothing new is ready yet; a copy that is updated is another matter.
fn left(
    decision: &Decision,
    (orders, copies): (&BTreeMap<String, Order>, &BTreeMap<String, CopySnapshot>),
) -> u32 {
    let target = |name: &str| decision.placed.get(name).map_or(0, |placed| placed.replicas);
    let ready = |(name, copy): (&String, &CopySnapshot)| match orders.get(name) {
        Some(Order::Delete) => 0,
        // In a rollout nobody knows which ones go; fewer than were asked for is what somebody wanted.
        Some(Order::Apply { replicas } | Order::Scale { replicas })
            if copy.rolling && *replicas > target(name) =>
        {
            copy.ready.saturating_sub(copy.replicas.saturating_sub(*replicas))
        }
        Some(Order::Apply { replicas } | Order::Scale { replicas }) => copy.ready.min(*replicas),
        Some(Order::Keep) | None => copy.ready,
    };
    copies.iter().map(ready).sum()
}

proptest! {
    #[test]
    fn ready_replicas_never_become_fewer_than_what_was_asked_for((decision, copies) in worlds()) {
        let orders = transition(&decision, &copies);
        let asked = decision.placed.values().map(|placed| placed.replicas).sum::<u32>();
        let before: u32 = copies.values().map(|copy| copy.ready).sum();
        prop_assert!(left(&decision, (&orders, &copies)) >= before.min(asked), "{orders:?}");
    }

    #[test]
    fn a_dip_costs_nothing((decision, copies) in worlds()) {
        let recovered = |copy: &CopySnapshot| CopySnapshot { ready: copy.lately_ready, ..*copy };
        let before: BTreeMap<String, CopySnapshot> =
            copies.iter().map(|(name, copy)| (name.clone(), recovered(copy))).collect();
        for (name, dip) in &copies {
            let mut now = before.clone();
            now.insert(name.clone(), *dip);
            let order = |all| transition(&decision, all).get(name).copied();
            prop_assert_eq!(order(&now), order(&before), "{} alone has a dip", name);
        }
    }

    #[test]
    fn a_copy_is_deleted_only_if_all_that_was_asked_for_is_ready_elsewhere_or_it_serves_nobody((decision, copies) in worlds()) {
        let orders = transition(&decision, &copies);
        let placed = decision.placed.values().map(|placed| placed.replicas).sum::<u32>();
        for (name, order) in &orders {
            if *order == Order::Delete {
                let elsewhere = copies.iter().filter(|(other, _)| *other != name).map(|(_, copy)| copy.ready);
                let serves = copies.get(name).is_some_and(|copy| copy.lately_ready > 0);
                let asked = placed + decision.pending;
                prop_assert!(!serves || elsewhere.sum::<u32>() >= asked, "{name}: {orders:?}");
                prop_assert!(!decision.placed.contains_key(name));
            }
        }
    }

    #[test]
    fn what_is_ready_as_decided_comes_to_rest_there((decision, copies) in worlds()) {
        let mut done = copies;
        for copy in done.values_mut() {
            *copy = CopySnapshot { current: true, reachable: true, ..*copy };
        }
        for (name, placed) in &decision.placed {
            done.insert(name.clone(), copy(placed.replicas, placed.replicas));
        }
        if decision.pending == 0 {
            let orders = transition(&decision, &done);
            for (name, order) in orders {
                let expected = decision.placed.get(&name).map_or(Order::Delete, |placed| Order::Apply { replicas: placed.replicas });
                prop_assert_eq!(order, expected);
            }
        }
    }
}
