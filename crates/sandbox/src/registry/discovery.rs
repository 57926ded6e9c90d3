//! What a cluster says that it serves.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Nature, Registry, Resource};

const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// The same, in the order in which custom resources tell them.
const CUSTOM_VERBS: &[&str] =
    &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];

impl Registry {
    /// `/apis`: all groups but the core one.
    pub(crate) fn group_list(&self) -> Value {
        let groups: Vec<Value> = self.groups().iter().map(|(name, versions)| group(name, versions)).collect();
        json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
    }

    /// `/apis/GROUP`.
    pub(crate) fn group(&self, name: &str) -> Option<Value> {
        let mut out = group(name, self.groups().get(name)?);
        out["kind"] = json!("APIGroup");
        out["apiVersion"] = json!("v1");
        Some(out)
    }

    /// `/api/v1` and `/apis/GROUP/VERSION`.
    pub(crate) fn resource_list(&self, group: &str, version: &str) -> Option<Value> {
        let rows: Vec<_> = self.all().filter(|row| row.group == group && row.version == version).collect();
        let first = rows.first()?;
        let resources: Vec<Value> = rows.iter().flat_map(|row| entries(row)).collect();
        Some(json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": first.api_version(),
            "resources": resources,
        }))
    }

    /// All groups and resources at once: the core group, or all others.
    pub(crate) fn aggregated(&self, core: bool) -> Value {
        let mut groups = self.groups();
        if core {
            groups = BTreeMap::from([("", vec!["v1"])]);
        }
        let group = |(name, versions): (&&str, &Vec<&str>)| {
            let versions: Vec<Value> =
                versions.iter().map(|version| self.aggregated_version(name, version)).collect();
            json!({"metadata": {"name": name, "creationTimestamp": null}, "versions": versions})
        };
        let items: Vec<Value> = groups.iter().map(group).collect();
        json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
    }

    fn aggregated_version(&self, group: &str, version: &str) -> Value {
        let rows = self.all().filter(|row| row.group == group && row.version == version);
        let resources: Vec<Value> = rows.map(|row| aggregated_row(row)).collect();
        json!({"version": version, "freshness": "Current", "resources": resources})
    }

    fn groups(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut groups: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in self.all().filter(|row| !row.group.is_empty()) {
            let versions = groups.entry(&row.group).or_default();
            if !versions.contains(&row.version.as_str()) {
                versions.push(&row.version);
            }
        }
        for versions in groups.values_mut() {
            versions.sort_by_key(|version| version_rank(version));
        }
        groups
    }
}

/// Stable versions before beta before alpha, greater numbers first.
fn version_rank(version: &str) -> (u8, std::cmp::Reverse<u32>, String) {
    let digits: String = version.chars().skip(1).take_while(char::is_ascii_digit).collect();
    let stage = if version.contains("alpha") { 2 } else { u8::from(version.contains("beta")) };
    (stage, std::cmp::Reverse(digits.parse().unwrap_or(0)), version.to_owned())
}

fn group(name: &str, versions: &[&str]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn entries(row: &Resource) -> Vec<Value> {
    let verbs: Vec<&str> = match () {
        () if row.custom => CUSTOM_VERBS.to_vec(),
        () if row.nature == Nature::Review => vec!["create"],
        () if row.nature == Nature::Metrics => vec!["get", "list"],
        () if row.is("", "namespaces") => {
            VERBS.iter().copied().filter(|verb| *verb != "deletecollection").collect()
        }
        () => VERBS.to_vec(),
    };
    let mut main = json!({
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": verbs,
    });
    if !row.short_names.is_empty() {
        main["shortNames"] = json!(row.short_names);
    }
    if !row.categories.is_empty() {
        main["categories"] = json!(row.categories);
    }
    let mut out = vec![main];
    let status = json!({
        "name": format!("{}/status", row.plural), "singularName": "", "namespaced": row.namespaced,
        "kind": row.kind, "verbs": ["get", "patch", "update"],
    });
    if row.status && row.custom {
        out.push(status.clone());
    }
    if row.scale.is_some() {
        out.push(json!({
            "name": format!("{}/scale", row.plural), "singularName": "", "namespaced": row.namespaced,
            "group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"],
        }));
    }
    let posted: &[(&str, &str, &str, &str)] = match (row.custom, row.group.as_str(), row.plural.as_str()) {
        (false, "", "pods") => &[("binding", "", "v1", "Binding"), ("eviction", "policy", "v1", "Eviction")],
        (false, "", "serviceaccounts") => &[("token", "authentication.k8s.io", "v1", "TokenRequest")],
        _ => &[],
    };
    for (subresource, group, version, kind) in posted {
        out.push(json!({
            "name": format!("{}/{subresource}", row.plural), "singularName": "", "namespaced": row.namespaced,
            "group": group, "version": version, "kind": kind, "verbs": ["create"],
        }));
    }
    if row.is("", "pods") {
        out.push(json!({
            "name": "pods/log", "singularName": "", "namespaced": true, "kind": "Pod", "verbs": ["get"],
        }));
    }
    if row.is("certificates.k8s.io", "certificatesigningrequests") {
        out.push(json!({
            "name": "certificatesigningrequests/approval", "singularName": "", "namespaced": false,
            "kind": row.kind, "verbs": ["get", "patch", "update"],
        }));
    }
    if row.status && !row.custom {
        out.push(status);
    }
    out
}

fn aggregated_row(row: &Resource) -> Value {
    let scope = if row.namespaced { "Namespaced" } else { "Cluster" };
    let mut listed = entries(row).into_iter();
    let main = listed.next().unwrap_or_default();
    let text = |entry: &Value, key: &str, other: &str| {
        entry.get(key).and_then(Value::as_str).map_or_else(|| other.to_owned(), str::to_owned)
    };
    let subresources: Vec<Value> = listed
        .map(|entry| {
            let name = text(&entry, "name", "");
            json!({
                "subresource": name.split_once('/').map_or("", |(_, sub)| sub),
                "responseKind": {
                    "group": text(&entry, "group", &row.group),
                    "version": text(&entry, "version", &row.version),
                    "kind": entry["kind"],
                },
                "verbs": entry["verbs"],
            })
        })
        .collect();
    let mut out = json!({
        "resource": row.plural,
        "responseKind": {"group": row.group, "version": row.version, "kind": row.kind},
        "scope": scope,
        "singularResource": row.singular,
        "verbs": main["verbs"],
    });
    for key in ["shortNames", "categories"] {
        if let Some(value) = main.get(key) {
            out[key] = value.clone();
        }
    }
    if !subresources.is_empty() {
        out["subresources"] = json!(subresources);
    }
    out
}
