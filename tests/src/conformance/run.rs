//! Carries the script out.

use super::normalise::Normaliser;
use super::step::{Kind, Scenario, Step};
use anyhow::{Context, Result, bail, ensure};
use futures::future::try_join_all;
use http::{Request, header};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use portolan_sandbox::{ClusterConfig, World, WorldConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The headers that clients go by.
const HEADERS: [&str; 4] = ["content-type", "warning", "retry-after", "location"];
/// Who writes, if a call does not say.
const AGENT: &str = "conformance/1.0";
const LIMIT: Duration = Duration::from_secs(20);
const OFTEN: Duration = Duration::from_millis(50);

/// An answer without what differs from run to run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer(pub Value);

/// Answers by `scenario/step`.
pub type Answers = BTreeMap<String, Answer>;

/// Runs all scenarios on a sandbox cluster.
pub async fn run_on_sandbox(scenarios: &[Scenario]) -> Result<Answers> {
    let world = World::new(WorldConfig::default());
    // Nobody may act on the sets of the script: the controllers of the real cluster are stopped, too.
    let sandbox = world.add_cluster(ClusterConfig::named("c1").stateful_sets(false));
    let client = sandbox.client("conformance");
    add_node(&client).await?;
    let deadline = tokio::time::Instant::now() + LIMIT;
    while sandbox.count("", "configmaps") == 0 && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(OFTEN).await;
    }
    // A real API server remembers nothing from before its start either.
    sandbox.compact();
    run(&client, scenarios).await
}

/// A node for pods to be bound to, on which nobody runs them.
pub async fn add_node(client: &Client) -> Result<()> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c1-1"}});
    let request = Request::post("/api/v1/nodes").body(serde_json::to_vec(&node)?)?;
    client.request::<Value>(request).await?;
    Ok(())
}

/// Runs all scenarios side by side.
pub async fn run(client: &Client, scenarios: &[Scenario]) -> Result<Answers> {
    let each = scenarios.iter().map(|scenario| async move {
        run_one(client, scenario).await.with_context(|| format!("scenario {}", scenario.name))
    });
    Ok(try_join_all(each).await?.into_iter().flatten().collect())
}

async fn run_one(client: &Client, scenario: &Scenario) -> Result<Answers> {
    let namespace = scenario.namespace();
    prepare(client, &namespace).await?;
    let mut normaliser = Normaliser::new(&namespace);
    let mut bodies: BTreeMap<&str, Value> = BTreeMap::new();
    let mut answers = Answers::new();
    for step in &scenario.steps {
        let at = format!("{}/{}", scenario.name, step.name);
        let fill = |text: &str| fill_in(text, &namespace, &bodies).with_context(|| at.clone());
        let (path, body) = (fill(&step.path)?, fill(&step.body)?);
        let raw = carry_out(client, step, &path, &body).await.with_context(|| at.clone())?;
        if !matches!(step.kind, Kind::Await(_)) {
            let answer = normaliser.normalise(&raw, step.part);
            ensure!(answers.insert(at.clone(), Answer(answer)).is_none(), "two steps are called {at}");
        }
        bodies.insert(step.name, raw.body);
    }
    Ok(answers)
}

/// An answer as it came.
pub(super) struct Raw {
    pub(super) code: u16,
    pub(super) headers: BTreeMap<&'static str, Vec<String>>,
    /// An object, an array of events, or a text that is not JSON.
    pub(super) body: Value,
}

async fn carry_out(client: &Client, step: &Step, path: &str, body: &str) -> Result<Raw> {
    let Kind::Await(wanted) = step.kind else {
        return tokio::time::timeout(LIMIT, send(client, step, path, body)).await.context("no answer")?;
    };
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let raw = send(client, step, path, body).await?;
        if wanted(raw.code, &raw.body) {
            return Ok(raw);
        }
        if tokio::time::Instant::now() > deadline {
            bail!("still {} {} after {LIMIT:?}", raw.code, raw.body);
        }
        tokio::time::sleep(OFTEN).await;
    }
}

async fn send(client: &Client, step: &Step, path: &str, body: &str) -> Result<Raw> {
    let mut request = Request::builder()
        .method(step.method)
        .uri(path)
        .header(header::USER_AGENT, AGENT)
        .header(header::ACCEPT, step.accept);
    if let Some(content_type) = step.content_type {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    for (name, value) in &step.headers {
        request = request.header(*name, *value);
    }
    let response = client.send(request.body(Body::from(body.as_bytes().to_vec()))?).await?;
    let (parts, body) = response.into_parts();
    let texts = |name: &'static str| {
        let values = parts.headers.get_all(name).iter();
        (name, values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect::<Vec<_>>())
    };
    let headers = HEADERS.into_iter().map(texts).filter(|(_, values)| !values.is_empty()).collect();
    let bytes = body.collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let body = match step.kind {
        Kind::Watch if parts.status.is_success() => text.lines().map(read).filter(is_event).collect(),
        _ => read(&text),
    };
    Ok(Raw { code: parts.status.as_u16(), headers, body })
}

/// Not a bookmark that a server sends whenever it finds the time; the one that ends the initial events counts.
fn is_event(event: &Value) -> bool {
    let ends_initial = event.pointer("/object/metadata/annotations/k8s.io~1initial-events-end").is_some();
    event["type"] != "BOOKMARK" || ends_initial
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Puts the namespace and texts of earlier answers where the script wants them.
fn fill_in(text: &str, namespace: &str, bodies: &BTreeMap<&str, Value>) -> Result<String> {
    let mut out = text.replace("{ns}", namespace);
    for (step, body) in bodies {
        let open = format!("{{{step}|");
        while let Some(start) = out.find(&open) {
            let end = start + out[start..].find('}').context("a brace is not closed")?;
            let pointer = out[start + open.len()..end].to_owned();
            let found = body.pointer(&pointer).and_then(Value::as_str);
            let found =
                found.with_context(|| format!("step {step} answered no text at {pointer}: {body}"))?;
            out.replace_range(start..=end, found);
        }
    }
    Ok(out)
}

/// The namespace of a scenario, with the account that pods run as: no controller is there to make it.
async fn prepare(client: &Client, namespace: &str) -> Result<()> {
    let accounts = format!("/api/v1/namespaces/{namespace}/serviceaccounts");
    let objects = [
        (
            "/api/v1/namespaces".to_owned(),
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}),
        ),
        (accounts, json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})),
    ];
    for (path, object) in objects {
        let step = super::step::post("prepare", path.clone(), &object);
        let raw = send(client, &step, &path, &step.body).await?;
        ensure!([201, 409].contains(&raw.code), "cannot create {path} {namespace}: {}", raw.body);
    }
    Ok(())
}
