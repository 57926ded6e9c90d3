//! Evicting a pod, within the budgets that cover it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::DeleteOptions;
use super::update::Part;
use crate::api::{Api, Writer};
use crate::cluster::set_pod_condition;
use crate::error::ApiError;
use crate::store::{LabelSelector, ObjectKey, at};

const TABLE: &str = "policy/poddisruptionbudgets";

impl Api {
    /// Deletes a pod if its disruption budget has room.
    pub(crate) fn evict(
        &mut self,
        key: &ObjectKey,
        options: &DeleteOptions,
        writer: &Writer,
    ) -> Result<(), ApiError> {
        let row = self.row("", "pods")?;
        let pod = self.live(&row, &key.namespace, &key.name)?.value();
        let labels = at(&pod, "/metadata/labels");
        let over = matches!(
            at(&pod, "/status/phase").and_then(Value::as_str),
            Some("Succeeded" | "Failed" | "Pending")
        );
        let budgets: Vec<(ObjectKey, Arc<Value>)> = self
            .store
            .scan(TABLE, Some(&key.namespace), None)
            .map(|budget| (budget.key.clone(), budget.value()))
            .filter(|(_, budget)| {
                LabelSelector::from_json(&budget["spec"]["selector"]).matches_labels(labels)
            })
            .collect();
        if !over && budgets.len() > 1 {
            return Err(ApiError::internal(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
        if let Some((budget_key, budget)) = budgets.first().filter(|_| !over) {
            let allowed = at(budget, "/status/disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0);
            if allowed <= 0 {
                return Err(over_budget(budget_key, budget));
            }
            if !writer.dry_run {
                let row = self.row("policy", "poddisruptionbudgets")?;
                let time = self.time();
                self.modify(&row, budget_key, Part::Status, "kube-apiserver", |object| {
                    object["status"]["disruptionsAllowed"] = json!(allowed - 1);
                    object["status"]["disruptedPods"][&*key.name] = time;
                })?;
            }
        }
        if !writer.dry_run {
            let time = self.time();
            self.modify(&row, key, Part::Status, "kube-apiserver", |pod| {
                let condition = json!({
                    "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting", "lastProbeTime": null,
                });
                set_pod_condition(pod, condition, &time);
            })?;
        }
        self.delete(&row, &key.namespace, &key.name, options, writer).map(|_| ())
    }
}

fn over_budget(key: &ObjectKey, budget: &Value) -> ApiError {
    let number = |field: &str| at(budget, &format!("/status/{field}")).and_then(Value::as_i64).unwrap_or(0);
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut out = ApiError::too_many_requests(message, 0);
    let told = format!(
        "The disruption budget {} needs {} healthy pods and has {} currently",
        key.name,
        number("desiredHealthy"),
        number("currentHealthy")
    );
    out.details = Some(json!({"causes": [{"reason": "DisruptionBudget", "message": told}]}));
    out
}
