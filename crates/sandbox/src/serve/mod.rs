//! Clusters on loopback: TLS, and a kubeconfig for kubectl.

mod certificates;
mod kubeconfig;
mod listener;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use kube::client::Body as ClientBody;
use portolan_runtime::Seed;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::world::ApiService;

pub use kubeconfig::kubeconfig;

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
    /// The certificate could not be made.
    #[error("cannot make the serving certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The certificate could not be used.
    #[error("cannot use the serving certificate: {0}")]
    Tls(#[from] rustls::Error),
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

/// Serves `service` on `address`.
pub(crate) async fn serve(
    cluster: &str,
    address: SocketAddr,
    service: ApiService,
    token: String,
    seed: &Seed,
) -> Result<Served, ServeError> {
    let listen = |source| ServeError::Listen { address, source };
    let socket = TcpListener::bind(address).await.map_err(listen)?;
    let address = socket.local_addr().map_err(listen)?;
    let identity = certificates::Identity::new(seed, address.ip())?;
    let listener = listener::TlsListener::new(socket, Arc::new(identity.server_config()?), address);
    let router = Router::new().fallback(move |request: Request| answer(service.clone(), request));
    let task = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!("serving {address} ended: {error}");
        }
    });
    Ok(Served { cluster: cluster.to_owned(), address, authority: identity.authority, token, task })
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
