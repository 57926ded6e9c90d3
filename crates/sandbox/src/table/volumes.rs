//! The lines of volumes and of claims for them.

use serde_json::{Value, json};

use super::{items, text};

/// The line of a PersistentVolumeClaim.
pub(super) fn claim(object: &Value, name: Value, since: Value) -> Vec<Value> {
    let bound = !text(object, "/spec/volumeName").is_empty();
    let phase = match text(object, "/metadata/deletionTimestamp") {
        "" => text(object, "/status/phase"),
        _ => "Terminating",
    };
    vec![
        name,
        json!(phase),
        json!(text(object, "/spec/volumeName")),
        json!(if bound { text(object, "/status/capacity/storage") } else { "" }),
        json!(if bound { access_modes(object, "/status/accessModes") } else { String::new() }),
        json!(text(object, "/spec/storageClassName")),
        json!(or_unset(text(object, "/spec/volumeAttributesClassName"))),
        since,
        json!(or_unset(text(object, "/spec/volumeMode"))),
    ]
}

/// The line of a PersistentVolume.
pub(super) fn volume(object: &Value, name: Value, since: Value) -> Vec<Value> {
    let claim = match text(object, "/spec/claimRef/name") {
        "" => String::new(),
        claim => format!("{}/{claim}", text(object, "/spec/claimRef/namespace")),
    };
    let phase = match text(object, "/metadata/deletionTimestamp") {
        "" => text(object, "/status/phase"),
        _ => "Terminating",
    };
    vec![
        name,
        json!(text(object, "/spec/capacity/storage")),
        json!(access_modes(object, "/spec/accessModes")),
        json!(text(object, "/spec/persistentVolumeReclaimPolicy")),
        json!(phase),
        json!(claim),
        json!(text(object, "/spec/storageClassName")),
        json!(or_unset(text(object, "/spec/volumeAttributesClassName"))),
        json!(text(object, "/status/reason")),
        since,
        json!(or_unset(text(object, "/spec/volumeMode"))),
    ]
}

fn or_unset(text: &str) -> &str {
    if text.is_empty() { "<unset>" } else { text }
}

fn access_modes(object: &Value, pointer: &str) -> String {
    let short = |mode: &str| match mode {
        "ReadWriteOnce" => "RWO".to_owned(),
        "ReadOnlyMany" => "ROX".to_owned(),
        "ReadWriteMany" => "RWX".to_owned(),
        "ReadWriteOncePod" => "RWOP".to_owned(),
        other => other.to_owned(),
    };
    items(object, pointer).filter_map(Value::as_str).map(short).collect::<Vec<_>>().join(",")
}
