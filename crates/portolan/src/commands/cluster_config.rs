//! What a cluster tells of itself: what of the values of its installation peering reads.

use crate::failure::Failure;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, Client};
use portolan_api::words::{is_label, is_name};
use portolan_install::{CLUSTER_CONFIG, NAMESPACE};
use portolan_runtime::call;
use std::collections::BTreeMap;

/// What peering reads of the ConfigMap `portolan-cluster`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClusterConfig {
    /// The name by which other clusters know it.
    pub(super) name: Option<String>,
    /// Its labels.
    pub(super) labels: BTreeMap<String, String>,
    /// The URL by which other clusters reach its API server.
    pub(super) server: Option<String>,
}

/// What a cluster tells of itself; nothing where Portolan is not installed, or where the caller may not look.
pub(super) async fn read(cluster: &Client) -> Result<ClusterConfig, Failure> {
    let api: Api<ConfigMap> = Api::namespaced(cluster.clone(), NAMESPACE);
    match call(format!("read ConfigMap {NAMESPACE}/{CLUSTER_CONFIG}"), api.get_opt(CLUSTER_CONFIG)).await {
        Ok(found) => Ok(found.and_then(|found| found.data).map(of).unwrap_or_default()),
        Err(error) if error.code() == Some(403) => Ok(ClusterConfig::default()),
        Err(error) => Err(Failure::call(&error)),
    }
}

/// What cannot be a name or a label in Kubernetes is left out.
fn of(mut data: BTreeMap<String, String>) -> ClusterConfig {
    let labels = data.get("labels").and_then(|text| serde_json::from_str(text).ok());
    let mut labels: BTreeMap<String, String> = labels.unwrap_or_default();
    labels.retain(|key, value| is_label(key, value));
    ClusterConfig {
        name: data.remove("name").filter(|name| is_name(name)),
        labels,
        server: data.remove("apiServerURL").filter(|url| !url.is_empty()),
    }
}

/// The name of a context, as far as it can be the name of a cluster.
pub(super) fn as_name(context: &str) -> String {
    let letter = |each: char| {
        let lower = each.to_ascii_lowercase();
        if lower.is_ascii_lowercase() || lower.is_ascii_digit() { lower } else { '-' }
    };
    let name: String = context.chars().map(letter).take(40).collect();
    name.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_empty_or_cannot_be_used_is_not_told() {
        let data = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(
            of(data(&[("name", ""), ("apiServerURL", ""), ("labels", "no")])),
            ClusterConfig::default()
        );
        let read = of(data(&[
            ("name", "paris"),
            ("apiServerURL", "https://paris.example"),
            ("labels", r#"{"tier": "edge", "not a label": "x"}"#),
        ]));
        assert_eq!(
            (read.name.as_deref(), read.server.as_deref()),
            (Some("paris"), Some("https://paris.example"))
        );
        assert_eq!(read.labels, data(&[("tier", "edge")]));
    }
}
