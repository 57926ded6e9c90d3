//! While a workload is paused, what is on record stays placed.

use super::{Decision, Placed};
use portolan_api::placement::{PlacementCause, PlacementStatus};
use std::collections::BTreeMap;

/// The decision about a paused workload: that on record stands, whatever would be decided now. Copies that no record knows
/// of count as placed with the replicas that they run. What is asked for beyond that is pending.
#[must_use]
pub fn hold_while_paused<'a>(
    now: &Decision,
    recorded: impl IntoIterator<Item = &'a PlacementStatus>,
    unrecorded: &BTreeMap<String, u32>,
) -> Decision {
    let asked = replicas(&now.placed).saturating_add(now.pending);
    let mut placed: BTreeMap<String, Placed> = recorded.into_iter().filter_map(on_record).collect();
    for (cluster, replicas) in unrecorded.iter().filter(|(_, replicas)| **replicas > 0) {
        let running = || Placed { replicas: *replicas, ..Placed::new(PlacementCause::NoAlternative) };
        placed.entry(cluster.clone()).or_insert_with(running);
    }
    let pending = asked.saturating_sub(replicas(&placed));
    Decision { placed, pending, ..Decision::default() }
}

/// What a cluster holds by the record; nothing if it is to hold none.
fn on_record(placed: &PlacementStatus) -> Option<(String, Placed)> {
    let replicas = u32::try_from(placed.replicas).ok().filter(|replicas| *replicas > 0)?;
    let stands_in_for = placed.substitute_for.iter().flat_map(|names| names.split(',')).map(str::to_owned);
    let cause = placed.cause.unwrap_or(PlacementCause::NoAlternative);
    Some((
        placed.cluster.clone(),
        Placed { replicas, stands_in_for: stands_in_for.collect(), ..Placed::new(cause) },
    ))
}

fn replicas(placed: &BTreeMap<String, Placed>) -> u32 {
    placed.values().fold(0, |sum, placed| sum.saturating_add(placed.replicas))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{CopySnapshot, Order, transition};
    use proptest::prelude::*;

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn status(cluster: &str, replicas: i32) -> PlacementStatus {
        PlacementStatus { cluster: cluster.to_owned(), replicas, ..PlacementStatus::default() }
    }

    fn placed(replicas: u32) -> Placed {
        Placed { replicas, ..Placed::new(PlacementCause::Policy) }
    }

    #[test]
    fn what_is_on_record_keeps_its_cause_and_whom_it_stands_in_for() {
        let substitute = PlacementStatus {
            cause: Some(PlacementCause::Substitution),
            substitute_for: Some("b,c".to_owned()),
            ..status("a", 2)
        };
        let held = hold_while_paused(&Decision::default(), &[substitute, status("d", 0)], &BTreeMap::new());
        assert_eq!(held.placed.keys().collect::<Vec<_>>(), ["a"], "d holds nothing by the record");
        assert_eq!(held.placed["a"].cause, PlacementCause::Substitution);
        assert_eq!(held.placed["a"].stands_in_for, ["b", "c"]);
    }

    prop_compose! {
        /// What would be decided, what is on record, and what runs without a record.
        fn worlds()(clusters in proptest::collection::vec((0u32..5, -1i32..5, 0u32..5, any::<bool>()), 0..6), pending in 0u32..9)
            -> (Decision, Vec<PlacementStatus>, BTreeMap<String, u32>)
        {
            let (mut now, mut record, mut unrecorded) = (Decision { pending, ..Decision::default() }, Vec::new(), BTreeMap::new());
            for (name, (decided, recorded, running, known)) in NAMES.iter().zip(clusters) {
                if decided > 0 {
                    now.placed.insert((*name).to_owned(), placed(decided));
                }
                if known {
                    record.push(status(name, recorded));
                } else {
                    unrecorded.insert((*name).to_owned(), running);
                }
            }
            (now, record, unrecorded)
        }
    }

    proptest! {
        #[test]
        fn while_paused_what_is_on_record_stays_placed_whatever_would_be_decided((now, record, unrecorded) in worlds()) {
            let held = hold_while_paused(&now, &record, &unrecorded);
            let numbers = |decision: &Decision| -> BTreeMap<String, u32> {
                decision.placed.iter().map(|(name, placed)| (name.clone(), placed.replicas)).collect()
            };
            let recorded = record.iter().map(|each| (each.cluster.clone(), u32::try_from(each.replicas).unwrap_or(0)));
            let expected: BTreeMap<String, u32> =
                recorded.chain(unrecorded.clone()).filter(|(_, replicas)| *replicas > 0).collect();
            prop_assert_eq!(numbers(&held), expected.clone());
            // Nothing depends on what would be decided but the number that is pending.
            let asked = replicas(&now.placed) + now.pending;
            prop_assert_eq!(held.pending, asked.saturating_sub(expected.values().sum()));
            let otherwise = hold_while_paused(&Decision { pending: asked, ..Decision::default() }, &record, &unrecorded);
            prop_assert_eq!(&otherwise, &held);
        }

        #[test]
        fn while_paused_no_copy_that_runs_as_recorded_is_to_lose_a_replica((now, record, unrecorded) in worlds()) {
            let held = hold_while_paused(&now, &record, &unrecorded);
            let copies: BTreeMap<String, CopySnapshot> = held.placed.iter().map(|(name, placed)| {
                let replicas = placed.replicas;
                let copy = CopySnapshot { replicas, ready: replicas, lately_ready: replicas, reachable: true, current: true, ..CopySnapshot::default() };
                (name.clone(), copy)
            }).collect();
            for (name, order) in transition(&held, &copies) {
                let kept = Order::Apply { replicas: copies[&name].replicas };
                prop_assert_eq!(order, kept, "{} stays as it is", name);
            }
        }
    }
}
