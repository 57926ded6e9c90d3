//! The volume claims of a StatefulSet's pods, and what becomes of them when pods or the set go.

use serde_json::{Value, json};

use super::plan::Wish;
use super::{Pods, identity};
use crate::api::Api;
use crate::cluster::{control_reference, controller_of, deleting, text};
use crate::error::ApiError;
use crate::store::{ObjectKey, at};
use crate::verbs::Part;

const TABLE: &str = "/persistentvolumeclaims";
const MANAGER: &str = "kube-controller-manager";

/// The claims of a pod that are not there.
pub(super) fn missing(api: &Api, set: &Value, ordinal: i64) -> Vec<(ObjectKey, Value)> {
    let namespace = text(set, "/metadata/namespace");
    let keys = identity::claim_names(set, ordinal).map(|(_, name)| ObjectKey::new(namespace, &name));
    let wanted =
        keys.zip(identity::claim_templates(set)).filter(|(key, _)| api.store.get(TABLE, key).is_none());
    wanted
        .map(|(key, template)| {
            let mut claim = template.clone();
            if let Some(fields) = claim.as_object_mut() {
                fields.remove("status");
            }
            claim["metadata"]["name"] = json!(&*key.name);
            let labels = at(set, "/spec/selector/matchLabels").and_then(Value::as_object);
            for (label, value) in labels.into_iter().flatten() {
                claim["metadata"]["labels"][label] = value.clone();
            }
            (key, claim)
        })
        .collect()
}

/// True if a claim of a pod that is missing goes with the pod that was there before.
pub(super) fn is_any_stale(api: &Api, set: &Value, ordinal: i64) -> bool {
    let pod = identity::pod_name(set, ordinal);
    let namespace = text(set, "/metadata/namespace");
    identity::claim_names(set, ordinal).any(|(_, name)| {
        let claim = api.store.get(TABLE, &ObjectKey::new(namespace, &name));
        claim.is_some_and(|claim| {
            let claim = claim.value();
            deleting(&claim) || owners(&claim).any(|owner| is_pod(owner, &pod))
        })
    })
}

/// Makes claims go with the set or with their pod, as `persistentVolumeClaimRetentionPolicy` says.
pub(super) fn keep_owners(api: &mut Api, set: &Value, wish: &Wish, pods: &Pods) -> Result<(), ApiError> {
    let deletes =
        |field: &str| text(set, &format!("/spec/persistentVolumeClaimRetentionPolicy/{field}")) == "Delete";
    let (with_set, with_scale) = (deletes("whenDeleted"), deletes("whenScaled"));
    let set_uid = text(set, "/metadata/uid");
    let row = api.row("", "persistentvolumeclaims")?;
    for (ordinal, (pod_key, pod)) in pods {
        let surplus = !wish.ordinals.contains(ordinal);
        let owner = match () {
            () if surplus && with_scale => Some(json!({
                "apiVersion": "v1", "kind": "Pod", "name": &*pod_key.name, "uid": &*pod.uid,
                "controller": true, "blockOwnerDeletion": true,
            })),
            () if with_set => Some(control_reference(set)),
            () => None,
        };
        for (_, name) in identity::claim_names(set, *ordinal) {
            let key = ObjectKey::new(&pod_key.namespace, &name);
            let Some(claim) = api.store.get(TABLE, &key).map(|claim| claim.value()) else { continue };
            let is_ours = |owner: &Value| text(owner, "/uid") == set_uid || is_pod(owner, &pod_key.name);
            // What something else controls is left to it.
            if deleting(&claim) || controller_of(&claim).is_some_and(|owner| !is_ours(owner)) {
                continue;
            }
            let mut kept: Vec<Value> = owners(&claim).filter(|owner| !is_ours(owner)).cloned().collect();
            kept.extend(owner.clone());
            api.modify(&row, &key, Part::Main, MANAGER, |claim| {
                if !kept.is_empty() {
                    claim["metadata"]["ownerReferences"] = json!(kept);
                } else if let Some(metadata) = claim["metadata"].as_object_mut() {
                    metadata.remove("ownerReferences");
                }
            })?;
        }
    }
    Ok(())
}

fn owners(object: &Value) -> impl Iterator<Item = &Value> {
    at(object, "/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten()
}

fn is_pod(owner: &Value, name: &str) -> bool {
    text(owner, "/kind") == "Pod" && text(owner, "/name") == name
}
