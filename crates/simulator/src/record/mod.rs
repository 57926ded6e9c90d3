//! What is recorded of a simulation: time series, and figures that sum them up.

mod csv;
mod observer;
mod recorder;
mod state;
mod summary;
mod workload;

use serde::Serialize;

pub(crate) use observer::Observer;
pub(crate) use recorder::Recorder;
pub(crate) use state::TASK_LABEL;
pub(crate) use summary::WORKLOADS_SHOWN;

/// What became of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The name of the scenario.
    pub scenario: String,
    /// What it is called beside others: `paper-1`, the name of a variant, or `kubefed`.
    pub label: String,
    /// What it shows.
    pub title: String,
    /// The seed.
    pub seed: u64,
    /// The simulated seconds at which the state was recorded.
    pub seconds: Vec<f64>,
    /// The series, always in the same order. Each has a number for each of the seconds.
    pub series: Vec<Series>,
    /// What sums it up, always in the same order.
    pub summary: Vec<Figure>,
}

/// A number over time.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Series {
    /// What it is of, such as `cluster.cluster1.cpuRequested`.
    pub name: String,
    /// What it is counted in.
    pub unit: &'static str,
    /// A number for each of the seconds of the record.
    pub values: Vec<f64>,
}

/// One figure that sums up a simulation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figure {
    /// What it is, such as `peakPendingPercent`.
    pub name: String,
    /// The same for people.
    pub label: String,
    /// Its value, as text with its unit.
    pub value: String,
}

impl Record {
    /// The series of that name.
    #[must_use]
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|series| series.name == name)
    }

    /// The value of the figure of that name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&str> {
        self.summary.iter().find(|figure| figure.name == name).map(|figure| figure.value.as_str())
    }
}

impl Series {
    /// Its largest number, and which one it is.
    #[must_use]
    pub fn peak(&self) -> Option<(usize, f64)> {
        let larger = |best: Option<(usize, f64)>, next: (usize, &f64)| match best {
            Some((_, value)) if value >= *next.1 => best,
            _ => Some((next.0, *next.1)),
        };
        self.values.iter().enumerate().fold(None, larger)
    }
}
