//! A cloud behind Cluster API: clusters and machines that a management cluster asks for, made as sandbox clusters and
//! nodes.
//!
//! A client in the management cluster sees what Cluster API v1.14 shows in its version v1beta2: Cluster with a topology,
//! ClusterClass, MachineDeployment and Machine, with the same fields, phases, conditions and reasons, in the same order.
//! There are no MachineSets: a MachineDeployment owns its machines itself. The provider's kinds are `SandboxCluster`,
//! `SandboxControlPlane`, `SandboxMachine` (its `spec.machineType` names a type of the [`CloudConfig`]) and
//! `SandboxBootstrapConfig`, each with its template.
//!
//! The controllers reach the management cluster and the clusters that they make by ordinary clients, as the party
//! `cluster-api`: as the real ones, they suffer partitions and faults, and everything they do is in the world's log.

mod access;
mod build;
mod class;
mod cluster;
mod cluster_status;
mod conditions;
mod config;
mod definitions;
mod deployment;
mod drain;
mod json;
mod kinds;
mod ledger;
mod machine;
mod machine_status;
mod manifests;
mod patches;
mod probe;
mod provider;
mod run;
mod topology;
mod workload;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use portolan_runtime::CallError;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::world::{Cluster, World};
use access::{Access, EXISTS, unless};
use kinds::{ALL, VERSION};
use provider::Provider;
use run::{Controllers, PARTY};

pub use config::{BootTime, CloudConfig, CloudFailure, CloudMachine};
pub use ledger::MachineRecord;
pub use manifests::{cluster_class, cluster_templates};

/// How often the definitions are tried, once a second.
const ATTEMPTS: u32 = 60;

/// Cluster API in a management cluster, and the cloud behind it. It works until this is dropped.
pub struct CloudApi {
    provider: Arc<Mutex<Provider>>,
    changed: Arc<Notify>,
    world: World,
    task: JoinHandle<()>,
}

impl Drop for CloudApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl CloudApi {
    /// Installs the definitions in the management cluster and starts the controllers.
    ///
    /// # Errors
    /// The management cluster refused a definition, or did not serve it within a minute.
    pub async fn install(
        world: &World,
        management: &Cluster,
        config: CloudConfig,
    ) -> Result<Self, CallError> {
        Self::start(world, management, config, None).await
    }

    /// As [`CloudApi::install`], for the clusters of one namespace alone: several clouds have one each.
    ///
    /// # Errors
    /// The management cluster refused a definition, or did not serve it within a minute.
    pub async fn install_in(
        world: &World,
        management: &Cluster,
        config: CloudConfig,
        namespace: &str,
    ) -> Result<Self, CallError> {
        Self::start(world, management, config, Some(namespace)).await
    }

    async fn start(
        world: &World,
        management: &Cluster,
        config: CloudConfig,
        namespace: Option<&str>,
    ) -> Result<Self, CallError> {
        let access = Access { client: management.client(PARTY), namespace: namespace.map(str::to_owned) };
        define(&access).await?;
        let seed = world.seed().child("cloud").child(management.name());
        let seed = namespace.map_or(seed, |namespace| seed.child(namespace));
        let provider = Arc::new(Mutex::new(Provider::new(config, seed)));
        let changed = Arc::new(Notify::new());
        let controllers = Controllers::new(world.clone(), access, provider.clone(), changed.clone());
        let task = tokio::spawn(controllers.run());
        Ok(Self { provider, changed, world: world.clone(), task })
    }

    /// All machines that the cloud has made, in the order of their making.
    #[must_use]
    pub fn machines(&self) -> Vec<MachineRecord> {
        self.provider().ledger.records().to_vec()
    }

    /// The machines that exist and cost money now.
    #[must_use]
    pub fn running(&self) -> Vec<MachineRecord> {
        self.machines().into_iter().filter(|record| record.removed.is_none()).collect()
    }

    /// What all machines have cost until now, in millionths.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.provider().ledger.cost(self.now())
    }

    /// Lets the cloud refuse new clusters from now on, or make them again.
    pub fn refuse_clusters(&self, failure: Option<CloudFailure>) {
        self.note(&format!("clusters are refused: {failure:?}"));
        self.provider().refuses_clusters = failure;
        self.changed.notify_one();
    }

    /// Lets the cloud refuse new machines of a type from now on, or make them again.
    pub fn refuse_machines(&self, machine_type: &str, failure: Option<CloudFailure>) {
        self.note(&format!("machines of type {machine_type} are refused: {failure:?}"));
        let mut provider = self.provider();
        provider.refuses_machines.remove(machine_type);
        provider.refuses_machines.extend(failure.map(|failure| (machine_type.to_owned(), failure)));
        drop(provider);
        self.changed.notify_one();
    }

    /// Changes the quota of machines.
    pub fn limit_machines(&self, most: Option<usize>) {
        self.note(&format!("the quota of machines is {most:?}"));
        self.provider().config.max_machines = most;
        self.changed.notify_one();
    }

    fn note(&self, text: &str) {
        self.world.log().note(self.now(), &format!("cloud: {text}"));
    }

    fn now(&self) -> Timestamp {
        self.world.clock().now()
    }

    fn provider(&self) -> MutexGuard<'_, Provider> {
        self.provider.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Installs all definitions and waits until they are served.
async fn define(access: &Access) -> Result<(), CallError> {
    for (kind, definition) in ALL.into_iter().zip(definitions::definitions()) {
        let served = format!("/apis/{}/{VERSION}/{}", kind.group, kind.plural());
        let mut attempt = 0;
        while let Err(error) = install(access, &definition, &served).await {
            attempt += 1;
            if attempt == ATTEMPTS {
                return Err(error);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
    Ok(())
}

async fn install(access: &Access, definition: &Value, served: &str) -> Result<(), CallError> {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    unless(access.send(Method::POST, definitions, Some(definition)).await, EXISTS)?;
    access.send(Method::GET, served, None).await.map(|_| ())
}
