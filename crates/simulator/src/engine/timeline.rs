//! All that happens in a scenario, by time.

use crate::scenario::{Scenario, Task};
use std::time::Duration;

/// How often the agents in the members measure traffic.
const MEASURE_EVERY: Duration = Duration::from_secs(15);

/// Something that happens. Numbers are places in the lists of the scenario. Of what happens at the same time, the first here
/// comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    Fault(usize),
    Object(usize),
    Task(usize),
    Traffic(usize),
    Measure,
    Sample,
}

/// All that happens, by time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Timeline {
    pub(super) due: Vec<(Duration, Action)>,
}

impl Timeline {
    pub(super) fn of(scenario: &Scenario, tasks: &[Task]) -> Self {
        let end = scenario.duration.0;
        let every = |period: Duration, action: Action| {
            let times = std::iter::successors(Some(Duration::ZERO), move |last| Some(*last + period));
            times.take_while(move |at| *at <= end).map(move |at| (at, action))
        };
        let mut due: Vec<(Duration, Action)> = every(scenario.sample_every.0, Action::Sample).collect();
        due.extend(scenario.faults.iter().enumerate().map(|(index, each)| (each.at.0, Action::Fault(index))));
        due.extend(
            scenario.objects.iter().enumerate().map(|(index, each)| (each.at.0, Action::Object(index))),
        );
        due.extend(tasks.iter().enumerate().map(|(index, each)| (each.at, Action::Task(index))));
        for (index, traffic) in scenario.traffic.iter().enumerate() {
            due.extend(every(traffic.every.0, Action::Traffic(index)));
        }
        if scenario.traffic.iter().any(|traffic| !traffic.selector.is_empty()) {
            due.extend(every(MEASURE_EVERY, Action::Measure));
        }
        due.retain(|(at, _)| *at <= end);
        due.sort();
        Self { due }
    }
}
