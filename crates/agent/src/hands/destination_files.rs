//! What a destination keeps of one migration. All functions block.

use super::cgroups::exists;
use super::{NodeError, PodState, Settings, mark};
use crate::session::SessionInfo;
use portolan_node::Name;
use portolan_node::store::{Mark, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Whose volumes were filled, and in which boot of the node. What is restored afterwards is of this pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Filled {
    /// The UID of the pod on this node.
    pub(super) pod: String,
    pub(super) boot: String,
    /// The names of its containers.
    #[serde(default)]
    pub(super) containers: Vec<String>,
    /// Their hostname, if it is known.
    #[serde(default)]
    pub(super) hostname: Option<String>,
}

/// The files of one migration at the destination.
#[derive(Clone)]
pub(super) struct DestinationFiles {
    pub(super) migration: Name,
    /// From which `portolan-runc` restores.
    pub(super) store: Store,
    /// What is the agent's own. It removes folders without being led out of them.
    work: Store,
}

impl DestinationFiles {
    pub(super) fn new(settings: &Settings, info: &SessionInfo) -> Result<Self, NodeError> {
        let migration = Name::new("migration", &info.migration)?;
        let (store, work) = stores(settings);
        Ok(Self { migration, store, work })
    }

    fn own(&self) -> PathBuf {
        self.work.folder(&self.migration)
    }

    /// The folder that parts arrive in.
    pub(super) fn parts(&self) -> PathBuf {
        self.own().join("parts")
    }

    fn complete(&self) -> PathBuf {
        self.own().join("complete")
    }

    fn refused(&self) -> PathBuf {
        self.own().join("refused")
    }

    /// Says that all parts have arrived and can be used.
    pub(super) fn mark_complete(&self) -> Result<(), NodeError> {
        let path = self.complete();
        mark::write(&path, &true).map_err(NodeError::io("write", &path))
    }

    /// Whether all parts have arrived.
    pub(super) fn is_complete(&self) -> Result<bool, NodeError> {
        exists(&self.complete())
    }

    /// Says that the checkpoint must not be used.
    pub(super) fn mark_refused(&self, why: &str) -> Result<(), NodeError> {
        let path = self.refused();
        mark::write(&path, &why).map_err(NodeError::io("write", &path))
    }

    /// Why the checkpoint must not be used, if that is so.
    pub(super) fn why_refused(&self) -> Result<Option<String>, NodeError> {
        mark::read(&self.refused())
    }

    fn volumes(&self) -> PathBuf {
        self.own().join("filled")
    }

    /// Says that the volumes of a pod were filled.
    pub(super) fn mark_filled(&self, filled: &Filled) -> Result<(), NodeError> {
        let path = self.volumes();
        mark::folder(&self.own())?;
        mark::write(&path, filled).map_err(NodeError::io("write", &path))
    }

    /// Which pod's volumes were filled.
    pub(super) fn filled(&self) -> Result<Option<Filled>, NodeError> {
        mark::read(&self.volumes())
    }

    /// The pod that is being restored, as far as it is known without the API server; none before its restore has begun. That it is
    /// deleted by somebody else is then seen by its containers.
    pub(super) fn restored_pod(&self) -> Result<Option<PodState>, NodeError> {
        let Some(filled) = self.filled()? else { return Ok(None) };
        let names = filled.containers.iter().map(|name| Name::new("container", name));
        let containers = names.collect::<Result<Vec<_>, _>>()?;
        if containers.is_empty() {
            return Ok(None);
        }
        let (uid, hostname, volumes) = (filled.pod, filled.hostname, Vec::new());
        let (terminating, committed, failure) = (false, false, None);
        Ok(Some(PodState { uid, terminating, failure, committed, hostname, containers, volumes }))
    }

    /// Whether there is anything of the migration, except for the mark that its pod is live.
    pub(super) fn has_any(&self) -> Result<bool, NodeError> {
        Ok(self.store.has_checkpoints(&self.migration)? || exists(&self.own())?)
    }

    /// Removes all that there is of the migration. The mark that its pod is live stays: without it, a container of that pod
    /// that dies would wait for a checkpoint.
    pub(super) fn remove(&self) -> Result<(), NodeError> {
        self.work.remove(&self.migration)?;
        if self.store.has(&self.migration, Mark::Live) {
            return Ok(self.store.remove_checkpoints(&self.migration)?);
        }
        Ok(self.store.remove(&self.migration)?)
    }
}

/// The one that `portolan-runc` restores from, and the agent's own.
fn stores(settings: &Settings) -> (Store, Store) {
    (Store::new(&settings.store), Store::new(settings.work.join("destination")))
}

/// Removes what there is of migrations that are not kept, and of pods that are gone.
pub(super) fn remove_ended(settings: &Settings, kept: &BTreeSet<String>) -> Result<(), NodeError> {
    let (store, work) = stores(settings);
    let all: BTreeSet<Name> = store.migrations()?.into_iter().chain(work.migrations()?).collect();
    let mut outcome = Ok(());
    for migration in all.into_iter().filter(|migration| !kept.contains(migration.as_str())) {
        let files = DestinationFiles { migration, store: store.clone(), work: work.clone() };
        // One that cannot be removed does not keep the others.
        outcome = outcome.and(files.remove());
    }
    outcome.and(remove_gone(settings))
}

/// Removes what says that a pod is live, once the pod has left the node and its session is over: then nothing else is left of the
/// migration.
pub(super) fn remove_gone(settings: &Settings) -> Result<(), NodeError> {
    let (store, _) = stores(settings);
    let pods = settings.kubelet.join("pods");
    // Without them it is not known which pods there are.
    if !exists(&pods)? {
        return Ok(());
    }
    for migration in store.migrations()? {
        let over = store.has(&migration, Mark::Live) && !store.has_checkpoints(&migration)?;
        if let Some(pod) = store.owner(&migration)?.filter(|_| over)
            && !exists(&pods.join(Name::new("UID of a pod", &pod)?.as_str()))?
        {
            store.remove(&migration)?;
        }
    }
    Ok(())
}
