//! Plays a scenario: builds its world, runs the controllers of production on it, and lets time pass.

mod access;
mod agent;
mod beginning;
mod cloud;
mod error;
mod manifests;
mod stage;
mod timeline;

use crate::record::{Observer, Record, Recorder};
use crate::scenario::{Baseline, Event, Scenario, Task};
pub(crate) use agent::Agent;
use portolan_runtime::Seed;
use portolan_sandbox::{CloudFailure, Cluster};
use serde_json::Value;
pub(crate) use stage::Stage;
use std::path::PathBuf;
use std::time::Duration;
use timeline::{Action, Timeline};
use tokio::time::Instant;

pub use error::SimulationError;

/// How a scenario is played.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// In place of the seed of the scenario.
    pub seed: Option<u64>,
    /// Play the baseline in place of Portolan.
    pub baseline: Option<Baseline>,
    /// Where the files are that the scenario names.
    pub folder: PathBuf,
    /// What the record is called: the scenario, or one of its variants.
    pub label: String,
}

/// Plays a scenario from beginning to end. The callback is told how much of the simulated time has passed, and of how much.
///
/// # Errors
/// A trace cannot be read, or a cluster refuses an object of the scenario.
pub fn simulate(
    scenario: &Scenario,
    options: &Options,
    progress: &mut dyn FnMut(Duration, Duration),
) -> Result<Record, SimulationError> {
    if options.baseline.is_some() && scenario.tasks.is_none() {
        return Err(SimulationError::NothingToCompare(scenario.name.clone()));
    }
    let number = options.seed.unwrap_or(scenario.seed);
    let tasks = scenario.read_tasks(&options.folder, &Seed::new(number))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        let play = Play::new(scenario, options, number, tasks).await?;
        play.run(progress).await
    })
}

/// A scenario that is being played.
struct Play<'a> {
    scenario: &'a Scenario,
    baseline: Option<Baseline>,
    stage: Stage,
    agent: Agent<'a>,
    recorder: Recorder,
    timeline: Timeline,
    tasks: Vec<Task>,
}

impl<'a> Play<'a> {
    async fn new(
        scenario: &'a Scenario,
        options: &Options,
        seed: u64,
        tasks: Vec<Task>,
    ) -> Result<Self, SimulationError> {
        let observer = Observer::default();
        let stage = Stage::build(scenario, seed, options.baseline, &observer).await?;
        let timeline = Timeline::of(scenario, &tasks);
        let recorder = Recorder::new(scenario, &options.label, seed, observer);
        let agent = Agent::new(scenario, Seed::new(seed).child("traffic"));
        Ok(Self { scenario, baseline: options.baseline, stage, agent, recorder, timeline, tasks })
    }

    async fn run(mut self, progress: &mut dyn FnMut(Duration, Duration)) -> Result<Record, SimulationError> {
        let total = self.scenario.duration.0;
        let start = Instant::now();
        self.recorder.begin(self.stage.world.clock().now());
        for (at, action) in std::mem::take(&mut self.timeline.due) {
            tokio::time::sleep_until(start + at).await;
            self.act(at, &action).await?;
            if action == Action::Sample {
                progress(at, total);
            }
        }
        Ok(self.recorder.end(&self.stage))
    }

    async fn act(&mut self, at: Duration, action: &Action) -> Result<(), SimulationError> {
        match action {
            Action::Sample => self.recorder.sample(at, &self.stage, &self.agent),
            Action::Object(index) => self.object(*index).await?,
            Action::Task(index) => self.submit(*index).await?,
            Action::Traffic(index) => self.agent.send(*index, at, &self.stage.world),
            Action::Measure => self.agent.measure(&self.stage, &self.recorder.observer().clusters()).await?,
            Action::Fault(index) => self.fault(*index),
        }
        Ok(())
    }

    /// A user applies or deletes an object. The baseline has no objects but those of its tasks.
    async fn object(&mut self, index: usize) -> Result<(), SimulationError> {
        let Some(step) = self.scenario.objects.get(index).filter(|_| self.baseline.is_none()) else {
            return Ok(());
        };
        if !step.placed.is_empty() {
            return Ok(());
        }
        let clients = self.stage.users(&step.to)?;
        for client in &clients {
            if let Some(manifest) = &step.manifest {
                access::apply(client, &manifests::with_namespace(manifest, &self.scenario.namespace)).await?;
            }
            if let Some(gone) = &step.delete {
                access::delete(client, gone, &self.scenario.namespace).await?;
            }
        }
        Ok(())
    }

    /// A task goes to the hub, or, in the baseline, right to the cluster that it prefers.
    async fn submit(&mut self, index: usize) -> Result<(), SimulationError> {
        let Some(task) = self.tasks.get(index) else { return Ok(()) };
        let manifest: Value = match self.baseline {
            Some(Baseline::KubeFed) => manifests::baseline(task, &self.scenario.namespace),
            None => manifests::task(task, self.scenario),
        };
        let to = match self.baseline {
            Some(Baseline::KubeFed) => vec![task.location.clone()],
            None => Vec::new(),
        };
        self.recorder.submitted(&task.name);
        for client in self.stage.users(&to)? {
            access::apply(&client, &manifest).await?;
        }
        Ok(())
    }

    fn fault(&mut self, index: usize) {
        let Some(fault) = self.scenario.faults.get(index) else { return };
        let stage = &self.stage;
        let member = |cluster: &str| stage.world.cluster(cluster);
        let each_node = |cluster: &str, act: fn(&Cluster, &str)| {
            let nodes = self.scenario.nodes_of(cluster);
            member(cluster).iter().for_each(|member| nodes.iter().for_each(|node| act(member, node)));
        };
        let named = |cloud: Option<&String>| {
            let cloud = cloud.cloned();
            let is_meant = move |name: &String| cloud.as_ref().is_none_or(|cloud| cloud == name);
            stage.clouds.iter().filter(move |(name, _)| is_meant(name)).map(|(_, api)| api)
        };
        match &fault.event {
            Event::CutOff { cluster } => stage.world.partition(stage::CONTROLLER, cluster),
            Event::Heal { cluster } => stage.world.heal(stage::CONTROLLER, cluster),
            Event::LoseCluster { cluster } => {
                stage.world.partition(stage::CONTROLLER, cluster);
                each_node(cluster, Cluster::fail_node);
            }
            Event::RestoreCluster { cluster } => {
                stage.world.heal(stage::CONTROLLER, cluster);
                each_node(cluster, Cluster::restore_node);
            }
            Event::LoseNode { cluster, node } => {
                if let Some((member, node)) = member(cluster).zip(self.scenario.node_name(cluster, node)) {
                    member.fail_node(&node);
                }
            }
            Event::RestoreNode { cluster, node } => {
                if let Some((member, node)) = member(cluster).zip(self.scenario.node_name(cluster, node)) {
                    member.restore_node(&node);
                }
            }
            Event::RefuseClusters(refusal) => {
                let failure = CloudFailure::new(&refusal.reason, &refusal.message);
                for cloud in named(refusal.cloud.as_ref()) {
                    cloud.refuse_clusters(Some(failure.clone()));
                }
            }
            Event::RefuseMachines { cloud, machine_type, reason, message } => {
                let failure = CloudFailure::new(reason, message);
                for cloud in named(cloud.as_ref()) {
                    cloud.refuse_machines(machine_type, Some(failure.clone()));
                }
            }
            Event::CloudRecovers => {
                for (cloud, api) in
                    self.scenario.all_clouds().filter_map(|each| Some((each, stage.clouds.get(&each.name)?)))
                {
                    api.refuse_clusters(None);
                    cloud.machine_types.iter().for_each(|each| api.refuse_machines(&each.name, None));
                }
            }
        }
    }
}
