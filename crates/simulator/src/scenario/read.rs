//! From a file to a scenario that can be played.

use super::check;
use super::error::{Broken, ScenarioError};
use super::tasks::Task;
use super::{Scenario, trace};
use portolan_runtime::Seed;
use serde_json::Value;
use std::path::Path;

/// What the scenario is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// Static placement: each task goes to the cluster that it prefers, and waits there if there is no room.
    KubeFed,
}

/// A scenario out of its text, with the change that a variant makes.
///
/// # Errors
/// It is not YAML, or a field breaks a rule, or there is no such variant.
pub fn load(file: &str, text: &str, variant: Option<&str>) -> Result<Scenario, ScenarioError> {
    let broken = |broken: Broken| broken.of(file);
    let value: Value = serde_saphyr::from_str(text)
        .map_err(|error| broken(Broken::new("", format!("it is not YAML: {error}"))))?;
    let scenario = typed(&value).map_err(broken)?;
    check::check(&scenario).map_err(broken)?;
    let Some(name) = variant else { return Ok(scenario) };
    let changed = vary(value, &scenario, name).map_err(broken)?;
    let inside = |mut error: Broken| {
        error.message = format!("with variant {name}: {}", error.message);
        error.of(file)
    };
    let scenario = typed(&changed).map_err(inside)?;
    check::check(&scenario).map_err(inside)?;
    Ok(scenario)
}

/// The JSON Schema of a scenario file.
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(Scenario).to_value()
}

fn typed(value: &Value) -> Result<Scenario, Broken> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { String::new() } else { path };
        Broken::new(field, error.into_inner().to_string())
            .hint("`portolan simulate --schema` prints the schema of a scenario")
    })
}

fn vary(mut value: Value, scenario: &Scenario, name: &str) -> Result<Value, Broken> {
    let Some(variant) = scenario.variants.get(name) else {
        let known: Vec<&str> = scenario.variants.keys().map(String::as_str).collect();
        let hint = if known.is_empty() {
            "the scenario has none".to_owned()
        } else {
            format!("there are: {}", known.join(", "))
        };
        return Err(Broken::new("variants", format!("there is no variant {name}")).hint(hint));
    };
    let field = format!("variants.{name}.patch");
    let patch: json_patch::Patch = serde_json::from_value(variant.patch.clone())
        .map_err(|error| Broken::new(&field, format!("it is not a JSON Patch: {error}")))?;
    json_patch::patch(&mut value, &patch)
        .map_err(|error| Broken::new(&field, format!("it does not apply to the scenario: {error}")))?;
    Ok(value)
}

impl Scenario {
    /// The tasks, by time. A trace is looked for in `folder`.
    ///
    /// # Errors
    /// A trace cannot be read, or a row of it breaks a rule.
    pub fn read_tasks(&self, folder: &Path, seed: &Seed) -> Result<Vec<Task>, ScenarioError> {
        let Some(tasks) = &self.tasks else { return Ok(Vec::new()) };
        if let Some(generator) = &tasks.generator {
            return Ok(generator.tasks(tasks.service_from, &seed.child("tasks")));
        }
        let Some(trace) = &tasks.trace else { return Ok(Vec::new()) };
        let path = folder.join(&trace.file);
        let file = path.display().to_string();
        let text = std::fs::read_to_string(&path)
            .map_err(|error| Broken::new("", format!("cannot read the trace: {error}")).of(&file))?;
        let read = trace::read(&text, tasks.service_from).map_err(|broken| broken.of(&file))?;
        check::trace(self, &read).map_err(|broken| broken.of(&file))?;
        Ok(read)
    }
}
