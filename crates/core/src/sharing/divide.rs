//! How an offer is divided over the namespaces of a tenant.

use super::unit::{down, share, unit};
use crate::capacity::Amounts;
use std::collections::BTreeMap;

/// The quota of one namespace, as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamespaceState {
    /// What its quota says.
    pub hard: Amounts,
    /// What its API server enforces: what the quota said when it was last taken notice of.
    pub enforced: Amounts,
    /// What its pods request.
    pub used: Amounts,
    /// What pods request beside that were not created for want of quota.
    pub wanted: Amounts,
    /// Whether it is the tenant's own namespace, where pods rarely run.
    pub is_home: bool,
}

/// How much of what nobody uses goes to a namespace whose pods use or want anything, to another one, and to the tenant's own:
/// a large pod must find its room in one namespace.
const ACTIVE: i64 = 64;
const IDLE: i64 = 8;
const HOME: i64 = 1;

impl NamespaceState {
    fn weight(&self) -> i64 {
        let any = |amounts: &Amounts| amounts.iter().any(|(_, milli)| milli > 0);
        match (any(&self.used) || any(&self.wanted), self.is_home) {
            (true, _) => ACTIVE,
            (false, false) => IDLE,
            (false, true) => HOME,
        }
    }
}

/// One namespace and one resource.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    hard: i64,
    enforced: i64,
    used: i64,
    wanted: i64,
    weight: i64,
}

/// What the quota of each namespace is to say next.
///
/// A quota falls at once and rises only as far as what all namespaces may use leaves of the offer: what was taken from another
/// namespace is given away when the API server enforces that. So at no time more is admitted in all than is offered, but for
/// what ran before an offer fell. What pods wait for goes first, and most of what nobody uses to where pods run.
#[must_use]
pub fn divide(offer: &Amounts, namespaces: &BTreeMap<String, NamespaceState>) -> BTreeMap<String, Amounts> {
    let mut quotas: BTreeMap<String, Amounts> =
        namespaces.keys().map(|name| (name.clone(), Amounts::default())).collect();
    for (resource, offered) in offer.iter() {
        let parts: Vec<Part> = namespaces
            .values()
            .map(|state| Part {
                hard: state.hard.get(resource),
                enforced: state.enforced.get(resource),
                used: state.used.get(resource),
                wanted: state.wanted.get(resource),
                weight: state.weight(),
            })
            .collect();
        let next = rises(offered, &parts, &targets(offered, &parts, unit(resource)));
        for (quota, milli) in quotas.values_mut().zip(next) {
            quota.set(resource, milli);
        }
    }
    quotas
}

/// What each namespace is to have in the end.
fn targets(offered: i64, parts: &[Part], unit: i64) -> Vec<i64> {
    let used: i64 = parts.iter().map(|part| part.used).fold(0, i64::saturating_add);
    if used >= offered {
        return parts.iter().map(|part| down(share(part.used, offered, used), unit)).collect();
    }
    let wanted: i64 = parts.iter().map(|part| part.wanted).fold(0, i64::saturating_add);
    let slack = offered - used;
    let granted = |part: &Part| if wanted <= slack { part.wanted } else { share(part.wanted, slack, wanted) };
    let rest = slack - parts.iter().map(granted).sum::<i64>();
    let weights: i64 = parts.iter().map(|part| part.weight).sum();
    let each = |part: &Part| down(share(rest, part.weight, weights), unit);
    let mut fair: Vec<i64> = parts.iter().map(|part| part.used + granted(part) + each(part)).collect();
    let left = offered - fair.iter().sum::<i64>();
    let most = parts.iter().map(|part| part.weight).max();
    if let Some(first) = parts.iter().position(|part| Some(part.weight) == most) {
        fair[first] += left;
    }
    let is_fair = |(part, fair): (&Part, &i64)| {
        part.hard - part.used >= ((fair - part.used) / 2).max(granted(part)) && part.hard >= part.used
    };
    let stands = parts.iter().map(|part| part.hard).fold(0, i64::saturating_add) == offered
        && parts.iter().zip(&fair).all(is_fair);
    if stands { parts.iter().map(|part| part.hard).collect() } else { fair }
}

/// How far each quota goes to its target now.
fn rises(offered: i64, parts: &[Part], targets: &[i64]) -> Vec<i64> {
    let lowered = |part: &Part, target: i64| part.hard.min(target);
    // What the quota says now may be enforced at any moment.
    let may_use = |part: &Part| part.hard.max(part.enforced).max(part.used);
    let mut left = offered - parts.iter().map(may_use).fold(0, i64::saturating_add);
    let mut next = Vec::with_capacity(parts.len());
    for (part, target) in parts.iter().zip(targets) {
        // What a namespace may use already, it is given without taking from what is left.
        let floor = lowered(part, *target).max(part.enforced.max(part.used).min(*target));
        let more = (target - floor).clamp(0, left.max(0));
        left -= more;
        next.push(floor + more);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::CPU;
    use proptest::prelude::*;

    const GPU: &str = "nvidia.com/gpu";

    fn state(hard: i64, used: i64, wanted: i64) -> NamespaceState {
        let of = |milli| Amounts::of(CPU, milli);
        NamespaceState {
            hard: of(hard),
            enforced: of(hard),
            used: of(used),
            wanted: of(wanted),
            is_home: false,
        }
    }

    fn divided(offered: i64, states: &[NamespaceState]) -> Vec<i64> {
        let names = states.iter().enumerate().map(|(number, state)| (format!("n{number}"), state.clone()));
        divide(&Amounts::of(CPU, offered), &names.collect()).values().map(|quota| quota.get(CPU)).collect()
    }

    #[test]
    fn one_namespace_has_all_and_several_share_what_nobody_uses() {
        assert_eq!(divided(4000, &[state(0, 0, 0)]), [4000]);
        assert_eq!(divided(4000, &[state(0, 0, 0), state(0, 0, 0)]), [2000, 2000]);
        let gpu = BTreeMap::from(["a", "b", "c"].map(|name| (name.to_owned(), NamespaceState::default())));
        let quotas = divide(&Amounts::of(GPU, 1000), &gpu);
        let gpus: Vec<i64> = quotas.values().map(|quota| quota.get(GPU)).collect();
        assert_eq!(gpus, [1000, 0, 0], "no thirds of a GPU");
    }

    #[test]
    fn most_of_what_nobody_uses_is_where_pods_run() {
        let home = NamespaceState { is_home: true, ..NamespaceState::default() };
        let shares = divided(9000, &[home.clone(), state(0, 0, 0)]);
        assert_eq!(shares, [1000, 8000], "a ninth for the home of the tenant");
        let active = divided(7300, &[state(0, 0, 0), state(0, 100, 0), home]);
        assert!(active[1] > 6000, "{active:?}");
    }

    #[test]
    fn quota_goes_to_where_pods_wait_and_first_away_from_where_they_do_not() {
        let before = [state(2000, 500, 0), state(2000, 2000, 1500)];
        let first = divided(4000, &before);
        assert_eq!(first, [500, 2000], "nothing is given before it was taken");
        let mut enforced = [state(500, 500, 0), before[1].clone()];
        assert_eq!(divided(4000, &enforced), [500, 3500]);
        enforced[0].enforced = Amounts::of(CPU, 2000);
        assert_eq!(divided(4000, &enforced), [500, 2000], "the API server still admits up to the old limit");
    }

    #[test]
    fn quotas_stand_while_every_namespace_has_some_room() {
        assert_eq!(divided(4000, &[state(2000, 700, 0), state(2000, 300, 0)]), [2000, 2000]);
        assert_eq!(
            divided(4000, &[state(2000, 1900, 0), state(2000, 100, 0)]),
            [2000, 1100],
            "first taken away"
        );
    }

    #[test]
    fn a_smaller_offer_lowers_quotas_below_what_runs() {
        assert_eq!(divided(1000, &[state(2000, 1500, 0), state(2000, 500, 0)]), [750, 250]);
    }

    #[derive(Clone, Debug)]
    enum Event {
        /// The plan is made, and all quotas are written.
        Plan,
        /// The API server takes notice of a quota.
        Enforce(usize),
        /// A pod is created, if the quota that is enforced admits it.
        Create(usize, i64),
        /// Pods end.
        End(usize, i64),
        /// Pods wait for quota.
        Want(usize, i64),
        /// The offer is another one.
        Offer(i64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            3 => Just(Event::Plan),
            3 => (0usize..3).prop_map(Event::Enforce),
            3 => (0usize..3, 1i64..2000).prop_map(|(which, milli)| Event::Create(which, milli)),
            1 => (0usize..3, 1i64..2000).prop_map(|(which, milli)| Event::End(which, milli)),
            1 => (0usize..3, 0i64..3000).prop_map(|(which, milli)| Event::Want(which, milli)),
            1 => (0i64..6000).prop_map(Event::Offer),
        ]
    }

    fn may_use(parts: &[Part]) -> i64 {
        parts.iter().map(|part| part.hard.max(part.enforced).max(part.used)).sum()
    }

    proptest! {
        /// Whatever happens in between: what quotas admit together is no more than the offer, or, when the offer fell below
        /// that, no more than before.
        #[test]
        fn never_more_is_admitted_than_is_offered(events in prop::collection::vec(event(), 1..60)) {
            let mut parts = [Part::default(); 3];
            let mut offered = 4000;
            for event in events {
                let before = may_use(&parts);
                match event {
                    Event::Plan => {
                        let states: Vec<NamespaceState> = parts.iter().map(|part| NamespaceState {
                            enforced: Amounts::of(CPU, part.enforced), ..state(part.hard, part.used, part.wanted)
                        }).collect();
                        for (part, hard) in parts.iter_mut().zip(divided(offered, &states)) {
                            part.hard = hard;
                        }
                        let hard: i64 = parts.iter().map(|part| part.hard).sum();
                        prop_assert!(hard <= offered, "{hard} of {offered}");
                    }
                    Event::Enforce(which) => parts[which].enforced = parts[which].hard,
                    Event::Create(which, milli) => {
                        let part = &mut parts[which];
                        if part.used + milli <= part.enforced {
                            part.used += milli;
                        }
                    }
                    Event::End(which, milli) => parts[which].used = (parts[which].used - milli).max(0),
                    Event::Want(which, milli) => parts[which].wanted = milli,
                    Event::Offer(milli) => offered = milli,
                }
                prop_assert!(may_use(&parts) <= before.max(offered), "{parts:?} of {offered}");
            }
        }

        /// Planned and enforced often enough, all of the offer is given, and pods that wait get it.
        #[test]
        fn all_of_the_offer_is_given_in_the_end(
            used in prop::collection::vec(0i64..1500, 3), wanted in prop::collection::vec(0i64..3000, 3),
        ) {
            let offered = 4500;
            let mut parts: Vec<Part> =
                used.iter().zip(&wanted).map(|(used, wanted)| Part { used: *used, wanted: *wanted, ..Part::default() }).collect();
            for _ in 0..3 {
                let states: Vec<NamespaceState> =
                    parts.iter().map(|part| state(part.hard, part.used, part.wanted)).collect();
                for (part, hard) in parts.iter_mut().zip(divided(offered, &states)) {
                    (part.hard, part.enforced) = (hard, hard);
                }
            }
            prop_assert_eq!(parts.iter().map(|part| part.hard).sum::<i64>(), offered);
            let fits = used.iter().sum::<i64>() + wanted.iter().sum::<i64>() <= offered;
            for part in &parts {
                prop_assert!(part.hard >= part.used && (!fits || part.hard >= part.used + part.wanted), "{parts:?}");
            }
        }
    }
}
