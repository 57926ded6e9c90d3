//! What is sent is what arrives.

use super::super::{Progress, SendOptions, SessionError};
use super::{Dial, World, bytes, key, name, options, part, send, ticket};
use std::fs;
use std::num::NonZeroU64;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_parts_arrive_whole_over_loopback() {
    let world = World::new();
    let receiver = world.receiver();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(Arc::clone(&receiver).serve(listener));
    let sizes = [("app", (3 << 20) + 17), ("empty", 0), ("scratch", 1 << 20), ("sidecar", 1)];
    let parts: Vec<_> = sizes.map(|(part, size)| (part, bytes(size))).into();
    let session = receiver.admit(world.expected(&sizes.map(|(part, _)| part))).await.unwrap();
    let sender = world.sender(address, SendOptions { frame_bytes: usize::MAX, ..options() });
    let outgoing = parts.iter().map(|(name, bytes)| part(name, bytes)).collect();
    let (sent, progress) = send(&sender, outgoing).await;
    let (sent, received) = (sent.unwrap(), session.whole().await.unwrap());
    for (((name, bytes), sent), received) in parts.iter().zip(&sent).zip(&received) {
        assert_eq!((sent.name.as_str(), sent.bytes), (*name, bytes.len() as u64));
        assert_eq!((&received.name, received.bytes), (&sent.name, sent.bytes));
        assert_eq!(received.sha256, sent.sha256);
        assert_eq!(received.path, world.path(name));
        assert!(fs::read(&received.path).unwrap() == *bytes, "{name}");
        assert_eq!(fs::metadata(&received.path).unwrap().permissions().mode() & 0o777, 0o600);
        let part = progress.parts()[&sent.name];
        assert!(part.whole && part.tries == 1 && part.sent == sent.bytes && part.acknowledged == sent.bytes);
    }
    assert_eq!(world.files(), ["app", "empty", "scratch", "sidecar"]);
    assert_eq!(sent[1].sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    session.discard().await.unwrap();
    assert!(world.files().is_empty());
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn parts_share_what_the_sender_may_send() {
    let world = World::new();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["a", "b"])).await.unwrap();
    let rate = NonZeroU64::new(10_000);
    let sender =
        world.sender(Arc::new(Dial::new(&receiver)), SendOptions { bytes_per_second: rate, ..options() });
    let began = Instant::now();
    let (sent, _) = send(&sender, vec![part("a", &bytes(50_000)), part("b", &bytes(50_000))]).await;
    let took = began.elapsed();
    sent.unwrap();
    session.whole().await.unwrap();
    assert!(took >= Duration::from_secs(9) && took <= Duration::from_secs(11), "{took:?}");
}

#[tokio::test]
async fn a_session_that_is_dropped_leaves_its_files() {
    let world = World::new();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["a", "b"])).await.unwrap();
    let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
    send(&sender, vec![part("a", &bytes(10))]).await.0.unwrap();
    assert_eq!(session.bytes()[&name("a")], 10);
    session.close();
    assert!(matches!(session.whole().await, Err(SessionError::Closed { .. })));
    drop(session);
    assert_eq!(world.files(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_names_what_is_missing_at_its_deadline() {
    let world = World::new();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["a", "b"])).await.unwrap();
    let error = session.whole().await.unwrap_err();
    assert!(error.to_string().contains("missing: a, b"), "{error}");
}

#[tokio::test]
async fn sessions_are_admitted_once_and_within_limits() {
    let world = World::new();
    let receiver = world.receiver();
    let admit = |parts: &[&str]| receiver.admit(world.expected(parts));
    assert!(matches!(admit(&[]).await, Err(SessionError::Parts { .. })));
    assert!(matches!(admit(&["a", "a"]).await, Err(SessionError::Parts { .. })));
    let names: Vec<String> = (0..65).map(|number| format!("part-{number}")).collect();
    let many: Vec<&str> = names.iter().map(String::as_str).collect();
    assert!(matches!(admit(&many).await, Err(SessionError::Parts { limit: 64, .. })));
    let session = admit(&["a"]).await.unwrap();
    assert!(matches!(admit(&["a"]).await, Err(SessionError::Exists { .. })));
    drop(session);
    let again = admit(&["a"]).await.unwrap();
    drop(again);
}

#[tokio::test]
async fn a_session_without_parts_is_not_sent() {
    let world = World::new();
    let sender = world.sender(Arc::new(Dial::new(&world.receiver())), options());
    let sent = sender.send(&key(), &ticket(), Vec::new(), &Progress::default()).await;
    assert!(sent.unwrap_err().to_string().contains("session s1 of migration move-1"));
}
