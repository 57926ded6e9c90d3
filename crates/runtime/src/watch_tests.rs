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
    let (client, asked) = server(Box::new(|query| {
        if query.contains("watch=true") {
            open_watch(vec![
                json!({"type": "ERROR", "object": {"code": 410, "message": "too old"}}).to_string(),
            ])
        } else {
            whole(200, list(&[]))
        }
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
    let (client, _) = server(Box::new(move |query| {
        if query.contains("watch=true") { open_watch(lines.clone()) } else { whole(200, list(&items)) }
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
    let (client, _) = server(Box::new(|query| {
        if query.contains("watch=true") {
            endless(&BLANKS)
        } else {
            whole(200, list(&[config_map("a", json!({}))]))
        }
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
    let (client, asked) = server(Box::new(|query| {
        if query.contains("watch=true") { open_watch(Vec::new()) } else { whole(200, list(&[])) }
    }));
    let (index, _task) = start(client);
    pass(99).await;
    assert_eq!((asked.lock().unwrap().len(), index.health().age().unwrap().as_secs()), (2, 99));
    pass(2).await;
    assert_eq!((asked.lock().unwrap().len(), index.health().age().unwrap().as_secs()), (4, 1), "listed anew");
    index.health().refresh();
    pass(1).await;
    assert_eq!(asked.lock().unwrap().len(), 6, "and when that is asked for");
    assert!(asked.lock().unwrap().iter().skip(1).step_by(2).all(|query| query.contains("watch=true")));
}

/// A server whose first list is empty and whose later ones hang; watches are answered by `watch`.
fn listed_once(
    watch: impl Fn() -> Response<AnswerBody> + Send + Sync + 'static,
) -> (Client, Arc<Mutex<Vec<String>>>) {
    let lists = Mutex::new(0);
    server(Box::new(move |query| {
        if query.contains("watch=true") {
            return watch();
        }
        let mut lists = lists.lock().unwrap();
        *lists += 1;
        if *lists == 1 { whole(200, list(&[])) } else { open_watch(Vec::new()) }
    }))
}

fn error_event(code: u16) -> String {
    json!({"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "no"}}).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_opens_and_tells_nothing_new_proves_nothing() {
    let closes = || Response::new(Full::default().boxed_unsync());
    let watches: [Box<dyn Fn() -> Response<AnswerBody> + Send + Sync>; 4] = [
        Box::new(|| open_watch(vec![error_event(410)])),
        Box::new(|| open_watch(vec![error_event(500)])),
        Box::new(|| open_watch(Vec::new())),
        Box::new(closes),
    ];
    for watch in watches {
        let (client, asked) = listed_once(watch);
        let (index, _task) = start(client);
        pass(1).await;
        let then = Instant::now();
        index.health().refresh();
        pass(600).await;
        let age = index.health().age().unwrap().as_secs();
        assert!(age >= 599 && !index.health().is_listed_since(then), "{age} s");
        let asked = asked.lock().unwrap().clone();
        assert!(!asked.last().unwrap().contains("watch=true"), "nothing but a list is waited for: {asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_breaks_a_watch_from_within_everything_is_listed_anew() {
    for code in [410, 500] {
        let (client, asked) = listed_once(move || open_watch(vec![error_event(code)]));
        let (_index, _task) = start(client);
        pass(1).await;
        let asked = asked.lock().unwrap().clone();
        assert_eq!(
            asked.iter().filter(|query| !query.contains("watch=true")).count(),
            2,
            "{code}: {asked:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_tells_one_event_and_ends_is_not_opened_in_a_hot_loop() {
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}}).to_string();
    let (client, asked) = server(Box::new(move |query| {
        if query.contains("watch=true") { whole(200, bookmark.clone() + "\n") } else { whole(200, list(&[])) }
    }));
    let (_index, _task) = start(client);
    pass(120).await;
    let count = asked.lock().unwrap().len();
    assert!((5..=40).contains(&count), "asked {count} times");
}

#[tokio::test(start_paused = true)]
async fn what_can_be_read_again_is_known_before_it_stops_being_unreadable() {
    let lists = Mutex::new(0);
    let (client, _) = server(Box::new(move |query| {
        if query.contains("watch=true") {
            let mended = json!({"type": "MODIFIED", "object": config_map("b", json!({}))});
            return open_watch(vec![mended.to_string()]);
        }
        let mut lists = lists.lock().unwrap();
        *lists += 1;
        let bad = json!({"k": 7});
        match *lists {
            1 => whole(200, list(&["a", "b", "gone"].map(|name| config_map(name, bad.clone())))),
            _ => whole(200, list(&[config_map("a", json!({})), config_map("b", bad)])),
        }
    }));
    let health = WatchHealth::default();
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let (seen, known) = (Arc::clone(&told), health.clone());
    let tell = move |change: Change<()>| {
        let unreadable = known.all_unreadable().into_iter().map(|(key, _)| key.name).collect::<Vec<_>>();
        let change = match change {
            Change::Listed(all) => format!("listed {}", all.len()),
            Change::Set(key, ()) => format!("set {}", key.name),
            Change::Gone(key) => format!("gone {}", key.name),
        };
        seen.lock().unwrap().push(format!("{change}: {}", unreadable.join(" ")));
    };
    let api: Api<ConfigMap> = Api::all(client);
    let _task = tokio::spawn(follow_with(api, Config::default(), |_| (), tell, Seed::new(1), health.clone()));
    pass(1).await;
    health.refresh();
    pass(1).await;
    let expected = ["listed 0: a b gone", "set b: a b gone", "listed 1: a b", "set b: b"];
    assert_eq!(*told.lock().unwrap(), expected);
    assert_eq!(health.count_unreadable(), 0);
}

#[test]
fn an_index_that_holds_what_can_be_read_again_says_so_before_anybody_is_told() {
    let index: crate::Index<()> = crate::Index::default();
    let (key, bad) = (Key::new("d", "a"), Unreadable { uid: None, problem: "bad".to_owned() });
    index.health().add_unreadable(key.clone(), bad.clone());
    index.take(Change::Set(key.clone(), ()));
    assert!(index.health().unreadable(&key).is_none());
    index.health().add_unreadable(key.clone(), bad);
    index.health().take_unreadable(BTreeMap::new(), 0, |each| *each == key);
    assert!(index.health().unreadable(&key).is_some(), "until the list is taken");
    index.take(Change::Listed(BTreeMap::from([(key.clone(), ())])));
    assert!(index.health().unreadable(&key).is_none());
}

#[tokio::test(start_paused = true)]
async fn of_objects_that_cannot_be_read_the_log_tells_once_a_minute() {
    let health = WatchHealth::default();
    assert_eq!(health.may_say_unreadable(), Some(0));
    (0..10_000).for_each(|_| assert_eq!(health.may_say_unreadable(), None));
    pass(61).await;
    assert_eq!(health.may_say_unreadable(), Some(10_000), "and how many it did not tell of");
    assert_eq!(health.may_say_unreadable(), None);
}

#[tokio::test(start_paused = true)]
async fn names_longer_than_any_are_not_kept() {
    let long = |field: &str, length: usize| {
        let mut object = config_map(field, json!({}));
        object["metadata"][field] = json!("x".repeat(length));
        object
    };
    let bad = [long("name", 254), long("namespace", 64), long("uid", 129), long("resourceVersion", 129)];
    let events: Vec<String> =
        bad.iter().map(|object| json!({"type": "ADDED", "object": object}).to_string()).collect();
    let items = [bad.as_slice(), &[config_map("good", json!({})), long("name", 253)]].concat();
    let (client, _) = server(Box::new(move |query| {
        if query.contains("watch=true") { open_watch(events.clone()) } else { whole(200, list(&items)) }
    }));
    let (index, _task) = start(client);
    pass(1).await;
    assert_eq!(names(&index), ["good".to_owned(), "x".repeat(253)]);
    let unreadable = index.health().all_unreadable();
    let told: Vec<_> =
        unreadable.iter().map(|(key, each)| (key.name.as_str(), each.problem.as_str())).collect();
    let expected = [
        ("resourceVersion", "its resourceVersion is longer than 128 bytes"),
        ("uid", "its uid is longer than 128 bytes"),
    ];
    assert_eq!((told.as_slice(), index.health().count_unreadable()), (expected.as_slice(), 4));
    assert!(unreadable.iter().all(|(_, each)| each.uid.as_ref().is_none_or(|uid| uid.len() < 129)));
    assert!(index.health().failure().is_none());
}

#[tokio::test(start_paused = true)]
async fn events_without_end_do_not_make_more_objects_than_a_list_may_hold() {
    let events: Vec<String> = (0..1000)
        .map(|n| json!({"type": "ADDED", "object": config_map(&format!("e{n}"), json!({}))}).to_string())
        .collect();
    let (client, asked) = server(Box::new(move |query| {
        if query.contains("watch=true") {
            open_watch(events.clone())
        } else {
            whole(200, list(&[config_map("a", json!({}))]))
        }
    }));
    let (index, health): (crate::Index<()>, _) = (crate::Index::default(), WatchHealth::default());
    let api: Api<ConfigMap> = Api::all(client);
    let request = Request::new(api.resource_url().to_owned());
    let source = Source { client: api.into_client(), request, resource: "configmaps".to_owned(), most: 10 };
    let (known, told) = (index.clone(), health.clone());
    let most = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&most);
    let _task = tokio::spawn(async move {
        let tell = |change| {
            known.take(change);
            let mut most = seen.lock().unwrap();
            *most = known.len().max(*most);
        };
        source.follow(Config::default(), |_: ConfigMap| (), tell, Seed::new(1), told).await;
    });
    pass(120).await;
    assert_eq!(*most.lock().unwrap(), 20);
    assert_eq!(
        health.failure().unwrap().error,
        "cannot watch configmaps: more than 10 events since the last list"
    );
    assert!(asked.lock().unwrap().len() < 30);
}

#[tokio::test(start_paused = true)]
async fn blank_lines_now_and_then_do_not_keep_a_dead_watch_alive() {
    let (client, asked) = server(Box::new(|query| {
        if !query.contains("watch=true") {
            return whole(200, list(&[]));
        }
        let dripping = futures::stream::unfold((), |()| async {
            pass(50).await;
            Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"\n"))), ()))
        });
        Response::new(StreamBody::new(dripping).boxed_unsync())
    }));
    let (index, _task) = start(client);
    pass(101).await;
    assert_eq!((asked.lock().unwrap().len(), index.health().age().unwrap().as_secs()), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_works_is_not_given_up_for_a_list_that_fails() {
    let bookmark = json!({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "8"}}}).to_string();
    let lists = Mutex::new(0);
    let (client, asked) = server(Box::new(move |query| {
        if query.contains("watch=true") {
            let line = bookmark.clone() + "\n";
            let told = futures::stream::unfold(0, move |count| {
                let line = line.clone();
                async move {
                    pass(60).await;
                    (count < 4).then(|| (Ok::<_, Infallible>(Frame::data(Bytes::from(line))), count + 1))
                }
            });
            return Response::new(StreamBody::new(told).boxed_unsync());
        }
        let mut lists = lists.lock().unwrap();
        *lists += 1;
        if *lists == 1 { whole(200, list(&[])) } else { whole(500, "{}".to_owned()) }
    }));
    let (index, _task) = start(client);
    pass(3 * 3600).await;
    let age = index.health().age().unwrap().as_secs();
    assert!(age <= 61, "it is {age} s since the watch told anything");
    let asked = asked.lock().unwrap().clone();
    let lists = asked.iter().filter(|query| !query.contains("watch=true")).count();
    assert!((2..=40).contains(&lists), "{lists} lists in {} requests", asked.len());
}
