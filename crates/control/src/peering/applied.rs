//! What Portolan itself has applied to a namespace.
//!
//! All commands and hubs apply with one field manager, and what one of them leaves out of its next apply would be removed.
//! Each therefore repeats what the others have applied.

use super::peer::NAMESPACE;
use crate::names::{FIELD_MANAGER, PART_OF, PART_OF_LABEL};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Portolan's own namespace, as a command makes it that needs it.
pub(crate) fn own_namespace() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": NAMESPACE, "labels": { PART_OF_LABEL: PART_OF } },
    })
}

/// Whether a namespace was made for Portolan by itself, and not by a user.
#[must_use]
pub fn is_own_namespace(found: &ObjectMeta) -> bool {
    is_applied(found, "f:labels", PART_OF_LABEL)
}

/// A namespace as it is to be applied where this one was found: with what was applied there before, unless it says something
/// else itself.
#[must_use]
pub fn with_applied(namespace: &Value, found: &ObjectMeta) -> Value {
    let mut wanted = namespace.clone();
    let all = [("labels", "f:labels", &found.labels), ("annotations", "f:annotations", &found.annotations)];
    for (field, managed, there) in all {
        let before = there.iter().flatten().filter(|(key, _)| is_applied(found, managed, key));
        let mut merged: BTreeMap<String, Value> =
            before.map(|(key, value)| (key.clone(), json!(value))).collect();
        let own = namespace["metadata"][field].as_object().cloned().unwrap_or_default();
        merged.extend(own);
        if !merged.is_empty() {
            wanted["metadata"][field] = json!(merged);
        }
    }
    wanted
}

/// Whether a label or an annotation was applied by Portolan.
pub(super) fn is_applied(meta: &ObjectMeta, managed: &str, key: &str) -> bool {
    let key = format!("f:{key}");
    let mut entries = meta.managed_fields.iter().flatten();
    entries.any(|each| {
        let fields = each.fields_v1.as_ref().map(|fields| &fields.0["f:metadata"][managed]);
        each.operation.as_deref() == Some("Apply")
            && each.manager.as_deref() == Some(FIELD_MANAGER)
            && fields.is_some_and(|fields| fields.get(&key).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_applied_is_repeated_and_what_a_user_set_is_not() {
        let fields =
            json!({"f:metadata": {"f:labels": {"f:a": {}, "f:b": {}}, "f:annotations": {"f:c": {}}}});
        let found: ObjectMeta = serde_json::from_value(json!({
            "labels": {"a": "1", "b": "2", "user": "x"}, "annotations": {"c": "3", "user": "y"},
            "managedFields": [
                {"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields},
                {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {"f:labels": {"f:user": {}}}}},
            ],
        }))
        .unwrap();
        let wanted = json!({"metadata": {"name": "n", "labels": {"b": "new", "d": "4"}}});
        let merged = with_applied(&wanted, &found);
        assert_eq!(merged["metadata"]["labels"], json!({"a": "1", "b": "new", "d": "4"}));
        assert_eq!(merged["metadata"]["annotations"], json!({"c": "3"}));
        assert!(!is_own_namespace(&found));
        assert_eq!(with_applied(&wanted, &ObjectMeta::default()), wanted);
    }
}
