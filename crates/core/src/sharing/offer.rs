//! What is offered to each consumer.

use super::names::is_shareable;
use super::unit::{down, share, unit};
use crate::capacity::{Amounts, PODS};
use std::collections::{BTreeMap, BTreeSet};

/// Offers move in steps of this part of what is shared at most, so that a pod more or less is no news.
const STEPS: i64 = 32;

/// Levels are searched in so many parts of the whole.
const LEVELS: i64 = 1_000_000;

/// Resources that are offered only where a rule names them: pods rarely ask for them, and a quota on them helps nobody.
const UNCOUNTED: [&str; 1] = ["ephemeral-storage"];

/// What the nodes of the provider have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Supply {
    /// What nodes have that take pods: virtual, cordoned and silent ones left out.
    pub whole: Amounts,
    /// What is left on them.
    pub free: Amounts,
}

/// What is shared with one consumer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rule {
    /// A share of the whole in percent, of each resource that is not fixed.
    pub percentage: Option<i64>,
    /// Fixed quantities.
    pub fixed: Amounts,
}

/// One consumer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Consumer {
    /// What is shared with it.
    pub rule: Rule,
    /// What its pods request that have a node.
    pub used: Amounts,
    /// What was offered to it before, if anything.
    pub offered: Option<Amounts>,
    /// Whether its offer has stood for so long that also a small rise is due, or its rule has changed.
    pub settled: bool,
}

impl Rule {
    /// How much is shared of a resource, in thousandths.
    fn limit(&self, name: &str, whole: i64) -> i64 {
        let limit = match (self.fixed.find(name), self.percentage) {
            (Some(fixed), _) => fixed,
            (None, Some(percentage)) => share(whole, percentage.clamp(0, 100), 100),
            // A rule that is silent about pods does not mean that none may run.
            (None, None) if name == PODS => whole,
            (None, None) => 0,
        };
        down(limit.max(0), unit(name))
    }
}

/// The offers to all consumers, by name.
///
/// No offer is more than its rule shares, and all together never promise more beside what is used already than is free. Where
/// that is too little, each gets the same part of what its rule shares: what one of them uses of its own offer changes no
/// offer. An offer falls at once, in steps; it rises when the rise is worth it or the offer has settled.
#[must_use]
pub fn offers(supply: &Supply, consumers: &BTreeMap<String, Consumer>) -> BTreeMap<String, Amounts> {
    let mut offers: BTreeMap<String, Amounts> =
        consumers.keys().map(|name| (name.clone(), Amounts::default())).collect();
    for resource in resources(supply, consumers) {
        let whole = supply.whole.get(&resource);
        let limits: Vec<(i64, i64)> = consumers
            .values()
            .map(|consumer| {
                let limit = consumer.rule.limit(&resource, whole);
                (limit, consumer.used.get(&resource).clamp(0, limit))
            })
            .collect();
        let level = level(&limits, supply.free.get(&resource).max(0));
        for ((consumer, offer), (limit, used)) in consumers.values().zip(offers.values_mut()).zip(limits) {
            let most = at(level, limit, used);
            let before = consumer.offered.as_ref().and_then(|offered| offered.find(&resource));
            offer.set(&resource, settle(before, most, limit, unit(&resource), consumer.settled));
        }
    }
    offers
}

/// The resources that offers are about: those that nodes have, and those that rules name, as far as quotas take them. Nodes
/// also count volumes, say.
fn resources(supply: &Supply, consumers: &BTreeMap<String, Consumer>) -> BTreeSet<String> {
    let fixed = consumers.values().flat_map(|consumer| consumer.rule.fixed.iter().map(|(name, _)| name));
    let whole = supply.whole.iter().map(|(name, _)| name).filter(|name| !UNCOUNTED.contains(name));
    whole.chain(fixed).filter(|name| is_shareable(name)).map(str::to_owned).collect()
}

/// What a consumer may have at a level: a part of its limit, and no less than what it uses of it.
fn at(level: i64, limit: i64, used: i64) -> i64 {
    share(limit, level, LEVELS).clamp(used, limit)
}

/// The highest level at which no more is promised than is free.
fn level(limits: &[(i64, i64)], free: i64) -> i64 {
    let promised = |level: i64| -> i128 {
        limits.iter().map(|(limit, used)| i128::from(at(level, *limit, *used) - used)).sum()
    };
    let fits = |level: i64| promised(level) <= i128::from(free);
    if fits(LEVELS) {
        return LEVELS;
    }
    let (mut low, mut high) = (0, LEVELS);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// What is offered when so much may be: the same as before, if that is not too much and the rise is not worth it.
fn settle(before: Option<i64>, most: i64, limit: i64, unit: i64, settled: bool) -> i64 {
    let step = down(limit / STEPS, unit).max(unit);
    let stepped = if most >= limit { down(limit, unit) } else { down(most, step) };
    match before {
        Some(before) if before > most => stepped,
        Some(before) if before <= stepped => {
            let rises = stepped - before >= 2 * step || before == 0;
            if rises || settled { stepped } else { before }
        }
        // Between the step and what may be: it stands.
        Some(before) => before,
        None => stepped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::{CPU, MEMORY};
    use proptest::prelude::*;

    const GPU: &str = "nvidia.com/gpu";
    const GIB: i64 = (1 << 30) * 1000;

    fn amounts(pairs: &[(&str, i64)]) -> Amounts {
        let mut amounts = Amounts::default();
        pairs.iter().for_each(|(name, milli)| amounts.set(name, *milli));
        amounts
    }

    fn percent(percentage: i64) -> Consumer {
        let rule = Rule { percentage: Some(percentage), ..Rule::default() };
        Consumer { rule, ..Consumer::default() }
    }

    fn named(consumers: &[(&str, Consumer)]) -> BTreeMap<String, Consumer> {
        consumers.iter().map(|(name, consumer)| ((*name).to_owned(), consumer.clone())).collect()
    }

    #[test]
    fn a_percentage_is_one_of_the_whole_and_is_in_whole_units() {
        let whole = amounts(&[(CPU, 8000), (MEMORY, 16 * GIB), (PODS, 111_000), (GPU, 3000)]);
        let supply = Supply { whole: whole.clone(), free: whole };
        let offer = &offers(&supply, &named(&[("a", percent(50))]))["a"];
        assert_eq!((offer.get(CPU), offer.get(MEMORY)), (4000, 8 * GIB));
        assert_eq!((offer.get(PODS), offer.get(GPU)), (55_000, 1000), "no half pods and GPUs");
    }

    #[test]
    fn a_percentage_of_each_is_scaled_down_to_what_is_free() {
        let supply = Supply { whole: amounts(&[(CPU, 10_000)]), free: amounts(&[(CPU, 6000)]) };
        let both = offers(&supply, &named(&[("a", percent(80)), ("b", percent(40))]));
        let (a, b) = (both["a"].get(CPU), both["b"].get(CPU));
        assert!(a + b <= 6000 && a + b > 5500, "{a} {b}");
        assert!((a - 2 * b).abs() <= 300, "in proportion to what is shared: {a} {b}");
    }

    #[test]
    fn what_is_used_of_an_offer_changes_no_offer() {
        let mut consumers = named(&[("a", percent(80)), ("b", percent(80))]);
        let whole = amounts(&[(CPU, 10_000)]);
        let first = offers(&Supply { whole: whole.clone(), free: whole.clone() }, &consumers);
        for (name, consumer) in &mut consumers {
            consumer.offered = Some(first[name].clone());
        }
        consumers.get_mut("a").unwrap().used = amounts(&[(CPU, 4000)]);
        let free = amounts(&[(CPU, 6000)]);
        assert_eq!(offers(&Supply { whole, free }, &consumers), first);
    }

    #[test]
    fn fixed_quantities_leave_out_what_they_do_not_name() {
        let whole = amounts(&[(CPU, 8000), (MEMORY, 16 * GIB), (PODS, 110_000), (GPU, 2000)]);
        let rule = Rule { percentage: None, fixed: amounts(&[(CPU, 2000), (MEMORY, 4 * GIB)]) };
        let consumers = named(&[("a", Consumer { rule, ..Consumer::default() })]);
        let offer = &offers(&Supply { whole: whole.clone(), free: whole }, &consumers)["a"];
        assert_eq!((offer.get(CPU), offer.get(MEMORY), offer.find(GPU)), (2000, 4 * GIB, Some(0)));
        assert_eq!(offer.get(PODS), 110_000, "pods are not what is scarce");
    }

    #[test]
    fn a_resource_that_no_node_has_is_not_offered() {
        let rule = Rule { percentage: Some(50), fixed: amounts(&[(GPU, 2000)]) };
        let consumers = named(&[("a", Consumer { rule, ..Consumer::default() })]);
        let whole = amounts(&[(CPU, 8000)]);
        let offer = &offers(&Supply { whole: whole.clone(), free: whole }, &consumers)["a"];
        assert_eq!(offer.find(GPU), Some(0));
    }

    #[test]
    fn a_small_rise_waits_until_the_offer_has_settled() {
        let whole = amounts(&[(CPU, 10_000)]);
        let offered = |free: i64, before: i64, settled: bool| {
            let offered = Some(amounts(&[(CPU, before)]));
            let consumer = Consumer { offered, settled, ..percent(50) };
            let supply = Supply { whole: whole.clone(), free: amounts(&[(CPU, free)]) };
            offers(&supply, &named(&[("a", consumer)]))["a"].get(CPU)
        };
        let fallen = offered(4900, 5000, false);
        assert!((4700..=4900).contains(&fallen), "{fallen}");
        assert_eq!(offered(9000, fallen, false), fallen, "all could be offered again: not yet");
        assert_eq!(offered(9000, fallen, true), 5000);
        assert_eq!(offered(9000, 2000, false), 5000, "a large rise does not wait");
        assert_eq!(offered(9000, 0, false), 5000);
    }

    fn consumer() -> impl Strategy<Value = Consumer> {
        let fixed = prop::option::of(0i64..20_000);
        let rule = (prop::option::of(0i64..=100), fixed).prop_map(|(percentage, fixed)| Rule {
            percentage,
            fixed: fixed.map(|milli| amounts(&[(CPU, milli)])).unwrap_or_default(),
        });
        (rule, 0i64..15_000, prop::option::of(0i64..20_000), any::<bool>()).prop_map(
            |(rule, used, offered, settled)| {
                let offered = offered.map(|milli| amounts(&[(CPU, milli)]));
                Consumer { rule, used: amounts(&[(CPU, used)]), offered, settled }
            },
        )
    }

    #[test]
    fn what_no_quota_takes_is_not_offered() {
        let whole = amounts(&[(CPU, 4000), ("attachable-volumes-csi", 39_000), ("kubernetes.io/odd", 1000)]);
        let supply = Supply { free: whole.clone(), whole };
        let rule = Rule { percentage: Some(50), fixed: amounts(&[("storage", 1000), ("gpu", 1000)]) };
        let consumers = BTreeMap::from([("a".to_owned(), Consumer { rule, ..Consumer::default() })]);
        let offered = offers(&supply, &consumers);
        assert_eq!(offered["a"].iter().collect::<Vec<_>>(), [(CPU, 2000)]);
    }

    proptest! {
        #[test]
        fn no_more_is_offered_than_is_shared_and_than_is_free(
            whole in 0i64..40_000, free in -1000i64..40_000, consumers in prop::collection::btree_map("[a-e]", consumer(), 1..5),
        ) {
            let supply = Supply { whole: amounts(&[(CPU, whole)]), free: amounts(&[(CPU, free)]) };
            let offers = offers(&supply, &consumers);
            let mut promised = 0;
            for (name, offer) in &offers {
                let (offer, consumer) = (offer.get(CPU), &consumers[name]);
                let limit = consumer.rule.limit(CPU, whole);
                prop_assert!(offer >= 0 && offer <= limit, "{name}: {offer} of {limit}");
                promised += (offer - consumer.used.get(CPU)).max(0);
            }
            prop_assert!(promised <= free.max(0), "{promised} promised, {free} free");
        }

        /// An offer that was made is made again: nothing changes by itself.
        #[test]
        fn an_offer_stands_while_nothing_changes(
            whole in 0i64..40_000, free in 0i64..40_000, consumers in prop::collection::btree_map("[a-e]", consumer(), 1..5),
        ) {
            let supply = Supply { whole: amounts(&[(CPU, whole)]), free: amounts(&[(CPU, free)]) };
            let first = offers(&supply, &consumers);
            let mut again = consumers;
            for (name, consumer) in &mut again {
                consumer.offered = Some(first[name].clone());
            }
            prop_assert_eq!(&offers(&supply, &again), &first);
            again.values_mut().for_each(|consumer| consumer.settled = true);
            let settled = offers(&supply, &again);
            for (name, consumer) in &mut again {
                consumer.offered = Some(settled[name].clone());
            }
            prop_assert_eq!(&offers(&supply, &again), &settled);
        }
    }
}
