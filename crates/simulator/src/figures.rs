//! Figures of a record: what the paper draws, for any scenario.

use crate::record::{Record, Series, WORKLOADS_SHOWN};
use portolan_plots::{Axis, Hue, Mark, Panel, Plot, Series as Curve};

/// A figure, and the name of its file.
pub struct NamedPlot {
    /// The name of the file, without its ending.
    pub name: String,
    /// The figure.
    pub plot: Plot,
}

/// The figures of one record. Those that would show nothing are left out.
#[must_use]
pub fn figures(record: &Record) -> Vec<NamedPlot> {
    let mut figures = vec![allocation(record), requested(record), capacity(record)];
    figures.extend(workloads(record).iter().map(|name| replicas(record, name)));
    figures.extend(record.series("cloud.cost").map(|series| cost(&[(record, series)])));
    figures.extend(deployment_times(&[record]));
    named(figures, &record.label, &format!("{}, seed {}", record.label, record.seed))
}

/// The figures of two records beside each other.
#[must_use]
pub fn comparison(one: &Record, other: &Record) -> Vec<NamedPlot> {
    let mut figures = Vec::new();
    let both = |name: &str| Some([(one, one.series(name)?), (other, other.series(name)?)]);
    for (name, file, title, axis) in [
        ("fleet.pendingPercent", "pending", "Pods without a node", "% of the pods submitted"),
        ("fleet.cpuAllocatedPercent", "allocated", "CPU that pods request", "% of the CPU there is"),
    ] {
        figures.extend(both(name).map(|both| beside(file, title, axis, &both)));
    }
    for name in workloads(one) {
        let (series, file) = (format!("workload.{name}.ready"), format!("ready-{name}"));
        let title = format!("Ready replicas of {name}");
        figures.extend(both(&series).map(|both| beside(&file, &title, "replicas", &both)));
    }
    figures.extend(both("cloud.cost").map(|both| cost(&both)));
    figures.extend(deployment_times(&[one, other]));
    let file = format!("{}-beside-{}", one.label, other.label);
    named(figures, &file, &format!("{} beside {}, seed {}", one.label, other.label, one.seed))
}

/// A figure that does not say yet whose it is.
struct Figure {
    file: String,
    plot: Plot,
}

fn named(figures: Vec<Figure>, of: &str, subtitle: &str) -> Vec<NamedPlot> {
    let name = |figure: Figure| NamedPlot {
        name: format!("{of}-{}", figure.file),
        plot: figure.plot.subtitle(subtitle),
    };
    figures.into_iter().map(name).collect()
}

/// The clusters in the order of the record. Each has the same colour in all figures.
fn clusters(record: &Record) -> Vec<String> {
    let names = record.series.iter().filter_map(|series| series.name.strip_prefix("cluster."));
    names.filter_map(|name| name.strip_suffix(".cpuRequested")).map(str::to_owned).collect()
}

/// The workloads, unless they are so many that nobody would look at a figure of each.
fn workloads(record: &Record) -> Vec<String> {
    let names = record.series.iter().filter_map(|series| series.name.strip_prefix("workload."));
    let names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".desired")).map(str::to_owned).collect();
    if names.len() > WORKLOADS_SHOWN { Vec::new() } else { names }
}

fn minutes() -> Axis {
    Axis::minutes("minutes")
}

fn points(record: &Record, values: &[f64]) -> Vec<(f64, f64)> {
    record.seconds.iter().zip(values).map(|(seconds, value)| (seconds / 60.0, *value)).collect()
}

fn curve(record: &Record, name: &str, mark: Mark, series: &Series) -> Curve {
    Curve::new(name, mark, points(record, &series.values))
}

/// One curve for each cluster, of the series `cluster.NAME.WHAT`.
fn by_cluster(record: &Record, mark: Mark, what: &str) -> Vec<Curve> {
    let curves = clusters(record).into_iter().enumerate().filter_map(|(index, name)| {
        let series = record.series(&format!("cluster.{name}.{what}"))?;
        Some(curve(record, &name, mark, series).colour(Hue::Nth(index)))
    });
    curves.collect()
}

fn panel(y: &str, curves: impl IntoIterator<Item = Curve>) -> Panel {
    curves.into_iter().fold(Panel::new(minutes(), Axis::number(y)), Panel::series)
}

/// The share of the CPU that is requested in each cluster and in all, and the share of pods without a node: as figures 1, 2 and
/// 7 of the paper.
fn allocation(record: &Record) -> Figure {
    let share = |requested: &Series, capacity: &Series| -> Vec<f64> {
        let both = requested.values.iter().zip(&capacity.values);
        both.map(|(part, whole)| if *whole > 0.0 { part * 100.0 / whole } else { f64::NAN }).collect()
    };
    let each = clusters(record).into_iter().enumerate().filter_map(|(index, name)| {
        let requested = record.series(&format!("cluster.{name}.cpuRequested"))?;
        let capacity = record.series(&format!("cluster.{name}.cpuCapacity"))?;
        let points = points(record, &share(requested, capacity));
        Some(Curve::new(name, Mark::Line, points).colour(Hue::Nth(index)))
    });
    let all = record.series("fleet.cpuAllocatedPercent");
    let all = all.map(|series| curve(record, "all clusters", Mark::Dashed, series).colour(Hue::Neutral));
    let pending = record.series("fleet.pendingPercent");
    let pending = pending.map(|series| curve(record, "pending", Mark::Step, series).colour(Hue::Neutral));
    let plot = Plot::new("CPU allocation, and pods without a node")
        .panel(panel("% of the CPU there is", each.chain(all)).title("CPU that pods request"))
        .panel(panel("% of the pods submitted", pending).title("Pods without a node"));
    Figure { file: "allocation".to_owned(), plot }
}

/// The CPU that pods request in each cluster, and the CPU that the cloud has: as figure 6 of the paper.
fn requested(record: &Record) -> Figure {
    let areas = by_cluster(record, Mark::StackedArea, "cpuRequested");
    let cloud = record.series("cloud.cpuCapacity");
    let cloud =
        cloud.map(|series| curve(record, "CPU of cloud nodes", Mark::Dashed, series).colour(Hue::Neutral));
    let plot = Plot::new("CPU that pods request, by cluster")
        .panel(panel("CPU cores", areas.into_iter().chain(cloud)));
    Figure { file: "requested".to_owned(), plot }
}

/// The CPU that each cluster has: as figure 10 of the paper.
fn capacity(record: &Record) -> Figure {
    let plot = Plot::new("CPU of all nodes, by cluster")
        .panel(panel("CPU cores", by_cluster(record, Mark::StackedSteps, "cpuCapacity")));
    Figure { file: "capacity".to_owned(), plot }
}

/// The ready replicas of a workload in each cluster, and the traffic: as figures 8 and 9 of the paper.
fn replicas(record: &Record, name: &str) -> Figure {
    let ready = clusters(record).into_iter().enumerate().filter_map(|(index, cluster)| {
        let series = record.series(&format!("workload.{name}.ready.{cluster}"))?;
        Some(curve(record, &cluster, Mark::StackedSteps, series).colour(Hue::Nth(index)))
    });
    let desired = record.series(&format!("workload.{name}.desired"));
    let desired = desired.map(|series| curve(record, "asked for", Mark::Dashed, series).colour(Hue::Neutral));
    let mut plot = Plot::new(format!("Replicas of {name}, by cluster"))
        .panel(panel("ready replicas", ready.chain(desired)));
    let sources: Vec<Curve> = record
        .series
        .iter()
        .filter_map(|series| Some(curve(record, series.name.strip_prefix("traffic.")?, Mark::Dashed, series)))
        .collect();
    if !sources.is_empty() {
        plot = plot.panel(panel("requests per second", sources).title("Traffic"));
    }
    Figure { file: format!("replicas-{name}"), plot }
}

/// What the cloud has cost.
fn cost(records: &[(&Record, &Series)]) -> Figure {
    let curves = records.iter().map(|(record, series)| curve(record, &record.label, Mark::Line, series));
    let plot = Plot::new("Cost of the cloud so far").panel(panel("money", curves));
    Figure { file: "cost".to_owned(), plot }
}

/// One curve for each record.
fn beside(file: &str, title: &str, axis: &str, records: &[(&Record, &Series)]) -> Figure {
    let curves = records.iter().map(|(record, series)| curve(record, &record.label, Mark::Line, series));
    Figure { file: file.to_owned(), plot: Plot::new(title).panel(panel(axis, curves)) }
}

/// How long each workload took until all its replicas were ready, if there are several: the paper's table IV.
fn deployment_times(records: &[&Record]) -> Option<Figure> {
    let times = |record: &Record| -> Vec<(String, f64)> {
        let told = record.summary.iter().filter_map(|figure| {
            let name = figure.name.strip_prefix("deploymentTime.")?;
            Some((name.to_owned(), figure.value.strip_suffix(" s")?.parse().ok()?))
        });
        told.collect()
    };
    let names: Vec<String> = times(records.first()?).into_iter().map(|(name, _)| name).collect();
    if names.len() < 3 {
        return None;
    }
    let bars = records.iter().map(|record| {
        let points = times(record).into_iter().filter_map(|(name, seconds)| {
            Some((names.iter().position(|each| *each == name)? as f64, seconds))
        });
        Curve::new(record.label.clone(), Mark::Bars, points.collect())
    });
    let panel = bars.fold(
        Panel::new(Axis::categories("workload", names.clone()), Axis::number("seconds")),
        Panel::series,
    );
    Some(Figure {
        file: "deployment-times".to_owned(),
        plot: Plot::new("Until all replicas were ready").panel(panel),
    })
}
