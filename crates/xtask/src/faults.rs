//! Seeded fault schedules: Portolan's controllers on sandbox clusters with everything going wrong that can.

use crate::steps::{build, root};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How many seeds one process runs at most.
const BATCH: u64 = 20;

/// The seeds that CI runs start here: beyond those of the test of determinism.
const FIRST_IN_CI: u64 = 1000;

/// How many seeds CI runs: about five minutes of them on two cores.
const IN_CI: u64 = 250;

/// From this seed on, worlds are of tenancies: one takes many times as long as another seed.
const TENANCIES: u64 = 1_000_000;

/// How many worlds of tenancies CI runs. Some acts are prescribed to each of them, so that these draw every act.
const TENANCIES_IN_CI: u64 = 16;

/// Of so many seeds below those one is of a fleet that grows and shrinks: the one with this remainder.
const ELASTIC: (u64, u64) = (16, 7);

/// So many worlds of such fleets draw everything that is drawn in them alone.
const ELASTIC_DRAWS_ALL: u64 = 64;

/// Seeds that show a mistake which is known and not mended yet, a line each: the seed, and what goes wrong.
const KNOWN: &str = "tests/known-seeds.txt";

#[derive(Args)]
pub(crate) struct FaultsArgs {
    /// How many seeds are run at most.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,

    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Runs only the worlds whose fleet grows and shrinks, which are one seed of sixteen.
    #[arg(long)]
    elastic: bool,

    /// Starts no more seeds after so many minutes.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    minutes: Option<u64>,

    /// Builds the simulation optimised: that takes minutes, and then a seed takes a quarter of the time.
    #[arg(long)]
    release: bool,
}

impl FaultsArgs {
    /// What CI runs: always the same seeds, so that they hold or fail on every machine alike.
    pub(crate) fn in_ci() -> Self {
        Self { seeds: IN_CI, first: FIRST_IN_CI, elastic: false, minutes: None, release: false }
    }

    /// The worlds of tenancies that CI runs beside them.
    pub(crate) fn tenancies_in_ci() -> Self {
        Self { seeds: TENANCIES_IN_CI, first: TENANCIES, elastic: false, minutes: None, release: false }
    }

    /// How many seeds must draw everything together.
    fn draws_all(&self) -> u64 {
        if self.elastic {
            ELASTIC_DRAWS_ALL
        } else if self.first >= TENANCIES {
            TENANCIES_IN_CI
        } else {
            IN_CI
        }
    }

    /// The names of what is drawn are asked for by this.
    fn kind(&self) -> String {
        if self.elastic { "elastic".to_owned() } else { self.first.to_string() }
    }

    /// Which seeds are run.
    fn range(&self) -> Result<Seeds> {
        if !self.elastic {
            return Ok(Seeds { first: self.first, step: 1, count: self.seeds });
        }
        let (step, remainder) = ELASTIC;
        let first = self.first.saturating_add((remainder + step - self.first % step) % step);
        let seeds = Seeds { first, step, count: self.seeds };
        if seeds.at(seeds.count - 1) >= TENANCIES {
            bail!(
                "--elastic runs seeds below {TENANCIES}, and {} of them from {first} on go to {}: give a smaller --first or --seeds",
                self.seeds,
                seeds.at(seeds.count - 1)
            );
        }
        Ok(seeds)
    }
}

/// The seeds that are run: so many from the first one on, each so far from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seeds {
    first: u64,
    step: u64,
    count: u64,
}

impl Seeds {
    /// The seed at this place, the first one being at 0.
    fn at(self, place: u64) -> u64 {
        self.first.saturating_add(place.saturating_mul(self.step))
    }

    fn contains(self, seed: u64) -> bool {
        seed >= self.first && (seed - self.first).is_multiple_of(self.step) && seed < self.at(self.count)
    }
}

pub(crate) fn run(args: &FaultsArgs) -> Result<()> {
    let seeds = args.range()?;
    let program = build("simulate", args.release)?;
    let program = program.to_str().context("the path of the target directory is not UTF-8")?;
    let workers = thread::available_parallelism().map_or(2, std::num::NonZero::get);
    let start = Instant::now();
    let shared = Shared {
        batch: batch(args.seeds, u64::try_from(workers)?),
        seeds,
        next: AtomicU64::new(0),
        until: args.minutes.map(|minutes| start + Duration::from_secs(60 * minutes)),
        stopped: AtomicBool::new(false),
        count: AtomicU64::new(0),
        problems: Mutex::new(BTreeMap::new()),
        drawn: Mutex::new(BTreeMap::new()),
    };
    println!("seeds from {} on {workers} cores", seeds.first);
    let results: Vec<Result<()>> = thread::scope(|scope| {
        let spawn = |_| scope.spawn(|| shared.work(program));
        let started: Vec<_> = (0..workers).map(spawn).collect();
        let join = |each: thread::ScopedJoinHandle<'_, Result<()>>| {
            each.join().unwrap_or_else(|_| bail!("a worker panicked"))
        };
        started.into_iter().map(join).collect()
    });
    results.into_iter().collect::<Result<()>>()?;
    let count = shared.count.load(Ordering::SeqCst);
    let problems = shared.problems.into_inner().unwrap_or_else(PoisonError::into_inner);
    let drawn = shared.drawn.into_inner().unwrap_or_else(PoisonError::into_inner);
    let never = table(program, &args.kind(), &drawn)?;
    let seconds = start.elapsed().as_secs_f64();
    println!("{count} seeds in {seconds:.0} s, {} failed", problems.len());
    let known = known()?;
    for (seed, lines) in &problems {
        println!("seed {seed}{}:", if known.contains(seed) { ", which is known" } else { "" });
        lines.iter().for_each(|line| println!("  {line}"));
        println!("  replay by `cargo run -p portolan-tests --bin simulate -- {seed} --log`");
    }
    let new: Vec<_> = problems.keys().filter(|seed| !known.contains(seed)).collect();
    if !new.is_empty() {
        bail!("{} of {count} seeds failed that are not in {KNOWN}: {new:?}", new.len());
    }
    let mended: Vec<_> =
        known.iter().filter(|seed| seeds.contains(**seed) && !problems.contains_key(seed)).collect();
    // With a limit of time some of them may not have been run.
    if args.minutes.is_none() && !mended.is_empty() {
        bail!("seeds {mended:?} hold now: take them out of {KNOWN}");
    }
    if count == 0 {
        bail!("not one seed was run");
    }
    // Few seeds do not draw everything.
    if count >= args.draws_all() && !never.is_empty() {
        bail!("never drawn in {count} seeds: {}", never.join("; "));
    }
    Ok(())
}

/// How many seeds one process runs: few, if there are few, so that no core waits long for another one in the end.
fn batch(seeds: u64, workers: u64) -> u64 {
    (seeds / (4 * workers.max(1))).clamp(1, BATCH)
}

/// Prints how often each thing was drawn, and in how many seeds; answers what never was.
fn table(program: &str, kind: &str, drawn: &BTreeMap<String, Counts>) -> Result<Vec<String>> {
    let listed = Command::new(program).args(["--drawn", kind]).output();
    let listed = listed.with_context(|| format!("cannot run {program}"))?;
    let names = String::from_utf8(listed.stdout).context("names are text")?;
    println!("{:>8} {:>6}  drawn", "times", "seeds");
    let mut never = Vec::new();
    for name in names.lines() {
        let counts = drawn.get(name).copied().unwrap_or_default();
        println!("{:>8} {:>6}  {name}", counts.times, counts.seeds);
        if counts.times == 0 {
            never.push(name.to_owned());
        }
    }
    Ok(never)
}

/// How often something was drawn.
#[derive(Clone, Copy, Default)]
struct Counts {
    times: u64,
    seeds: u64,
}

/// The seeds that are known to fail.
fn known() -> Result<BTreeSet<u64>> {
    let file = root().join(KNOWN);
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let seed = |line: &str| {
        let first = line.split_whitespace().next().unwrap_or_default();
        first.parse().with_context(|| format!("{KNOWN}: not a seed: {line}"))
    };
    lines.map(seed).collect()
}

struct Shared {
    /// How many seeds one process runs.
    batch: u64,
    seeds: Seeds,
    /// The place of the seed that is next.
    next: AtomicU64,
    until: Option<Instant>,
    stopped: AtomicBool,
    count: AtomicU64,
    /// By seed: what it printed of its problems.
    problems: Mutex<BTreeMap<u64, Vec<String>>>,
    /// By what was drawn.
    drawn: Mutex<BTreeMap<String, Counts>>,
}

impl Shared {
    /// Runs batch after batch until there is no more time or seed.
    fn work(&self, program: &str) -> Result<()> {
        loop {
            let first = self.next.fetch_add(self.batch, Ordering::SeqCst);
            let late = self.until.is_some_and(|until| Instant::now() >= until);
            if late || first >= self.seeds.count || self.stopped.load(Ordering::SeqCst) {
                return Ok(());
            }
            let done = self.run_batch(program, first, first.saturating_add(self.batch).min(self.seeds.count));
            if done.is_err() {
                self.stopped.store(true, Ordering::SeqCst);
            }
            done?;
        }
    }

    /// Runs the seeds at these places.
    fn run_batch(&self, program: &str, first: u64, end: u64) -> Result<()> {
        if self.seeds.step == 1 {
            return self.run_range(program, self.seeds.at(first), self.seeds.at(end));
        }
        (first..end).map(|place| self.seeds.at(place)).try_for_each(|seed| {
            let late = self.until.is_some_and(|until| Instant::now() >= until);
            if late { Ok(()) } else { self.run_range(program, seed, seed + 1) }
        })
    }

    /// Runs seeds in a process of their own, and goes on after one that ends it.
    fn run_range(&self, program: &str, mut first: u64, end: u64) -> Result<()> {
        while first < end {
            first = self.process(program, first, end)?;
        }
        Ok(())
    }

    /// Runs one process; answers the seed that is next. When the time is over, it is ended after the seed it is at.
    fn process(&self, program: &str, first: u64, end: u64) -> Result<u64> {
        let mut child = Command::new(program)
            .args([first.to_string(), (end - first).to_string()])
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        let output = child.stdout.take().context("it has an output")?;
        let mut next = first;
        for line in BufReader::new(output).lines() {
            let line = line?;
            let Some((seed, text)) = line.strip_prefix("seed ").and_then(|rest| rest.split_once(": ")) else {
                continue;
            };
            let seed: u64 = seed.parse().with_context(|| format!("not a seed: {line}"))?;
            if let Some(problem) = text.strip_prefix("PROBLEM: ") {
                self.found(seed, problem);
            } else if let Some((times, name)) =
                text.strip_prefix("DRAWN: ").and_then(|rest| rest.split_once(' '))
            {
                let times: u64 = times.parse().with_context(|| format!("not a number: {line}"))?;
                let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
                let counts = drawn.entry(name.to_owned()).or_default();
                *counts = Counts { times: counts.times + times, seeds: counts.seeds + 1 };
            } else if text.contains(" events") {
                // The last that is printed of a seed.
                next = seed + 1;
                let done = self.count.fetch_add(1, Ordering::SeqCst) + 1;
                if done.is_multiple_of(100) {
                    println!("{done} seeds");
                }
                if self.until.is_some_and(|until| Instant::now() >= until) {
                    child.kill()?;
                    child.wait()?;
                    return Ok(end);
                }
            }
        }
        let status = child.wait()?;
        if next < end {
            self.found(next, &format!("it ended the simulation: {status}"));
            self.count.fetch_add(1, Ordering::SeqCst);
            next += 1;
        }
        Ok(next)
    }

    fn found(&self, seed: u64, problem: &str) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        problems.entry(seed).or_default().push(problem.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(first: u64, seeds: u64, elastic: bool) -> FaultsArgs {
        FaultsArgs { seeds, first, elastic, minutes: None, release: false }
    }

    #[test]
    fn elastic_worlds_are_every_sixteenth_seed() {
        for (first, expected) in
            [(0, [7, 23, 39]), (7, [7, 23, 39]), (8, [23, 39, 55]), (1000, [1015, 1031, 1047])]
        {
            let seeds = args(first, 3, true).range().unwrap();
            assert_eq!([0, 1, 2].map(|place| seeds.at(place)), expected);
            let among: Vec<u64> = (0..2000).filter(|seed| seeds.contains(*seed)).collect();
            assert_eq!(among, expected);
        }
        let refused = args(999_990, 10, true).range().unwrap_err().to_string();
        assert!(refused.contains("below 1000000") && refused.contains("--first"), "{refused}");
    }

    #[test]
    fn without_a_filter_every_seed_is_run() {
        let seeds = args(5, 3, false).range().unwrap();
        let among: Vec<u64> = (0..20).filter(|seed| seeds.contains(*seed)).collect();
        assert_eq!(among, [5, 6, 7]);
        assert!(args(TENANCIES, 3, false).range().is_ok());
    }
}
