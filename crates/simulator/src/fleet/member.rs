//! A ForeignCluster as a member of a scenario.

use super::nodes::{Ours, nodes};
use super::{Assumption, MemberState};
use crate::scenario::{ClusterSpec, Event, Fault, Nodes, Quantity};
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_api::duration::Duration;
use portolan_control::names::LEAVING_TAINT;
use serde_json::{Map, Value, json};

/// A member, what happens to it at the beginning, and what is assumed about it.
pub(super) struct Member {
    pub(super) spec: ClusterSpec,
    pub(super) fault: Option<Fault>,
    pub(super) assumptions: Vec<Assumption>,
}

/// Turns a ForeignCluster into a member. `own_namespace` is that of the scenario, which is open everywhere.
pub(super) fn member(
    cluster: &ForeignCluster,
    state: &MemberState,
    ours: &Ours,
    own_namespace: &str,
) -> Member {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let status = cluster.status.clone().unwrap_or_default();
    let (node_list, mut assumptions) = nodes(&name, state, &status, ours);
    let namespaces = match &state.namespaces {
        Ok(open) => {
            let mut open = open.clone();
            open.push(own_namespace.to_owned());
            open.sort();
            open.dedup();
            Some(open)
        }
        Err(why) => {
            let assumed = "all namespaces of the scenario are open in it";
            // Whoever cannot be asked at all is named once.
            match assumptions.iter_mut().find(|each| each.problem == why.reason) {
                Some(known) => known.assumed = format!("{}; {assumed}", known.assumed),
                None => assumptions
                    .push(Assumption::new(&name, why.reason.clone(), assumed).hint(why.hint.clone())),
            }
            None
        }
    };
    let fault = is_silent(cluster).then(|| {
        let hint = format!(
            "add {{at: 0s, event: {{heal: {{cluster: {name}}}}}}} to faults to simulate that it is back"
        );
        let assumed = "the controllers are cut off from it from the beginning";
        assumptions.push(Assumption::new(&name, "it does not answer the hub", assumed).hint(Some(hint)));
        Fault { at: Duration::default(), event: Event::CutOff { cluster: name.clone() } }
    });
    let none = || Quantity { text: "0".to_owned(), milli: 0 };
    let nodes = node_list.is_empty().then(|| Nodes { count: 0, cpu: none(), memory: none() });
    let labels = cluster.metadata.labels.clone().unwrap_or_default();
    let spec = ClusterSpec { name, site: None, nodes, node_list, labels, namespaces, spec: further(cluster) };
    Member { spec, fault, assumptions }
}

fn is_silent(cluster: &ForeignCluster) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions).cloned().collect::<Vec<_>>();
    conditions::find(&conditions, ConditionType::Reachable)
        .is_some_and(|reachable| reachable.status != "True")
}

/// The fields of the spec that decide about placement.
fn further(cluster: &ForeignCluster) -> Map<String, Value> {
    let spec = &cluster.spec;
    let mut taints = json!(spec.taints);
    let tainted = spec.taints.iter().any(|taint| taint.key == LEAVING_TAINT);
    if let Some(taints) = taints.as_array_mut()
        && cluster.metadata.deletion_timestamp.is_some()
        && !tainted
    {
        taints.push(json!({"key": LEAVING_TAINT, "effect": "NoExecute"}));
    }
    let fields = [
        ("cloud", json!(spec.cloud)),
        ("unschedulable", json!(spec.unschedulable)),
        ("taints", taints),
        ("capacity", json!(spec.capacity)),
    ];
    let says_something = |value: &Value| !value.is_null() && *value != json!(false) && *value != json!([]);
    fields
        .into_iter()
        .filter(|(_, value)| says_something(value))
        .map(|(key, value)| (key.to_owned(), value))
        .collect()
}
