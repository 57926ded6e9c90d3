//! Replicas that only stand in until there is room at home, and where that room is.

use crate::capacity::Waits;
use portolan_api::placement::{PlacementCause, PlacementStatus};

/// Whether a cluster only stands in until there is room at home.
pub(super) fn stands_in(placed: &PlacementStatus) -> bool {
    use PlacementCause::{Bursting, Cloud, NoAlternative, Replacement, Substitution};
    let cause = matches!(placed.cause, Some(Substitution | Bursting | Cloud | Replacement | NoAlternative));
    placed.replicas > 0 && (cause || placed.substitute_for.is_some())
}

/// Where room would be used by what stands in. What a cluster took over from another goes to the locations, or together
/// with the rest: of clusters that stand in, those that do so already come first. What is in the cloud, or has no
/// alternative, goes wherever there is room.
pub(super) fn waits_to_leave(locations: &[String], placements: &[PlacementStatus]) -> Waits {
    use PlacementCause::{Bursting, Substitution};
    let away: Vec<&PlacementStatus> = placements.iter().filter(|placed| stands_in(placed)).collect();
    let alone = match away[..] {
        [] => return Waits::nowhere(),
        [alone] => Some(&alone.cluster),
        _ => None,
    };
    let took_over = |placed: &&PlacementStatus| {
        matches!(placed.cause, Some(Substitution | Bursting)) && placed.substitute_for.is_some()
    };
    if !away.iter().all(took_over) {
        return Waits::NotIn(alone.into_iter().cloned().collect());
    }
    let homes = away.iter().filter_map(|placed| placed.substitute_for.as_deref());
    let homes = homes.flat_map(|names| names.split(',')).map(|name| name.trim().to_owned());
    let places = placements.iter().map(|placed| placed.cluster.clone()).chain(locations.iter().cloned());
    Waits::In(homes.chain(places.filter(|name| Some(name) != alone)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use PlacementCause::{Bursting, Cloud, NoAlternative, Preferred, Replacement, Substitution};

    fn placed(cluster: &str, cause: PlacementCause, substitute_for: Option<&str>) -> PlacementStatus {
        PlacementStatus {
            cluster: cluster.to_owned(),
            replicas: 1,
            cause: Some(cause),
            substitute_for: substitute_for.map(str::to_owned),
            ..PlacementStatus::default()
        }
    }

    #[test]
    fn room_is_of_use_where_replicas_would_go() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let cases = [
            (vec![placed("a", Preferred, None)], Waits::nowhere()),
            (vec![placed("b", Substitution, Some("a"))], Waits::In(set(&["a"]))),
            (vec![placed("a", Preferred, None), placed("b", Bursting, Some("a"))], Waits::In(set(&["a"]))),
            (
                vec![placed("b", Bursting, Some("a,x")), placed("c", Bursting, Some("a"))],
                Waits::In(set(&["a", "b", "c", "x"])),
            ),
            (vec![placed("cloud", Cloud, Some("a"))], Waits::NotIn(set(&["cloud"]))),
            (vec![placed("a", NoAlternative, None)], Waits::NotIn(set(&["a"]))),
            (
                vec![placed("b", Substitution, Some("a")), placed("cloud", Cloud, Some("a"))],
                Waits::anywhere(),
            ),
            (vec![placed("b", Replacement, Some("a"))], Waits::NotIn(set(&["b"]))),
        ];
        for (placements, expected) in cases {
            assert_eq!(waits_to_leave(&["a".to_owned()], &placements), expected, "{placements:?}");
        }
    }
}
