//! What every object of an installation has: its place in the chart, and its labels.

use crate::node::Node;
use serde_json::{Value, json};

/// Portolan's own namespace.
pub const NAMESPACE: &str = "portolan";

/// The name of the controller: of its Deployment, its account and its Lease.
pub const CONTROLLER: &str = "portolan-controller";

/// One object, which is there if all values at the paths are set.
pub(crate) struct Document {
    /// The file of the chart that its template is in.
    pub(crate) file: &'static str,
    pub(crate) when: Vec<&'static str>,
    pub(crate) node: Node,
}

pub(crate) fn selector() -> Value {
    json!({"app.kubernetes.io/name": "portolan", "app.kubernetes.io/component": "controller"})
}

pub(crate) fn labels() -> Value {
    let mut labels = selector();
    labels["app.kubernetes.io/part-of"] = json!("portolan");
    labels
}
