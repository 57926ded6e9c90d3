//! How long a handshake of TLS with another cluster takes.
//!
//! It takes one round trip in TLS 1.3, and so older versions are not spoken. Nothing is sent over the connection and nothing is
//! believed that comes over it, so that certificates need not be checked: the hub names addresses, and no authorities.

use futures::future::BoxFuture;
use portolan_control::measurement::Handshake;
use portolan_core::report::Endpoint;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

/// How many names are resolved at the same time. Each takes a thread until the resolver of the machine gives up, also if nobody
/// waits for it any more.
const LOOKUPS: usize = 16;

/// Connects over the network.
pub(crate) struct OverTheNetwork {
    tls: TlsConnector,
    lookups: Arc<Semaphore>,
}

impl OverTheNetwork {
    /// # Errors
    /// The library does not speak TLS 1.3.
    pub(crate) fn new() -> Result<Self, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        Ok(Self { tls: TlsConnector::from(Arc::new(config)), lookups: Arc::new(Semaphore::new(LOOKUPS)) })
    }

    async fn connect(&self, endpoint: &Endpoint) -> Result<Duration, String> {
        let found = self.resolve(endpoint).await?;
        // Looked at after the name was resolved, since whoever owns a name decides where it leads.
        let address = found.into_iter().find(|address| Endpoint::is_elsewhere(address.ip()));
        let address = address.ok_or("it has no address outside of this cluster's machines")?;
        self.shake_hands(endpoint, address).await
    }

    /// The addresses of an endpoint. The permit stays with the lookup until that ends, however early the caller gives up.
    async fn resolve(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, String> {
        let Endpoint { host, port } = endpoint.clone();
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let permit = Arc::clone(&self.lookups).acquire_owned().await.map_err(told)?;
        let lookup = tokio::spawn(async move {
            let found = tokio::net::lookup_host((host.as_str(), port)).await.map(Vec::from_iter);
            drop(permit);
            found
        });
        lookup.await.map_err(told)?.map_err(told)
    }

    /// The time from the connection to the end of the handshake: what stands before the API server may accept the connection, but
    /// cannot finish the handshake for it.
    async fn shake_hands(&self, endpoint: &Endpoint, address: SocketAddr) -> Result<Duration, String> {
        let name = ServerName::try_from(endpoint.host.clone()).map_err(told)?;
        let stream = TcpStream::connect(address).await.map_err(told)?;
        // The end of the handshake must not wait for more to be sent.
        stream.set_nodelay(true).map_err(told)?;
        let started = Instant::now();
        self.tls.connect(name, stream).await.map_err(told)?;
        Ok(started.elapsed())
    }
}

impl Handshake for OverTheNetwork {
    fn time<'a>(&'a self, endpoint: &'a Endpoint) -> BoxFuture<'a, Result<Duration, String>> {
        Box::pin(self.connect(endpoint))
    }
}

fn told(error: impl std::fmt::Display) -> String {
    portolan_runtime::foreign_text(&error.to_string())
}

/// Takes any certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::ServerConfig;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    /// A server with a certificate that nobody signed.
    async fn server() -> (Endpoint, SocketAddr) {
        let key = rcgen::KeyPair::generate().unwrap();
        let named = rcgen::CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
        let certificate = named.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Who does not speak TLS is of no interest here.
                let _ = acceptor.accept(stream).await;
            }
        });
        (Endpoint { host: "127.0.0.1".to_owned(), port: address.port() }, address)
    }

    #[tokio::test]
    async fn a_handshake_that_is_finished_has_a_time_whoever_signed_the_certificate() {
        let (endpoint, address) = server().await;
        let time = OverTheNetwork::new().unwrap().shake_hands(&endpoint, address).await.unwrap();
        assert!(time > Duration::ZERO && time < Duration::from_secs(5), "{time:?}");
    }

    #[tokio::test]
    async fn an_open_port_without_tls_has_none() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { while listener.accept().await.is_ok() {} });
        let endpoint = Endpoint { host: "127.0.0.1".to_owned(), port: address.port() };
        assert!(OverTheNetwork::new().unwrap().shake_hands(&endpoint, address).await.is_err());
    }

    #[tokio::test]
    async fn a_name_is_resolved_only_while_few_others_are() {
        let network = OverTheNetwork::new().unwrap();
        let named = |host: &str| Endpoint { host: host.to_owned(), port: 1 };
        let others = u32::try_from(LOOKUPS).unwrap();
        let others = Arc::clone(&network.lookups).acquire_many_owned(others).await.unwrap();
        let short = Duration::from_millis(50);
        assert!(tokio::time::timeout(short, network.resolve(&named("localhost"))).await.is_err());
        assert_eq!(network.resolve(&named("127.0.0.1")).await.unwrap().len(), 1, "it is no name");
        drop(others);
        let found = network.resolve(&named("localhost")).await.unwrap();
        assert!(!found.is_empty() && found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
        assert_eq!(network.lookups.available_permits(), LOOKUPS);
    }

    #[tokio::test]
    async fn nothing_is_connected_to_in_the_pod_itself() {
        let (endpoint, _) = server().await;
        let refused = OverTheNetwork::new().unwrap().time(&endpoint).await.unwrap_err();
        assert!(refused.contains("no address outside"), "{refused}");
    }
}
