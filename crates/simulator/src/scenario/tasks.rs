//! Many small workloads, each of one pod: drawn by a generator, or read from a trace.

use super::Quantity;
use portolan_api::duration::Duration;
use portolan_runtime::Seed;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time;

/// Many small workloads, each of one pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tasks {
    /// Tasks that are drawn. Either this or trace is given.
    #[serde(default)]
    pub generator: Option<Generator>,
    /// Tasks that are read.
    #[serde(default)]
    pub trace: Option<Trace>,
    /// A task that takes at least so long is a service (a MultiClusterDeployment), and a shorter one a job (a MultiClusterJob).
    #[serde(default = "one_hour")]
    pub service_from: Duration,
    /// Further fields of the spec of each task's workload, such as enableSubstitution.
    #[serde(default)]
    pub placement: Map<String, Value>,
}

const fn one_hour() -> Duration {
    Duration::from_secs(3600)
}

/// Tasks that are drawn from the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Generator {
    /// Over how long tasks arrive, from the beginning.
    pub during: Duration,
    /// When they arrive in that time.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// How long they run.
    pub duration: Distribution<Duration>,
    /// The CPUs that each requests.
    pub cpu: Distribution<Quantity>,
    /// The memory that each requests.
    pub memory: Distribution<Quantity>,
    /// How many tasks prefer which cluster: the numbers are exact, and their order is drawn.
    pub locations: Vec<Location>,
}

/// When tasks arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Arrivals {
    /// Independently of each other: a Poisson process, given the number of tasks.
    #[default]
    Random,
    /// At equal distances.
    Even,
}

/// The tasks that prefer a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Location {
    /// The cluster.
    pub cluster: String,
    /// How many tasks.
    pub tasks: u32,
}

/// How a number is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Distribution<T> {
    /// Always the same.
    Always(T),
    /// Points of the cumulative distribution, with straight lines between them.
    Quantiles(Vec<Quantile<T>>),
}

/// So many percent of the numbers are at most the value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quantile<T> {
    /// From 0 to 100.
    pub percent: f64,
    /// The value.
    pub value: T,
}

/// Tasks that are read from CSV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trace {
    /// The file, relative to that of the scenario.
    pub file: String,
}

/// One task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its name: its number among all, by time.
    pub name: String,
    /// When it is submitted.
    pub at: time::Duration,
    /// What it is.
    pub kind: TaskKind,
    /// Thousandths of a CPU that its pod requests.
    pub cpu_milli: i64,
    /// Bytes of memory that its pod requests.
    pub memory: i64,
    /// How long its pod runs.
    pub duration: time::Duration,
    /// The cluster that it prefers.
    pub location: String,
}

/// What a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// It ends by itself.
    Job,
    /// It runs until the end of the simulation.
    Service,
}

/// Something that distributions are about.
pub trait Drawn {
    /// It as a number: seconds, or thousandths.
    fn number(&self) -> f64;
}

impl Drawn for Duration {
    fn number(&self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl Drawn for Quantity {
    fn number(&self) -> f64 {
        self.milli as f64
    }
}

impl<T: Drawn> Distribution<T> {
    /// Draws a number: seconds, or thousandths.
    fn draw(&self, random: &mut impl Rng) -> f64 {
        let share = share(random) * 100.0;
        match self {
            Self::Always(value) => value.number(),
            Self::Quantiles(points) => {
                let after = points.iter().position(|point| point.percent > share).unwrap_or(points.len());
                let at = |index: usize| points.get(index);
                match (after.checked_sub(1).and_then(at), at(after)) {
                    (Some(low), Some(high)) => {
                        let (from, to) = (low.value.number(), high.value.number());
                        from + (share - low.percent) / (high.percent - low.percent) * (to - from)
                    }
                    (Some(only), None) | (None, Some(only)) => only.value.number(),
                    (None, None) => 0.0,
                }
            }
        }
    }
}

/// A number from 0 to 1, without 1.
fn share(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

const MEBIBYTE: i64 = 1 << 20;

impl Generator {
    /// The tasks, by time.
    pub(crate) fn tasks(&self, service_from: Duration, seed: &Seed) -> Vec<Task> {
        let mut places: Vec<&str> = self
            .locations
            .iter()
            .flat_map(|location| std::iter::repeat_n(location.cluster.as_str(), location.tasks as usize))
            .collect();
        shuffle(&mut places, &seed.child("locations"));
        let count = places.len();
        let mut arrivals = seed.child("arrivals").rng();
        let mut times: Vec<f64> = (0..count)
            .map(|number| match self.arrivals {
                Arrivals::Random => share(&mut arrivals),
                Arrivals::Even => number as f64 / count as f64,
            })
            .map(|share| share * self.during.0.as_secs_f64())
            .collect();
        times.sort_by(f64::total_cmp);
        let stream = |name: &str| seed.child(name).rng();
        let (mut lasting, mut cpu, mut memory) = (stream("duration"), stream("cpu"), stream("memory"));
        times
            .into_iter()
            .zip(places)
            .enumerate()
            .map(|(index, (at, location))| {
                let duration = time::Duration::from_secs(self.duration.draw(&mut lasting).max(1.0) as u64);
                let mebibytes = self.memory.draw(&mut memory) as i64 / 1000 / MEBIBYTE;
                Task {
                    name: task_name(index),
                    at: time::Duration::from_millis((at * 1000.0) as u64),
                    kind: kind(duration, service_from),
                    cpu_milli: (self.cpu.draw(&mut cpu) as i64).max(1),
                    memory: mebibytes.max(1) * MEBIBYTE,
                    duration,
                    location: location.to_owned(),
                }
            })
            .collect()
    }
}

/// The name of the task of this number, so that names sort as numbers.
pub(super) fn task_name(index: usize) -> String {
    format!("task-{:05}", index + 1)
}

/// What a task of that length is.
pub(super) fn kind(duration: time::Duration, service_from: Duration) -> TaskKind {
    if duration >= service_from.0 { TaskKind::Service } else { TaskKind::Job }
}

/// Puts items into a drawn order.
fn shuffle<T>(items: &mut [T], seed: &Seed) {
    let mut random = seed.rng();
    for index in (1..items.len()).rev() {
        let other = (share(&mut random) * (index + 1) as f64) as usize;
        items.swap(index, other.min(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn generator() -> Generator {
        let quantiles = |points: &[(f64, &str)]| {
            let points: Vec<_> =
                points.iter().map(|(percent, value)| json!({"percent": percent, "value": value})).collect();
            json!({ "quantiles": points })
        };
        serde_json::from_value(json!({
            "during": "60m",
            "duration": quantiles(&[(0.0, "1m"), (50.0, "10m"), (100.0, "110m")]),
            "cpu": quantiles(&[(0.0, "10m"), (100.0, "110m")]),
            "memory": {"always": "100Mi"},
            "locations": [{"cluster": "a", "tasks": 125}, {"cluster": "b", "tasks": 362}],
        }))
        .unwrap()
    }

    #[test]
    fn the_split_is_exact_and_the_rest_follows_its_distribution() {
        let tasks = generator().tasks(Duration::from_secs(3600), &Seed::new(1));
        let mut split = BTreeMap::new();
        tasks.iter().for_each(|task| *split.entry(task.location.as_str()).or_insert(0) += 1);
        assert_eq!(split, BTreeMap::from([("a", 125), ("b", 362)]));
        assert!(tasks.windows(2).all(|pair| pair[0].at <= pair[1].at && pair[0].name < pair[1].name));
        assert!(tasks.iter().all(|task| task.at < time::Duration::from_secs(3600)));
        assert!(
            tasks.iter().all(|task| (10..110).contains(&task.cpu_milli) && task.memory == 100 * MEBIBYTE)
        );
        let short = tasks.iter().filter(|task| task.duration <= time::Duration::from_secs(600)).count();
        assert!((190..300).contains(&short), "about half of {}: {short}", tasks.len());
        let services = tasks.iter().filter(|task| task.kind == TaskKind::Service).count();
        assert!((90..150).contains(&services), "a quarter lasts an hour or longer: {services}");
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_one_does_not() {
        let draw = |seed| generator().tasks(Duration::from_secs(3600), &Seed::new(seed));
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }
}
