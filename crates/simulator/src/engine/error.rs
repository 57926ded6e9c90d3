//! Why a scenario was not played to its end.

use crate::scenario::ScenarioError;

/// Why a scenario was not played to its end.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// The scenario or its trace is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A baseline needs tasks.
    #[error("scenario {0} has no tasks, and a baseline places tasks only")]
    NothingToCompare(String),
    /// A cluster refuses an object.
    #[error("{object} is refused: {reason}")]
    Refused {
        /// Kind, namespace and name.
        object: String,
        /// What the cluster says.
        reason: String,
    },
    /// The fleet could not be set up.
    #[error("cluster {cluster} cannot be set up: {reason}")]
    SetUp {
        /// The cluster.
        cluster: String,
        /// What went wrong.
        reason: String,
    },
    /// The machine has no room for a runtime.
    #[error("the simulation cannot be started: {0}")]
    Runtime(#[from] std::io::Error),
}
