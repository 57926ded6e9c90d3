//! Two processes, the same seed, the same history; and under whatever goes wrong, nothing that must not be.

use std::process::{Child, Command, Stdio};

/// Few: many seeds are run by `cargo xtask faults`, here each is run twice.
const SEEDS: usize = 16;

#[test]
fn two_processes_with_the_same_seeds_have_the_same_histories_and_nothing_is_lost() {
    let [one, other] = [start(), start()].map(|child| {
        let output = child.wait_with_output().expect("the simulation ends");
        (output.status.success(), String::from_utf8(output.stdout).expect("it prints text"))
    });
    assert_eq!(one.1.lines().filter(|line| line.contains("events")).count(), SEEDS, "{}", one.1);
    assert_eq!(one.1, other.1, "the same seed gave two histories");
    let problems: Vec<_> =
        one.1.lines().filter(|line| line.contains("PROBLEM") || line.contains("replay")).collect();
    assert!(one.0 && problems.is_empty(), "{}", problems.join("\n"));
    let distinct: std::collections::BTreeSet<_> = one
        .1
        .lines()
        .filter(|line| line.contains("events"))
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    assert_eq!(distinct.len(), SEEDS, "different seeds gave the same history");
    println!("{}", one.1.lines().last().unwrap_or_default());
}

fn start() -> Child {
    let mut simulate = Command::new(env!("CARGO_BIN_EXE_simulate"));
    simulate.args(["0", &SEEDS.to_string()]).stdout(Stdio::piped()).spawn().expect("the simulation starts")
}
