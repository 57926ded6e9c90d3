//! Accepts connections and shakes hands, many at a time.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

type Accepted = (TlsStream<TcpStream>, SocketAddr);

/// A listener whose connections are encrypted already.
pub(super) struct TlsListener {
    accepted: mpsc::Receiver<Accepted>,
    address: SocketAddr,
}

impl TlsListener {
    pub(super) fn new(socket: TcpListener, config: Arc<ServerConfig>, address: SocketAddr) -> Self {
        let (sender, accepted) = mpsc::channel(64);
        tokio::spawn(accept_all(socket, TlsAcceptor::from(config), sender));
        Self { accepted, address }
    }
}

async fn accept_all(socket: TcpListener, acceptor: TlsAcceptor, sender: mpsc::Sender<Accepted>) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = sender.closed() => return,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (acceptor, sender) = (acceptor.clone(), sender.clone());
                tokio::spawn(async move {
                    match acceptor.accept(stream).await {
                        // The receiver is gone only when nobody serves any more.
                        Ok(stream) => drop(sender.send((stream, peer)).await),
                        Err(error) => tracing::debug!("handshake with {peer} failed: {error}"),
                    }
                });
            }
            Err(error) => {
                tracing::warn!("cannot accept: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
    }
}

impl axum::serve::Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> Accepted {
        match self.accepted.recv().await {
            Some(accepted) => accepted,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
