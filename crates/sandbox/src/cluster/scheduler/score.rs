//! Which of the nodes that fit suits a pod best.

use serde_json::{Value, json};

use crate::cluster::nodes::tolerates;
use crate::cluster::text;
use crate::cluster::view::{Amounts, NodeView};
use crate::store::{LabelSelector, at};

/// What a full point of a preference (its weight is 1 to 100) counts against a millionth of free room.
const PREFERENCE: i128 = 20_000;
/// What a taint that is better avoided costs.
const AVOIDED: i128 = 200_000;

/// More is better.
pub(super) fn score(pod: &Value, node: &NodeView, requests: &Amounts, used: &Amounts) -> i128 {
    free_share(node, requests, used) + preferences(pod, &node.object) - avoided(pod, &node.object)
}

fn preferences(pod: &Value, node: &Value) -> i128 {
    let terms = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
    let labels = at(node, "/metadata/labels");
    let terms = at(pod, terms).and_then(Value::as_array).into_iter().flatten();
    terms
        .filter(|term| {
            let expressions = at(term, "/preference/matchExpressions").cloned().unwrap_or_else(|| json!([]));
            LabelSelector::from_json(&json!({"matchExpressions": expressions})).matches_labels(labels)
        })
        .map(|term| i128::from(term.get("weight").and_then(Value::as_i64).unwrap_or(0)) * PREFERENCE)
        .sum()
}

fn avoided(pod: &Value, node: &Value) -> i128 {
    let tolerations = at(pod, "/spec/tolerations").and_then(Value::as_array);
    let taints = at(node, "/spec/taints").and_then(Value::as_array).into_iter().flatten();
    let soft = taints.filter(|taint| text(taint, "/effect") == "PreferNoSchedule");
    let disliked = soft
        .filter(|taint| !tolerations.into_iter().flatten().any(|toleration| tolerates(toleration, taint)));
    disliked.count() as i128 * AVOIDED
}

/// How much of a node stays free, over cpu and memory, in millionths.
fn free_share(node: &NodeView, requests: &Amounts, used: &Amounts) -> i128 {
    let share = |resource: &str| {
        let all = node.allocatable.get(resource).copied().unwrap_or(0);
        let taken = used.get(resource).copied().unwrap_or(0) + requests.get(resource).copied().unwrap_or(0);
        if all == 0 { 0 } else { (all - taken).max(0) * 1_000_000 / all }
    };
    share("cpu") + share("memory")
}
