//! What a peer with the right certificate may not do either.

use super::super::frame::{self, Frame};
use super::super::{Failure, FrameError, Refusal, SessionLimits, Ticket};
use super::{Dial, World, bytes, failure, key, name, open, options, part, refusal, send, ticket};
use std::sync::Arc;
use tokio::io::AsyncWriteExt;

/// The frame that opens a part, with any text as its name.
fn open_named(part: &str) -> Vec<u8> {
    let mut payload = ticket().bytes().to_vec();
    for name in ["move-1", "s1", part] {
        payload.push(u8::try_from(name.len()).unwrap());
        payload.extend_from_slice(name.as_bytes());
    }
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [length.as_slice(), [2].as_slice(), payload.as_slice()].concat()
}

#[tokio::test]
async fn only_the_ticket_of_an_open_session_opens_its_parts() {
    let world = World::new();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let mut other = key();
    other.session = name("s2");
    let mut wrong = [42; 32];
    wrong[31] = 43;
    let refusals = [
        (Frame::Open { ticket: Ticket::new(wrong), session: key(), part: name("app") }, Refusal::NotAdmitted),
        (Frame::Open { ticket: ticket(), session: other.clone(), part: name("app") }, Refusal::NotAdmitted),
        // The ticket of no session.
        (
            Frame::Open { ticket: Ticket::new([0; 32]), session: other, part: name("app") },
            Refusal::NotAdmitted,
        ),
        (open("sidecar"), Refusal::UnknownPart),
        (Frame::Begin { offset: 0 }, Refusal::Protocol),
        (Frame::Data(vec![0; 100]), Refusal::Protocol),
    ];
    for (frame, expected) in refusals {
        let (mut client, served) = world.client(&receiver).await;
        frame::write(&mut client, &frame).await.unwrap();
        assert_eq!(refusal(&mut client).await, expected);
        drop(client);
        served.await.unwrap().unwrap_err();
    }
    session.close();
    let (failed, tries) = failure(
        send(&world.sender(Arc::new(Dial::new(&receiver)), options()), vec![part("app", b"a")]).await.0,
    );
    assert!(matches!(failed, Failure::Refused(Refusal::NotAdmitted)) && tries == 1, "{failed}");
    assert!(world.files().is_empty());
}

#[tokio::test]
async fn a_name_that_leads_elsewhere_is_refused() {
    let world = World::new();
    let receiver = world.receiver();
    let _session = receiver.admit(world.expected(&["x"])).await.unwrap();
    for part in ["../x", "/x", ".x", "", "x\0", "X"] {
        let (mut client, served) = world.client(&receiver).await;
        client.write_all(&open_named(part)).await.unwrap();
        client.flush().await.unwrap();
        assert_eq!(refusal(&mut client).await, Refusal::InvalidName, "{part:?}");
        drop(client);
        let error = served.await.unwrap().unwrap_err();
        assert!(matches!(*error.failure, Failure::Frame(FrameError::Name(_))), "{error}");
    }
    assert!(world.files().is_empty());
}

#[tokio::test]
async fn frames_are_bounded() {
    let world = World::new();
    let receiver = world.receiver();
    let _session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let header = |bytes: u32, kind: u8| [bytes.to_be_bytes().as_slice(), [kind].as_slice()].concat();
    for (opened, header, expected) in [
        (false, header(1025, 2), "1025 bytes, and may have 1024"),
        (true, header(256 * 1024 + 1, 5), "262145 bytes, and may have 262144"),
        (true, header(u32::MAX, 5), "may have 262144"),
        (true, header(0, 77), "unknown kind 77"),
        (true, header(0, 7), "kind 7 is damaged"),
    ] {
        let (mut client, served) =
            if opened { world.client_of(&receiver, "app").await } else { world.client(&receiver).await };
        client.write_all(&header).await.unwrap();
        client.flush().await.unwrap();
        assert_eq!(refusal(&mut client).await, Refusal::Protocol);
        drop(client);
        let error = served.await.unwrap().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[tokio::test]
async fn parts_and_sessions_are_bounded() {
    let world = World::new();
    let receiver = world.receiver();
    let limits = SessionLimits { part_bytes: 100_000, session_bytes: 150_000, sync_bytes: 16 << 10 };
    let mut expected = world.expected(&["a", "b"]);
    expected.limits = limits;
    let session = receiver.admit(expected).await.unwrap();
    let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
    let (failed, tries) = failure(send(&sender, vec![part("a", &bytes(100_001))]).await.0);
    assert!(matches!(failed, Failure::Refused(Refusal::PartTooLarge { limit: 100_000 })), "{failed}");
    assert!(tries == 1 && world.files().is_empty(), "{:?}", world.files());
    send(&sender, vec![part("a", &bytes(100_000))]).await.0.unwrap();
    let (failed, _) = failure(send(&sender, vec![part("b", &bytes(50_001))]).await.0);
    assert!(matches!(failed, Failure::Refused(Refusal::SessionTooLarge { limit: 150_000 })), "{failed}");
    assert_eq!(world.files(), ["a"]);
    send(&sender, vec![part("b", &bytes(50_000))]).await.0.unwrap();
    assert_eq!(session.whole().await.unwrap().len(), 2);
}

#[tokio::test]
async fn what_has_another_sum_or_length_is_not_a_part() {
    use sha2::{Digest, Sha256};
    let world = World::new();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let right: [u8; 32] = Sha256::digest(b"data").into();
    let mut wrong = right;
    wrong[0] ^= 1;
    for (bytes, sha256) in [(4, wrong), (5, right), (3, right)] {
        let (mut client, served) = world.client_of(&receiver, "app").await;
        frame::write(&mut client, &Frame::Data(b"data".to_vec())).await.unwrap();
        frame::write(&mut client, &Frame::End { bytes, sha256 }).await.unwrap();
        assert_eq!(refusal(&mut client).await, Refusal::Checksum);
        drop(client);
        served.await.unwrap().unwrap_err();
        assert!(world.files().is_empty());
    }
    let (mut client, served) = world.client_of(&receiver, "app").await;
    frame::write(&mut client, &Frame::Data(b"data".to_vec())).await.unwrap();
    frame::write(&mut client, &Frame::End { bytes: 4, sha256: right }).await.unwrap();
    let done = frame::read(&mut client, 1024).await.unwrap();
    assert!(matches!(done, Frame::Done), "{done:?}");
    drop(client);
    let part = served.await.unwrap().unwrap();
    assert_eq!(session.whole().await.unwrap(), [part]);
}

#[tokio::test]
async fn a_newer_connection_displaces_an_older_one() {
    let world = World::new();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let (mut client, served) = world.client_of(&receiver, "app").await;
    let sender = world.sender(Arc::new(Dial::new(&receiver)), options());
    send(&sender, vec![part("app", &bytes(10))]).await.0.unwrap();
    assert_eq!(refusal(&mut client).await, Refusal::Displaced);
    drop(client);
    served.await.unwrap().unwrap_err();
    session.whole().await.unwrap();
}

#[tokio::test]
async fn a_session_that_is_closed_ends_its_connections() {
    let world = World::new();
    let receiver = world.receiver();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let (mut client, served) = world.client_of(&receiver, "app").await;
    frame::write(&mut client, &Frame::Data(bytes(1000))).await.unwrap();
    session.close();
    assert_eq!(refusal(&mut client).await, Refusal::Closed);
    drop(client);
    served.await.unwrap().unwrap_err();
    session.discard().await.unwrap();
    assert!(world.files().is_empty());
}
