//! Which pods of a StatefulSet are made and which go, in the order of their ordinals. Arithmetic alone.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::Value;

use crate::cluster::{number, text};

/// What a StatefulSet asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wish {
    pub(super) ordinals: Range<i64>,
    /// One pod after the other (`OrderedReady`), or all at once (`Parallel`).
    pub(super) ordered: bool,
    pub(super) update: Update,
}

/// How pods get a new template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    /// When somebody deletes them.
    OnDelete,
    /// One after the other, from the highest ordinal down to `first`.
    Rolling { first: i64 },
}

impl Wish {
    pub(super) fn of(set: &Value) -> Self {
        let (start, replicas) = (number(set, "/spec/ordinals/start"), number(set, "/spec/replicas"));
        let update = if text(set, "/spec/updateStrategy/type") == "OnDelete" {
            Update::OnDelete
        } else {
            Update::Rolling { first: start + number(set, "/spec/updateStrategy/rollingUpdate/partition") }
        };
        let ordered = text(set, "/spec/podManagementPolicy") != "Parallel";
        Self { ordinals: start..start + replicas, ordered, update }
    }

    /// Whether a pod that is missing is made from the present template, or from the one that is being replaced.
    pub(super) fn is_made_new(&self, ordinal: i64) -> bool {
        match self.update {
            Update::OnDelete => true,
            Update::Rolling { first } => ordinal >= first,
        }
    }
}

/// How a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It has ended by itself.
    Over,
    Terminating,
    /// It is not ready.
    Unready,
    /// It is ready, not yet for as long as the set wants it to be.
    Ready,
    Available,
}

/// A pod as the plan sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Replica {
    pub(super) state: State,
    /// Made from the present template.
    pub(super) updated: bool,
}

/// What is to be done with the pod of an ordinal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Create(i64),
    Delete(i64),
}

/// The next steps.
pub(super) fn plan(wish: &Wish, found: &BTreeMap<i64, Replica>) -> Vec<Order> {
    let mut orders = Vec::new();
    if fill(wish, found, &mut orders) && remove(wish, found, &mut orders) {
        update(wish, found, &mut orders);
    }
    orders
}

/// Makes what is missing, lowest ordinal first; false if the rest waits for it.
fn fill(wish: &Wish, found: &BTreeMap<i64, Replica>, orders: &mut Vec<Order>) -> bool {
    for ordinal in wish.ordinals.clone() {
        let state = found.get(&ordinal).map(|replica| replica.state);
        match state {
            None => orders.push(Order::Create(ordinal)),
            // It is made anew once it is gone.
            Some(State::Over) => orders.push(Order::Delete(ordinal)),
            Some(State::Terminating | State::Unready | State::Ready | State::Available) => {}
        }
        if wish.ordered && state != Some(State::Available) {
            return false;
        }
    }
    true
}

/// Removes what is too much, highest ordinal first; false if the rest waits for it.
fn remove(wish: &Wish, found: &BTreeMap<i64, Replica>, orders: &mut Vec<Order>) -> bool {
    let surplus = found.iter().filter(|(ordinal, _)| !wish.ordinals.contains(ordinal));
    // Of several pods that are not well, the lowest is the one that others wait for: it may go itself.
    let lowest = surplus.clone().find(|(_, replica)| !is_healthy(replica.state)).map(|(ordinal, _)| *ordinal);
    for (ordinal, replica) in surplus.rev() {
        if replica.state != State::Terminating {
            if wish.ordered && replica.state != State::Available && lowest != Some(*ordinal) {
                return false;
            }
            orders.push(Order::Delete(*ordinal));
        }
        if wish.ordered {
            return false;
        }
    }
    true
}

/// Replaces the highest pod of an older template, if those above it are well.
fn update(wish: &Wish, found: &BTreeMap<i64, Replica>, orders: &mut Vec<Order>) {
    let Update::Rolling { first } = wish.update else { return };
    for ordinal in (first.max(wish.ordinals.start)..wish.ordinals.end).rev() {
        match found.get(&ordinal) {
            Some(replica)
                if !replica.updated && !matches!(replica.state, State::Terminating | State::Over) =>
            {
                orders.push(Order::Delete(ordinal));
                return;
            }
            Some(replica) if replica.state == State::Available => {}
            Some(_) | None => return,
        }
    }
}

fn is_healthy(state: State) -> bool {
    match state {
        State::Ready | State::Available => true,
        State::Over | State::Terminating | State::Unready => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Order::{Create, Delete};

    fn wish(replicas: i64, ordered: bool) -> Wish {
        Wish { ordinals: 0..replicas, ordered, update: Update::Rolling { first: 0 } }
    }

    /// Pods from ordinal 0 on: `A`vailable, `R`eady, `U`nready, `T`erminating, `O`ver; in small letters of an old template.
    fn pods(states: &str) -> BTreeMap<i64, Replica> {
        let replica = |letter: char| {
            let state = match letter.to_ascii_uppercase() {
                'A' => State::Available,
                'R' => State::Ready,
                'U' => State::Unready,
                'T' => State::Terminating,
                'O' => State::Over,
                _ => return None,
            };
            Some(Replica { state, updated: letter.is_ascii_uppercase() })
        };
        (0..).zip(states.chars()).filter_map(|(ordinal, letter)| Some((ordinal, replica(letter)?))).collect()
    }

    #[test]
    fn pods_are_made_one_after_the_other_or_all_at_once() {
        for (states, ordered, together) in [
            ("", vec![Create(0)], vec![Create(0), Create(1), Create(2)]),
            ("U", vec![], vec![Create(1), Create(2)]),
            ("R", vec![], vec![Create(1), Create(2)]),
            ("A", vec![Create(1)], vec![Create(1), Create(2)]),
            ("A-A", vec![Create(1)], vec![Create(1)]),
            ("TAA", vec![], vec![]),
            ("OAA", vec![Delete(0)], vec![Delete(0)]),
            ("AAA", vec![], vec![]),
        ] {
            assert_eq!(plan(&wish(3, true), &pods(states)), ordered, "{states} ordered");
            assert_eq!(plan(&wish(3, false), &pods(states)), together, "{states} in parallel");
        }
    }

    #[test]
    fn pods_go_from_the_highest_down() {
        for (states, ordered, together) in [
            ("AAAA", vec![Delete(3)], vec![Delete(3), Delete(2), Delete(1)]),
            ("AAAT", vec![], vec![Delete(2), Delete(1)]),
            ("AUAA", vec![Delete(3)], vec![Delete(3), Delete(2), Delete(1)]),
            ("AAAU", vec![Delete(3)], vec![Delete(3), Delete(2), Delete(1)]),
            // Two are not well: the lower one is waited for.
            ("AUAU", vec![], vec![Delete(3), Delete(2), Delete(1)]),
            ("UAAA", vec![], vec![Delete(3), Delete(2), Delete(1)]),
        ] {
            assert_eq!(plan(&wish(1, true), &pods(states)), ordered, "{states} ordered");
            assert_eq!(plan(&wish(1, false), &pods(states)), together, "{states} in parallel");
        }
    }

    #[test]
    fn a_new_template_rolls_down_to_the_partition_and_waits_for_each_pod() {
        for (first, states, expected) in [
            (0, "aaaa", vec![Delete(3)]),
            (0, "aaat", vec![]),
            (0, "aaaR", vec![]),
            (0, "aaaA", vec![Delete(2)]),
            // An old pod that is not well is replaced in its turn.
            (0, "aauA", vec![Delete(2)]),
            (3, "aaaa", vec![Delete(3)]),
            (3, "aaaA", vec![]),
            (9, "aaaa", vec![]),
            (0, "AAAA", vec![]),
        ] {
            let rolling = Wish { update: Update::Rolling { first }, ..wish(4, false) };
            assert_eq!(plan(&rolling, &pods(states)), expected, "{states} from {first}");
        }
        let on_delete = Wish { update: Update::OnDelete, ..wish(4, true) };
        assert_eq!(plan(&on_delete, &pods("aaaa")), []);
        assert_eq!(plan(&wish(4, true), &pods("aaua")), [], "a set in order waits for what is not well");
    }

    #[test]
    fn a_set_may_begin_anywhere() {
        let late = Wish { ordinals: 2..4, ..wish(0, true) };
        assert_eq!(plan(&late, &pods("")), [Create(2)]);
        assert_eq!(plan(&late, &pods("AAAA")), [Delete(1)]);
        let partition = Wish { update: Update::Rolling { first: 3 }, ..late };
        assert!(!partition.is_made_new(2) && partition.is_made_new(3));
    }
}
