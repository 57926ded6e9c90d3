//! The columns of MultiClusterReschedulers.

use super::{Cell, dash, joined, shown};
use crate::human::age;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Cell> {
    let status = &object["status"];
    let is_seen = status["conditions"].is_array() || status["staying"].is_array();
    let staying = status["staying"].as_array().map_or(0, Vec::len);
    let last_run = status["lastRunTime"].as_str().and_then(|time| time.parse().ok());
    vec![
        ("MOVING", shown(&status["moving"])),
        ("MOVED", shown(&status["moved"])),
        ("STAYING", if is_seen { staying.to_string() } else { dash() }),
        ("LAST RUN", last_run.map_or_else(dash, |time: Timestamp| age(Some(time), now))),
    ]
}

/// How many workloads stay in each cluster.
pub(super) fn wide(object: &Value) -> Vec<Cell> {
    let staying = object["status"]["staying"].as_array().into_iter().flatten();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for cluster in staying.filter_map(|each| each["cluster"].as_str()).flat_map(|names| names.split(',')) {
        *counts.entry(cluster.trim()).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(cluster, count)| format!("{cluster}:{count}"));
    vec![("CLUSTERS", joined(counts.collect()))]
}
