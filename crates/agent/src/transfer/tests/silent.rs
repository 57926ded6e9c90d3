//! Those who say nothing cost a bounded time, all of it paused.

use super::super::frame::{self, Frame, SMALL_FRAME_BYTES};
use super::super::tls::no_server_name;
use super::super::{
    Connect, Connecting, Failure, HandshakeError, ReceiverLimits, Refusal, SendOptions, Stream,
};
use super::{World, acceptor, bytes, failure, open, options, part, receiver_of, refusal, send, serve};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;
use tokio::io::{DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Connections to whoever takes the other ends.
#[derive(Default)]
struct Ends {
    far: Mutex<Vec<DuplexStream>>,
    connected: Notify,
}

impl Connect for Arc<Ends> {
    fn connect(&self) -> Connecting<'_> {
        let (near, far) = duplex(16 << 10);
        self.far.lock().unwrap().push(far);
        self.connected.notify_one();
        Box::pin(async move { Ok(Box::new(near) as Box<dyn Stream>) })
    }
}

#[tokio::test(start_paused = true)]
async fn who_begins_no_handshake_is_dropped() {
    let world = World::new();
    let (_near, far) = duplex(1024);
    let began = Instant::now();
    let error = serve(&world.receiver(), Box::new(far)).await.unwrap().unwrap_err();
    assert!(matches!(*error.failure, Failure::Handshake(HandshakeError::Timeout(_))), "{error}");
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn who_asks_for_nothing_is_dropped() {
    let world = World::new();
    let (_client, served) = world.client(&world.receiver()).await;
    let began = Instant::now();
    let error = served.await.unwrap().unwrap_err();
    assert!(matches!(*error.failure, Failure::Idle(_)), "{error}");
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_slow_handshake_leaves_less_time_to_ask() {
    let world = World::new();
    let (near, far) = duplex(1 << 20);
    let began = Instant::now();
    let served = serve(&world.receiver(), Box::new(far));
    tokio::time::sleep(Duration::from_secs(3)).await;
    let tls = world.of_source().connector().unwrap();
    let _client = tls.connect(no_server_name(), near).await.unwrap();
    let error = served.await.unwrap().unwrap_err();
    assert!(matches!(*error.failure, Failure::Idle(_)), "{error}");
    assert_eq!(began.elapsed().as_secs(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_who_say_nothing_keep_nobody_out() {
    let world = World::new();
    // Longer than the sender waits.
    let limits = ReceiverLimits { handshake_timeout: Duration::from_secs(3600), ..ReceiverLimits::default() };
    let receiver = receiver_of(&world.of_destination(), limits);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(Arc::clone(&receiver).serve(listener));
    let mut silent = Vec::new();
    for _ in 0..40 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    send(&world.sender(address, options()), vec![part("app", &bytes(1000))]).await.0.unwrap();
    assert_eq!(session.whole().await.unwrap().len(), 1);
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn who_sends_no_more_is_dropped() {
    let world = World::new();
    let receiver = world.receiver();
    let _session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let (mut client, served) = world.client_of(&receiver, "app").await;
    frame::write(&mut client, &Frame::Data(bytes(1000))).await.unwrap();
    let began = Instant::now();
    let error = served.await.unwrap().unwrap_err();
    assert!(matches!(*error.failure, Failure::Idle(_)), "{error}");
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(world.files(), [".app"]);
}

#[tokio::test(start_paused = true)]
async fn who_only_says_wait_is_dropped_at_the_deadline() {
    let world = World::new();
    let receiver = world.receiver();
    let _session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let (mut client, served) = world.client(&receiver).await;
    frame::write(&mut client, &open("app")).await.unwrap();
    assert!(matches!(frame::read(&mut client, SMALL_FRAME_BYTES).await.unwrap(), Frame::Resume { .. }));
    // Up to 3600 seconds after the session was admitted.
    for _ in 0..179 {
        frame::write(&mut client, &Frame::Wait).await.unwrap();
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    assert!(!served.is_finished());
    frame::write(&mut client, &Frame::Wait).await.unwrap();
    assert_eq!(refusal(&mut client).await, Refusal::Deadline);
    drop(client);
    assert!(matches!(*served.await.unwrap().unwrap_err().failure, Failure::Deadline));
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_begins_no_handshake_is_tried_again() {
    let (world, ends) = (World::new(), Arc::new(Ends::default()));
    let sender = world.sender(Arc::clone(&ends), SendOptions { tries: 3, ..options() });
    let began = Instant::now();
    let (failed, tries) = failure(send(&sender, vec![part("app", b"a")]).await.0);
    assert!(matches!(failed, Failure::Handshake(HandshakeError::Timeout(_))) && tries == 3, "{failed}");
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(ends.far.lock().unwrap().len(), 3);
    let options =
        SendOptions { tries: u32::MAX, deadline: Instant::now() + Duration::from_secs(15), ..options() };
    let began = Instant::now();
    let sender = world.sender(ends, options);
    let (failed, tries) = failure(send(&sender, vec![part("app", b"a")]).await.0);
    assert!(matches!(failed, Failure::Deadline) && tries == 2, "{failed}");
    assert_eq!(began.elapsed().as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn a_receiver_that_acknowledges_nothing_is_given_up() {
    let (world, ends) = (World::new(), Arc::new(Ends::default()));
    let (acceptor, far) = (acceptor(&world.of_destination()).unwrap(), Arc::clone(&ends));
    let silent = tokio::spawn(async move {
        far.connected.notified().await;
        let stream = far.far.lock().unwrap().remove(0);
        let mut stream = acceptor.accept(stream).await.unwrap();
        frame::write(&mut stream, &Frame::Ready { version: 1 }).await.unwrap();
        assert!(matches!(frame::read(&mut stream, 1024).await.unwrap(), Frame::Open { .. }));
        let resume = Frame::Resume { offset: 0, sync_bytes: 1000, sha256: sha2_of_nothing() };
        frame::write(&mut stream, &resume).await.unwrap();
        let mut received = 0;
        while let Ok(frame) = frame::read(&mut stream, 1 << 20).await {
            if let Frame::Data(data) = frame {
                received += data.len();
            }
        }
        received
    });
    let sender = world.sender(ends, options());
    let began = Instant::now();
    let (failed, _) = failure(send(&sender, vec![part("app", &bytes(1 << 20))]).await.0);
    assert!(matches!(failed, Failure::Idle(_)), "{failed}");
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(silent.await.unwrap(), 2 * 4096, "no more than is promised to be acknowledged");
}

fn sha2_of_nothing() -> [u8; 32] {
    use sha2::{Digest, Sha256};
    Sha256::digest(b"").into()
}
