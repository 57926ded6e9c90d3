//! Jobs, services, budgets, nodes that fail.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{available, cluster, code, deployment, eventually, message};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

fn job(name: &str, spec: &Value, annotations: &Value) -> Job {
    let mut job = json!({
        "metadata": {"name": name},
        "spec": {"template": {"metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x:1"}]}}},
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    serde_json::from_value(job).unwrap()
}

fn holds(job: &Job, condition: &str) -> bool {
    let conditions = job.status.clone().unwrap_or_default().conditions.unwrap_or_default();
    conditions.iter().any(|found| found.type_ == condition && found.status == "True")
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_a_job_that_is_deleted_before_it_has_a_node_has_failed_and_goes() {
    let (_world, cluster) = cluster();
    let jobs: Api<Job> = Api::namespaced(cluster.client("test"), "default");
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "default");
    let mut large = job("large", &json!({}), &json!({}));
    let spec = large.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    spec.node_selector = Some([("disk".to_owned(), "none".to_owned())].into());
    jobs.create(&PostParams::default(), &large).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let waiting = pods.list(&ListParams::default()).await.unwrap().items[0].name_any();
    pods.delete(&waiting, &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(pods.get_opt(&waiting).await.unwrap().is_some(), "it is not counted yet");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert!(pods.get_opt(&waiting).await.unwrap().is_none());
    assert_eq!(jobs.get("large").await.unwrap().status.unwrap().failed, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_end_and_is_cleaned_up() {
    let (_world, cluster) = cluster();
    let jobs: Api<Job> = Api::namespaced(cluster.client("test"), "default");
    let pods: Api<Pod> = Api::namespaced(cluster.client("test"), "default");
    let spec = json!({"completions": 5, "parallelism": 2, "ttlSecondsAfterFinished": 100});
    jobs.create(&PostParams::default(), &job("sum", &spec, &json!({}))).await.unwrap();
    let mut most = 0;
    eventually("the job completes", async || {
        let found = jobs.get("sum").await.unwrap();
        most = most.max(found.status.clone().unwrap_or_default().active.unwrap_or(0));
        holds(&found, "Complete")
    })
    .await;
    assert_eq!(most, 2, "no more run at once than asked for");
    let status = jobs.get("sum").await.unwrap().status.unwrap();
    assert_eq!((status.succeeded, status.failed), (Some(5), None));
    for pod in pods.list(&ListParams::default()).await.unwrap() {
        assert!(pod.finalizers().is_empty(), "counted pods are let go");
        pods.delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(
        jobs.get("sum").await.unwrap().status.unwrap().succeeded,
        Some(5),
        "deleted pods stay counted"
    );
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(jobs.get_opt("sum").await.unwrap().is_none(), "its time to live is over");
}

#[tokio::test(start_paused = true)]
async fn a_failing_job_gives_up() {
    let (_world, cluster) = cluster();
    let jobs: Api<Job> = Api::namespaced(cluster.client("test"), "default");
    let bad = json!({"sandbox.portolan.dev/exit-code": "1"});
    jobs.create(&PostParams::default(), &job("bad", &json!({"backoffLimit": 2}), &bad)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    let found = jobs.get("bad").await.unwrap();
    assert!(holds(&found, "Failed"), "{:?}", found.status);
    assert_eq!(found.status.unwrap().failed, Some(3));
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_a_deleted_job_is_let_go_and_does_not_hold_up_its_namespace() {
    let (_world, cluster) = cluster();
    let client = cluster.client("test");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({"metadata": {"name": "batch"}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let jobs: Api<Job> = Api::namespaced(client.clone(), "batch");
    let pods: Api<Pod> = Api::namespaced(client, "batch");
    let long = json!({"sandbox.portolan.dev/run-time": "1000s"});
    jobs.create(&PostParams::default(), &job("sum", &json!({}), &long)).await.unwrap();
    eventually("its pod runs", async || {
        let found = pods.list(&ListParams::default()).await.unwrap().items;
        found.iter().any(|pod| pod.status.as_ref().unwrap().phase.as_deref() == Some("Running"))
    })
    .await;
    namespaces.delete("batch", &DeleteParams::default()).await.unwrap();
    eventually("the namespace is gone", async || namespaces.get_opt("batch").await.unwrap().is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn indexes_are_completed_once_each() {
    let (_world, cluster) = cluster();
    let jobs: Api<Job> = Api::namespaced(cluster.client("test"), "default");
    let spec = json!({"completions": 4, "parallelism": 3, "completionMode": "Indexed"});
    jobs.create(&PostParams::default(), &job("each", &spec, &json!({}))).await.unwrap();
    eventually("the job completes", async || holds(&jobs.get("each").await.unwrap(), "Complete")).await;
    let status = jobs.get("each").await.unwrap().status.unwrap();
    assert_eq!((status.succeeded, status.completed_indexes.as_deref()), (Some(4), Some("0-3")));
}

#[tokio::test(start_paused = true)]
async fn a_service_knows_its_pods() {
    let (_world, cluster) = cluster();
    let client = cluster.client("test");
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let slices: Api<EndpointSlice> = Api::namespaced(client, "default");
    let service = json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]}});
    services.create(&PostParams::default(), &serde_json::from_value(service).unwrap()).await.unwrap();
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    let select = ListParams::default().labels("kubernetes.io/service-name=web");
    let ready = async || {
        let found = slices.list(&select).await.unwrap().items;
        found
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten())
            .filter(|e| e.conditions.as_ref().unwrap().ready == Some(true))
            .count()
    };
    eventually("three endpoints", async || ready().await == 3).await;
    assert_eq!(slices.list(&select).await.unwrap().items[0].ports.as_ref().unwrap()[0].port, Some(8080));
    deployments
        .patch_scale("web", &PatchParams::default(), &Patch::Merge(json!({"spec": {"replicas": 1}})))
        .await
        .unwrap();
    eventually("one endpoint", async || ready().await == 1).await;
    services.delete("web", &DeleteParams::default()).await.unwrap();
    eventually("slices go with their service", async || slices.list(&select).await.unwrap().items.is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn evictions_keep_the_budget() {
    let (_world, cluster) = cluster();
    let client = cluster.client("test");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let budgets: Api<PodDisruptionBudget> = Api::namespaced(client.clone(), "default");
    let pods: Api<Pod> = Api::namespaced(client, "default");
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    let budget = json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
    budgets.create(&PostParams::default(), &serde_json::from_value(budget).unwrap()).await.unwrap();
    eventually("one may go", async || {
        budgets.get("web").await.unwrap().status.unwrap_or_default().disruptions_allowed == Some(1)
    })
    .await;
    let names: Vec<String> =
        pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    pods.evict(&names[0], &EvictParams::default()).await.unwrap();
    let error = pods.evict(&names[1], &EvictParams::default()).await.unwrap_err();
    assert_eq!(code(&error), 429);
    assert_eq!(message(&error), "Cannot evict pod as it would violate the pod's disruption budget.");
    eventually("the replacement makes room", async || available(&deployments, "web", 3).await).await;
    pods.evict(&names[1], &EvictParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_silent_node_is_noticed_and_its_pods_replaced() {
    let (world, cluster) = cluster();
    let client = cluster.client("test");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let nodes: Api<Node> = Api::all(client.clone());
    let pods: Api<Pod> = Api::namespaced(client, "default");
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    eventually("three run", async || available(&deployments, "web", 3).await).await;
    cluster.fail_node("c1-1");
    let ready = async |node: &str| {
        let status = nodes.get(node).await.unwrap().status.unwrap();
        status.conditions.unwrap().iter().find(|condition| condition.type_ == "Ready").unwrap().status.clone()
    };
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(ready("c1-1").await, "True", "a short silence is nothing");
    tokio::time::sleep(Duration::from_secs(15)).await;
    assert_eq!(ready("c1-1").await, "Unknown");
    assert_eq!(deployments.get("web").await.unwrap().status.unwrap().available_replicas, Some(2));
    tokio::time::sleep(Duration::from_secs(290)).await;
    assert_eq!(pods.list(&ListParams::default()).await.unwrap().items.len(), 3, "tolerated for five minutes");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert!(available(&deployments, "web", 3).await, "replaced elsewhere");
    let lost = pods.list(&ListParams::default().fields("spec.nodeName=c1-1")).await.unwrap().items;
    assert!(lost[0].metadata.deletion_timestamp.is_some(), "nobody can tell that it has stopped");
    cluster.restore_node("c1-1");
    eventually("the node is back and the lost pod gone", async || {
        ready("c1-1").await == "True"
            && nodes.get("c1-1").await.unwrap().spec.unwrap().taints.is_none()
            && pods.list(&ListParams::default()).await.unwrap().items.len() == 3
    })
    .await;
    assert_eq!(world.check(), []);
}

#[tokio::test(start_paused = true)]
async fn tables_show_what_kubectl_shows() {
    let (_world, cluster) = cluster();
    let client = cluster.client("test");
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "default");
    deployments.create(&PostParams::default(), &deployment("web", 2)).await.unwrap();
    eventually("two run", async || available(&deployments, "web", 2).await).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    let get = async |path: &str| {
        let request = http::Request::get(path)
            .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
            .body(Vec::new())
            .unwrap();
        client.request::<Value>(request).await.unwrap()
    };
    let table = get("/apis/apps/v1/namespaces/default/deployments").await;
    assert_eq!(table["kind"], "Table");
    let cells = &table["rows"][0]["cells"];
    assert_eq!(cells.as_array().unwrap()[..4], [json!("web"), json!("2/2"), json!("2"), json!("2")]);
    assert!(cells[4].as_str().unwrap().starts_with("5m"), "{cells}");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let pods = get("/api/v1/namespaces/default/pods").await;
    assert_eq!(pods["rows"][0]["cells"][1], "1/1");
    assert_eq!(pods["rows"][0]["cells"][2], "Running");
    let nodes = get("/api/v1/nodes/c1-1").await;
    assert_eq!(nodes["rows"][0]["cells"][1], "Ready");
}
