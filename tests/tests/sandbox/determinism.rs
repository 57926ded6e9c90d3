//! Two processes, the same seed, the same history; and under whatever goes wrong, nothing that must not be.

use portolan_tests::simulation::TENANCIES;
use std::process::{Child, Command, Stdio};

/// Few: many seeds are run by `cargo xtask faults`, here each is run twice.
const SEEDS: usize = 16;

/// Worlds of tenancies, which take longer.
const OF_TENANCIES: usize = 2;

#[test]
fn two_processes_with_the_same_seeds_have_the_same_histories_and_nothing_is_lost() {
    check(0, SEEDS);
}

#[test]
fn two_processes_with_the_same_tenancies_have_the_same_histories() {
    histories(TENANCIES, OF_TENANCIES);
}

/// Runs the same seeds in two processes: nothing may be wrong in any.
fn check(first: u64, seeds: usize) {
    let (is_well, told) = histories(first, seeds);
    let problems: Vec<_> =
        told.lines().filter(|line| line.contains("PROBLEM") || line.contains("replay")).collect();
    assert!(is_well && problems.is_empty(), "{}", problems.join("\n"));
}

/// Runs the same seeds in two processes; answers whether all is well, and what was printed.
fn histories(first: u64, seeds: usize) -> (bool, String) {
    let [one, other] = [start(first, seeds), start(first, seeds)].map(|child| {
        let output = child.wait_with_output().expect("the simulation ends");
        (output.status.success(), String::from_utf8(output.stdout).expect("it prints text"))
    });
    assert_eq!(one.1.lines().filter(|line| line.contains("events")).count(), seeds, "{}", one.1);
    assert_eq!(one.1, other.1, "the same seed gave two histories");
    let distinct: std::collections::BTreeSet<_> = one
        .1
        .lines()
        .filter(|line| line.contains("events"))
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    assert_eq!(distinct.len(), seeds, "different seeds gave the same history");
    println!("{}", one.1.lines().last().unwrap_or_default());
    one
}

fn start(first: u64, seeds: usize) -> Child {
    let mut simulate = Command::new(env!("CARGO_BIN_EXE_simulate"));
    simulate
        .args([first.to_string(), seeds.to_string()])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the simulation starts")
}
