//! The credential of `peer` on real Kubernetes, held against the API server's audit log: every request of the hub is
//! covered by the table of rights, and every row of the table is used.

use super::proof::{TIMEOUT, eventually, shown};
use super::{can_run, kubectl_apply};
use anyhow::{Context, Result, ensure};
use jiff::Timestamp;
use portolan_api::foreigncluster::PrometheusQuery;
use portolan_control::fleet::Credentials;
use portolan_control::peering::{
    Address, Names, Peer, Right, Scope, Sides, identity, join, leave_hub, leave_member, rights,
};
use portolan_control::{Settings, run_with};
use portolan_lab::{Cluster, Lab, Seen};
use portolan_runtime::{Clock, Seed, Term};
use portolan_tests::{NAMESPACE, autoscaler, job, open_namespace, service, workload};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinSet;

/// Where the member's Prometheus is.
const MONITORING: &str = "monitoring";

/// What the audit log says of one request: where, verb, group, resource with subresource.
type Request = (Scope, String, String, String);

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_does_what_its_role_says_and_nothing_else() -> Result<()> {
    if !can_run("the_hub_does_what_its_role_says_and_nothing_else") {
        return Ok(());
    }
    let lab = Lab::builder().clusters(2).audit().start().await?;
    shown(&lab, Box::pin(by_its_role(&lab))).await?;
    lab.down()
}

async fn by_its_role(lab: &Lab) -> Result<()> {
    let (hub, member) = (lab.cluster("c1")?, lab.cluster("c2")?);
    let sides = Sides { hub: hub.client().await?, member: member.client().await?, address: address(member)? };
    let peer = Peer {
        name: "c2".to_owned(),
        namespaces: vec![NAMESPACE.to_owned()],
        token_lifetime: 600,
        prometheus: Some(PrometheusQuery {
            namespace: MONITORING.to_owned(),
            service: "prometheus".to_owned(),
            port: 9090,
            query: "sum by (namespace, workload) (rate(requests_total[1m]))".to_owned(),
        }),
        ..Peer::default()
    };
    tells_traffic(member).await?;
    has_reports(member).await?;
    // Time is set so that the token is due for renewal at once: half of its ten minutes is over.
    let joined_at = Timestamp::now() - jiff::SignedDuration::from_secs(900);
    join(&sides, &peer, joined_at, &|_| ()).await?;
    let _controllers = control(hub).await?;
    hub.kubectl(&["wait", "--for=condition=Ready", "foreigncluster/c2", TIMEOUT]).await?;
    let hub_id = identity(&sides.hub, "the hub").await?;
    reports_are_asked_for(member, &Names::of(&hub_id).account).await?;
    let token = "jsonpath={.metadata.annotations.portolan\\.dev/renew-at}";
    eventually("the token is renewed", async || {
        let at = hub.kubectl(&["-n", "portolan", "get", "secret", "c2", "-o", token]).await?;
        let at: Timestamp = at.parse().context("renew-at is a time")?;
        Ok(if at > Timestamp::now() { Seen::Ready(()) } else { Seen::NotYet(at.to_string()) })
    })
    .await?;

    the_open_connection_uses_the_token_of_the_secret(hub, member, &sides, &peer).await?;

    kubectl_apply(hub, &[open_namespace()]).await?;
    kubectl_apply(
        hub,
        &[service("web", json!({"app": "web"})), job("sum", 2, 1, json!({"locations": ["c2"]}))],
    )
    .await?;
    let account = format!("system:serviceaccount:portolan:{}", Names::of(&hub_id).account);
    everything_that_is_done_with_a_deployment(hub, member).await?;
    names_that_are_taken(hub, member, &account).await?;
    // Nobody but Prometheus tells the traffic of this one, through the proxy of its Service.
    let by_traffic = json!({"placementPolicy": "traffic-aware", "numberOfLocations": 1});
    kubectl_apply(hub, &[workload("busy", 1, by_traffic)]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/busy", TIMEOUT]).await?;
    // Without a metrics server in the member an autoscaler says so; its request is in the log all the same.
    kubectl_apply(hub, &[autoscaler("busy", "busy", 1, 3)]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=ScalingActive=False", "mchpa/busy", TIMEOUT])
        .await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mchpa/busy", "mcd/busy", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Complete", "mcj/sum", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcj/sum", "mcs/web", TIMEOUT]).await?;

    let log = member.audit_log()?;
    let (used, refused) = requests(&log, &account)?;
    ensure!(refused.is_empty(), "refused to the hub: {refused:#?}");
    let allowed: BTreeSet<Request> = rights().iter().flat_map(rows).collect();
    // A right in the whole cluster holds in each namespace.
    let everywhere = |(_, verb, group, resource): &Request| {
        allowed.contains(&(Scope::Cluster, verb.clone(), group.clone(), resource.clone()))
    };
    let missing: Vec<_> = used.difference(&allowed).filter(|each| !everywhere(each)).collect();
    ensure!(missing.is_empty(), "used, but not in the table: {missing:#?}");
    let unused: Vec<_> = allowed.difference(&used).collect();
    ensure!(unused.is_empty(), "in the table, but not used: {unused:#?}");

    is_published(hub, member).await?;
    ensure!(leave_hub(&sides.hub, "c2").await?, "there was nothing of it in the hub");
    let profile = ["-n", "portolan", "get", "clusterprofiles", "-o", "name"];
    eventually("its ClusterProfile goes with it", async || {
        let left = hub.kubectl(&profile).await?;
        Ok(if left.is_empty() { Seen::Ready(()) } else { Seen::NotYet(left) })
    })
    .await?;
    let came = leave_member(&sides.member, &hub_id).await?;
    ensure!(came.stays.is_empty(), "{:?}", came.stays);
    eventually("the namespaces that peering made go", async || {
        let left = member.kubectl(&["get", "namespaces", "-o", "name"]).await?;
        let ours = left.lines().any(|each| ["namespace/shop", "namespace/portolan"].contains(&each));
        Ok(if ours { Seen::NotYet(left) } else { Seen::Ready(()) })
    })
    .await?;
    let left = member
        .kubectl(&[
            "get",
            "clusterroles,clusterrolebindings,rolebindings,serviceaccounts",
            "-A",
            "-o",
            "name",
        ])
        .await?;
    ensure!(!left.contains("hub-"), "{left}");
    Ok(())
}

/// The first tokens are revoked by deleting the account that they are bound to; peering again makes the account and a token
/// anew. A member that is Ready with that credential is reached by the connection that was open all the time, since
/// nothing but the token in its Secret has changed.
async fn the_open_connection_uses_the_token_of_the_secret(
    hub: &Cluster,
    member: &Cluster,
    sides: &Sides,
    peer: &Peer,
) -> Result<()> {
    let account = Names::of(&identity(&sides.hub, "the hub").await?).account;
    member.kubectl(&["-n", "portolan", "delete", "serviceaccount", &account, TIMEOUT]).await?;
    join(sides, peer, Timestamp::now(), &|_| ()).await?;
    eventually("the member accepts the new token", async || {
        let secret = ["-n", "portolan", "get", "secret", "c2", "-o", "jsonpath={.metadata.resourceVersion}"];
        let used = ["get", "foreigncluster", "c2", "-o", "jsonpath={.status.credentialsResourceVersion}"];
        let (secret, used) = (hub.kubectl(&secret).await?, hub.kubectl(&used).await?);
        Ok(if secret == used { Seen::Ready(()) } else { Seen::NotYet(format!("{used}, not {secret}")) })
    })
    .await?;
    hub.kubectl(&["wait", "--for=condition=Ready", "foreigncluster/c2", TIMEOUT]).await?;
    Ok(())
}

/// A pod that answers as Prometheus does, whatever it is asked.
async fn tells_traffic(member: &Cluster) -> Result<()> {
    let metric = json!({"namespace": NAMESPACE, "workload": "busy"});
    let result = json!([{"metric": metric, "value": [1, "12.5"]}]);
    let answer = json!({"status": "success", "data": {"resultType": "vector", "result": result}});
    let serve = format!(
        "mkdir -p /www/api/v1 && echo '{answer}' > /www/api/v1/query && exec httpd -f -p 9090 -h /www"
    );
    let metadata = json!({"name": "prometheus", "namespace": MONITORING, "labels": {"app": "prometheus"}});
    let container = json!({
        "name": "main", "image": "portolan.test/busybox:1", "command": ["sh", "-c", serve],
        "readinessProbe": {"httpGet": {"path": "/api/v1/query", "port": 9090}, "periodSeconds": 1},
    });
    let spec = json!({"terminationGracePeriodSeconds": 0, "containers": [container]});
    let ports = json!([{"port": 9090}]);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MONITORING}});
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"selector": {"app": "prometheus"}, "ports": ports},
    });
    kubectl_apply(member, &[namespace, service]).await?;
    eventually("the namespace has its account", async || {
        member.kubectl(&["-n", MONITORING, "get", "serviceaccount/default"]).await.map(Seen::Ready)
    })
    .await?;
    kubectl_apply(member, &[json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})])
        .await?;
    let ready = ["-n", MONITORING, "wait", "--for=condition=Ready", "pod/prometheus", TIMEOUT];
    member.kubectl(&ready).await.map(|_| ())
}

/// Other programs read of the member in its ClusterProfile.
async fn is_published(hub: &Cluster, member: &Cluster) -> Result<()> {
    let id = member.kubectl(&["get", "namespace/kube-system", "-o", "jsonpath={.metadata.uid}"]).await?;
    eventually("the member's ClusterProfile tells who it is and how it is", async || {
        let text = hub.kubectl(&["-n", "portolan", "get", "clusterprofile/c2", "-o", "json"]).await?;
        let profile: Value = serde_json::from_str(&text)?;
        let has = |list: &str, name: &str, value: &str, key: &str| {
            let all = profile["status"][list].as_array().into_iter().flatten();
            all.into_iter()
                .any(|each| each[key] == name && (each["value"] == value || each["status"] == value))
        };
        let told = has("properties", "clusterset.k8s.io/cluster-id", &id, "name")
            && has("conditions", "ControlPlaneHealthy", "True", "type")
            && profile["status"]["version"]["kubernetes"].is_string()
            && profile["spec"]["clusterManager"]["name"] == "portolan";
        Ok(if told { Seen::Ready(()) } else { Seen::NotYet(profile.to_string()) })
    })
    .await
}

/// Created, scaled, changed by somebody in the member, updated and deleted; with what it refers to.
async fn everything_that_is_done_with_a_deployment(hub: &Cluster, member: &Cluster) -> Result<()> {
    let dependency = |kind: &str, name: &str| {
        let metadata = json!({"name": name, "namespace": NAMESPACE});
        json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"key": "dmFsdWU="}})
    };
    kubectl_apply(hub, &[dependency("ConfigMap", "settings"), dependency("Secret", "login")]).await?;
    let mut web = workload("web", 1, json!({"locations": ["c2"]}));
    web["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "settings"}}, {"secretRef": {"name": "login"}}]);
    kubectl_apply(hub, &[web]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcd/web", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "wait", "--for=condition=Ready", "mcs/web", TIMEOUT]).await?;
    hub.kubectl(&["-n", NAMESPACE, "scale", "mcd/web", "--replicas=2"]).await?;
    replicas(member, "2").await?;
    member.kubectl(&["-n", NAMESPACE, "scale", "deployment/web", "--replicas=0"]).await?;
    replicas(member, "2").await?;
    let label = json!({"spec": {"template": {"metadata": {"labels": {"changed": "yes"}}}}}).to_string();
    hub.kubectl(&["-n", NAMESPACE, "patch", "mcd/web", "--type=merge", "-p", &label]).await?;
    eventually("the new template is rolled out", async || {
        let pods =
            member.kubectl(&["-n", NAMESPACE, "get", "pods", "-l", "changed=yes", "-o", "name"]).await?;
        Ok(if pods.lines().count() == 2 { Seen::Ready(()) } else { Seen::NotYet(pods) })
    })
    .await?;
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcd/web", TIMEOUT]).await?;
    Ok(())
}

/// Where something of the same name is already, it is looked at, and left alone.
async fn names_that_are_taken(hub: &Cluster, member: &Cluster, account: &str) -> Result<()> {
    let object = |version: &str, kind: &str, rest: Value| {
        let mut object = rest;
        object["apiVersion"] = json!(version);
        object["kind"] = json!(kind);
        object["metadata"] = json!({"name": "taken", "namespace": NAMESPACE});
        object
    };
    let labels = json!({"app": "stranger"});
    let containers = json!([{"name": "main", "image": "portolan.test/busybox:1"}]);
    let template = |restart: &str| json!({"metadata": {"labels": labels}, "spec": {"restartPolicy": restart, "containers": containers}});
    let selector = json!({"matchLabels": labels});
    let strangers = [
        object(
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 0, "selector": selector, "template": template("Always")}}),
        ),
        object("batch/v1", "Job", json!({"spec": {"suspend": true, "template": template("Never")}})),
        object("v1", "Service", json!({"spec": {"selector": labels, "ports": [{"port": 80}]}})),
        object("v1", "ConfigMap", json!({"data": {"whose": "not the hub's"}})),
        object("v1", "Secret", json!({"stringData": {"whose": "not the hub's"}})),
    ];
    kubectl_apply(member, &strangers).await?;
    let at = json!({"locations": ["c2"]});
    let mut borrows = workload("borrows", 1, at.clone());
    borrows["spec"]["template"]["spec"]["containers"][0]["envFrom"] =
        json!([{"configMapRef": {"name": "taken"}}, {"secretRef": {"name": "taken"}}]);
    let sources = [
        object("v1", "ConfigMap", json!({"data": {"whose": "the hub's"}})),
        object("v1", "Secret", json!({"stringData": {"whose": "the hub's"}})),
    ];
    kubectl_apply(hub, &sources).await?;
    let follows = service("taken", json!({"app": "borrows"}));
    kubectl_apply(hub, &[workload("taken", 1, at.clone()), borrows, job("taken", 1, 1, at), follows]).await?;
    eventually("what has the names is looked at", async || {
        let (used, _) = requests(&member.audit_log()?, account)?;
        let kinds = ["deployments", "jobs", "services", "configmaps", "secrets"];
        let unseen = |kind: &&str| {
            !used.iter().any(|(scope, verb, _, resource)| {
                *scope == Scope::OpenNamespaces && verb == "get" && resource == kind
            })
        };
        let missing: Vec<&str> = kinds.into_iter().filter(unseen).collect();
        Ok(if missing.is_empty() { Seen::Ready(()) } else { Seen::NotYet(format!("not: {missing:?}")) })
    })
    .await?;
    let whose = ["-n", NAMESPACE, "get", "configmap/taken", "-o", "jsonpath={.data.whose}"];
    ensure!(member.kubectl(&whose).await? == "not the hub's", "the stranger's ConfigMap was changed");
    hub.kubectl(&["-n", NAMESPACE, "delete", "mcd/taken", "mcd/borrows", "mcj/taken", "mcs/taken", TIMEOUT])
        .await?;
    let names = ["deployment/taken", "job/taken", "service/taken", "configmap/taken", "secret/taken"];
    member.kubectl(&[&["-n", NAMESPACE, "delete"], &names[..], &[TIMEOUT]].concat()).await.map(|_| ())
}

/// The definition that an installation of Portolan brings.
async fn has_reports(member: &Cluster) -> Result<()> {
    let reports = portolan_api::crds().into_iter().filter(|crd| crd.spec.names.kind == "ClusterReport");
    let definitions: Vec<Value> = reports.map(serde_json::to_value).collect::<Result<_, _>>()?;
    kubectl_apply(member, &definitions).await?;
    member
        .kubectl(&["wait", "--for=condition=Established", "crd/clusterreports.portolan.dev", TIMEOUT])
        .await?;
    Ok(())
}

async fn reports_are_asked_for(member: &Cluster, name: &str) -> Result<()> {
    eventually("the hub has made its report in the member", async || {
        let found = member.kubectl(&["-n", "portolan", "get", "clusterreports", "-o", "name"]).await?;
        Ok(if found.contains(name) { Seen::Ready(()) } else { Seen::NotYet(found) })
    })
    .await
}

async fn replicas(member: &Cluster, count: &str) -> Result<()> {
    eventually("the member has the replicas", async || {
        let path = "jsonpath={.spec.replicas}";
        let found = member.kubectl(&["-n", NAMESPACE, "get", "deployment/web", "-o", path]).await?;
        Ok(if found == count { Seen::Ready(()) } else { Seen::NotYet(found) })
    })
    .await
}

async fn control(hub: &Cluster) -> Result<JoinSet<()>> {
    let client = hub.client().await?;
    let connect = Arc::new(Credentials::from_hub(client.clone()));
    let clock = Clock::starting_at(Timestamp::now());
    let mut tasks = JoinSet::new();
    let term = Term::alone("test");
    let settings = Settings { measure_latency: true, ..Settings::default() };
    tasks.spawn(run_with(client.clone(), connect.clone(), clock.clone(), Seed::new(1), term, settings));
    tasks.spawn(portolan_control::peering::run(client, connect, clock, Seed::new(2)));
    Ok(tasks)
}

/// How a member is reached.
pub(super) fn address(member: &Cluster) -> Result<Address> {
    let kubeconfig = member.kubeconfig()?;
    let cluster = kubeconfig.clusters.first().and_then(|each| each.cluster.clone()).context("a cluster")?;
    Ok(Address {
        server: cluster.server.context("a server")?,
        authority: cluster.certificate_authority_data,
        ..Address::default()
    })
}

/// A row of the table, one request a verb.
fn rows(right: &Right) -> impl Iterator<Item = Request> {
    let Right { scope, group, resource, verbs, .. } = *right;
    verbs.iter().map(move |verb| (scope, (*verb).to_owned(), group.to_owned(), resource.to_owned()))
}

/// What the account asked for, and what of it was refused.
fn requests(log: &str, account: &str) -> Result<(BTreeSet<Request>, BTreeSet<String>)> {
    let (mut used, mut refused) = (BTreeSet::new(), BTreeSet::new());
    let events = log.lines().map(serde_json::from_str::<Value>).filter_map(Result::ok);
    for event in events.filter(|event| event["user"]["username"] == account) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let object = &event["objectRef"];
        if object.is_null() {
            let uri = text(&event["requestURI"]);
            ensure!(uri == "/version" || uri == "/readyz", "an unexpected request: {event}");
            continue;
        }
        let subresource = object["subresource"].as_str().map(|name| format!("/{name}")).unwrap_or_default();
        let resource = format!("{}{subresource}", text(&object["resource"]));
        let scope = match object["namespace"].as_str() {
            None => Scope::Cluster,
            Some("portolan") if resource == "clusterreports" => Scope::OwnReport,
            Some("portolan") => Scope::OwnAccount,
            Some(MONITORING) => Scope::Traffic,
            Some(_) => Scope::OpenNamespaces,
        };
        let scope = if resource == "namespaces" { Scope::Cluster } else { scope };
        let (verb, group) = (text(&event["verb"]), text(&object["apiGroup"]));
        if resource == "selfsubjectrulesreviews" {
            // Everybody may ask for the rights that they have themselves.
            continue;
        }
        if event["annotations"]["authorization.k8s.io/decision"] == "forbid" {
            refused.insert(format!("{verb} {resource} {}", text(&event["requestURI"])));
        }
        // Applying what is not there yet takes the right to create it, which the log does not show as a verb.
        if verb == "patch" && event["responseStatus"]["code"] == 201 {
            used.insert((scope, "create".to_owned(), group.clone(), resource.clone()));
        }
        used.insert((scope, verb, group, resource));
    }
    ensure!(!used.is_empty(), "the audit log has no request of {account}");
    Ok((used, refused))
}
