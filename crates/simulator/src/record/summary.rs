//! What sums up a simulation.

use super::state::{Key, State};
use super::{Figure, Record, Series};

/// More workloads than this are summed up together; their series are in the record, each by itself.
pub(crate) const WORKLOADS_SHOWN: usize = 6;

/// A workload, and the name by which it is recorded.
#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub(super) key: Key,
    pub(super) name: String,
}

/// The figures of a record.
pub(super) fn of(
    record: &Record,
    state: &State,
    workloads: &[Recorded],
    clouds: &[String],
    shown: &dyn Fn(&str) -> String,
) -> Vec<Figure> {
    let mut figures = Vec::new();
    let mut put = |name: String, label: String, value: String| figures.push(Figure { name, label, value });
    if let Some((index, value)) = record.series("fleet.pendingPercent").and_then(Series::peak) {
        let at = record.seconds.get(index).copied().unwrap_or_default();
        let when = if value > 0.0 { format!(" at {}", time(at)) } else { String::new() };
        put("peakPendingPercent".into(), "Pods pending at the peak".into(), format!("{value:.1}%{when}"));
    }
    if let Some((index, value)) = record.series("fleet.cpuAllocatedPercent").and_then(Series::peak) {
        let at = record.seconds.get(index).copied().unwrap_or_default();
        put(
            "peakAllocatedPercent".into(),
            "CPU allocated at the peak".into(),
            format!("{value:.1}% at {}", time(at)),
        );
    }
    if let Some(submitted) = record.series("fleet.podsSubmitted").and_then(Series::peak) {
        put("podsSubmitted".into(), "Pods submitted".into(), format!("{}", submitted.1));
    }
    match clouds {
        [] => {}
        [cloud] => in_the_cloud(record, (cloud, "", ""), &mut put),
        several => several.iter().for_each(|cloud| {
            in_the_cloud(record, (cloud, &format!(".{cloud}"), &format!(" of {cloud}")), &mut put);
        }),
    }
    if !clouds.is_empty() {
        let cost = record.series("cloud.cost").and_then(|series| series.values.last());
        let cost = cost.copied().unwrap_or_default();
        let label = if clouds.len() == 1 { "Cost of the cloud" } else { "Cost of all clouds" };
        put("cost".into(), label.into(), format!("{cost:.4}"));
    }
    if workloads.len() > WORKLOADS_SHOWN {
        together(state, workloads, &mut put);
        return figures;
    }
    for Recorded { key, name } in workloads {
        let Some(workload) = state.workloads.get(key) else { continue };
        // A move between two clusters that have one name here is none.
        let mut order: Vec<String> = workload.order.iter().map(|(cluster, _)| shown(cluster)).collect();
        order.dedup();
        put(format!("order.{name}"), format!("Clusters of {name}, in their order"), order.join(", "));
        let peak = record.series(&format!("workload.{name}.ready")).and_then(Series::peak);
        put(
            format!("peakReady.{name}"),
            format!("Most ready replicas of {name}"),
            peak.map_or_else(String::new, |(_, value)| format!("{value}")),
        );
        let dip = match workload.dip {
            Some((missing, at)) => format!("{missing} at {}", time(at)),
            None => "0".to_owned(),
        };
        put(format!("dip.{name}"), format!("Ready replicas of {name} lost without being asked for"), dip);
        let took =
            workload.complete_at.zip(workload.asked_at).map(|(to, from)| format!("{:.3} s", to - from));
        put(
            format!("deploymentTime.{name}"),
            format!("Until all replicas of {name} were ready"),
            took.unwrap_or_else(|| "never".to_owned()),
        );
        put(
            format!("atTheEnd.{name}"),
            format!("Ready replicas of {name} at the end"),
            at_the_end(record, name),
        );
    }
    figures
}

/// The ready replicas of a workload in each cluster that has some, in the order of the record.
fn at_the_end(record: &Record, name: &str) -> String {
    let prefix = format!("workload.{name}.ready.");
    let last = record.series.iter().filter_map(|series| {
        let (cluster, ready) = (series.name.strip_prefix(&prefix)?, series.values.last()?);
        (*ready > 0.0).then(|| format!("{cluster}={ready}"))
    });
    let last: Vec<String> = last.collect();
    if last.is_empty() { "0".to_owned() } else { last.join(", ") }
}

/// Many workloads in a few figures.
fn together(state: &State, workloads: &[Recorded], put: &mut dyn FnMut(String, String, String)) {
    let known =
        || workloads.iter().filter_map(|each| Some((each.name.as_str(), state.workloads.get(&each.key)?)));
    put("workloads".into(), "Workloads".into(), workloads.len().to_string());
    let most = known().map(|(_, workload)| workload.desired).sum::<i64>();
    put("replicasAtTheEnd".into(), "Replicas that are asked for at the end".into(), most.to_string());
    let dips = known().filter_map(|(name, workload)| Some((workload.dip?, name)));
    let worst = dips.max_by(|(one, _), (other, _)| one.0.cmp(&other.0));
    put(
        "dip".into(),
        "Most ready replicas of a workload lost without being asked for".into(),
        worst.map_or_else(
            || "0".to_owned(),
            |((missing, at), name)| format!("{missing} of {name} at {}", time(at)),
        ),
    );
    let times = known().map(|(name, workload)| {
        (workload.complete_at.zip(workload.asked_at).map(|(to, from)| to - from), name)
    });
    let (mut slowest, mut never) = (None::<(f64, &str)>, 0);
    for (took, name) in times {
        match took {
            None => never += 1,
            Some(took) if slowest.is_none_or(|(most, _)| took > most) => slowest = Some((took, name)),
            Some(_) => {}
        }
    }
    put(
        "slowestDeployment".into(),
        "Longest until all replicas of a workload were ready".into(),
        slowest.map_or_else(String::new, |(took, name)| format!("{took:.3} s ({name})")),
    );
    put("neverComplete".into(), "Workloads that were never complete".into(), never.to_string());
}

/// The figures of one cloud. With several, their names and labels say of which one they are.
fn in_the_cloud(
    record: &Record,
    (cloud, name, of): (&str, &str, &str),
    put: &mut dyn FnMut(String, String, String),
) {
    let Some(nodes) = record.series(&format!("cluster.{cloud}.nodes")) else { return };
    let at = |index: usize| record.seconds.get(index).copied().map_or_else(String::new, time);
    let first = nodes.values.iter().position(|value| *value > 0.0);
    put(
        format!("firstCloudNode{name}"),
        format!("First cloud node{of}"),
        first.map_or_else(|| "none".to_owned(), |index| format!("at {}", at(index))),
    );
    if let Some((index, most)) = nodes.peak().filter(|(_, most)| *most > 0.0) {
        put(
            format!("peakCloudNodes{name}"),
            format!("Most cloud nodes{of}"),
            format!("{most} at {}", at(index)),
        );
    }
    let last = nodes.values.iter().rposition(|value| *value > 0.0);
    if let Some(last) = last {
        let gone = if last + 1 == nodes.values.len() {
            "not within the simulation".to_owned()
        } else {
            format!("at {}", at(last + 1))
        };
        put(format!("cloudRemoved{name}"), format!("Cloud cluster{of} removed"), gone);
    }
    let cost = record.series(&format!("cloud.{cloud}.cost")).and_then(|series| series.values.last());
    if let Some(cost) = cost {
        put(format!("cost{name}"), format!("Cost{of}"), format!("{cost:.4}"));
    }
}

/// Seconds as minutes and seconds.
fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    format!("{}m{:02}s", whole / 60, whole % 60)
}
