use super::*;
use crate::copies::Copied;
use crate::fleet::MemberEvent;
use crate::fleet::actuator::Spawner;
use crate::fleet::member::Watcher;
use crate::fleet::report::Asked;
use crate::registrations::REGISTRATIONS;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Service;
use kube::client::{Body, Client};
use portolan_api::Reason;
use portolan_runtime::{Clock, Seed};
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;

type AnswerBody = UnsyncBoxBody<bytes::Bytes, Infallible>;

fn answer(code: u16, value: &serde_json::Value) -> Response<AnswerBody> {
    let body = Full::new(bytes::Bytes::from(value.to_string())).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

/// A member without any object, whose lists of `refused` are refused.
fn client(refused: &'static str) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| async move {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        if path == "/version" || path == "/readyz" {
            let version = json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
            return Ok::<_, Infallible>(answer(200, &version));
        }
        if path.ends_with(refused) {
            let status = json!({"kind": "Status", "code": 403, "message": format!("{refused} is forbidden")});
            return Ok(answer(403, &status));
        }
        if query.contains("watch=true") {
            let never = futures::stream::pending::<Result<http_body::Frame<bytes::Bytes>, Infallible>>();
            return Ok(Response::new(StreamBody::new(never).boxed_unsync()));
        }
        Ok(answer(200, &json!({"metadata": {"resourceVersion": "1"}, "items": []})))
    });
    Client::new(service, "default")
}

fn join(fleet: &Fleet, refused: &'static str) -> Arc<Member> {
    let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH);
    let tell = |_: MemberEvent| ();
    let watcher = Watcher {
        hub: "hub".to_owned(),
        registrations: REGISTRATIONS,
        ledger: fleet.ledger.clone(),
        spawner: Spawner::default(),
        clock,
        seed: Seed::new(1),
    };
    let member = Arc::new(watcher.watch("a", client(refused), None, None, Asked::default(), tell));
    fleet.add_for_tests(&member);
    member
}

fn reachability(fleet: &Fleet, needs: Needs) -> Reachability {
    fleet.ledger.transact(|book| fleet.reachability("a", Some(book), needs))
}

#[tokio::test(start_paused = true)]
async fn a_member_whose_room_another_connection_tells_is_not_decided_about() {
    let fleet = Fleet::default();
    let _member = join(&fleet, "nothing");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(reachability(&fleet, Service::NEEDS).is_known);
    // A second connection has opened the ledger, and has not joined the fleet yet: the room is of nobody.
    let _feed = fleet.ledger.open("a");
    let between = reachability(&fleet, Deployment::NEEDS);
    assert!(!between.is_known && between.joining, "{:?}", between.unknown);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_answers_and_cannot_be_listed_is_told_so_after_a_while() {
    let fleet = Fleet::default();
    let _member = join(&fleet, "/jobs");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(reachability(&fleet, Deployment::NEEDS).is_known, "Jobs are not needed to place Deployments");
    assert!(reachability(&fleet, Job::NEEDS).joining);
    tokio::time::sleep(Duration::from_secs(15)).await;
    let jobs = reachability(&fleet, Job::NEEDS);
    assert!(!jobs.joining && !jobs.is_known);
    let (reason, message) = jobs.unknown.unwrap();
    assert_eq!(reason, Reason::ListFailed);
    assert!(message.contains("cannot list jobs: /jobs is forbidden (403)"), "{message}");
    assert!(reachability(&fleet, Deployment::NEEDS).is_known);
}
