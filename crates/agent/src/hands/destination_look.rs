//! What there is of a pod at the destination. It blocks.

use super::bundles::Bundles;
use super::cgroups::{PodOnNode, children, exists, is_empty};
use super::destination_files::DestinationFiles;
use super::{NodeError, PodState, Settings};
use crate::session::Pod;
use portolan_core::migration::destination::{Data, DestinationSeen, Target};
use portolan_core::migration::source::Frozen;
use portolan_node::freezer::CgroupFiles;
use portolan_node::store::{Mark, Presence};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Looks at one pod.
pub(super) struct Look<'a, F> {
    pub(super) pod: &'a Pod,
    pub(super) files: &'a DestinationFiles,
    pub(super) settings: &'a Settings,
    pub(super) bundles: &'a Bundles,
    pub(super) cgroups: &'a F,
    /// Whether checkpoints are about to appear in the store.
    pub(super) gate_open: bool,
}

/// The containers of a pod that have a cgroup.
pub(super) struct Running {
    /// None if the pod has none.
    pub(super) cgroup: Option<PathBuf>,
    /// Their IDs, by their names.
    pub(super) ids: BTreeMap<String, String>,
}

impl Running {
    pub(super) fn of(pod: PodOnNode<'_>, settings: &Settings, bundles: &Bundles) -> Result<Self, NodeError> {
        let cgroup = pod.cgroup(settings)?;
        let mut ids = BTreeMap::new();
        for id in cgroup.as_deref().map(children).transpose()?.unwrap_or_default() {
            if let Some(labels) = bundles.labels(&id)?
                && !labels.sandbox
            {
                ids.insert(labels.name.unwrap_or_else(|| id.clone()), id);
            }
        }
        Ok(Self { cgroup, ids })
    }

    /// Without the containers of which no process is left: they may have been killed while they stood still, and then the
    /// state of their cgroup says nothing.
    fn alive(mut self) -> Result<Self, NodeError> {
        if let Some(cgroup) = &self.cgroup {
            let mut alive = BTreeMap::new();
            for (name, id) in self.ids {
                if !is_empty(&cgroup.join(&id))? {
                    alive.insert(name, id);
                }
            }
            self.ids = alive;
        }
        Ok(self)
    }
}

impl<F: CgroupFiles + Clone> Look<'_, F> {
    pub(super) fn seen(&self, pod: Option<&PodState>) -> Result<DestinationSeen, NodeError> {
        let (store, migration) = (&self.files.store, &self.files.migration);
        let data = match self.files.why_refused()? {
            Some(why) => Data::Refused(why),
            None if self.files.is_complete()? => Data::Complete,
            None => Data::Incomplete,
        };
        let live = store.has(migration, Mark::Live);
        let target = match pod {
            None => Target::None,
            Some(pod) if pod.terminating => Target::Changing,
            Some(pod) => self.target(pod, &data, live)?,
        };
        if target == Target::Waiting && store.beats(migration).is_some() {
            // What cannot be written lets the containers wait for less long, which is no reason to see nothing.
            store.beat(migration).ok();
        }
        // Of a pod that goes or is gone, nothing is to be said.
        let committed = pod.is_none_or(|pod| pod.committed || pod.terminating);
        Ok(DestinationSeen { target, data, live, committed, has_files: self.files.has_any()? })
    }

    fn target(&self, pod: &PodState, data: &Data, live: bool) -> Result<Target, NodeError> {
        let (store, migration) = (&self.files.store, &self.files.migration);
        let on_node = PodOnNode { pod: self.pod, uid: &pod.uid };
        let running = Running::of(on_node, self.settings, self.bundles)?.alive()?;
        // Until `portolan-runc` says that a container is restored, CRIU itself runs in its cgroup. Looked at before the freezer:
        // what is restored was frozen before.
        let mut restored = 0;
        for id in running.ids.values() {
            restored += usize::from(exists(&self.settings.wrapper.join(format!("{id}.restored")))?);
        }
        let frozen = match &running.cgroup {
            Some(cgroup) => on_node.frozen(cgroup, &running.ids.values().cloned().collect(), self.cgroups)?,
            None => Frozen::None,
        };
        if live {
            return Ok(match frozen {
                Frozen::All | Frozen::Partly => Target::Frozen,
                Frozen::None if running.ids.is_empty() => Target::Changing,
                Frozen::None => Target::Running,
            });
        }
        let expected = pod.containers.len();
        if restored > 0 && restored == running.ids.len() && frozen != Frozen::All {
            return Ok(Target::Running);
        }
        if let Some(why) = &pod.failure {
            return Ok(Target::Failed(why.clone()));
        }
        let presence: Vec<Presence> =
            pod.containers.iter().map(|name| store.presence(migration, name)).collect();
        let begun = presence.iter().any(|presence| *presence != Presence::None);
        if begun && let Data::Refused(why) = data {
            return Ok(Target::Failed(why.clone()));
        }
        if expected > 0 && restored == expected && running.ids.len() == expected {
            return Ok(Target::Frozen);
        }
        let bundles = self.bundles.restored_in(migration.as_str(), &pod.uid)?;
        // What was taken and has no bundle any more has died: it is put back when the restore is ordered again.
        let mut taken =
            pod.containers.iter().zip(&presence).filter(|(_, presence)| **presence == Presence::Used);
        let died = taken.any(|(name, _)| !bundles.contains_key(name.as_str()));
        let closed = presence.contains(&Presence::None) && !self.gate_open;
        // What was to be restored in a pod that is gone is for this one only once the restore is ordered again.
        let of_another = begun && store.owner(migration)?.as_deref() != Some(pod.uid.as_str());
        Ok(match (begun, closed || died || of_another) {
            (true, false) => Target::Restoring,
            (true, true) => Target::Waiting,
            (false, _) if bundles.is_empty() => Target::Changing,
            (false, _) => Target::Waiting,
        })
    }
}
