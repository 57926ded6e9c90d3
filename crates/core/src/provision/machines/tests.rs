use super::super::test_support::{MIB, machine, shape};
use super::*;
use proptest::prelude::*;
use std::cmp::Reverse;

const NO_LIMIT: Limits = Limits { nodes: 100, cost: None };

fn demand(pods: &[(i64, i64, u32)]) -> Demand {
    pods.iter().map(|(cpu, mib, count)| (shape(*cpu, *mib), *count)).collect()
}

fn counts(machines: &Machines) -> Vec<(&str, u32)> {
    machines.count.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

fn catalogue() -> Vec<MachineType> {
    vec![
        machine("small", 2000, 4096, 50_000),
        machine("medium", 4000, 8192, 90_000),
        machine("large", 8000, 16384, 200_000),
    ]
}

#[test]
fn the_cheapest_set_is_not_always_of_one_type() {
    // 5 pods of 1 CPU: medium and small for 0.14, rather than three small (0.15), two medium (0.18) or a large (0.2).
    let chosen = choose(&catalogue(), &demand(&[(1000, 1024, 5)]), NO_LIMIT);
    assert_eq!(counts(&chosen), [("medium", 1), ("small", 1)]);
    assert_eq!((chosen.cost, chosen.holds, chosen.exact), (140_000, 5, true));
}

#[test]
fn pods_are_packed_on_whole_nodes() {
    // 3 pods of 1.5 CPU are 4.5 CPU, yet a small holds one and a medium two: small and medium.
    let chosen = choose(&catalogue(), &demand(&[(1500, 100, 3)]), NO_LIMIT);
    assert_eq!(counts(&chosen), [("medium", 1), ("small", 1)]);
    // Memory is what fills the nodes: 4 pods of 4 GiB are a small each, two a medium.
    let chosen = choose(&catalogue(), &demand(&[(100, 4096, 4)]), NO_LIMIT);
    assert_eq!((counts(&chosen), chosen.cost), (vec![("medium", 2)], 180_000));
}

#[test]
fn large_and_small_pods_share_a_node() {
    // 3 + 1 CPU on each of two medium nodes; first-fit by shape alone would need a third one for the small ones.
    let chosen = choose(&catalogue(), &demand(&[(3000, 100, 2), (1000, 100, 2)]), NO_LIMIT);
    assert_eq!((counts(&chosen), chosen.cost), (vec![("medium", 2)], 180_000));
}

#[test]
fn limits_hold_and_what_is_left_says_why() {
    let two_nodes = Limits { nodes: 2, cost: None };
    let chosen = choose(&catalogue(), &demand(&[(1000, 100, 20)]), two_nodes);
    assert_eq!((counts(&chosen), chosen.holds), (vec![("large", 2)], 16));
    assert_eq!((chosen.left[0].pods, &chosen.left[0].because), (4, &LeftBecause::NodeLimit));

    let budget = Limits { nodes: 100, cost: Some(190_000) };
    let chosen = choose(&catalogue(), &demand(&[(1000, 100, 20)]), budget);
    assert_eq!((counts(&chosen), chosen.cost, chosen.holds), (vec![("medium", 2)], 180_000, 8));
    assert_eq!((chosen.left[0].pods, &chosen.left[0].because), (12, &LeftBecause::CostLimit));
    assert!(chosen.left[0].because.to_string().contains("maxCostPerHour"));

    let chosen = choose(&catalogue(), &demand(&[(9000, 100, 1), (1000, 100, 1)]), NO_LIMIT);
    assert_eq!(counts(&chosen), [("small", 1)]);
    assert_eq!(
        chosen.left[0].because.to_string(),
        "a pod needs cpu 9 and the largest machine type has cpu 8",
        "what fits nowhere does not hold up the rest"
    );
}

#[test]
fn without_prices_the_smallest_that_fits_is_taken() {
    let types: Vec<MachineType> =
        catalogue().into_iter().map(|each| MachineType { price: 0, ..each }).collect();
    assert_eq!(counts(&choose(&types, &demand(&[(1000, 100, 2)]), NO_LIMIT)), [("small", 1)]);
    assert_eq!(counts(&choose(&types, &demand(&[(3000, 100, 1)]), NO_LIMIT)), [("medium", 1)]);
}

#[test]
fn nothing_is_chosen_for_nothing_and_of_nothing() {
    assert_eq!(
        choose(&catalogue(), &Demand::default(), NO_LIMIT),
        Machines { exact: true, ..Machines::default() }
    );
    let none = choose(&[], &demand(&[(1000, 100, 2)]), NO_LIMIT);
    assert_eq!((none.holds, none.left[0].pods), (0, 2));
}

#[test]
fn a_thousand_shapes_and_pods_are_packed_within_bounds() {
    let many: Vec<(i64, i64, u32)> = (0..200).map(|i| (100 + 7 * i, 64 + 3 * i, 50)).collect();
    let chosen = choose(&catalogue(), &demand(&many), Limits { nodes: 5000, cost: None });
    assert_eq!((chosen.holds, chosen.exact), (10_000, false));
    // The mean pod has 796.5 millicores: 7965 CPUs at 22,500 millionths per CPU at best.
    let least = 7_965_000 * 22_500 / 1000;
    assert!(chosen.cost >= least && chosen.cost < least * 5 / 4, "{}", chosen.cost);
}

#[test]
fn a_node_selector_decides_which_types_will_do() {
    let mut gpu = machine("gpu", 4000, 8192, 900_000);
    gpu.node.labels.insert("gpu".into(), "true".into());
    let mut wants =
        crate::capacity::PodShape { requests: shape(1000, 100).requests.clone(), ..Default::default() };
    wants.node_selector.insert("gpu".into(), "true".into());
    let demand: Demand = [(wants.into(), 1)].into_iter().collect();
    let types = [machine("small", 2000, 4096, 50_000), gpu];
    assert_eq!(counts(&choose(&types, &demand, NO_LIMIT)), [("gpu", 1)]);
    assert_eq!(choose(&types[..1], &demand, NO_LIMIT).left[0].because.reason(), "NoMachineType");
}

/// All ways to put the pods, one by one, on machines that are bought as needed: the most pods, then the least weight.
fn brute_force(types: &[MachineType], pods: &[Shape], limits: Limits) -> (Reverse<u32>, [i128; 4]) {
    fn put(
        types: &[MachineType],
        pods: &[Shape],
        limits: Limits,
        nodes: &mut Vec<(usize, Amounts)>,
        placed: u32,
    ) -> (Reverse<u32>, [i128; 4]) {
        let Some((pod, rest)) = pods.split_first() else {
            let mut weight = [0; 4];
            for (kind, _) in nodes.iter() {
                let each = &types[*kind];
                let part = |name| i128::from(each.node.allocatable.get(name));
                let parts =
                    [i128::from(each.price), part(crate::capacity::CPU), part(crate::capacity::MEMORY), 1];
                weight = std::array::from_fn(|index| weight[index] + parts[index]);
            }
            return (Reverse(placed), weight);
        };
        let mut best = put(types, rest, limits, nodes, placed);
        for index in 0..nodes.len() {
            if nodes[index].1.times(&pod.requests) > 0 {
                nodes[index].1.add(&pod.requests, -1);
                best = best.min(put(types, rest, limits, nodes, placed + 1));
                nodes[index].1.add(&pod.requests, 1);
            }
        }
        let cost: u64 = nodes.iter().map(|(kind, _)| types[*kind].price).sum();
        for (kind, each) in types.iter().enumerate() {
            let allowed = nodes.len() < limits.nodes as usize
                && limits.cost.is_none_or(|limit| cost + each.price <= limit);
            if allowed && each.node.allocatable.times(&pod.requests) > 0 {
                let mut free = each.node.allocatable.clone();
                free.add(&pod.requests, -1);
                nodes.push((kind, free));
                best = best.min(put(types, rest, limits, nodes, placed + 1));
                nodes.pop();
            }
        }
        best
    }
    put(types, pods, limits, &mut Vec::new(), 0)
}

prop_compose! {
    fn worlds()(
        types in proptest::collection::vec((1i64..6, 1i64..6, 0u64..9), 1..4),
        pods in proptest::collection::vec((1i64..5, 0i64..5), 0..6),
        nodes in 0u32..5,
        cost in proptest::option::of(0u64..20),
    ) -> (Vec<MachineType>, Vec<Shape>, Limits) {
        let types = types.iter().enumerate().map(|(i, (cpu, mem, price))| machine(&format!("t{i}"), cpu * 1000, mem * 1024, *price)).collect();
        let pods = pods.iter().map(|(cpu, mem)| shape(cpu * 1000, mem * 1024)).collect();
        (types, pods, Limits { nodes, cost })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nothing_is_better_than_what_the_search_finds((types, pods, limits) in worlds()) {
        let demand: Demand = pods.iter().map(|shape| (shape.clone(), 1)).collect();
        let chosen = choose(&types, &demand, limits);
        prop_assert!(chosen.exact);
        let mut weight = [0i128; 4];
        for (name, count) in &chosen.count {
            let each = types.iter().find(|each| each.name == *name).unwrap();
            let part = |name| i128::from(each.node.allocatable.get(name));
            let parts = [i128::from(each.price), part(crate::capacity::CPU), part(crate::capacity::MEMORY), 1];
            weight = std::array::from_fn(|index| weight[index] + parts[index] * i128::from(*count));
        }
        prop_assert_eq!((Reverse(chosen.holds), weight), brute_force(&types, &pods, limits));
    }

    #[test]
    fn limits_are_never_exceeded_and_no_pod_is_lost(
        (types, _, limits) in worlds(),
        many in proptest::collection::vec((1i64..4000, 1i64..4096, 1u32..400), 0..12),
    ) {
        let demand: Demand = many.iter().map(|(cpu, mib, count)| (shape(*cpu, *mib), *count)).collect();
        let chosen = choose(&types, &demand, limits);
        let nodes: u32 = chosen.count.values().sum();
        let price = |name: &String| types.iter().find(|each| each.name == *name).unwrap().price;
        let cost: u64 = chosen.count.iter().map(|(name, count)| price(name) * u64::from(*count)).sum();
        prop_assert!(nodes <= limits.nodes && limits.cost.is_none_or(|limit| cost <= limit));
        prop_assert_eq!(cost, chosen.cost);
        prop_assert_eq!(chosen.holds + chosen.left.iter().map(|left| left.pods).sum::<u32>(), demand.pods());
        let mut room = Amounts::default();
        for (name, count) in &chosen.count {
            room.add(&types.iter().find(|each| each.name == *name).unwrap().node.allocatable, i64::from(*count));
        }
        let mut held = demand.requests();
        for left in &chosen.left {
            held.add(&left.shape.requests, -i64::from(left.pods));
        }
        prop_assert!(held.iter().all(|(name, milli)| milli <= room.get(name)), "{MIB}");
    }
}
