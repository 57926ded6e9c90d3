use super::*;
use bytes::Bytes;
use http_body::Frame;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

type AnswerBody = UnsyncBoxBody<Bytes, Infallible>;
type Answer = Box<dyn Fn(&str) -> Response<AnswerBody> + Send + Sync>;

/// An API server that answers each request by its query, and how often it was asked.
fn server(answer: Answer) -> (Client, Arc<Mutex<Vec<String>>>) {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, answer) = (Arc::clone(&asked), Arc::new(answer));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let query = request.uri().query().unwrap_or_default().to_owned();
        seen.lock().unwrap().push(query.clone());
        let answer = Arc::clone(&answer);
        async move { Ok::<_, Infallible>(answer(&query)) }
    });
    (Client::new(service, "default"), asked)
}

fn whole(code: u16, text: String) -> Response<AnswerBody> {
    Response::builder().status(code).body(Full::new(Bytes::from(text)).boxed_unsync()).unwrap()
}

/// These lines, and then nothing for ever.
fn open_watch(lines: Vec<String>) -> Response<AnswerBody> {
    let chunks = lines.into_iter().map(|line| Ok::<_, Infallible>(Frame::data(Bytes::from(line + "\n"))));
    let stream = futures::StreamExt::chain(futures::stream::iter(chunks), futures::stream::pending());
    Response::new(StreamBody::new(stream).boxed_unsync())
}

fn endless(chunk: &'static [u8]) -> Response<AnswerBody> {
    let chunks =
        futures::stream::repeat_with(move || Ok::<_, Infallible>(Frame::data(Bytes::from_static(chunk))));
    Response::new(StreamBody::new(chunks).boxed_unsync())
}

fn config_map(name: &str, data: serde_json::Value) -> serde_json::Value {
    json!({"metadata": {"name": name, "namespace": "d", "uid": format!("uid-{name}"), "resourceVersion": "5"}, "data": data})
}

fn list(items: &[serde_json::Value]) -> String {
    json!({"kind": "ConfigMapList", "metadata": {"resourceVersion": "7"}, "items": items}).to_string()
}

fn deep(levels: usize) -> serde_json::Value {
    (0..levels).fold(json!({}), |inner, _| json!({ "x": inner }))
}

fn start(client: Client) -> (crate::Index<String>, tokio::task::JoinHandle<()>) {
    let index = crate::Index::default();
    let api: Api<ConfigMap> = Api::all(client);
    let name = |map: ConfigMap| map.metadata.name.unwrap_or_default();
    let feeding = crate::feed(api, Config::default(), name, index.clone(), |_| (), Seed::new(1));
    (index, tokio::spawn(feeding))
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

fn names(index: &crate::Index<String>) -> Vec<String> {
    index.all().into_iter().map(|(key, _)| key.name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_list_that_fails_is_asked_at_most_12_times_in_2_minutes() {
    let forbidden =
        json!({"kind": "Status", "code": 403, "message": "configmaps is\nforbidden", "reason": "Forbidden"});
    let (client, asked) = server(Box::new(move |_| whole(403, forbidden.to_string())));
    let (index, _task) = start(client);
    pass(120).await;
    let count = asked.lock().unwrap().len();
    assert!((5..=12).contains(&count), "asked {count} times");
    let failure = index.health().failure().unwrap();
    assert_eq!(failure.error, "cannot list configmaps: configmaps is forbidden (403)");
    assert!(failure.since.elapsed() >= Duration::from_secs(119) && !index.synced());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_fails_after_each_list_is_not_tried_in_a_hot_loop() {
    let (client, asked) = server(Box::new(|query| match query.contains("watch=true") {
        true => open_watch(vec![
            json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}}).to_string(),
        ]),
        false => whole(200, list(&[])),
    }));
    let (_index, _task) = start(client);
    pass(120).await;
    let count = asked.lock().unwrap().len();
    assert!((10..=26).contains(&count), "asked {count} times");
}

#[tokio::test(start_paused = true)]
async fn one_object_that_cannot_be_read_leaves_the_others_known() {
    let items = [
        config_map("a", json!({"k": "v"})),
        config_map("deep", json!({"k": deep(130)})),
        config_map("z", json!({"k": 7})),
    ];
    let more = [
        json!({"type": "ADDED", "object": config_map("deeper", json!({"k": deep(500)}))}),
        json!({"object": config_map("b", json!({})), "type": "ADDED"}),
        json!({"type": "MODIFIED", "object": config_map("z", json!({}))}),
    ];
    let lines: Vec<String> = more.iter().map(ToString::to_string).collect();
    let (client, _) = server(Box::new(move |query| match query.contains("watch=true") {
        true => open_watch(lines.clone()),
        false => whole(200, list(&items)),
    }));
    let (index, _task) = start(client);
    pass(1).await;
    assert!(index.synced());
    assert_eq!(names(&index), ["a", "b", "z"], "z can be read by now");
    let health = index.health();
    assert_eq!(health.count_unreadable(), 2);
    let unreadable = health.unreadable(&Key::new("d", "deep")).unwrap();
    assert_eq!(unreadable.uid.as_deref(), Some("uid-deep"));
    assert!(unreadable.problem.contains("invalid type"), "{unreadable:?}");
    assert!(health.unreadable(&Key::new("d", "deeper")).is_some());
    assert!(health.failure().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_given_up() {
    static BLANKS: [u8; 1 << 20] = [b' '; 1 << 20];
    let (client, _) = server(Box::new(|_| endless(&BLANKS)));
    let (index, _task) = start(client);
    pass(1).await;
    let failure = index.health().failure().unwrap();
    assert_eq!(failure.error, "cannot list configmaps: the answer is longer than 64 MiB");
}

#[tokio::test(start_paused = true)]
async fn an_event_without_end_is_given_up() {
    static BLANKS: [u8; 1 << 20] = [b' '; 1 << 20];
    let (client, _) = server(Box::new(|query| match query.contains("watch=true") {
        true => endless(&BLANKS),
        false => whole(200, list(&[config_map("a", json!({}))])),
    }));
    let (index, _task) = start(client);
    pass(1).await;
    let failure = index.health().failure().unwrap();
    assert_eq!(failure.error, "cannot watch configmaps: the answer is longer than 8 MiB");
    assert_eq!(names(&index), ["a"], "what was known stays known");
}

#[tokio::test(start_paused = true)]
async fn a_list_that_hangs_is_given_up_and_tried_again() {
    let (client, asked) = server(Box::new(|_| open_watch(Vec::new())));
    let (index, _task) = start(client);
    pass(40).await;
    let failure = index.health().failure().unwrap();
    assert_eq!(failure.error, "cannot list configmaps: nothing more of the answer within 30 s");
    assert_eq!(asked.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_on_a_dead_connection_is_opened_anew() {
    let (client, asked) = server(Box::new(|query| match query.contains("watch=true") {
        true => open_watch(Vec::new()),
        false => whole(200, list(&[])),
    }));
    let (index, _task) = start(client);
    pass(99).await;
    assert_eq!((asked.lock().unwrap().len(), index.health().age().unwrap().as_secs()), (2, 99));
    pass(2).await;
    assert_eq!((asked.lock().unwrap().len(), index.health().age().unwrap().as_secs()), (3, 1));
    index.health().refresh();
    pass(1).await;
    assert_eq!(asked.lock().unwrap().len(), 4, "and when that is asked for");
}
