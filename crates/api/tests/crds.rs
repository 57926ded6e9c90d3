//! The generated definitions: fresh in the tree, and shaped as a real API server wants them.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeMap, fs, path::Path};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");

#[test]
fn deploy_crds_is_fresh() {
    let rendered: BTreeMap<String, String> = portolan_api::render_crds().unwrap().into_iter().collect();
    let mut stored = BTreeMap::new();
    for folder in ["", "experimental/"] {
        for entry in fs::read_dir(Path::new(DIRECTORY).join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let name = path.file_name().unwrap().to_str().unwrap();
                stored.insert(format!("{folder}{name}"), fs::read_to_string(&path).unwrap());
            }
        }
    }
    let stale: Vec<&String> = rendered
        .keys()
        .chain(stored.keys())
        .filter(|name| rendered.get(*name) != stored.get(*name))
        .collect();
    assert!(stale.is_empty(), "deploy/crds is stale: run `cargo xtask generate` and commit {stale:?}");
}

#[test]
fn rendering_is_stable_and_reads_back() {
    let files = portolan_api::render_crds().unwrap();
    assert_eq!(files, portolan_api::render_crds().unwrap());
    for ((name, text), crd) in files.iter().zip(portolan_api::crds()) {
        let read: Value = serde_saphyr::from_str(text).unwrap();
        assert_eq!(read, serde_json::to_value(&crd).unwrap(), "{name}");
    }
}

#[test]
fn every_kind_follows_the_conventions() {
    let crds = portolan_api::crds();
    assert_eq!(crds.len(), 15);
    for crd in &crds {
        let name = crd.metadata.name.as_deref().unwrap();
        let version = &crd.spec.versions[0];
        assert_eq!(crd.spec.group, portolan_api::GROUP, "{name}");
        assert_eq!(version.name, portolan_api::VERSION, "{name}");
        assert_eq!(crd.spec.names.categories.as_deref(), Some(&["portolan".to_owned()][..]), "{name}");
        assert!(crd.spec.names.short_names.as_ref().is_some_and(|names| !names.is_empty()), "{name}");
        assert!(
            version.subresources.as_ref().is_some_and(|subresources| subresources.status.is_some()),
            "{name}"
        );
        let columns = version.additional_printer_columns.as_ref().unwrap();
        assert_eq!(columns.last().unwrap().name, "Age", "{name}");
        let schema =
            serde_json::to_value(version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap())
                .unwrap();
        let status = &schema["properties"]["status"]["properties"];
        assert!(status.get("conditions").is_some() && status.get("observedGeneration").is_some(), "{name}");
        check(name, &schema);
    }
}

#[test]
fn a_hub_gets_only_kinds_that_a_controller_serves() {
    let kinds = |crds: Vec<_>| -> Vec<String> {
        crds.into_iter().map(|crd: CustomResourceDefinition| crd.spec.names.kind).collect()
    };
    let served = kinds(portolan_api::served_crds());
    for kind in ["ForeignCluster", "MultiClusterDeployment", "MultiClusterJob", "MultiClusterService"] {
        assert!(served.iter().any(|each| each == kind), "{kind} is missing in {served:?}");
    }
    let all = kinds(portolan_api::all_crds().unwrap());
    for kind in portolan_api::EXPERIMENTAL_KINDS {
        assert!(!served.iter().any(|each| each == kind), "{kind} does nothing");
        assert!(all.iter().any(|each| each == kind), "{kind} is no kind any more");
    }
    assert!(kinds(portolan_api::hub_crds().unwrap()).contains(&"ClusterProfile".to_owned()));
}

#[test]
fn scopes_are_those_of_the_design() {
    let cluster: Vec<String> = portolan_api::crds()
        .into_iter()
        .filter(|crd| crd.spec.scope == "Cluster")
        .map(|crd| crd.spec.names.kind)
        .collect();
    assert_eq!(
        cluster,
        ["CloudProvisioner", "FeatureConfig", "ForeignCluster", "MultiClusterRescheduler", "SharingClass"]
    );
}

/// What a structural schema may not contain, and that every field is explained.
fn check(place: &str, schema: &Value) {
    for forbidden in ["$ref", "nullable", "anyOf", "oneOf", "allOf", "not", "uniqueItems", "title"] {
        assert!(schema.get(forbidden).is_none(), "{place} has {forbidden}");
    }
    let typed = schema.get("type").is_some() || schema.get("x-kubernetes-int-or-string").is_some();
    assert!(typed, "{place} has no type");
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        let description = property["description"].as_str().unwrap_or_default();
        assert!(description.contains('.'), "{place} is not explained in a sentence: {description:?}");
        check(&place, property);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(key) {
            check(&format!("{place}.{key}"), inner);
        }
    }
}
