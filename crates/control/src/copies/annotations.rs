//! The annotations that go from an object of the hub to its copies in members.

use kube::api::ObjectMeta;
use std::collections::BTreeMap;

/// What kubectl, the Deployment controller and Portolan keep on an object for themselves; on a copy it would be wrong.
const NOT_PROPAGATED: [&str; 3] =
    ["kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/", "portolan.dev/"];

/// The user's own annotations of an object.
pub(crate) fn propagated_annotations(meta: &ObjectMeta) -> BTreeMap<String, String> {
    let mut annotations = meta.annotations.clone().unwrap_or_default();
    annotations.retain(|name, _| !NOT_PROPAGATED.iter().any(|kept| name.starts_with(kept)));
    annotations
}
