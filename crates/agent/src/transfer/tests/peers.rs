//! Exactly one peer is accepted, in both directions.

use super::super::tls::no_server_name;
use super::super::{
    Credentials, ExpectedSession, Failure, HandshakeError, PeerIdentity, Receiver, ReceiverLimits, Refusal,
    Sender,
};
use super::{
    Authority, Dial, PEER, SendOptions, World, acceptor, bytes, destination, failure, options, part,
    receiver_of, send, serve, source,
};
use rcgen::{CertificateParams, KeyPair};
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, duplex};
use tokio_rustls::TlsConnector;

/// Why the two do not come together: as the sender sees it, and as the receiver does.
async fn refused(from: &Credentials, to: &Credentials) -> (HandshakeError, HandshakeError) {
    let world = World::new();
    let receiver = receiver_of(to, ReceiverLimits::default());
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let dial = Arc::new(Dial::new(&receiver));
    let sender = Sender::new(from, Arc::clone(&dial), SendOptions { tries: 5, ..options() }).unwrap();
    let (failed, tries) = failure(send(&sender, vec![part("app", &bytes(10))]).await.0);
    assert_eq!(tries, 1, "another try does not help: {failed}");
    let received = dial.served().await.remove(0).unwrap_err();
    assert!(received.to_string().contains("cannot be received from peer"), "{received}");
    assert_eq!(session.bytes().into_values().sum::<u64>(), 0);
    assert!(world.files().is_empty());
    match (failed, *received.failure) {
        (Failure::Handshake(sent), Failure::Handshake(received)) => (sent, received),
        failures => panic!("{failures:?}"),
    }
}

#[tokio::test]
async fn a_peer_that_another_authority_signed_for_is_refused() {
    let (nodes, others) = (Authority::new("nodes"), Authority::new("others"));
    let (to_source, to_destination) = (source(), destination());
    let right = nodes.credentials(&to_destination, &to_source, &nodes);
    let stranger = others.credentials(&to_source, &to_destination, &nodes);
    let (sent, received) = refused(&stranger, &right).await;
    assert!(matches!(sent, HandshakeError::RefusedByPeer(_)), "{sent}");
    assert!(matches!(received, HandshakeError::UnknownAuthority), "{received}");
    let right = nodes.credentials(&to_source, &to_destination, &nodes);
    let stranger = others.credentials(&to_destination, &to_source, &nodes);
    let (sent, received) = refused(&right, &stranger).await;
    assert!(matches!(sent, HandshakeError::UnknownAuthority), "{sent}");
    assert!(matches!(received, HandshakeError::RefusedByPeer(_)), "{received}");
    // The same name is not the same authority.
    let same_name = Authority::new("nodes");
    let stranger = same_name.credentials(&to_destination, &to_source, &nodes);
    let (sent, _) = refused(&right, &stranger).await;
    assert!(matches!(sent, HandshakeError::UnknownAuthority), "{sent}");
}

#[tokio::test]
async fn another_peer_of_the_same_authority_is_refused_by_name() {
    let nodes = Authority::new("nodes");
    let others = [
        PeerIdentity::Uri("spiffe://lille/another-agent".to_owned()),
        PeerIdentity::Dns("spiffe://lille/portolan-agent".to_owned()),
        PeerIdentity::CommonName("spiffe://lille/portolan-agent".to_owned()),
    ];
    for other in others {
        let from = nodes.credentials(&other, &destination(), &nodes);
        let to = nodes.credentials(&destination(), &source(), &nodes);
        let (sent, received) = refused(&from, &to).await;
        assert!(matches!(sent, HandshakeError::RefusedByPeer(_)), "{sent}");
        let HandshakeError::Identity(error) = received else { panic!("{received}") };
        assert_eq!(error.expected, source());
        let (PeerIdentity::Uri(found) | PeerIdentity::Dns(found) | PeerIdentity::CommonName(found)) = other;
        assert!(error.to_string().contains(&format!("{found:?}")), "{error}");
    }
    let from = nodes.credentials(&source(), &destination(), &nodes);
    let to = nodes.credentials(&PeerIdentity::Dns("agent.metz.example".to_owned()), &source(), &nodes);
    let (sent, _) = refused(&from, &to).await;
    assert!(
        sent.to_string().contains("agent.metz.example") && sent.to_string().contains("agent.nice.example")
    );
}

#[tokio::test]
async fn peers_are_known_by_any_kind_of_name() {
    let nodes = Authority::new("nodes");
    let names = |text: &str| {
        let text = text.to_owned();
        [
            PeerIdentity::Uri(format!("spiffe://{text}")),
            PeerIdentity::Dns(text.clone()),
            PeerIdentity::CommonName(text),
        ]
    };
    for (one, other) in names("lille").into_iter().zip(names("nice").into_iter().rev()) {
        let world = World::new();
        let to = nodes.credentials(&other, &one, &nodes);
        let receiver = receiver_of(&to, ReceiverLimits::default());
        let session = receiver.admit(world.expected(&["app"])).await.unwrap();
        let from = nodes.credentials(&one, &other, &nodes);
        let sender = Sender::new(&from, Arc::new(Dial::new(&receiver)), options()).unwrap();
        send(&sender, vec![part("app", &bytes(10))]).await.0.unwrap();
        session.whole().await.unwrap();
    }
}

#[tokio::test]
async fn at_one_address_a_peer_is_known_by_its_certificate() {
    let (world, own) = (World::new(), destination());
    // The agent has a certificate of an authority of its own for each of its peers.
    let (for_lille, for_metz) = (Authority::new("nodes"), Authority::new("others"));
    let (lille, metz) = (Authority::new("lille"), Authority::new("metz"));
    // The names are the same, the authorities are not.
    let peers = [
        (PEER.to_owned(), for_lille.credentials(&own, &source(), &lille)),
        ("metz".to_owned(), for_metz.credentials(&own, &source(), &metz)),
    ];
    let receiver = Arc::new(Receiver::new(ReceiverLimits::default()));
    receiver.accept_from(&peers).unwrap();
    let session = receiver.admit(world.expected(&["app"])).await.unwrap();
    let sender = |own_authority: &Authority, theirs: &Authority| {
        let from = own_authority.credentials(&source(), &own, theirs);
        Sender::new(&from, Arc::new(Dial::new(&receiver)), options()).unwrap()
    };
    // The other peer, with the ticket of the session, which is not its own.
    let stolen = send(&sender(&metz, &for_metz), vec![part("app", &bytes(10))]).await.0;
    let (failed, _) = failure(stolen);
    assert!(matches!(failed, Failure::Refused(Refusal::NotAdmitted)), "{failed}");
    send(&sender(&lille, &for_lille), vec![part("app", &bytes(10))]).await.0.unwrap();
    session.whole().await.unwrap();
    // A session of the same name is another one if its peer is.
    let expected = world.expected(&["app"]);
    let folder = world.path("metz");
    std::fs::create_dir(&folder).unwrap();
    let other = ExpectedSession { peer: "metz".to_owned(), folder, ..expected };
    let other = receiver.admit(other).await.unwrap();
    send(&sender(&metz, &for_metz), vec![part("app", &bytes(10))]).await.0.unwrap();
    other.whole().await.unwrap();
    // One that nobody has told of.
    let nice = Authority::new("nice");
    let dial = Arc::new(Dial::new(&receiver));
    let from = nice.credentials(&source(), &own, &for_lille);
    let sender = Sender::new(&from, Arc::clone(&dial), options()).unwrap();
    send(&sender, vec![part("app", &bytes(10))]).await.0.unwrap_err();
    let error = dial.served().await.remove(0).unwrap_err();
    assert!(matches!(*error.failure, Failure::Handshake(HandshakeError::UnknownAuthority)), "{error}");
    assert_eq!(receiver.accept_from(&[]).ok(), Some(()));
    send(&sender, vec![part("app", &bytes(10))]).await.0.unwrap_err();
    let error = dial.served().await.remove(0).unwrap_err();
    assert!(matches!(*error.failure, Failure::Handshake(HandshakeError::NoPeer)), "{error}");
}

#[tokio::test]
async fn certificates_are_valid_only_in_their_time() {
    let nodes = Authority::new("nodes");
    let (lille, nice) = (source(), destination());
    let between = |from, until| nodes.credentials_between(&lille, &nice, &nodes, from, until);
    let to = nodes.credentials(&nice, &lille, &nodes);
    let (sent, received) = refused(&between(2020, 2025), &to).await;
    assert!(matches!(sent, HandshakeError::RefusedByPeer(_)), "{sent}");
    assert!(matches!(received, HandshakeError::Expired), "{received}");
    let (_, received) = refused(&between(2027, 2030), &to).await;
    assert!(matches!(received, HandshakeError::NotValidYet), "{received}");
    let from = nodes.credentials(&lille, &nice, &nodes);
    let (sent, _) = refused(&from, &nodes.credentials_between(&nice, &lille, &nodes, 2020, 2025)).await;
    assert!(matches!(sent, HandshakeError::Expired), "{sent}");
}

#[tokio::test]
async fn nobody_connects_without_a_certificate() {
    let world = World::new();
    let (near, far) = duplex(1 << 20);
    let served = serve(&world.receiver(), Box::new(far));
    let mut roots = RootCertStore::empty();
    roots.add(world.authority.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_details(provider, Arc::new(super::FixedTime))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = "agent.nice.example".try_into().unwrap();
    let mut client = TlsConnector::from(Arc::new(config)).connect(name, near).await.unwrap();
    let mut nothing = [0];
    assert!(client.read_exact(&mut nothing).await.is_err(), "the receiver says nothing to strangers");
    let error = served.await.unwrap().unwrap_err();
    assert!(matches!(*error.failure, Failure::Handshake(HandshakeError::NoCertificate)), "{error}");
}

#[tokio::test]
async fn older_versions_of_tls_are_not_spoken() {
    let world = World::new();
    let (near, far) = duplex(1 << 20);
    let served = serve(&world.receiver(), Box::new(far));
    let mut roots = RootCertStore::empty();
    roots.add(world.authority.certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    assert!(connector.connect(no_server_name(), near).await.is_err());
    let error = served.await.unwrap().unwrap_err();
    assert!(matches!(*error.failure, Failure::Handshake(HandshakeError::Protocol(_))), "{error}");
}

#[test]
fn credentials_are_read_from_pem() {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let certificate = CertificateParams::new(Vec::new()).unwrap().self_signed(&key).unwrap().pem();
    let read = |chain: &str, key: &str, authority: &str| {
        let (chain, key, authority) = (chain.as_bytes(), key.as_bytes(), authority.as_bytes());
        Credentials::from_pem(chain, key, authority, source(), Arc::new(super::FixedTime))
    };
    let right = read(&certificate, &key.serialize_pem(), &certificate).unwrap();
    assert!(acceptor(&right).is_ok() && right.connector().is_ok());
    let mixed = read(&certificate, &other.serialize_pem(), &certificate).unwrap();
    assert!(acceptor(&mixed).err().unwrap().to_string().contains("the key belongs to the certificate"));
    let key = key.serialize_pem();
    for (chain, key, authority, expected) in [
        ("", key.as_str(), certificate.as_str(), "no own certificate"),
        (certificate.as_str(), key.as_str(), "", "no certificate of the peer's authority"),
        (certificate.as_str(), "", certificate.as_str(), "own key is not PEM"),
    ] {
        let error = read(chain, key, authority).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
