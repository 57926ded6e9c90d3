//! Who a pod of a StatefulSet is: its name, its ordinal, its claims.

use serde_json::{Value, json};

use crate::cluster::revisions::REVISION;
use crate::cluster::{control_reference, text};
use crate::store::at;

/// The set and the ordinal that a pod's name tells.
pub(super) fn set_and_ordinal(pod: &str) -> Option<(&str, i64)> {
    let (set, ordinal) = pod.rsplit_once('-')?;
    let digits = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = ordinal == "0" || !ordinal.starts_with('0');
    if digits && canonical { Some((set, ordinal.parse().ok()?)) } else { None }
}

/// The name of the pod of an ordinal.
pub(super) fn pod_name(set: &Value, ordinal: i64) -> String {
    format!("{}-{ordinal}", text(set, "/metadata/name"))
}

/// The pod of an ordinal, from a template of the set.
pub(super) fn pod(set: &Value, template: &Value, revision: &str, ordinal: i64) -> Value {
    let name = pod_name(set, ordinal);
    let mut pod = template.clone();
    if !pod["metadata"].is_object() {
        pod["metadata"] = json!({});
    }
    let metadata = &mut pod["metadata"];
    metadata["name"] = json!(name);
    metadata["generateName"] = json!(format!("{}-", text(set, "/metadata/name")));
    metadata["ownerReferences"] = json!([control_reference(set)]);
    metadata["labels"]["statefulset.kubernetes.io/pod-name"] = json!(name);
    metadata["labels"]["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
    metadata["labels"][REVISION] = json!(revision);
    let spec = &mut pod["spec"];
    spec["hostname"] = json!(name);
    let service = text(set, "/spec/serviceName");
    if !service.is_empty() {
        spec["subdomain"] = json!(service);
    }
    let claimed: Vec<(&str, String)> = claim_names(set, ordinal).collect();
    if !claimed.is_empty() {
        let mut volumes: Vec<Value> = claimed
            .iter()
            .map(|(volume, claim)| json!({"name": volume, "persistentVolumeClaim": {"claimName": claim}}))
            .collect();
        let own = spec["volumes"].as_array().cloned().unwrap_or_default();
        volumes.extend(
            own.into_iter().filter(|own| claimed.iter().all(|(volume, _)| *volume != text(own, "/name"))),
        );
        spec["volumes"] = json!(volumes);
    }
    pod
}

/// The names of a pod's volumes and of the claims behind them.
pub(super) fn claim_names(set: &Value, ordinal: i64) -> impl Iterator<Item = (&str, String)> {
    claim_templates(set).map(move |template| {
        let volume = text(template, "/metadata/name");
        (volume, format!("{volume}-{}", pod_name(set, ordinal)))
    })
}

pub(super) fn claim_templates(set: &Value) -> impl Iterator<Item = &Value> {
    at(set, "/spec/volumeClaimTemplates").and_then(Value::as_array).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_its_set_and_its_ordinal() {
        assert_eq!(set_and_ordinal("web-0"), Some(("web", 0)));
        assert_eq!(set_and_ordinal("my-db-12"), Some(("my-db", 12)));
        for other in ["web", "web-", "web-x", "web-01", "web-+1", "web-99999999999999999999"] {
            assert_eq!(set_and_ordinal(other), None, "{other}");
        }
    }

    #[test]
    fn a_claim_takes_the_place_of_a_volume_of_its_name() {
        let set = json!({
            "metadata": {"name": "web"},
            "spec": {"serviceName": "web", "volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
        });
        let template =
            json!({"spec": {"volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]}});
        let pod = pod(&set, &template, "web-1", 3);
        assert_eq!(
            pod["spec"]["volumes"],
            json!([
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-3"}},
                {"name": "tmp", "emptyDir": {}},
            ])
        );
        assert_eq!(pod["spec"]["hostname"], "web-3");
        assert_eq!(pod["spec"]["subdomain"], "web");
        assert_eq!(pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"], "3");
    }
}
