//! How long the parts of a lab took to come up, and the memory they hold.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use crate::cluster::Cluster;
use crate::component::Component;
use crate::process;

/// Times measured while a lab comes up.
#[derive(Debug, Default)]
pub(crate) struct Timings(Mutex<BTreeMap<(String, String), Duration>>);

/// One part of a lab.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The node or cluster it belongs to.
    pub place: String,
    /// What it is.
    pub part: String,
    /// From its start until it was up, if that was measured.
    pub ready_after: Option<Duration>,
    /// Resident memory in bytes, if it is a process or several.
    pub memory: Option<u64>,
}

impl Timings {
    pub(crate) fn add(&self, place: &str, part: &str, took: Duration) {
        let mut timings = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        timings.insert((place.to_owned(), part.to_owned()), took);
    }

    fn get(&self, place: &str, part: &str) -> Option<Duration> {
        let timings = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        timings.get(&(place.to_owned(), part.to_owned())).copied()
    }
}

/// The parts of these clusters, in the order in which they come up.
pub(crate) fn rows(clusters: &[Cluster], timings: &Timings) -> Vec<Row> {
    let mut rows = Vec::new();
    for cluster in clusters {
        for node in cluster.nodes() {
            let row = |part: &str, memory| Row {
                place: node.name().to_owned(),
                part: part.to_owned(),
                ready_after: timings.get(node.name(), part),
                memory,
            };
            rows.push(row("namespaces", None));
            let mut known = Vec::new();
            for component in Component::ALL {
                if let Some(pid) = node.pid_of(component) {
                    known.push(pid);
                    rows.push(row(component.name(), process::resident_bytes(pid)));
                }
                if component == Component::Containerd {
                    rows.push(row("images", None));
                }
            }
            let all = node.init_pid().map(process::descendants).unwrap_or_default();
            let rest =
                all.into_iter().filter(|pid| !known.contains(pid)).filter_map(process::resident_bytes).sum();
            rows.push(row("pods and shims", Some(rest)));
        }
        for part in ["CoreDNS", "simulated nodes", "cluster"] {
            let memory = rows
                .iter()
                .filter(|row| {
                    part == "cluster" && cluster.nodes().iter().any(|node| node.name() == row.place)
                })
                .filter_map(|row| row.memory)
                .reduce(|a, b| a + b);
            if let Some(took) = timings.get(cluster.name(), part) {
                let (place, part) = (cluster.name().to_owned(), part.to_owned());
                rows.push(Row { place, part, ready_after: Some(took), memory });
            }
        }
    }
    rows
}
