//! What lies between a checkpoint that has arrived and `portolan-runc`, which restores whatever is in the store.
//!
//! The kubelet makes the containers of a pod one after the other, and a container's `config.json` is there only while its turn
//! is. So each checkpoint waits until then, is checked against it, and only then appears in the store.

use super::archives::unpack_part;
use super::budget::Budget;
use super::bundles::Bundles;
use super::destination_files::{DestinationFiles, Filled};
use super::error::blocking;
use super::memory::{self, Unusable};
use super::parts::Part;
use super::process::boot;
use super::{NodeError, PodState, Settings, mark, volumes};
use crate::images::{Allowed, Archive, check};
use crate::session::Pod;
use portolan_node::store::{Incoming, Mark, Paths, Presence, StoreError};
use portolan_node::{Name, empty_folder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::sleep;

/// How long to wait before it is looked again whether the next container waits. All of it is downtime.
const PAUSE: Duration = Duration::from_millis(5);

/// What is unpacked and has not appeared in the store.
pub(super) type Unpacked = Arc<Mutex<BTreeMap<Name, Incoming>>>;

/// What the checks need.
#[derive(Clone)]
pub(super) struct Gate {
    pub(super) unpacked: Unpacked,
    pub(super) budget: Arc<Budget>,
    pub(super) pod: Pod,
    /// The UID that it has on this node.
    pub(super) uid: String,
    pub(super) files: DestinationFiles,
    pub(super) settings: Arc<Settings>,
    pub(super) bundles: Arc<Bundles>,
}

impl Gate {
    /// Unpacks what has arrived for a container to where it can appear from, if that was not done before.
    fn unpack(&self, container: &Name) -> Result<Incoming, NodeError> {
        if let Some(incoming) = self.lock().remove(container) {
            return Ok(incoming);
        }
        let incoming = self.files.store.begin(&self.files.migration, container)?;
        for (part, to) in [
            (Part::Images(container.clone()), incoming.images()),
            (Part::Rootfs(container.clone()), incoming.rootfs_diff()),
        ] {
            self.unpack_to(&part, &to)?;
        }
        Ok(incoming)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Incoming>> {
        self.unpacked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unpack_to(&self, part: &Part, to: &Path) -> Result<(), NodeError> {
        let from = self.files.parts().join(part.name()?.as_str());
        self.budget.within(&self.pod, &part.to_string(), &self.settings, |limits| {
            let bytes = unpack_part(&self.pod, part, &from, to, limits)?;
            Ok((bytes, ()))
        })
    }

    /// Inspects what CRIU is to unpack into memory. Its symbolic links.
    fn memory(
        &self,
        container: &Name,
        incoming: &Incoming,
        archives: &[Archive],
        config: &Value,
    ) -> Result<BTreeMap<String, String>, NodeError> {
        let devices = memory::devices(config);
        self.budget.within(&self.pod, &format!("memory.{container}"), &self.settings, |limits| {
            match memory::inspect(&incoming.images(), archives, &devices, limits) {
                Ok(found) => Ok((found.bytes, found.links)),
                Err(Unusable::Node(error)) => Err(error),
                Err(Unusable::Archive { name, source }) => Err(NodeError::Archive {
                    pod: self.pod.to_string(),
                    part: format!("{name} of container {container}"),
                    source,
                }),
            }
        })
    }

    /// Fills an emptyDir volume of the pod. A try before may have ended in the middle.
    fn volume(&self, uid: &str, volume: &Name) -> Result<(), NodeError> {
        let folder = volumes::folder(&self.settings, uid)?.join(volume.as_str());
        // The folder itself is the kubelet's. Neither links nor mounts in it are followed.
        empty_folder(&folder).map_err(StoreError::from)?;
        self.unpack_to(&Part::Volume(volume.clone()), &folder)
    }

    /// Checks the images of a container against its own `config.json`; whether that was there. What only `portolan-runc` can
    /// check, once the root and the volumes are in their places, is written down for it.
    fn check(&self, container: &Name, incoming: &Incoming) -> Result<bool, NodeError> {
        let bundles = self.bundles.restored_in(self.files.migration.as_str(), &self.uid)?;
        let Some(id) = bundles.get(container.as_str()) else { return Ok(false) };
        let Some(config) = self.bundles.config(id)? else { return Ok(false) };
        let (pod, name) = (|| self.pod.to_string(), || container.to_string());
        let mut allowed = Allowed::from_oci(&config).map_err(|source| NodeError::Spec {
            pod: pod(),
            container: name(),
            source,
        })?;
        allowed.without_absent_paths(|path| Path::new(path).exists());
        match check(&incoming.images(), &allowed) {
            Ok(summary) => {
                let links = self.memory(container, incoming, &summary.archives, &config)?;
                incoming.write_paths(&Paths { exact: summary.paths, followed: summary.sockets, links })?;
                Ok(true)
            }
            Err(refusal) => {
                Err(NodeError::Refused { pod: pod(), container: name(), source: Box::new(refusal) })
            }
        }
    }

    /// Unpacks and checks what can be checked already, so that a refusal is known early.
    fn try_out(&self, containers: &[Name]) -> Result<(), NodeError> {
        for container in containers {
            if self.files.store.presence(&self.files.migration, container) == Presence::None {
                let incoming = self.unpack(container)?;
                self.check(container, &incoming)?;
                self.lock().insert(container.clone(), incoming);
            }
        }
        Ok(())
    }

    /// Says what has become of a checkpoint of which all parts have arrived.
    pub(super) async fn arrived(self, containers: Vec<Name>) -> Result<(), NodeError> {
        blocking(move || match self.try_out(&containers) {
            Ok(()) => self.files.mark_complete(),
            Err(error) if error.is_refusal() => self.files.mark_refused(&error.to_string()),
            Err(error) => Err(error),
        })
        .await
    }

    /// Prepares the store for a restore that stays frozen: marks, volumes, and what was restored before and has died.
    pub(super) fn begin(&self, pod: &PodState) -> Result<(), NodeError> {
        let (store, migration) = (&self.files.store, &self.files.migration);
        if store.has(migration, Mark::Live) {
            return Err(NodeError::state(&self.pod, "it may have run here, and is not restored again"));
        }
        store.mark(migration, Mark::Frozen)?;
        // Before any checkpoint appears.
        store.assign(migration, &Name::new("UID of a pod", &pod.uid)?)?;
        // Once for each pod, and before anything of it is restored: what is restored has their files open. Once more after a
        // reboot, which nothing that was restored outlives: files that were not on the disk yet are lost, and so are volumes
        // in memory.
        let boot = boot().map_err(NodeError::io("read the boot ID of", &self.settings.proc))?;
        let is_filled = |filled: Filled| filled.pod == pod.uid && filled.boot == boot;
        if !self.files.filled()?.is_some_and(is_filled) {
            for volume in &pod.volumes {
                self.volume(&pod.uid, volume)?;
            }
            let containers = pod.containers.iter().map(Name::to_string).collect();
            let hostname = pod.hostname.clone();
            self.files.mark_filled(&Filled { pod: pod.uid.clone(), boot, containers, hostname })?;
        }
        let bundles = self.bundles.restored_in(migration.as_str(), &self.uid)?;
        for container in &pod.containers {
            // While it has a bundle it is being restored, or is restored.
            if store.presence(migration, container) == Presence::Used
                && !bundles.contains_key(container.as_str())
            {
                store.put_back(migration, container)?;
            }
        }
        Ok(())
    }

    /// Lets each container's checkpoint appear in the store once it has been checked.
    pub(super) async fn open(self, containers: Vec<Name>) -> Result<(), NodeError> {
        for container in containers {
            let (gate, name) = (self.clone(), container.clone());
            let prepared = blocking(move || {
                let there = gate.files.store.presence(&gate.files.migration, &name);
                if there == Presence::None { gate.unpack(&name).map(Some) } else { Ok(None) }
            });
            let Some(mut incoming) = prepared.await? else { continue };
            loop {
                let (gate, name, unchecked) = (self.clone(), container.clone(), incoming);
                let passed;
                (incoming, passed) = blocking(move || {
                    let passed = gate.check(&name, &unchecked)?;
                    Ok((unchecked, passed))
                })
                .await?;
                if passed {
                    break;
                }
                sleep(PAUSE).await;
            }
            blocking(move || Ok(incoming.finish()?)).await?;
        }
        Ok(())
    }

    /// As [`Gate::open`], and writes down why a checkpoint is refused.
    pub(super) async fn serve(self, containers: Vec<Name>) -> Result<(), NodeError> {
        let (files, parts) = (self.files.clone(), self.files.parts());
        match Box::pin(self.open(containers)).await {
            Err(error) if error.is_refusal() => {
                blocking(move || {
                    mark::folder(&parts)?;
                    files.mark_refused(&error.to_string())
                })
                .await
            }
            outcome => outcome,
        }
    }
}
