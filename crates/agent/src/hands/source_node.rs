//! What is done to the containers of a source. All functions block.

use super::bundles::Bundles;
use super::cgroups::{PodOnNode, children, is_empty};
use super::source_files::SourceFiles;
use super::{NodeError, Settings};
use crate::session::{Pod, SessionInfo, SourceLook};
use portolan_core::migration::source::Frozen;
use portolan_node::freezer::CgroupFiles;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long the dumps of a pod are waited for before it is thawed.
const DUMPS_PATIENCE: Duration = Duration::from_millis(300);

/// What a pod consisted of when its session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Baseline {
    /// Its cgroup, below the hierarchy.
    pub(super) cgroup: PathBuf,
    /// The ID of its sandbox, which is not moved.
    pub(super) sandboxes: BTreeSet<String>,
    /// Names and IDs of its containers.
    pub(super) containers: BTreeMap<String, String>,
}

impl Baseline {
    pub(super) fn of(info: &SessionInfo) -> Result<Self, NodeError> {
        let read = serde_json::from_str(&info.baseline);
        read.map_err(|_| {
            NodeError::state(&info.pod, "the session does not say which containers it began with")
        })
    }
}

/// What threads need of the hands of a source.
#[derive(Clone)]
pub(super) struct Node<F> {
    pub(super) settings: Arc<Settings>,
    pub(super) bundles: Arc<Bundles>,
    pub(super) files: F,
}

impl<F: CgroupFiles + Clone> Node<F> {
    pub(super) fn baseline(&self, pod: &Pod) -> Result<String, NodeError> {
        let cgroup = on_node(pod).need_cgroup(&self.settings)?;
        let (mut sandboxes, mut containers) = (BTreeSet::new(), BTreeMap::new());
        for id in children(&cgroup)? {
            let unknown =
                |why: &str| NodeError::Unknown { pod: pod.to_string(), id: id.clone(), why: why.to_owned() };
            let Some(labels) = self.bundles.labels(&id)? else {
                if is_empty(&cgroup.join(&id))? {
                    continue;
                }
                return Err(unknown("it has no config.json"));
            };
            if labels.sandbox {
                sandboxes.insert(id);
                continue;
            }
            let name = labels.name.ok_or_else(|| unknown("its config.json names no container"))?;
            if containers.contains_key(&name) {
                return Err(unknown("its pod has two containers of that name"));
            }
            containers.insert(name, id.clone());
        }
        if containers.is_empty() {
            return Err(NodeError::NoContainers { pod: pod.to_string() });
        }
        let below = cgroup.strip_prefix(&self.settings.cgroups).unwrap_or(&cgroup).to_owned();
        let baseline = Baseline { cgroup: below, sandboxes, containers };
        serde_json::to_string(&baseline).map_err(|error| NodeError::state(pod, error.to_string()))
    }

    pub(super) fn look(&self, info: &SessionInfo) -> Result<SourceLook, NodeError> {
        let baseline = Baseline::of(info)?;
        let files = SourceFiles::new(&self.settings, info)?;
        let mut look = SourceLook {
            gone: true,
            frozen: Frozen::None,
            replaced: None,
            terminating: false,
            checkpoint: files.complete()?.is_some(),
            has_files: files.has_any()?,
        };
        if let Some(cgroup) = on_node(&info.pod).cgroup(&self.settings)? {
            let ids = containers(&cgroup, &baseline)?;
            look.gone = false;
            look.frozen = on_node(&info.pod).frozen(&cgroup, &ids, &self.files)?;
            // A dump thaws the freezer of what it has seized, and freezes it again at its end.
            if look.frozen == Frozen::None && files.is_dumping() {
                look.frozen = Frozen::Partly;
            }
            look.replaced = self.replaced(&cgroup, &ids, &baseline)?;
        }
        Ok(look)
    }

    /// Which container is not one of the baseline.
    fn replaced(
        &self,
        cgroup: &Path,
        ids: &BTreeSet<String>,
        baseline: &Baseline,
    ) -> Result<Option<String>, NodeError> {
        let old: BTreeSet<&String> = baseline.containers.values().collect();
        if let Some((name, _)) = baseline.containers.iter().find(|(_, id)| !ids.contains(*id)) {
            return Ok(Some(name.clone()));
        }
        for id in ids.iter().filter(|id| !old.contains(id)) {
            match self.bundles.labels(id)? {
                Some(labels) => return Ok(Some(labels.name.unwrap_or_else(|| id.clone()))),
                None if is_empty(&cgroup.join(id))? => {}
                None => return Ok(Some(id.clone())),
            }
        }
        Ok(None)
    }

    pub(super) fn freeze(&self, info: &SessionInfo) -> Result<(), NodeError> {
        let cgroup = on_node(&info.pod).need_cgroup(&self.settings)?;
        let ids = containers(&cgroup, &Baseline::of(info)?)?;
        let freezer = on_node(&info.pod).freezer(&cgroup, &ids, &self.files)?;
        // Once it is being written down it may be committed, and then it must not run again, whatever fails here.
        let begun = SourceFiles::new(&self.settings, info)?.has_begun()?;
        let frozen = if begun { freezer.hold() } else { freezer.freeze() };
        frozen.map_err(|source| NodeError::Freezer { pod: info.pod.to_string(), what: "frozen", source })
    }

    pub(super) fn kill(&self, info: &SessionInfo) -> Result<(), NodeError> {
        let Some(cgroup) = on_node(&info.pod).cgroup(&self.settings)? else { return Ok(()) };
        let ids = containers(&cgroup, &Baseline::of(info)?)?;
        on_node(&info.pod).kill(&cgroup, &ids, &self.files)
    }

    pub(super) fn thaw(&self, info: &SessionInfo) -> Result<(), NodeError> {
        // The pod is thawed whatever becomes of the dump: it must not stand still for that.
        let dumps = SourceFiles::new(&self.settings, info).map(|files| files.kill_dumps());
        let Ok(mut dumps) = dumps else {
            self.set_going(info)?;
            return dumps.map(drop);
        };
        let ended = dumps.wait(DUMPS_PATIENCE);
        self.set_going(info)?;
        let outcome = dumps.finish();
        // What ended late may have frozen its container as its last act.
        if !ended {
            self.set_going(info)?;
        }
        outcome?;
        // Half of a checkpoint is of no use to anybody.
        let files = SourceFiles::new(&self.settings, info)?;
        if files.complete()?.is_none() {
            files.remove()?;
        }
        Ok(())
    }

    fn set_going(&self, info: &SessionInfo) -> Result<(), NodeError> {
        if let Some(cgroup) = on_node(&info.pod).cgroup(&self.settings)? {
            let ids = containers(&cgroup, &Baseline::of(info)?)?;
            let thawed = on_node(&info.pod).freezer(&cgroup, &ids, &self.files)?.thaw();
            thawed.map_err(|source| NodeError::Freezer {
                pod: info.pod.to_string(),
                what: "thawed",
                source,
            })?;
        }
        Ok(())
    }
}

/// At the source, the pod has the UID by which the migration names it.
fn on_node(pod: &Pod) -> PodOnNode<'_> {
    PodOnNode { pod, uid: pod.uid() }
}

/// The containers that are there now: also those that the baseline does not know.
fn containers(cgroup: &Path, baseline: &Baseline) -> Result<BTreeSet<String>, NodeError> {
    Ok(children(cgroup)?.into_iter().filter(|id| !baseline.sandboxes.contains(id)).collect())
}
