//! Parts that only some labs use: they are made when a lab asks for them first.

use std::path::PathBuf;

use super::cache::Cache;
use super::definitions::Definitions;
use super::go_module::GoModule;
use super::{PartsError, Step, go_toolchain, modules};

/// Cluster API: its core controllers, without any provider.
#[derive(Debug, Clone)]
pub struct ClusterApiParts {
    /// The program with all core controllers.
    pub program: PathBuf,
    /// A file with the definitions of its kinds, as one List.
    pub definitions: PathBuf,
    /// A file with the configurations of its webhooks, as one List.
    pub webhooks: PathBuf,
}

impl ClusterApiParts {
    /// Gives Cluster API, making it first when it is not in the cache.
    pub fn ensure(report: &mut dyn FnMut(Step)) -> Result<Self, PartsError> {
        let module = modules::cluster_api()?;
        let program = program(&module, "cluster-api", report)?;
        let definitions = Definitions::of(&module, modules::CLUSTER_API)?;
        let definitions = Cache::of_user().ensure(&definitions, report)?;
        let webhooks = definitions.join(super::definitions::WEBHOOKS);
        Ok(Self { program, definitions: definitions.join(super::definitions::FILE), webhooks })
    }
}

/// Gives the program of metrics-server, making it first when it is not in the cache.
pub fn metrics_server(report: &mut dyn FnMut(Step)) -> Result<PathBuf, PartsError> {
    program(&modules::metrics_server()?, "metrics-server", report)
}

/// Gives the program of the adapter of custom and external metrics, making it first when it is not in the cache.
pub fn custom_metrics_adapter(report: &mut dyn FnMut(Step)) -> Result<PathBuf, PartsError> {
    program(&modules::custom_metrics()?, "custom-metrics", report)
}

/// Gives the program of Helm, making it first when it is not in the cache.
pub fn helm(report: &mut dyn FnMut(Step)) -> Result<PathBuf, PartsError> {
    program(&modules::helm()?, "helm", report)
}

fn program(module: &GoModule, name: &str, report: &mut dyn FnMut(Step)) -> Result<PathBuf, PartsError> {
    let cache = Cache::of_user();
    if !cache.holds(module)
        && let Some(missing) = go_toolchain::missing(module.go())
    {
        return Err(PartsError::Missing { missing: vec![missing] });
    }
    Ok(cache.ensure(module, report)?.join(name))
}
