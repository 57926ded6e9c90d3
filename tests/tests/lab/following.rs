//! ConfigMaps and Secrets that follow a workload, into real pods.

use super::fleet::{Fleet, gone};
use super::proof::{TIMEOUT, eventually};
use anyhow::Result;
use portolan_lab::{Cluster, Seen};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

/// They go with a workload, stay as they are in the hub, move with it, and are gone with it.
pub(super) async fn prove(fleet: &Fleet) -> Result<()> {
    let (here, there) = (fleet.member("c2")?, fleet.member("c3")?);
    fleet.apply(settings("red")).await?;
    fleet.apply(object("Secret", "login", json!({"stringData": {"password": "geheim"}}))).await?;
    fleet.apply(needing()).await?;
    fleet.placed("needing", "c2=1").await?;
    in_the_pod(here, "red geheim").await?;

    fleet.apply(settings("blue")).await?;
    eventually("the ConfigMap in c2 is as it is in the hub", async || {
        let colour = colour(here).await?;
        Ok(if colour == "blue" { Seen::Ready(()) } else { Seen::NotYet(colour) })
    })
    .await?;

    let moved = json!({"spec": {"locations": ["c3"]}}).to_string();
    fleet.hub()?.kubectl(&["-n", NAMESPACE, "patch", "mcd/needing", "--type=merge", "-p", &moved]).await?;
    fleet.placed("needing", "c3=1").await?;
    in_the_pod(there, "blue geheim").await?;
    nothing_carried(here).await?;
    fleet.delete("needing").await?;
    nothing_carried(there).await?;
    let kept = ["-n", NAMESPACE, "get", "configmap/settings", "secret/login"];
    fleet.hub()?.kubectl(&kept).await.map(|_| ())
}

/// Waits until nothing that was carried is left in a member.
pub(super) async fn nothing_carried(member: &Cluster) -> Result<()> {
    gone(member, "configmaps,secrets", "portolan.dev/hub").await
}

async fn colour(member: &Cluster) -> Result<String> {
    member.kubectl(&["-n", NAMESPACE, "get", "configmap/settings", "-o", "jsonpath={.data.colour}"]).await
}

/// What the pod finds in its environment and in its volume.
async fn in_the_pod(member: &Cluster, expected: &str) -> Result<()> {
    member.kubectl(&["-n", NAMESPACE, "rollout", "status", "deployment/needing", TIMEOUT]).await?;
    eventually(&format!("the pod in {} has {expected:?}", member.name()), async || {
        let show = "echo $colour $(cat /login/password)";
        let found =
            member.kubectl(&["-n", NAMESPACE, "exec", "deployment/needing", "--", "sh", "-c", show]).await?;
        Ok(if found.trim() == expected { Seen::Ready(()) } else { Seen::NotYet(found) })
    })
    .await
}

fn settings(colour: &str) -> Value {
    object("ConfigMap", "settings", json!({"data": {"colour": colour}}))
}

/// An object of the namespace, with more fields.
pub(super) fn object(kind: &str, name: &str, with: Value) -> Value {
    let mut object =
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}});
    if let (Some(object), Value::Object(with)) = (object.as_object_mut(), with) {
        object.extend(with);
    }
    object
}

fn needing() -> Value {
    let mut object = workload("needing", 1, json!({"locations": ["c2"]}));
    let pod = &mut object["spec"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "login", "secret": {"secretName": "login"}}]);
    pod["containers"][0]["envFrom"] = json!([{"configMapRef": {"name": "settings"}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "login", "mountPath": "/login"}]);
    object
}
