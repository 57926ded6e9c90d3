//! Clusters on loopback: TLS, and a kubeconfig for kubectl.

mod certificates;
mod kubeconfig;
mod listener;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request};
use axum::response::{IntoResponse, Response};
use axum::serve::IncomingStream;
use http_body_util::BodyExt;
use kube::client::Body as ClientBody;
use portolan_runtime::{Clock, Seed};
use rustls::pki_types::CertificateDer;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::pki::{Authority, CertificateError};
use crate::world::ApiService;
use listener::TlsListener;

pub use kubeconfig::{kubeconfig, kubeconfig_with};

/// Why a cluster could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}; choose another address, or port 0 for any free one")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The serving certificate could not be made or used.
    #[error("serving certificate: {0}")]
    Certificate(#[from] CertificateError),
}

/// A cluster that answers on a socket, until this is dropped.
#[derive(Debug)]
pub struct Served {
    pub(crate) cluster: String,
    pub(crate) address: SocketAddr,
    pub(crate) authority: String,
    pub(crate) token: String,
    task: JoinHandle<()>,
}

impl Served {
    /// The cluster's name.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Where it answers.
    #[must_use]
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The certificate of its authority, in PEM.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The token of its administrator.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Who a server is.
pub(crate) struct Identity {
    pub(crate) cluster: String,
    pub(crate) authority: Arc<Authority>,
    pub(crate) clock: Clock,
    pub(crate) seed: Seed,
    pub(crate) token: String,
}

/// The chain of certificates that a connection showed.
#[derive(Clone)]
struct Shown(Arc<[CertificateDer<'static>]>);

impl Connected<IncomingStream<'_, TlsListener>> for Shown {
    fn connect_info(stream: IncomingStream<'_, TlsListener>) -> Self {
        Self(stream.io().get_ref().1.peer_certificates().unwrap_or_default().into())
    }
}

/// Serves `service` on `address`.
pub(crate) async fn serve(
    address: SocketAddr,
    service: ApiService,
    identity: Identity,
) -> Result<Served, ServeError> {
    let listen = |source| ServeError::Listen { address, source };
    let socket = TcpListener::bind(address).await.map_err(listen)?;
    let address = socket.local_addr().map_err(listen)?;
    let Identity { cluster, authority, clock, seed, token } = identity;
    let config = certificates::server_config(&authority, clock, &seed, address.ip())?;
    let listener = TlsListener::new(socket, Arc::new(config), address);
    let router =
        Router::new().fallback(move |ConnectInfo(Shown(chain)): ConnectInfo<Shown>, request: Request| {
            answer(service.clone().shown(chain), request)
        });
    let task = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router.into_make_service_with_connect_info::<Shown>()).await
        {
            tracing::error!("serving {address} ended: {error}");
        }
    });
    Ok(Served { cluster, address, authority: authority.pem(), token, task })
}

async fn answer(service: ApiService, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return (http::StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    match service.answer(http::Request::from_parts(parts, ClientBody::from(body))).await {
        Ok(response) => response.map(axum::body::Body::new),
        Err(error) => (http::StatusCode::GATEWAY_TIMEOUT, error.to_string()).into_response(),
    }
}
