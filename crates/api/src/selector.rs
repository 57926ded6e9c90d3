//! Label selectors, with a schema that refuses what could never match.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use schemars::{Schema, SchemaGenerator, json_schema};

/// Whether `selector` matches `labels`. An empty selector matches everything, as in Kubernetes.
pub fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let expressions = selector.match_expressions.iter().flatten().all(|requirement| {
        let value = labels.get(&requirement.key);
        let listed = || value.is_some_and(|value| requirement.values.iter().flatten().any(|v| v == value));
        match requirement.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            // The schema knows no other operator. What is not understood selects nothing.
            _ => false,
        }
    });
    equal && expressions
}

/// The selector as the text that `kubectl -l` and the scale subresource understand.
pub fn to_text(selector: &LabelSelector) -> String {
    let equal = selector.match_labels.iter().flatten().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().flatten().map(|requirement| {
        let key = &requirement.key;
        let values = requirement.values.iter().flatten().map(String::as_str).collect::<Vec<_>>().join(",");
        match requirement.operator.as_str() {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "DoesNotExist" => format!("!{key}"),
            _ => key.clone(),
        }
    });
    equal.chain(expressions).collect::<Vec<_>>().join(",")
}

/// The schema of a label selector, for `#[schemars(schema_with)]`.
pub(crate) fn label_selector_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {
                "description": "Labels that must be there with exactly these values.",
                "type": "object",
                "maxProperties": 32,
                "additionalProperties": { "type": "string", "maxLength": 63 },
            },
            "matchExpressions": match_expressions(),
        },
    })
}

/// The schema of the expressions of a label selector.
pub(crate) fn match_expressions() -> serde_json::Value {
    serde_json::json!({
        "description": "Requirements that must all be met.",
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "required": ["key", "operator"],
            "properties": {
                "key": {
                    "description": "The label that the requirement is about.",
                    "type": "string", "minLength": 1, "maxLength": 316,
                },
                "operator": {
                    "description": "How the label is compared with the values.",
                    "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"],
                },
                "values": {
                    "description": "The values of In and NotIn. Exists and DoesNotExist take none.",
                    "type": "array",
                    "maxItems": 64,
                    "x-kubernetes-list-type": "atomic",
                    "items": { "type": "string", "maxLength": 63 },
                },
            },
            "x-kubernetes-validations": [{
                "rule": "self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 \
                    : !has(self.values) || size(self.values) == 0",
                "message": "In and NotIn need values, Exists and DoesNotExist take none",
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        let values = (!values.is_empty()).then(|| values.iter().map(|v| (*v).to_owned()).collect());
        let requirement = LabelSelectorRequirement { key: key.into(), operator: operator.into(), values };
        LabelSelector { match_expressions: Some(vec![requirement]), ..Default::default() }
    }

    #[test]
    fn matches_as_kubernetes_does() {
        let south = labels(&[("region", "south"), ("tier", "edge")]);
        assert!(matches(&LabelSelector::default(), &south));
        assert!(matches(&expression("region", "In", &["north", "south"]), &south));
        assert!(!matches(&expression("region", "NotIn", &["south"]), &south));
        assert!(matches(&expression("zone", "NotIn", &["a"]), &south));
        assert!(matches(&expression("tier", "Exists", &[]), &south));
        assert!(!matches(&expression("tier", "DoesNotExist", &[]), &south));
        assert!(!matches(&expression("tier", "Gt", &["1"]), &south));
    }

    #[test]
    fn text_form() {
        let selector = LabelSelector {
            match_labels: Some(labels(&[("app", "a"), ("tier", "backend")])),
            match_expressions: expression("region", "In", &["north", "south"]).match_expressions,
        };
        assert_eq!(to_text(&selector), "app=a,tier=backend,region in (north,south)");
        assert_eq!(to_text(&expression("staging", "DoesNotExist", &[])), "!staging");
    }
}
