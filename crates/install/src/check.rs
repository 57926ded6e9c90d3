//! Values as a user gives them, and the rules of values that types do not say.

use crate::values::{defaults, drop_nulls};
use crate::{Provider, Values, ValuesError, merge};
use portolan_api::words::{is_label, is_name};
use portolan_control::PrometheusService;
use serde_json::Value;
use std::net::IpAddr;

/// Values out of what differs from the defaults.
///
/// # Errors
/// A value is unknown, of the wrong type, or cannot be used.
pub fn parse(overrides: &Value) -> Result<Values, ValuesError> {
    let mut whole = merge(defaults(), overrides);
    drop_nulls(&mut whole);
    let values: Values = serde_path_to_error::deserialize(&whole).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { "(all)".to_owned() } else { path };
        ValuesError::new(path, error.into_inner().to_string())
    })?;
    check(&values)?;
    Ok(values)
}

fn check(values: &Values) -> Result<(), ValuesError> {
    let cluster = &values.cluster;
    let wrong = |path: &str, problem: String| Err(ValuesError::new(path, problem));
    if !cluster.name.is_empty() && !is_name(&cluster.name) {
        return wrong(
            "cluster.name",
            format!(
                "{:?} is no name: give one of at most 63 lower-case letters, digits and dashes",
                cluster.name
            ),
        );
    }
    let monitoring = &values.monitoring;
    for (path, labels) in [
        ("cluster.labels", &cluster.labels),
        ("monitoring.labels", &monitoring.labels),
        ("monitoring.dashboardLabels", &monitoring.dashboard_labels),
    ] {
        if let Some((key, value)) = labels.iter().find(|(key, value)| !is_label(key, value)) {
            return wrong(path, format!("{key}={value} cannot be a label in Kubernetes"));
        }
    }
    if !cluster.provider.is_empty() && cluster.provider.parse::<Provider>().is_err() {
        let known = Provider::ALL.map(Provider::name).join(", ");
        return wrong("cluster.provider", format!("{:?} is none of {known}", cluster.provider));
    }
    if !cluster.api_server_url.is_empty() && !cluster.api_server_url.starts_with("https://") {
        return wrong(
            "cluster.apiServerURL",
            format!("{:?} is no URL such as https://10.0.0.5:6443", cluster.api_server_url),
        );
    }
    range("cluster.podCIDR", &cluster.pod_cidr)?;
    range("cluster.serviceCIDR", &cluster.service_cidr)?;
    for (index, subnet) in cluster.reserved_subnets.iter().enumerate() {
        let path = format!("cluster.reservedSubnets[{index}]");
        if subnet.is_empty() {
            return wrong(&path, "it is empty".to_owned());
        }
        range(&path, subnet)?;
    }
    sharing(&cluster.sharing)?;
    image(values)?;
    let prometheus = &values.controller.prometheus;
    if !prometheus.is_empty() {
        prometheus
            .parse::<PrometheusService>()
            .map_err(|problem| ValuesError::new("controller.prometheus", problem.to_string()))?;
    }
    for name in values.controller.resources.keys() {
        if !["requests", "limits", "claims"].contains(&name.as_str()) {
            return wrong(
                &format!("controller.resources.{name}"),
                "unknown field, expected requests or limits".into(),
            );
        }
    }
    Ok(())
}

/// One range of addresses or, in a dual-stack cluster, several with commas between them.
fn range(path: &str, text: &str) -> Result<(), ValuesError> {
    for each in text.split(',').filter(|_| !text.is_empty()) {
        let parsed = each.split_once('/').and_then(|(address, length)| {
            let longest = match address.parse::<IpAddr>().ok()? {
                IpAddr::V4(_) => 32,
                IpAddr::V6(_) => 128,
            };
            length.parse::<u8>().ok().filter(|length| *length <= longest)
        });
        if parsed.is_none() {
            return Err(ValuesError::new(
                path,
                format!("{each:?} is no range of addresses such as 10.244.0.0/16"),
            ));
        }
    }
    Ok(())
}

fn sharing(text: &str) -> Result<(), ValuesError> {
    let percent = text.strip_suffix('%').and_then(|number| number.parse::<u8>().ok());
    if text.is_empty() || percent.is_some_and(|percent| percent <= 100) {
        return Ok(());
    }
    Err(ValuesError::new("cluster.sharing", format!("{text:?} is no percentage from 0% to 100%")))
}

fn image(values: &Values) -> Result<(), ValuesError> {
    let image = &values.image;
    for (path, text) in [("image.repository", &image.repository), ("image.tag", &image.tag)] {
        let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:".contains(&byte);
        if text.is_empty() || !text.bytes().all(is_fine) {
            return Err(ValuesError::new(path, format!("{text:?} cannot be part of the name of an image")));
        }
    }
    let hex = image.digest.strip_prefix("sha256:").unwrap_or_default();
    if !image.digest.is_empty() && (hex.len() != 64 || !hex.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Err(ValuesError::new(
            "image.digest",
            format!("{:?} is not of the form sha256:…", image.digest),
        ));
    }
    if !["IfNotPresent", "Always", "Never"].contains(&image.pull_policy.as_str()) {
        let problem = format!("{:?} is none of IfNotPresent, Always, Never", image.pull_policy);
        return Err(ValuesError::new("image.pullPolicy", problem));
    }
    Ok(())
}
