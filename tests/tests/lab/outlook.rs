//! `portolan plan` and `portolan explain`, by the binary against a real hub and real members.

use super::fleet::Fleet;

use anyhow::{Context, Result, ensure};
use portolan_tests::{NAMESPACE, workload};
use serde_json::{Value, json};

/// What `plan` says comes true, and it changes nothing itself; what cannot be placed is told with numbers.
pub(super) async fn prove(fleet: &Fleet) -> Result<()> {
    let wish = workload("planned", 2, json!({"locations": ["c2", "c3"]}));
    let (code, plan) = plan(fleet, &wish).await?;
    let step = |cluster: &str, before: u32, after: u32| {
        let same = |each: &&Value| each["cluster"] == cluster;
        plan["clusters"].as_array().into_iter().flatten().find(same).is_some_and(|each| {
            each["before"] == before
                && each["after"] == after
                && each["verdict"].as_str().is_some_and(|why| !why.is_empty())
        })
    };
    ensure!(code == 3 && step("c2", 0, 2) && step("c3", 0, 2), "exit code {code}: {plan}");
    let there = ["-n", NAMESPACE, "get", "mcd/planned", "--ignore-not-found", "-o", "name"];
    let made = fleet.hub()?.kubectl(&there).await?;
    ensure!(made.is_empty(), "planning made {made}");

    fleet.apply(wish.clone()).await?;
    fleet.placed("planned", "c2=2,c3=2").await?;
    let (code, plan) = self::plan(fleet, &wish).await?;
    ensure!(code == 0 && plan["pending"] == 0, "nothing is left to do, and it exits with {code}: {plan}");

    let mut huge = workload("huge", 1, json!({"locations": ["c2"]}));
    huge["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("5k");
    let (code, plan) = self::plan(fleet, &huge).await?;
    let why = plan["refusals"].to_string();
    ensure!(code == 4 && why.contains("a replica needs cpu 5000"), "exit code {code}: {plan}");

    let told = explain(fleet, "mcd/planned").await?;
    for expected in ["4 replicas placed, 0 pending", "c2", "c3", "held 2 before", "free for it: cpu"] {
        ensure!(told.contains(expected), "{expected:?} is not told in:\n{told}");
    }
    by_a_tenant(fleet).await?;
    fleet.delete("planned").await
}

/// A user whose only rights are those on reviews in one namespace of the hub plans and explains there, and nowhere else.
async fn by_a_tenant(fleet: &Fleet) -> Result<()> {
    let hub = fleet.hub()?;
    let rbac = |kind: &str, name: &str, more: Value| {
        let mut object = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": kind,
            "metadata": {"name": name, "namespace": NAMESPACE},
        });
        if let (Some(object), Value::Object(more)) = (object.as_object_mut(), more) {
            object.extend(more);
        }
        object
    };
    let rule = json!({"apiGroups": ["portolan.dev"], "resources": ["placementreviews"], "verbs": ["create", "get", "delete"]});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant", "namespace": NAMESPACE}});
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reviews"});
    let subject = json!([{"kind": "ServiceAccount", "name": "tenant", "namespace": NAMESPACE}]);
    let objects = [
        account,
        rbac("Role", "reviews", json!({"rules": [rule]})),
        rbac("RoleBinding", "reviews", json!({"roleRef": role, "subjects": subject})),
    ];
    fleet.account("tenant", NAMESPACE, "tenant", &objects).await?;
    let tenant = async |arguments: &[&str]| fleet.portolan_as("/lab/tenant.kubeconfig", arguments).await;

    let (code, printed, complained) = tenant(&["explain", "mcd/planned", "-n", NAMESPACE]).await?;
    ensure!(code == 0 && printed.contains("4 replicas placed"), "explain: {code} {printed} {complained}");
    let fewer = workload("planned", 1, json!({"locations": ["c2", "c3"]}));
    let dir = hub.control_plane().dir();
    std::fs::write(dir.join("wish.yaml"), fewer.to_string())?;
    let (code, printed, complained) = tenant(&["plan", "-f", "/lab/wish.yaml", "-o", "json"]).await?;
    let plan: Value = serde_json::from_str(&printed).with_context(|| format!("plan: {code} {complained}"))?;
    ensure!(plan["removedRunningReplicas"] == 2, "plan: {code} {plan} {complained}");
    let (code, _, complained) = tenant(&["explain", "mcd/planned", "-n", "default"]).await?;
    ensure!(code == 1 && complained.contains("forbidden"), "explain elsewhere: {code} {complained}");
    Ok(())
}

/// What `portolan explain` prints about a workload, such as `mcd/web`.
pub(super) async fn explain(fleet: &Fleet, workload: &str) -> Result<String> {
    let arguments = ["explain", workload, "-n", NAMESPACE, "--timeout", "300s"];
    let (code, printed, complained) = fleet.portolan(&arguments).await?;
    // 4: something has no cluster.
    ensure!(matches!(code, 0 | 4), "portolan explain exits with {code}: {complained}");
    Ok(printed)
}

/// What `portolan plan` says of a workload, with its exit code.
pub(super) async fn plan(fleet: &Fleet, wish: &Value) -> Result<(i32, Value)> {
    let file = fleet.hub()?.control_plane().dir().join("wish.yaml");
    std::fs::write(&file, wish.to_string())?;
    let arguments = ["plan", "-f", "/lab/wish.yaml", "-o", "json", "--timeout", "300s"];
    let (code, printed, complained) = fleet.portolan(&arguments).await?;
    let plan = serde_json::from_str(&printed)
        .with_context(|| format!("portolan plan exits with {code}: {printed} {complained}"))?;
    Ok((code, plan))
}
