//! The custom resources on a real API server: accepted, refused with the right words, and the same when they come back.

use super::proof::eventually;
use super::{can_run, install_kinds, kubectl_apply};
use anyhow::{Context, Result, bail};
use http::Request;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use portolan_api::examples::{Example, Verdict, load};
use portolan_lab::{Lab, Seen};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[tokio::test(flavor = "multi_thread")]
async fn every_rule_is_held_by_a_real_api_server() -> Result<()> {
    if !can_run("every_rule_is_held_by_a_real_api_server") {
        return Ok(());
    }
    let lab = Lab::builder().clusters(1).start().await?;
    let hub = lab.cluster("c1")?;
    install_kinds(hub).await?;
    let server = Server { client: hub.client().await?, paths: paths(&portolan_api::crds()) };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/api/fixtures");
    let examples = load(&fixtures)?;
    let namespaces = examples.iter().flat_map(|example| &example.steps);
    let namespaces = namespaces.filter_map(|step| step["metadata"]["namespace"].as_str());
    for namespace in namespaces.filter(|name| *name != "default").collect::<BTreeSet<_>>() {
        kubectl_apply(
            hub,
            &[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})],
        )
        .await?;
    }
    let (mut accepted, mut refused, mut wrong) = (0, 0, Vec::new());
    for example in examples {
        match server.judge(&example).await {
            Ok(()) if example.verdict == Verdict::Accepted => accepted += 1,
            Ok(()) => refused += 1,
            Err(error) => wrong.push(format!("{}: {error:#}", example.name)),
        }
    }
    println!("{accepted} examples accepted and round-tripped, {refused} refused as expected");
    assert!(wrong.is_empty(), "the API server judged otherwise:\n{}", wrong.join("\n"));
    assert!(refused >= 40, "only {refused} rules have an example");

    eventually("kubectl explains our fields", async || {
        let explained = hub.kubectl(&["explain", "mcd.spec.replicasMode"]).await?;
        let ours = explained.contains("Whether replicas counts for each location");
        Ok(if ours { Seen::Ready(()) } else { Seen::NotYet(explained) })
    })
    .await?;
    lab.down()
}

struct Server {
    client: Client,
    paths: BTreeMap<String, (String, bool)>,
}

impl Server {
    /// Creates and updates as the example says, and holds the outcome against its verdict.
    async fn judge(&self, example: &Example) -> Result<()> {
        let mut stored: Option<Value> = None;
        for (index, step) in example.steps.iter().enumerate() {
            let last = index + 1 == example.steps.len();
            let outcome = match &stored {
                None => self.send("POST", &self.collection(step)?, step).await,
                Some(before) => {
                    let mut update = step.clone();
                    update["metadata"]["resourceVersion"] = before["metadata"]["resourceVersion"].clone();
                    self.send("PUT", &self.object(step)?, &update).await
                }
            };
            match (outcome, &example.verdict) {
                (Err(error), Verdict::Refused(expected)) if last => {
                    let text = format!("{error:#}");
                    if !text.contains(expected.as_str()) {
                        bail!("refused with other words: {text}; expected: {expected}");
                    }
                }
                (Ok(_), Verdict::Refused(expected)) if last => bail!("accepted; expected: {expected}"),
                (Ok(answer), _) => stored = Some(answer),
                (Err(error), _) => return Err(error.context("refused")),
            }
        }
        if let (Some(stored), Some(sent), Verdict::Accepted) =
            (&stored, example.steps.last(), &example.verdict)
        {
            contains(stored, sent, "")?;
            self.round_trip(stored).await?;
        }
        if let Some(stored) = &stored {
            self.send("DELETE", &self.object(stored)?, &Value::Null).await?;
        }
        Ok(())
    }

    /// Through our own type and back, the object is what it was.
    async fn round_trip(&self, stored: &Value) -> Result<()> {
        let typed = through_our_type(stored)?;
        let again = self
            .send("PUT", &self.object(stored)?, &typed)
            .await
            .context("our own type's form is refused")?;
        contains(&as_text(&again["spec"]), &as_text(&stored["spec"]), ".spec")
            .context("lost on the way back")?;
        contains(&as_text(&stored["spec"]), &as_text(&again["spec"]), ".spec")
            .context("added on the way back")
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        let request = Request::builder()
            .method(method)
            .uri(format!("{path}?fieldValidation=Strict"))
            .header("content-type", "application/json")
            .body(body)?;
        Ok(self.client.request::<Value>(request).await?)
    }

    fn collection(&self, object: &Value) -> Result<String> {
        let kind = object["kind"].as_str().context("an example has a kind")?;
        let (plural, namespaced) =
            self.paths.get(kind).with_context(|| format!("there is no kind {kind}"))?;
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let scope = if *namespaced { format!("namespaces/{namespace}/") } else { String::new() };
        Ok(format!("/apis/portolan.dev/v1alpha1/{scope}{plural}"))
    }

    fn object(&self, object: &Value) -> Result<String> {
        let name = object["metadata"]["name"].as_str().context("an example has a name")?;
        Ok(format!("{}/{name}", self.collection(object)?))
    }
}

fn paths(crds: &[CustomResourceDefinition]) -> BTreeMap<String, (String, bool)> {
    let path = |crd: &CustomResourceDefinition| {
        let names = &crd.spec.names;
        (names.kind.clone(), (names.plural.clone(), crd.spec.scope == "Namespaced"))
    };
    crds.iter().map(path).collect()
}

/// Everything that was sent is in what is stored.
fn contains(stored: &Value, sent: &Value, path: &str) -> Result<()> {
    match (stored, sent) {
        (Value::Object(stored), Value::Object(sent)) => sent.iter().try_for_each(|(field, value)| {
            let path = format!("{path}.{field}");
            contains(stored.get(field).with_context(|| format!("{path} was lost"))?, value, &path)
        }),
        (Value::Array(stored), Value::Array(sent)) if stored.len() == sent.len() => stored
            .iter()
            .zip(sent)
            .enumerate()
            .try_for_each(|(index, (stored, sent))| contains(stored, sent, &format!("{path}[{index}]"))),
        (stored, sent) => {
            anyhow::ensure!(stored == sent, "{path} was {sent} and is stored as {stored}");
            Ok(())
        }
    }
}

/// A quantity may be written as a number or as text, and means the same.
fn as_text(value: &Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Array(items) => items.iter().map(as_text).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), as_text(value))).collect(),
        other => other.clone(),
    }
}

fn through_our_type(object: &Value) -> Result<Value> {
    fn through<T: Serialize + DeserializeOwned>(object: &Value) -> Result<Value> {
        Ok(serde_json::to_value(T::deserialize(object)?)?)
    }
    match object["kind"].as_str().unwrap_or_default() {
        "CloudProvisioner" => through::<portolan_api::CloudProvisioner>(object),
        "ClusterReport" => through::<portolan_api::ClusterReport>(object),
        "FeatureConfig" => through::<portolan_api::FeatureConfig>(object),
        "ForeignCluster" => through::<portolan_api::ForeignCluster>(object),
        "Invitation" => through::<portolan_api::Invitation>(object),
        "LiveMigration" => through::<portolan_api::LiveMigration>(object),
        "MultiClusterDeployment" => through::<portolan_api::MultiClusterDeployment>(object),
        "MultiClusterHorizontalPodAutoscaler" => {
            through::<portolan_api::MultiClusterHorizontalPodAutoscaler>(object)
        }
        "MultiClusterJob" => through::<portolan_api::MultiClusterJob>(object),
        "MultiClusterRescheduler" => through::<portolan_api::MultiClusterRescheduler>(object),
        "PlacementReview" => through::<portolan_api::PlacementReview>(object),
        "MultiClusterService" => through::<portolan_api::MultiClusterService>(object),
        "NamespaceOffloading" => through::<portolan_api::NamespaceOffloading>(object),
        "ResourceOffer" => through::<portolan_api::ResourceOffer>(object),
        "SharingClass" => through::<portolan_api::SharingClass>(object),
        kind => bail!("there is no type for kind {kind}"),
    }
}
