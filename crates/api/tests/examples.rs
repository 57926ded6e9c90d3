//! The examples against schema and rules, without an API server. On the lab a real one judges the same files.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::{collections::BTreeSet, path::Path};

use portolan_api::examples::{self, Example, Verdict};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use support::{schema_of, validate, with_defaults};

fn load() -> Vec<Example> {
    examples::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")).unwrap()
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap()
}

#[test]
fn each_example_gets_its_verdict() {
    for example in load() {
        let schema = schema_of(kind(&example.steps[0]));
        let mut old: Option<Value> = None;
        let mut errors = Vec::new();
        for step in &example.steps {
            assert!(errors.is_empty(), "{}: an early step is refused: {errors:?}", example.name);
            let object = with_defaults(schema, step);
            errors = validate(schema, &object, old.as_ref());
            old = Some(object);
        }
        match &example.verdict {
            Verdict::Accepted => assert!(errors.is_empty(), "{}: {errors:?}", example.name),
            Verdict::Refused(message) => {
                let told = errors.iter().any(|error| error.contains(message));
                assert!(told, "{}: expected {message:?}, got {errors:?}", example.name);
            }
        }
    }
}

#[test]
fn every_rule_has_an_example_that_breaks_it() {
    let mut messages = BTreeSet::new();
    for crd in portolan_api::crds() {
        collect_messages(&serde_json::to_value(crd).unwrap(), &mut messages);
    }
    let expected: Vec<String> = load()
        .into_iter()
        .filter_map(|example| match example.verdict {
            Verdict::Refused(message) => Some(message),
            Verdict::Accepted => None,
        })
        .collect();
    assert!(
        messages.len() >= 40 && expected.len() >= 40,
        "{} rules, {} examples",
        messages.len(),
        expected.len()
    );
    let untested: Vec<&String> =
        messages.iter().filter(|rule| !expected.iter().any(|message| rule.contains(message))).collect();
    assert!(untested.is_empty(), "rules that no example in fixtures/invalid breaks: {untested:#?}");
}

fn collect_messages(value: &Value, messages: &mut BTreeSet<String>) {
    if let Some(rules) = value.get("x-kubernetes-validations").and_then(Value::as_array) {
        messages.extend(rules.iter().map(|rule| rule["message"].as_str().unwrap().to_owned()));
    }
    match value {
        Value::Object(object) => object.values().for_each(|inner| collect_messages(inner, messages)),
        Value::Array(items) => items.iter().for_each(|inner| collect_messages(inner, messages)),
        _ => {}
    }
}

#[test]
fn every_kind_has_a_minimal_and_a_full_example() {
    let names: BTreeSet<String> = load().into_iter().map(|example| example.name).collect();
    for crd in portolan_api::crds() {
        let kind = crd.spec.names.singular.unwrap();
        for size in ["minimal", "full"] {
            assert!(
                names.contains(&format!("{kind}-{size}")),
                "{kind}-{size}.yaml is missing in fixtures/valid"
            );
        }
    }
}

/// Reading an object into its type and writing it back loses nothing and adds only the defaults of the schema: so
/// the types and the schema agree about fields, names and defaults.
#[test]
fn accepted_examples_round_trip_through_their_types() {
    for example in load().into_iter().filter(|example| example.verdict == Verdict::Accepted) {
        for step in &example.steps {
            let stored = with_defaults(schema_of(kind(step)), step);
            let written = match kind(step) {
                "CloudProvisioner" => round_trip::<portolan_api::CloudProvisioner>(&stored),
                "ClusterReport" => round_trip::<portolan_api::ClusterReport>(&stored),
                "FeatureConfig" => round_trip::<portolan_api::FeatureConfig>(&stored),
                "ForeignCluster" => round_trip::<portolan_api::ForeignCluster>(&stored),
                "Invitation" => round_trip::<portolan_api::Invitation>(&stored),
                "LiveMigration" => round_trip::<portolan_api::LiveMigration>(&stored),
                "MultiClusterDeployment" => round_trip::<portolan_api::MultiClusterDeployment>(&stored),
                "MultiClusterHorizontalPodAutoscaler" => {
                    round_trip::<portolan_api::MultiClusterHorizontalPodAutoscaler>(&stored)
                }
                "MultiClusterJob" => round_trip::<portolan_api::MultiClusterJob>(&stored),
                "MultiClusterRescheduler" => round_trip::<portolan_api::MultiClusterRescheduler>(&stored),
                "MultiClusterService" => round_trip::<portolan_api::MultiClusterService>(&stored),
                "PlacementReview" => round_trip::<portolan_api::PlacementReview>(&stored),
                "ResourceOffer" => round_trip::<portolan_api::ResourceOffer>(&stored),
                "SharingClass" => round_trip::<portolan_api::SharingClass>(&stored),
                "NamespaceOffloading" => round_trip::<portolan_api::NamespaceOffloading>(&stored),
                other => panic!("{other} is not in this list"),
            };
            assert_eq!(normalized(&written), normalized(&stored), "{}", example.name);
        }
    }
}

fn round_trip<K: DeserializeOwned + Serialize>(stored: &Value) -> Value {
    let typed: K = serde_json::from_value(stored.clone()).unwrap();
    serde_json::to_value(typed).unwrap()
}

/// Quantities are written as text, whatever they were read from.
fn normalized(value: &Value) -> Value {
    match value {
        Value::Object(object) => object
            .iter()
            .map(|(key, inner)| match (key.as_str(), inner) {
                ("cpu" | "memory" | "value" | "averageValue", Value::Number(number)) => {
                    (key.clone(), number.to_string().into())
                }
                _ => (key.clone(), normalized(inner)),
            })
            .collect(),
        Value::Array(items) => items.iter().map(normalized).collect(),
        other => other.clone(),
    }
}
