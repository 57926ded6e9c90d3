//! What Prometheus and Grafana need: the files in `deploy/monitoring`, with the labels of the values.

use crate::document::{Document, NAMESPACE, labels};
use crate::node::{Node, field, fixed, object};
use portolan_api::RenderError;
use serde_json::{Value, json};

/// The ConfigMap with the dashboard.
const DASHBOARD_CONFIG: &str = "portolan-dashboard";

const SERVICE: &str = include_str!("../../../deploy/monitoring/service.yaml");
const SERVICE_MONITOR: &str = include_str!("../../../deploy/monitoring/servicemonitor.yaml");
const RULES: &str = include_str!("../../../deploy/monitoring/prometheusrule.yaml");
const DASHBOARD: &str = include_str!("../../../deploy/monitoring/dashboard.json");

/// The objects, which are there if `monitoring.enabled` is set.
pub(crate) fn documents() -> Result<Vec<Document>, RenderError> {
    let nodes = [
        fixed(read("service.yaml", SERVICE)?),
        selected(&read("servicemonitor.yaml", SERVICE_MONITOR)?),
        selected(&read("prometheusrule.yaml", RULES)?),
        dashboard(&read("dashboard.json", DASHBOARD)?),
    ];
    let document = |node| Document { file: "monitoring", when: vec!["monitoring.enabled"], node };
    Ok(nodes.into_iter().map(document).collect())
}

fn read(name: &str, text: &str) -> Result<Value, RenderError> {
    serde_saphyr::from_str(text).map_err(|error| RenderError {
        name: format!("deploy/monitoring/{name}"),
        message: error.to_string(),
    })
}

/// An object of the Prometheus Operator, which a Prometheus selects by labels.
fn selected(file: &Value) -> Node {
    let metadata = &file["metadata"];
    object([
        field("apiVersion", fixed(file["apiVersion"].clone())),
        field("kind", fixed(file["kind"].clone())),
        field(
            "metadata",
            object([
                field("name", fixed(metadata["name"].clone())),
                field("namespace", fixed(metadata["namespace"].clone())),
                field("labels", Node::Extended(metadata["labels"].clone(), "monitoring.labels")),
            ]),
        ),
        field("spec", fixed(file["spec"].clone())),
    ])
}

fn dashboard(file: &Value) -> Node {
    object([
        field("apiVersion", fixed("v1")),
        field("kind", fixed("ConfigMap")),
        field(
            "metadata",
            object([
                field("name", fixed(DASHBOARD_CONFIG)),
                field("namespace", fixed(NAMESPACE)),
                field("labels", Node::Extended(labels(), "monitoring.dashboardLabels")),
            ]),
        ),
        field("data", fixed(json!({ "portolan.json": file.to_string() }))),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{parse, render};

    fn rendered(values: &Value) -> Vec<Value> {
        render(&parse(values).unwrap()).unwrap().objects
    }

    #[test]
    fn the_files_are_applied_on_request_only_and_with_the_labels_of_the_values() {
        let without = rendered(&json!({}));
        let values = json!({"monitoring": {
            "enabled": true, "labels": {"release": "prometheus", "app.kubernetes.io/name": "other"},
        }});
        let mut with = rendered(&values);
        let monitoring = with.split_off(without.len());
        assert_eq!(with, without);
        let kinds: Vec<&str> = monitoring.iter().map(|each| each["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["Service", "ServiceMonitor", "PrometheusRule", "ConfigMap"]);
        assert_eq!(monitoring[0], read("", SERVICE).unwrap());
        for (object, file) in monitoring[1..3].iter().zip([SERVICE_MONITOR, RULES]) {
            let mut expected = read("", file).unwrap();
            expected["metadata"]["labels"]["release"] = json!("prometheus");
            assert_eq!(*object, expected, "and what selects the pods stays");
        }
        let text = monitoring[3]["data"]["portolan.json"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), read("", DASHBOARD).unwrap());
        assert_eq!(monitoring[3]["metadata"]["labels"]["grafana_dashboard"], "1");
    }

    /// What Prometheus and Grafana fill in is not Helm's to fill in.
    #[test]
    fn braces_of_alerts_and_of_the_dashboard_are_left_alone_by_helm() {
        let chart = crate::chart().unwrap();
        let text = &chart["templates/monitoring.yaml"];
        assert!(RULES.contains("{{ $value }}") && DASHBOARD.contains("{{"));
        assert!(text.contains(r#"{{ "{{" }} $value }}"#), "{text}");
        let unescaped = text.replace(r#"{{ "{{" }}"#, "");
        assert!(!unescaped.contains("{{ $") && !unescaped.contains("{{$"), "{unescaped}");
    }
}
