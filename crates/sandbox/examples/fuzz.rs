//! Sends requests that nobody should send to the API server, for a while. `cargo xtask fuzz` runs it.
//!
//! Cases are made from those in `tests/corpus` and from those of this run whose answers were new. One that shows a mistake
//! is made shorter and kept in the corpus, where the tests replay it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a tool for developers, on the wall clock"
)]

#[path = "../tests/fuzzing/mod.rs"]
mod fuzzing;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use fuzzing::{Case, Mutator, check, corpus, corpus_folder, listen_for_panics};
use portolan_runtime::Seed;
use sha2::{Digest, Sha256};

/// How many cases of a run are kept to make others of.
const POOL: usize = 4000;

fn main() -> std::process::ExitCode {
    listen_for_panics();
    let mut seconds = 60;
    let mut seed = 1;
    let mut keep = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse::<u64>().ok());
        match argument.as_str() {
            "--seconds" => seconds = number().unwrap_or_else(|| panic!("--seconds needs a number")),
            "--seed" => seed = number().unwrap_or_else(|| panic!("--seed needs a number")),
            "--keep" => keep = true,
            file => return replay(Path::new(file)),
        }
    }
    run(Duration::from_secs(seconds), seed, keep)
}

fn replay(file: &Path) -> std::process::ExitCode {
    let outcome = check(&Case::read(file));
    outcome.seen.iter().for_each(|seen| println!("{seen}"));
    outcome.wrong.iter().for_each(|wrong| println!("WRONG: {wrong}"));
    if outcome.wrong.is_empty() { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

fn run(time: Duration, seed: u64, keep: bool) -> std::process::ExitCode {
    let mut pool: Vec<Case> = corpus().into_iter().map(|(_, case)| case).collect();
    let mut seen: BTreeSet<String> = pool.iter().flat_map(|case| check(case).seen).collect();
    println!("{} cases in the corpus, {} kinds of answers; seed {seed}", pool.len(), seen.len());
    let mut mutator = Mutator::new(Seed::new(seed).rng());
    let start = Instant::now();
    let (mut cases, mut calls, mut found) = (0_u64, 0, 0);
    while start.elapsed() < time {
        let case = mutator.next(&pool);
        let outcome = check(&case);
        cases += 1;
        calls += case.calls.len();
        if !outcome.wrong.is_empty() {
            found += 1;
            let short = shorten(case, |case| !check(case).wrong.is_empty());
            let file = save(&short, "found", &outcome.wrong);
            println!(
                "\nWRONG: {}\nreplay: cargo run -p portolan-sandbox --example fuzz {file}\n",
                outcome.wrong.join("\n")
            );
            if found == 20 {
                break;
            }
            continue;
        }
        if outcome.seen.iter().any(|each| !seen.contains(each)) {
            if keep {
                let new = |case: &Case| check(case).seen.iter().any(|each| !seen.contains(each));
                save(&shorten(case.clone(), new), "new", &[]);
            }
            seen.extend(outcome.seen);
            if pool.len() < POOL {
                pool.push(case);
            }
        }
    }
    println!(
        "{cases} cases, {calls} requests in {:.0} s: {} kinds of answers, {found} mistakes",
        start.elapsed().as_secs_f64(),
        seen.len()
    );
    if found == 0 { std::process::ExitCode::SUCCESS } else { std::process::ExitCode::FAILURE }
}

/// Leaves out requests as long as `still` holds.
fn shorten(mut case: Case, still: impl Fn(&Case) -> bool) -> Case {
    let mut at = 0;
    while at < case.calls.len() && case.calls.len() > 1 {
        let mut without = case.clone();
        without.calls.remove(at);
        if still(&without) { case = without } else { at += 1 }
    }
    case
}

fn save(case: &Case, kind: &str, wrong: &[String]) -> String {
    let text = case.to_string();
    let digest: String =
        Sha256::digest(text.as_bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let file = corpus_folder().join(format!("{kind}-{digest}.case"));
    let told: String =
        wrong.iter().filter_map(|wrong| wrong.lines().next()).map(|line| format!("# {line}\n")).collect();
    std::fs::write(&file, format!("{told}{text}")).unwrap();
    file.display().to_string()
}
