//! A mutating webhook that gives every pod a sidecar, served by the test over TLS.

use anyhow::{Context, Result};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Larger than any review of this test.
const LARGEST: usize = 1 << 20;

/// The webhook; it ends when it is dropped.
pub(super) struct Webhook {
    /// Where it is, with the authority of its certificate, as a webhook configuration wants it.
    pub(super) client: Value,
    _serving: JoinSet<()>,
}

impl Webhook {
    /// Serves at an address of this machine.
    pub(super) async fn serve(address: Ipv4Addr, sidecar: Value) -> Result<Self> {
        let (config, authority) = identity(address)?;
        let socket = TcpListener::bind((address, 0)).await?;
        let url = format!("https://{}/", socket.local_addr()?);
        let client = json!({"url": url, "caBundle": BASE64_STANDARD.encode(authority)});
        let mut serving = JoinSet::new();
        serving.spawn(accept(socket, TlsAcceptor::from(config), Arc::new(sidecar)));
        Ok(Self { client, _serving: serving })
    }
}

async fn accept(socket: TcpListener, acceptor: TlsAcceptor, sidecar: Arc<Value>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = socket.accept().await {
        let (acceptor, sidecar) = (acceptor.clone(), Arc::clone(&sidecar));
        connections.spawn(async move {
            // The API server tells of a webhook that does not answer.
            let _ = answer(stream, acceptor, &sidecar).await;
        });
    }
}

/// Answers one request of one connection.
async fn answer(stream: TcpStream, acceptor: TlsAcceptor, sidecar: &Value) -> Result<()> {
    let mut stream = BufReader::new(acceptor.accept(stream).await?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse::<usize>()?.min(LARGEST);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let review: Value = serde_json::from_slice(&body)?;
    let patch = json!([{"op": "add", "path": "/spec/containers/-", "value": sidecar}]);
    let response = json!({
        "uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch",
        "patch": BASE64_STANDARD.encode(patch.to_string()),
    });
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
            .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        review.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(review.as_bytes()).await?;
    stream.shutdown().await.map_err(Into::into)
}

/// A certificate for an address, and the authority that signed it, in PEM.
fn identity(address: Ipv4Addr) -> Result<(Arc<ServerConfig>, String)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(Vec::new())?;
    params.subject_alt_names.push(SanType::IpAddress(address.into()));
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .context("protocol versions")?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)?;
    Ok((Arc::new(config), authority))
}

#[tokio::test]
async fn the_webhook_adds_its_sidecar_over_tls() -> Result<()> {
    use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
    let address = Ipv4Addr::LOCALHOST;
    let webhook = Webhook::serve(address, json!({"name": "injected"})).await?;
    let authority = webhook.client["caBundle"].as_str().context("an authority")?;
    let authority = CertificateDer::from_pem_slice(&BASE64_STANDARD.decode(authority)?)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(authority)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let url = webhook.client["url"].as_str().context("an address")?;
    let place = url.trim_start_matches("https://").trim_end_matches('/');
    let stream = TcpStream::connect(place).await?;
    let name = ServerName::IpAddress(std::net::IpAddr::from(address).into());
    let mut stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let body = json!({"request": {"uid": "1"}}).to_string();
    let request = format!("POST / HTTP/1.1\r\nHost: {place}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").context("a body")?;
    let review: Value = serde_json::from_str(body)?;
    let patch = BASE64_STANDARD.decode(review["response"]["patch"].as_str().context("a patch")?)?;
    let patch: Value = serde_json::from_slice(&patch)?;
    anyhow::ensure!(review["response"]["uid"] == "1" && patch[0]["value"]["name"] == "injected", "{review}");
    Ok(())
}
