//! Which clusters a service belongs in: those that hold the pods it selects.

use crate::placement::Workload;
use portolan_api::MultiClusterService;
use portolan_api::conditions::{self, ConditionType};
use portolan_runtime::{Index, Key};
use std::collections::{BTreeMap, BTreeSet};

/// The workloads that a service follows, and where they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Following {
    /// Their names.
    pub(super) workloads: Vec<String>,
    /// The clusters that are to hold their pods.
    pub(super) wanted: BTreeSet<String>,
    /// Whether nothing is decided yet about one of them: its pods may run where no record says so.
    pub(super) undecided: bool,
    /// The clusters where a copy is still being taken away.
    pub(super) lingering: BTreeSet<String>,
    /// If it follows nothing now: the clusters with pods that it served until its selector, or their labels, were changed. The
    /// Service stays there as it is: nobody asked for it to go.
    pub(super) kept: BTreeSet<String>,
}

/// Whether the service selects the pods of the workload.
pub(super) fn selects(service: &MultiClusterService, workload: &Workload) -> bool {
    let labels: BTreeMap<&str, &str> = workload.object.spec.template.labels().collect();
    let selector = &service.spec.selector;
    selector.iter().all(|(name, value)| labels.get(name.as_str()) == Some(&value.as_str()))
}

/// Finds out what the service follows.
pub(super) fn follow(service: &MultiClusterService, key: &Key, workloads: &Index<Workload>) -> Following {
    follow_with(service, key, workloads, &BTreeMap::new())
}

/// The same if these workloads were in the place of those of the same name.
pub(super) fn follow_with(
    service: &MultiClusterService,
    key: &Key,
    workloads: &Index<Workload>,
    instead: &BTreeMap<Key, Workload>,
) -> Following {
    let mut following = Following::default();
    let followed: Vec<&String> = service.status.iter().flat_map(|status| &status.follows).collect();
    let (mut former, mut kept) = (Vec::new(), BTreeSet::new());
    let mut visit = |name: &Key, workload: &Workload| {
        let leaving = workload.object.metadata.deletion_timestamp.is_some();
        if !selects(service, workload) {
            if followed.contains(&&name.name) && !leaving {
                former.push(name.name.clone());
                let placements = workload.object.status.iter().flat_map(|status| &status.placements);
                kept.extend(placements.filter(|each| each.replicas > 0).map(|each| each.cluster.clone()));
            }
            return;
        }
        following.workloads.push(name.name.clone());
        following.undecided |= !leaving && is_undecided(workload);
        for placed in workload.object.status.iter().flat_map(|status| &status.placements) {
            let held = placed.replicas > 0 && !leaving;
            let set = if held { &mut following.wanted } else { &mut following.lingering };
            set.insert(placed.cluster.clone());
        }
    };
    workloads.for_each_in(&key.namespace, |name, workload| {
        if !instead.contains_key(name) {
            visit(name, workload);
        }
    });
    instead
        .iter()
        .filter(|(name, _)| name.namespace == key.namespace)
        .for_each(|(name, each)| visit(name, each));
    if following.workloads.is_empty() && !kept.is_empty() {
        (following.workloads, following.kept) = (former, kept);
    }
    following.workloads.sort();
    following.lingering.retain(|cluster| !following.wanted.contains(cluster));
    following
}

/// Whether nothing was decided about a workload, so that its status says nothing of where its pods run.
fn is_undecided(workload: &Workload) -> bool {
    let Some(status) = &workload.object.status else { return true };
    status.placements.is_empty() && !conditions::is_true(&status.conditions, ConditionType::Placed)
}
