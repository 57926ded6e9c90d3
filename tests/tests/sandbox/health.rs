//! A member that answers and is not well costs only itself.

use crate::stage::{condition, deployments, fleet, pass, patch, replicas, status, workloads};
use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::{Body, ClientBuilder};
use kube::{Api, Client};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::{ForeignCluster, MultiClusterDeployment};
use portolan_control::fleet::{Connect, ConnectError};
use portolan_runtime::metrics::RequestCounts;
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{FaultAnswer, FaultPlan, PartialFault, RequestFilter};
use portolan_tests::simulation::{Fleet, apply};
use portolan_tests::workload;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::task::JoinHandle;

/// What a member does with requests whose path ends so.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    Refuses,
    Hangs,
}

/// Connects to sandbox clusters; one of them does not answer as it should.
struct Sick {
    world: portolan_sandbox::World,
    member: &'static str,
    path: &'static str,
    does: Does,
    now: Arc<AtomicBool>,
}

impl Connect for Sick {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let client = self.world.cluster(&name).map(|cluster| cluster.client("controller"));
        let (path, does) = (self.path, self.does);
        let now = Arc::clone(&self.now);
        let is_sick = name == self.member;
        Box::pin(async move {
            let beyond = client.ok_or(ConnectError::NoCredentials)?;
            let service = tower::service_fn(move |request: Request<Body>| {
                let (beyond, now) = (beyond.clone(), Arc::clone(&now));
                async move {
                    let concerned =
                        is_sick && now.load(Ordering::SeqCst) && request.uri().path().ends_with(path);
                    match does {
                        Does::Refuses if concerned => {
                            let text =
                                json!({"kind": "Status", "code": 403, "message": "forbidden\nby evil"});
                            let body = Body::from(text.to_string().into_bytes());
                            Ok(Response::builder().status(403).body(body).unwrap())
                        }
                        Does::Hangs if concerned => std::future::pending().await,
                        _ => beyond.send(request).await,
                    }
                }
            });
            Ok(Client::new(service, "default"))
        })
    }
}

/// The fleet with a controller at work; c3 is sick.
fn start(fleet: &Fleet, path: &'static str, does: Does) -> (JoinHandle<()>, Arc<AtomicBool>) {
    let now = Arc::new(AtomicBool::new(true));
    let connect =
        Arc::new(Sick { world: fleet.world.clone(), member: "c3", path, does, now: Arc::clone(&now) });
    let (hub, clock) = (fleet.hub.client("controller"), fleet.world.clock().clone());
    let controller = portolan_control::run(hub, connect, clock, Seed::new(1), Term::alone("controller"));
    (tokio::spawn(controller), now)
}

async fn ready_of(fleet: &Fleet, cluster: &str) -> (String, String, String) {
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let status = api.get(cluster).await.unwrap().status.unwrap_or_default();
    let found = conditions::find(&status.conditions, ConditionType::Ready).cloned().unwrap();
    (found.status, found.reason, found.message)
}

async fn places_elsewhere(path: &'static str, does: Does, told: &str) {
    let fleet = fleet(FaultPlan::none()).await;
    let (_controller, now) = start(&fleet, path, does);
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(30).await;
    assert_eq!(status(&fleet, "web").await.ready_summary.as_deref(), Some("1/1"), "{path}");
    pass(10).await;
    let (ready, reason, message) = ready_of(&fleet, "c3").await;
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "ListFailed"), "{message}");
    assert!(message.contains(told), "{message}");
    now.store(false, Ordering::SeqCst);
    pass(90).await;
    assert_eq!(ready_of(&fleet, "c3").await.0, "True", "mended");
    apply(&fleet.hub.client("user"), &workload("late", 1, json!({"locations": ["c3"]}))).await;
    pass(20).await;
    assert_eq!(status(&fleet, "late").await.ready_summary.as_deref(), Some("1/1"));
}

#[tokio::test(start_paused = true)]
async fn a_member_that_refuses_to_list_pods_stops_nobody_else() {
    places_elsewhere("/api/v1/pods", Does::Refuses, "cannot list pods: forbidden by evil (403)").await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_never_answers_a_list_stops_nobody_else() {
    places_elsewhere("/api/v1/nodes", Does::Hangs, "nodes").await;
}

#[tokio::test(start_paused = true)]
async fn a_member_that_cannot_be_listed_after_a_restart_keeps_what_it_holds() {
    let fleet = fleet(FaultPlan::none()).await;
    let (first, now) = start(&fleet, "/api/v1/pods", Does::Refuses);
    now.store(false, Ordering::SeqCst);
    apply(&fleet.hub.client("user"), &workload("web", 2, json!({"locations": ["c3", "c2"]}))).await;
    pass(30).await;
    assert_eq!((replicas(&fleet, 0, "web").await, replicas(&fleet, 1, "web").await), (Some(2), Some(2)));
    let uid = deployments(&fleet, 1).get("web").await.unwrap().metadata.uid;
    first.abort();
    let (_second, _now) = start(&fleet, "/api/v1/pods", Does::Refuses);
    pass(30).await;
    patch(&fleet, "web", json!({"replicas": 1})).await;
    pass(30).await;
    assert_eq!(replicas(&fleet, 0, "web").await, Some(1), "c2 goes on");
    assert_eq!(deployments(&fleet, 1).get("web").await.unwrap().metadata.uid, uid, "c3 is left as it is");
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }))
}

#[tokio::test(start_paused = true)]
async fn one_object_that_cannot_be_read_is_one_bad_object() {
    let fleet = fleet(FaultPlan::none()).await;
    let (first, now) = start(&fleet, "/none", Does::Refuses);
    now.store(false, Ordering::SeqCst);
    apply(&fleet.hub.client("user"), &workload("bad", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    assert_eq!(replicas(&fleet, 0, "bad").await, Some(1));
    // It is taken; the answer is too deep to be read.
    let mut object = workload("bad", 1, json!({"locations": ["c2"]}));
    object["spec"]["template"]["spec"]["x"] = deep(121);
    let params = kube::api::PatchParams::default();
    let _ = workloads(&fleet).patch("bad", &params, &kube::api::Patch::Merge(&object)).await;
    first.abort();
    let (_second, _now) = start(&fleet, "/none", Does::Refuses);
    apply(&fleet.hub.client("user"), &workload("good", 1, json!({"locations": ["c2"]}))).await;
    pass(30).await;
    assert_eq!(status(&fleet, "good").await.ready_summary.as_deref(), Some("1/1"));
    assert_eq!(replicas(&fleet, 0, "bad").await, Some(1), "its copy stays as it is");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_panics_ends_the_controllers() {
    struct Panics;
    impl Connect for Panics {
        fn connect<'a>(&'a self, _: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
            Box::pin(async { unreachable!("broken") })
        }
    }
    let fleet = fleet(FaultPlan::none()).await;
    let (hub, clock) = (fleet.hub.client("controller"), fleet.world.clock().clone());
    let run = portolan_control::run(hub, Arc::new(Panics), clock, Seed::new(1), Term::alone("controller"));
    tokio::time::timeout(std::time::Duration::from_secs(60), run).await.expect("it ends");
    let _: Api<MultiClusterDeployment> = workloads(&fleet);
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_is_over_is_told_no_longer_although_nothing_changes_in_the_member() {
    let (fleet, _controller) = crate::stage::start().await;
    // The dry run of the template has another name.
    let writes = RequestFilter::any().cluster("c2").verb("patch").resource("deployments.apps").name("web");
    fleet.world.add_fault(PartialFault::new("lost answers", writes, FaultAnswer::NoAnswer));
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["c2"]}))).await;
    let mut told = false;
    for _ in 0..100 {
        pass(5).await;
        let (ready, reason, _) = condition(&fleet, "web", ConditionType::Ready).await;
        told = replicas(&fleet, 0, "web").await == Some(1) && ready == "False" && reason == "Failed";
        if told {
            break;
        }
    }
    assert!(told, "the lost answers are not told");
    fleet.world.end_fault("lost answers");
    pass(60).await;
    let (ready, _, message) = condition(&fleet, "web", ConditionType::Ready).await;
    assert_eq!(ready, "True", "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_tells_its_version_and_is_not_ready_is_silent_and_costs_only_itself() {
    let (fleet, _controller) = crate::stage::start().await;
    let user = fleet.hub.client("user");
    apply(&user, &workload("web", 1, json!({"locations": ["c2"]}))).await;
    pass(20).await;
    let asked = RequestFilter::any().cluster("c2").resource("/readyz");
    fleet.world.add_fault(PartialFault::new("no etcd", asked, FaultAnswer::FailedCheck("etcd")));
    pass(30).await;
    let (ready, reason, message) = ready_of(&fleet, "c2").await;
    assert_eq!((ready.as_str(), reason.as_str()), ("Unknown", "Unreachable"), "{message}");
    assert!(message.contains("not ready") && message.contains("etcd"), "{message}");
    assert_eq!(replicas(&fleet, 0, "web").await, Some(1), "what it holds is kept");
    apply(&user, &workload("other", 1, json!({"locations": ["c3"]}))).await;
    pass(20).await;
    assert_eq!(status(&fleet, "other").await.ready_summary.as_deref(), Some("1/1"));
    fleet.world.end_fault("no etcd");
    pass(30).await;
    assert_eq!(ready_of(&fleet, "c2").await.0, "True");
}

/// Connects to sandbox clusters, and counts what they are asked.
struct Counting {
    world: portolan_sandbox::World,
    requests: RequestCounts,
}

impl Connect for Counting {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        let name = cluster.metadata.name.clone().unwrap_or_default();
        let client = self.world.cluster(&name).map(|cluster| cluster.client("controller"));
        let counted = self.requests.of(&name);
        Box::pin(async move {
            let beyond = client.ok_or(ConnectError::NoCredentials)?;
            let service = tower::service_fn(move |request: Request<Body>| {
                let beyond = beyond.clone();
                async move { beyond.send(request).await }
            });
            Ok(ClientBuilder::new(service, "default").with_layer(&counted).build())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_member_without_work_is_asked_one_thing_every_four_seconds() {
    let fleet = fleet(FaultPlan::none()).await;
    let requests = RequestCounts::default();
    let connect = Arc::new(Counting { world: fleet.world.clone(), requests: requests.clone() });
    let (hub, clock) = (fleet.hub.client("controller"), fleet.world.clock().clone());
    let _controller =
        tokio::spawn(portolan_control::run(hub, connect, clock, Seed::new(1), Term::alone("controller")));
    let asked =
        |verb: &str| -> u64 { requests.all()["c2"].get(verb).map_or(0, |count| count.codes.values().sum()) };
    pass(120).await;
    let (gets, watches, posts) = (asked("GET"), asked("WATCH"), asked("POST"));
    pass(1200).await;
    let gets = asked("GET") - gets;
    assert!((250..=305).contains(&gets), "{gets} requests in twenty minutes");
    let watches = asked("WATCH") - watches;
    assert!(watches <= 80, "a dozen watches are opened every five minutes, and no more often: {watches}");
    assert!(asked("POST") - posts <= 8 && asked("PATCH") == 0, "nothing is written");
    assert_eq!(ready_of(&fleet, "c2").await.0, "True");
}
