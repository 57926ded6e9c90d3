//! The script: what is done, and when it has been done.

use super::fields::{ARROW, sequences};
use super::ground::Ground;
use super::history::{Kind, Life, Recorder};
use super::rest::at_rest;
use crate::conformance::{Answer, Answers};
use anyhow::{Context, Result, bail};
use kube::Client;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const OFTEN: Duration = Duration::from_millis(100);
/// How often an eviction that was refused is tried again.
const EVICT_AGAIN: Duration = Duration::from_millis(500);

/// Runs everything; what uses the nodes comes one after the other.
pub async fn run(ground: &Ground) -> Result<Answers> {
    let mut answers = Answers::new();
    let (deployment, jobs) = futures::try_join!(rollout(ground), jobs(ground))?;
    answers.extend(deployment);
    answers.extend(jobs);
    answers.extend(drain(ground).await?);
    answers.extend(node_loss(ground).await?);
    Ok(answers)
}

/// A deployment is created, updated, scaled up and down, and rolled back.
async fn rollout(ground: &Ground) -> Result<Answers> {
    let mut play = Play::begin(ground, "seq-rollout", &[]).await?;
    let path = "/apis/apps/v1/namespaces/seq-rollout/deployments";
    play.post(path, &deployment("web", 2, "v1", json!({}))).await?;
    play.settle("rollout/created", |view| view.complete("web", 2, "v1")).await?;
    let version =
        |version: &str| json!({"spec": {"template": {"metadata": {"labels": {"version": version}}}}});
    play.patch(&format!("{path}/web"), &version("v2")).await?;
    play.settle("rollout/updated", |view| view.complete("web", 2, "v2")).await?;
    play.patch(&format!("{path}/web"), &json!({"spec": {"replicas": 4}})).await?;
    play.settle("rollout/scaled up", |view| view.complete("web", 4, "v2")).await?;
    play.patch(&format!("{path}/web"), &json!({"spec": {"replicas": 1}})).await?;
    play.settle("rollout/scaled down", |view| view.complete("web", 1, "v2")).await?;
    play.patch(&format!("{path}/web"), &version("v1")).await?;
    play.settle("rollout/rolled back", |view| view.complete("web", 1, "v1")).await?;
    play.delete(&format!("{path}/web")).await?;
    play.settle("rollout/deleted", |view| {
        view.pods.is_empty() && view.recorder.present(Kind::ReplicaSet).is_empty()
    })
    .await?;
    Ok(play.answers)
}

/// A job that succeeds after a failure, one that gives up, and one of several pods.
async fn jobs(ground: &Ground) -> Result<Answers> {
    let mut play = Play::begin(ground, "seq-jobs", &[]).await?;
    let path = "/apis/batch/v1/namespaces/seq-jobs/jobs";
    // The pod reads how it shall end: in the sandbox from the annotation, for real from the config map.
    let endings = "/api/v1/namespaces/seq-jobs/configmaps";
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ending"}, "data": {"code": "1"}});
    play.post(endings, &map).await?;
    play.post(path, &job("retry", "1,0", json!({"backoffLimit": 3}))).await?;
    play.until("the first pod fails", |view| view.pods.iter().any(|pod| pod["status"]["phase"] == "Failed"))
        .await?;
    play.patch(&format!("{endings}/ending"), &json!({"data": {"code": "0"}})).await?;
    play.settle("jobs/retried", |view| view.over("retry")).await?;
    play.post(path, &job("many", "0", json!({"completions": 4, "parallelism": 2}))).await?;
    play.settle("jobs/many", |view| view.over("many")).await?;
    play.patch(&format!("{endings}/ending"), &json!({"data": {"code": "1"}})).await?;
    play.post(path, &job("hopeless", "1", json!({"backoffLimit": 0}))).await?;
    play.settle("jobs/hopeless", |view| view.over("hopeless")).await?;
    Ok(play.answers)
}

/// A node is drained, pod by pod as a budget allows.
async fn drain(ground: &Ground) -> Result<Answers> {
    let mut play = Play::begin(ground, "seq-drain", &[Kind::Node]).await?;
    let nodes = ground.nodes.each_ref().map(|node| format!("/api/v1/nodes/{node}"));
    let cordon = |on: bool| json!({"spec": {"unschedulable": on.then_some(true)}});
    play.patch(&nodes[0], &cordon(true)).await?;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "two"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "budgeted"}}},
    });
    play.post("/apis/policy/v1/namespaces/seq-drain/poddisruptionbudgets", &budget).await?;
    let deployments = "/apis/apps/v1/namespaces/seq-drain/deployments";
    play.post(deployments, &deployment("budgeted", 3, "v1", json!({}))).await?;
    play.settle("drain/before", |view| view.complete("budgeted", 3, "v1")).await?;
    play.patch(&nodes[0], &cordon(false)).await?;
    play.patch(&nodes[1], &cordon(true)).await?;
    play.settle("drain/cordoned", |view| view.complete("budgeted", 3, "v1")).await?;
    let there: Vec<String> = play.view().pods.iter().map(name).collect();
    for pod in there {
        play.evict(&pod).await?;
    }
    play.settle("drain/drained", |view| view.complete("budgeted", 3, "v1")).await?;
    play.patch(&nodes[1], &cordon(false)).await?;
    play.settle("drain/uncordoned", |view| view.all_open()).await?;
    play.delete(&format!("{deployments}/budgeted")).await?;
    play.until("the pods are gone", |view| view.pods.is_empty()).await?;
    Ok(play.answers)
}

/// A node falls silent, its pods are replaced, and it comes back.
async fn node_loss(ground: &Ground) -> Result<Answers> {
    let mut play = Play::begin(ground, "seq-loss", &[Kind::Node]).await?;
    let first = format!("/api/v1/nodes/{}", ground.nodes[0]);
    play.patch(&first, &json!({"spec": {"unschedulable": true}})).await?;
    let tolerations: Vec<Value> = ["not-ready", "unreachable"]
        .into_iter()
        .map(|taint| {
            json!({"key": format!("node.kubernetes.io/{taint}"), "operator": "Exists", "effect": "NoExecute",
                   "tolerationSeconds": 3})
        })
        .collect();
    let more = json!({"tolerations": tolerations});
    let deployments = "/apis/apps/v1/namespaces/seq-loss/deployments";
    play.post(deployments, &deployment("lost", 2, "v1", more)).await?;
    play.settle("loss/before", |view| view.complete("lost", 2, "v1")).await?;
    play.patch(&first, &json!({"spec": {"unschedulable": null}})).await?;
    play.settle("loss/uncordoned", |view| view.all_open()).await?;
    (ground.silence)(true).await?;
    play.settle("loss/silent", |view| {
        let stuck = view.pods.iter().filter(|pod| deleting(pod)).count();
        stuck == 2 && view.pods.len() == 4 && view.available("lost") == 2
    })
    .await?;
    (ground.silence)(false).await?;
    play.settle("loss/back", |view| view.complete("lost", 2, "v1")).await?;
    play.delete(&format!("{deployments}/lost")).await?;
    play.until("the pods are gone", |view| view.pods.is_empty()).await?;
    Ok(play.answers)
}

/// A scenario on its way.
struct Play<'a> {
    ground: &'a Ground,
    namespace: &'static str,
    recorder: Recorder,
    /// Kinds of the whole cluster that are part of it.
    shared: &'static [Kind],
    answers: Answers,
}

/// What is there now.
struct View<'a> {
    recorder: &'a Recorder,
    pods: Vec<Value>,
}

impl View<'_> {
    /// The rollout is complete, and pods that are not wanted are gone.
    fn complete(&self, deployment: &str, replicas: i64, version: &str) -> bool {
        let found =
            self.recorder.present(Kind::Deployment).into_iter().find(|found| name(found) == deployment);
        let Some(found) = found else { return false };
        let status = &found["status"];
        status["observedGeneration"] == found["metadata"]["generation"]
            && found["spec"]["replicas"] == replicas
            && ["replicas", "updatedReplicas", "availableReplicas"]
                .iter()
                .all(|field| status[field] == replicas)
            && self.pods.len() as i64 == replicas
            && self.pods.iter().all(|pod| pod["metadata"]["labels"]["version"] == version && !deleting(pod))
    }

    /// No node is cordoned, and none has a taint.
    fn all_open(&self) -> bool {
        let nodes = self.recorder.present(Kind::Node);
        nodes.iter().all(|node| {
            node["spec"]["unschedulable"] != true
                && node["spec"].get("taints").is_none_or(|taints| taints.as_array().is_none_or(Vec::is_empty))
        })
    }

    fn available(&self, deployment: &str) -> i64 {
        let found =
            self.recorder.present(Kind::Deployment).into_iter().find(|found| name(found) == deployment);
        found.and_then(|found| found["status"]["availableReplicas"].as_i64()).unwrap_or(0)
    }

    /// The job is over, and so are its pods.
    fn over(&self, job: &str) -> bool {
        let found = self.recorder.present(Kind::Job).into_iter().find(|found| name(found) == job);
        let conditions = found.map(|mut found| found["status"]["conditions"].take());
        conditions.as_ref().and_then(Value::as_array).is_some_and(|conditions| {
            conditions.iter().any(|each| matches!(each["type"].as_str(), Some("Complete" | "Failed")))
        })
    }
}

impl<'a> Play<'a> {
    async fn begin(ground: &'a Ground, namespace: &'static str, shared: &'static [Kind]) -> Result<Self> {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        send(&ground.client, "POST", "/api/v1/namespaces", &object).await?;
        // Pods are refused until their account is there.
        let account = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        let deadline = tokio::time::Instant::now() + ground.limit;
        while send(&ground.client, "GET", &account, &Value::Null).await.is_err() {
            anyhow::ensure!(
                tokio::time::Instant::now() < deadline,
                "{namespace} never got its service account"
            );
            tokio::time::sleep(OFTEN).await;
        }
        let recorder = Recorder::start(&ground.client, namespace).await?;
        Ok(Self { ground, namespace, recorder, shared, answers: Answers::new() })
    }

    fn view(&self) -> View<'_> {
        View { pods: self.recorder.present(Kind::Pod), recorder: &self.recorder }
    }

    async fn post(&self, path: &str, object: &Value) -> Result<()> {
        send(&self.ground.client, "POST", path, object).await.map(|_| ())
    }

    async fn patch(&self, path: &str, change: &Value) -> Result<()> {
        send(&self.ground.client, "PATCH", path, change).await.map(|_| ())
    }

    async fn delete(&self, path: &str) -> Result<()> {
        send(&self.ground.client, "DELETE", path, &json!({"propagationPolicy": "Background"}))
            .await
            .map(|_| ())
    }

    /// Evicts a pod as `kubectl drain` does: again and again until the budget allows it.
    async fn evict(&self, pod: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{}/pods/{pod}/eviction", self.namespace);
        let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}});
        let deadline = tokio::time::Instant::now() + self.ground.limit;
        loop {
            match send(&self.ground.client, "POST", &path, &body).await {
                Err(error) if is_refused(&error) && tokio::time::Instant::now() < deadline => {}
                other => return other.map(|_| ()),
            }
            tokio::time::sleep(EVICT_AGAIN).await;
        }
    }

    async fn until(&self, what: &str, holds: impl Fn(&View<'_>) -> bool) -> Result<()> {
        let deadline = tokio::time::Instant::now() + self.ground.limit;
        while !holds(&self.view()) {
            self.recorder.last_change()?;
            if tokio::time::Instant::now() > deadline {
                let pods = self.view().pods;
                bail!("waited in vain until {what}; pods: {}", json!(pods));
            }
            tokio::time::sleep(OFTEN).await;
        }
        Ok(())
    }

    /// Waits until it has been done and nothing happens any more, then writes down what happened.
    async fn settle(&mut self, step: &str, holds: impl Fn(&View<'_>) -> bool) -> Result<()> {
        loop {
            self.until(step, &holds).await?;
            let quiet_since = self.recorder.last_change()?;
            let waited = quiet_since.elapsed();
            match self.ground.quiet.checked_sub(waited) {
                Some(left) if !left.is_zero() => tokio::time::sleep(left).await,
                _ => break,
            }
        }
        let told = tell(&self.recorder.take(), self.shared, &self.ground.nodes);
        self.answers.insert(step.to_owned(), Answer(told));
        Ok(())
    }
}

/// What happened to everything, by role.
fn tell(lives: &[Life], shared: &[Kind], nodes: &[String; 2]) -> Value {
    let mut roles: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for life in lives {
        if life.kind == Kind::Node && !shared.contains(&life.kind) {
            continue;
        }
        let Some(last) = life.last() else { continue };
        let rest = if life.gone { json!("gone") } else { at_rest(life.kind, last, nodes) };
        let went_through = sequences(life, nodes);
        // Heart beats and the like, of which nothing is compared.
        let silent = matches!(life.kind, Kind::Node | Kind::Job | Kind::Pod) && !changes(&went_through);
        if silent && !life.gone && life.before.is_some() {
            continue;
        }
        let mut told = json!({"went through": went_through, "is": rest});
        // Where the nodes are no part of the play, the scheduler is free.
        if !shared.contains(&Kind::Node) {
            for part in ["went through", "is"] {
                told[part].as_object_mut().map(|part| part.remove("node"));
            }
        }
        roles.entry(role(life, last, nodes)).or_default().push(told);
    }
    let mut out = serde_json::Map::new();
    for (role, lives) in roles {
        let mut kinds: Vec<(Value, usize)> = Vec::new();
        for life in lives {
            match kinds.iter_mut().find(|(known, _)| *known == life) {
                Some((_, count)) => *count += 1,
                None => kinds.push((life, 1)),
            }
        }
        kinds.sort_by_key(|(life, _)| life.to_string());
        let told = kinds.into_iter().map(|(mut life, count)| {
            life["times"] = json!(count);
            life
        });
        out.insert(role, told.collect());
    }
    Value::Object(out)
}

fn changes(sequences: &Value) -> bool {
    let mut values = sequences.as_object().into_iter().flatten().map(|(_, value)| value.as_str());
    values.any(|value| value.is_some_and(|value| value.contains(ARROW)))
}

fn role(life: &Life, last: &Value, nodes: &[String; 2]) -> String {
    let version = last
        .pointer("/metadata/labels/version")
        .or_else(|| last.pointer("/spec/template/metadata/labels/version"));
    let version = version.and_then(Value::as_str).unwrap_or_default();
    match life.kind {
        Kind::Deployment => "deployment".to_owned(),
        Kind::ReplicaSet => format!("replica set {version}"),
        Kind::Job => format!("job {}", name(last)),
        Kind::Budget => "budget".to_owned(),
        Kind::Node => super::fields::node_role(last.pointer("/metadata/name"), nodes),
        Kind::Pod => {
            let code = last.pointer("/status/containerStatuses/0/state/terminated/exitCode");
            match (life.before.is_some(), life.gone, code) {
                (_, false, Some(code)) => format!("pod {version} that ended with {code}"),
                (false, false, None) => format!("pod {version} that came"),
                (true, true, _) => format!("pod {version} that went"),
                (false, true, _) => format!("pod {version} that came and went"),
                (true, false, None) => format!("pod {version} that stayed"),
            }
        }
    }
}

fn name(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some()
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<kube::Error>(), Some(kube::Error::Api(status)) if status.code == 429)
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Result<Value> {
    let bytes = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
    let kind = if method == "PATCH" { "application/strategic-merge-patch+json" } else { "application/json" };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", kind).body(bytes)?;
    client.request::<Value>(request).await.with_context(|| format!("{method} {path}"))
}

fn deployment(name: &str, replicas: i64, version: &str, more: Value) -> Value {
    let mut pod = json!({
        "terminationGracePeriodSeconds": 5,
        "containers": [{
            "name": "main", "image": "portolan.test/busybox:1",
            "command": ["sh", "-c", "trap 'exit 0' TERM; while true; do sleep 0.1; done"],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        }],
    });
    if let (Some(pod), Value::Object(more)) = (pod.as_object_mut(), more) {
        pod.extend(more);
    }
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": {"app": name, "version": version}}, "spec": pod},
        },
    })
}

fn job(name: &str, endings: &str, more: Value) -> Value {
    let code = json!({"name": "CODE", "valueFrom": {"configMapKeyRef": {"name": "ending", "key": "code"}}});
    let annotations =
        json!({"sandbox.portolan.dev/exit-code": endings, "sandbox.portolan.dev/run-time": "1s"});
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"annotations": annotations, "labels": {"version": name}},
            "spec": {
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 5,
                "containers": [{
                    "name": "main", "image": "portolan.test/busybox:1", "env": [code],
                    "command": ["sh", "-c", "sleep 1; exit $CODE"],
                }],
            },
        }},
    });
    if let (Some(spec), Value::Object(more)) = (job["spec"].as_object_mut(), more) {
        spec.extend(more);
    }
    job
}
