//! How long the simulator takes for its scenarios.

use std::time::Instant;

use anyhow::{Context, Result};
use portolan_simulator::{Options, load, shipped, simulate};

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

/// The most that this process has held in memory.
fn most_memory_mib() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: f64 = line.and_then(|line| line.split_whitespace().next()).unwrap_or("0").parse()?;
    Ok(kib / 1024.0)
}

/// Plays a shipped scenario; answers with the most pods that ran at a time, too.
fn play(name: &str, limit: f64) -> Result<(Report, f64)> {
    let found = shipped().iter().find(|each| each.name == name).context("the scenario is shipped")?;
    let scenario = load(name, found.text, None)?;
    let options = Options { label: name.to_owned(), ..Options::default() };
    let started = Instant::now();
    let record = simulate(&scenario, &options, &mut |_, _| {})?;
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
