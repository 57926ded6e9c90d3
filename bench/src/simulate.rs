//! How long the simulator takes for its scenarios, and whether they show what the documentation says.

use std::time::Instant;

use anyhow::{Context, Result};
use portolan_simulator::{Baseline, Options, Record, Scenario, load, shipped, simulate};

use crate::measure::Report;

/// The first experiment of the paper: 90 minutes. Nobody needs it at another size.
pub(crate) fn paper(_: usize) -> Result<Report> {
    Ok(play("paper-1", 10.0)?.0)
}

/// A day of twenty clusters with 5,000 pods.
pub(crate) fn day(_: usize) -> Result<Report> {
    let (report, most) = play("day", 300.0)?;
    Ok(report.figure("pods running at the most", most, "").at_most(
        "memory at the most",
        most_memory_mib()?,
        "MiB",
        2048.0,
    ))
}

/// The figures of the experiments of the paper, which the documentation has in a table.
pub(crate) fn figures(_: usize) -> Result<Report> {
    let started = Instant::now();
    let paper = |variant, baseline| Ok::<_, anyhow::Error>(run("paper-1", variant, baseline)?.1);
    let pending = percent(&paper(None, None)?, "peakPendingPercent")?;
    let headroom = percent(&paper(Some("headroom"), None)?, "peakPendingPercent")?;
    let kubefed = percent(&paper(None, Some(Baseline::KubeFed))?, "peakPendingPercent")?;
    let moves = run("paper-2", None, None)?.1;
    let rush = run("paper-3", None, None)?.1;
    let order = "cluster2, cluster1, cluster4, cluster3, cluster5, cloud";
    let report = Report::new(started.elapsed())?
        .at_most("paper-1: pending at the peak", pending, "%", 6.0)
        .at_most("the same with headroom", headroom, "%", 1.0)
        .between("the same placed by KubeFed", kubefed, "%", (60.0, 70.0))
        .fact(
            "paper-2: clusters of the backend",
            figure(&moves, "order.backend")?,
            "cluster2, cluster3, cluster4, cluster5, cluster1, cluster2",
            |told, expected| told == expected,
        )
        .fact("paper-2: replicas lost", figure(&moves, "dip.backend")?, "0", |told, none| told == none)
        .fact("paper-3: clusters of the backend", figure(&rush, "order.backend")?, order, |told, expected| {
            first_visits(told) == expected
        })
        .fact("paper-3: replicas lost", figure(&rush, "dip.backend")?, "0", |told, none| told == none)
        .fact("paper-3: the cloud cluster is removed", figure(&rush, "cloudRemoved")?, "at ", |told, at| {
            told.starts_with(at)
        })
        .fact(
            "paper-3: replicas at the end",
            figure(&rush, "atTheEnd.backend")?,
            "cluster2=2",
            |told, home| told == home,
        );
    Ok(report)
}

/// The value of a figure of a record.
fn figure<'a>(record: &'a Record, name: &str) -> Result<&'a str> {
    record.figure(name).with_context(|| format!("{} has no figure {name}", record.label))
}

/// The clusters in the order in which they came first: what comes again is on the way home.
fn first_visits(order: &str) -> String {
    let mut first: Vec<&str> = Vec::new();
    for cluster in order.split(", ") {
        if !first.contains(&cluster) {
            first.push(cluster);
        }
    }
    first.join(", ")
}

/// The number of a figure such as `3.9% at 61m30s`.
fn percent(record: &Record, name: &str) -> Result<f64> {
    let text = figure(record, name)?;
    let (number, _) = text.split_once('%').with_context(|| format!("{name} is {text:?}, not a share"))?;
    Ok(number.parse()?)
}

/// The most that this process has held in memory.
fn most_memory_mib() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").parse()?;
    Ok(kib / 1024.0)
}

/// Plays a shipped scenario; answers with the most pods that ran at a time, too.
fn play(name: &str, limit: f64) -> Result<(Report, f64)> {
    let started = Instant::now();
    let (scenario, record) = run(name, None, None)?;
    let took = started.elapsed();
    let running = |at: usize| {
        let series = record.series.iter().filter(|each| each.name.ends_with(".podsRunning"));
        series.filter_map(|each| each.values.get(at)).sum::<f64>()
    };
    let most = (0..record.seconds.len()).map(running).fold(0.0, f64::max);
    let minutes = scenario.duration.0.as_secs_f64() / 60.0;
    let report = Report::new(took)?.figure("simulated", minutes, "min").at_most(
        "played in",
        took.as_secs_f64(),
        "s",
        limit,
    );
    Ok((report, most))
}

/// Plays a shipped scenario, or a variant of it, or its tasks placed by something else.
fn run(name: &str, variant: Option<&str>, baseline: Option<Baseline>) -> Result<(Scenario, Record)> {
    let found = shipped().iter().find(|each| each.name == name).context("the scenario is shipped")?;
    let scenario = load(name, found.text, variant)?;
    let label = variant.unwrap_or(name).to_owned();
    let record = simulate(&scenario, &Options { baseline, label, ..Options::default() }, &mut |_, _| {})?;
    Ok((scenario, record))
}
