//! Runs simulations by seed, and prints what came of each: `simulate FIRST [COUNT] [--log]`. `simulate --drawn FIRST` prints
//! what can be drawn by seeds from there on, and `simulate --drawn elastic` what only worlds draw whose fleet grows and shrinks.

use portolan_tests::simulation::{Drawn, TENANCIES, simulate};
use std::process::ExitCode;

/// As in the binary that is simulated.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [drawn, first] = arguments.as_slice()
        && drawn == "--drawn"
    {
        let of_tenancies = first.parse().is_ok_and(|first: u64| first >= TENANCIES);
        let listed = |drawn: &&Drawn| match first.as_str() {
            "elastic" => (Drawn::LoadChanged..Drawn::ClockOff).contains(*drawn),
            _ => (**drawn >= Drawn::ClockOff) == of_tenancies,
        };
        Drawn::ALL.iter().filter(listed).for_each(|drawn| println!("{}", drawn.name()));
        return ExitCode::SUCCESS;
    }
    let log = arguments.iter().any(|argument| argument == "--log");
    let mut numbers =
        arguments.iter().filter(|argument| *argument != "--log").map(|argument| argument.parse::<u64>());
    let (Some(Ok(first)), count) = (numbers.next(), numbers.next().unwrap_or(Ok(1))) else {
        eprintln!("usage: simulate FIRST [COUNT] [--log]");
        return ExitCode::from(2);
    };
    let Ok(count) = count else {
        eprintln!("usage: simulate FIRST [COUNT] [--log]");
        return ExitCode::from(2);
    };
    let mut failed = 0;
    for seed in first..first.saturating_add(count) {
        let outcome = simulate(seed);
        if log {
            outcome.log.iter().for_each(|line| println!("{line}"));
        }
        for (drawn, count) in outcome.drawn.iter() {
            println!("seed {seed}: DRAWN: {count} {}", drawn.name());
        }
        for problem in &outcome.problems {
            println!("seed {seed}: PROBLEM: {}", problem.replace('\n', " "));
        }
        if !outcome.problems.is_empty() {
            println!("seed {seed}: replay by `cargo run -p portolan-tests --bin simulate -- {seed} --log`");
            failed += 1;
        }
        // The last line of a seed: who reads it knows that the seed is over.
        println!(
            "seed {seed}: {} {} events, {} crashes planned",
            outcome.hash, outcome.events, outcome.crashes
        );
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
