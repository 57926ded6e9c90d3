//! Binding a pod to a node.

use serde_json::{Value, json};

use super::convert;
use super::update::manager;
use crate::api::{Api, Writer};
use crate::error::{About, ApiError};
use crate::merge::track_update;
use crate::store::{ObjectKey, at};

impl Api {
    /// Binds a pod to a node, once.
    pub(crate) fn bind(&mut self, key: &ObjectKey, node: &str, by: &str) -> Result<(), ApiError> {
        let row = self.row("", "pods")?;
        let live = self.live(&row, &key.namespace, &key.name)?;
        let old = live.value();
        let about = About { group: "", resource: "pods/binding", name: &key.name };
        if at(&old, "/metadata/deletionTimestamp").is_some() {
            return Err(ApiError::conflict(
                about,
                &format!("pod {} is being deleted, cannot be assigned to a host", key.name),
            ));
        }
        let present = at(&old, "/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        if !present.is_empty() {
            let why = format!("pod {} is already assigned to node {present:?}", key.name);
            return Err(ApiError::conflict(about, &why));
        }
        let mut new = Value::clone(&old);
        new["spec"]["nodeName"] = json!(node);
        let time = self.time();
        let conditions = new["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let mut conditions: Vec<Value> = conditions
            .into_iter()
            .filter(|found| found.get("type") != Some(&json!("PodScheduled")))
            .collect();
        conditions.push(json!({
            "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": time,
        }));
        new["status"]["conditions"] = json!(conditions);
        track_update(
            Some(&old),
            &mut new,
            &row.node,
            manager(&row, &Writer::named(by), "binding"),
            time,
            &[],
        );
        convert::to_stored(&row, &mut new);
        let event = self
            .store
            .replace(&row.table, key.clone(), new, &row.selectable, live.revision)
            .map_err(|_| ApiError::modified(about))?;
        self.changed(&row, &event);
        Ok(())
    }
}
