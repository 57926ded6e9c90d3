//! Connections break, receivers restart, and only what is missing is sent again.

use super::super::{Failure, Refusal, SendOptions};
use super::{Dial, World, bytes, failure, name, options, part, send};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

/// What a sender may have sent without an acknowledgement: frames of 4 KiB, acknowledged every 16 KiB.
const WINDOW: u64 = 2 * (16 + 4) * 1024;

#[tokio::test]
async fn a_part_arrives_over_connections_that_break() {
    let data = bytes(1 << 20);
    for loopback in [false, true] {
        for cut in [70_000, 101_000, 333_333] {
            let world = World::new();
            let receiver = world.receiver();
            let session = receiver.admit(world.expected(&["app"])).await.unwrap();
            let dial = Arc::new(Dial { loopback, cut: Some(cut), ..Dial::new(&receiver) });
            let sender = world.sender(Arc::clone(&dial), SendOptions { tries: 100, ..options() });
            let (sent, progress) = send(&sender, vec![part("app", &data)]).await;
            sent.unwrap();
            let received = session.whole().await.unwrap();
            assert!(fs::read(&received[0].path).unwrap() == data);
            let part = progress.parts()[&name("app")];
            let breaks = u64::from(part.tries) - 1;
            assert!(breaks >= data.len() as u64 / cut, "{part:?}");
            let again = part.sent - data.len() as u64;
            assert!(again <= breaks * WINDOW, "{again} bytes were sent again after {breaks} breaks");
            assert_eq!(world.files(), ["app"]);
        }
    }
}

/// A part of which a receiver got some, before it and its session went away. Returns how much it had acknowledged.
async fn interrupted(world: &World, data: &[u8]) -> u64 {
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let dial = Arc::new(Dial { cut: Some(300_000), ..Dial::new(&receiver) });
    let sender = world.sender(Arc::clone(&dial), options());
    let (sent, progress) = send(&sender, vec![part("app", data)]).await;
    let (failed, tries) = failure(sent);
    assert!(matches!(failed, Failure::Frame(_)) && tries == 1, "{failed}");
    assert!(dial.served().await[0].is_err(), "a stream without its end is not a part");
    assert_eq!(world.files(), [".app"]);
    let mode = fs::metadata(world.path(".app")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    drop(session);
    progress.parts()[&name("app")].acknowledged
}

#[tokio::test]
async fn a_receiver_that_restarts_goes_on() {
    let (world, data) = (World::new(), bytes(1 << 20));
    let acknowledged = interrupted(&world, &data).await;
    assert!(acknowledged >= 300_000 - WINDOW - 10_000);
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    assert!(session.bytes()[&name("app")] >= acknowledged);
    let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
    let (sent, progress) = send(&sender, vec![part("app", &data)]).await;
    sent.unwrap();
    assert!(progress.bytes().0 <= data.len() as u64 - acknowledged);
    assert!(fs::read(&session.whole().await.unwrap()[0].path).unwrap() == data);
}

#[tokio::test]
async fn bytes_that_were_damaged_on_disk_are_sent_again() {
    let (world, data) = (World::new(), bytes(1 << 20));
    interrupted(&world, &data).await;
    let mut damaged = fs::read(world.path(".app")).unwrap();
    damaged[1000] ^= 1;
    fs::write(world.path(".app"), damaged).unwrap();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
    let (sent, progress) = send(&sender, vec![part("app", &data)]).await;
    sent.unwrap();
    assert_eq!(progress.bytes().0, data.len() as u64);
    assert!(fs::read(&session.whole().await.unwrap()[0].path).unwrap() == data);
}

#[tokio::test]
async fn a_shorter_source_begins_again() {
    let (world, data) = (World::new(), bytes(1 << 20));
    interrupted(&world, &data).await;
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
    send(&sender, vec![part("app", b"short")]).await.0.unwrap();
    assert_eq!(fs::read(&session.whole().await.unwrap()[0].path).unwrap(), b"short");
}

#[tokio::test]
async fn a_whole_part_is_not_sent_again() {
    let (world, data) = (World::new(), bytes(100_000));
    for sent_bytes in [100_000, 0, 0] {
        let receiver = world.receiver();
        let session = receiver.admit(world.expected(&["app"])).await.unwrap();
        let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
        let (sent, progress) = send(&sender, vec![part("app", &data)]).await;
        assert_eq!((sent.unwrap()[0].bytes, progress.bytes().0), (100_000, sent_bytes));
        assert_eq!(session.whole().await.unwrap()[0].bytes, 100_000);
    }
    for other in [bytes(99_999), bytes(100_001), b"other".to_vec()] {
        let receiver = world.receiver();
        let _session = receiver.admit(world.expected(&["app"])).await.unwrap();
        let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
        let (failed, _) = failure(send(&sender, vec![part("app", &other)]).await.0);
        assert!(matches!(failed, Failure::Refused(Refusal::Exists)), "{failed}");
        assert!(fs::read(world.path("app")).unwrap() == data);
    }
}
