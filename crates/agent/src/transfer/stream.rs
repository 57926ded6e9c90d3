//! Connections below TLS.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Bytes in both directions.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A connection from the peer.
pub(super) type Incoming = tokio_rustls::server::TlsStream<Box<dyn Stream>>;

/// A connection that is being made.
pub type Connecting<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// Makes connections to the receiver: one for every part, and another whenever one breaks.
pub trait Connect: Send + Sync + 'static {
    /// Makes a connection.
    fn connect(&self) -> Connecting<'_>;
}

impl Connect for SocketAddr {
    fn connect(&self) -> Connecting<'_> {
        let address = *self;
        Box::pin(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}
