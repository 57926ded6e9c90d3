//! A small HTTP server that costs little whoever asks: one request a connection, all of it within seconds, and the oldest
//! connection ends when there are too many.

use super::Endpoints;
use crate::failure::Failure;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// How many connections are open at the same time.
const CONNECTIONS: usize = 256;
/// How long the head of a request may take, and a connection in all.
const HEAD_WITHIN: Duration = Duration::from_secs(3);
const CONNECTION_WITHIN: Duration = Duration::from_secs(10);
/// How much of a request is read, and how many headers.
const HEAD_SIZE: usize = 16 << 10;
const HEADERS: usize = 64;
/// What Linux answers where IPv6 is switched off (EAFNOSUPPORT).
const NO_SUCH_FAMILY: i32 = 97;
/// How long to wait when the system gives no connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens on an address. `[::]` stands for all addresses of both families, also where the machine has no IPv6.
pub(crate) async fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    let bound = match TcpListener::bind(address).await {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && has_no_ipv6(&error) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        other => other,
    };
    bound.map_err(|error| {
        Failure::other(format!("cannot listen on {address}: {error}"))
            .hint("name another address by --listen, such as [::]:8080 or 0.0.0.0:8080")
    })
}

/// Whether an address cannot be had since its family is switched off.
fn has_no_ipv6(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::Unsupported)
        || error.raw_os_error() == Some(NO_SUCH_FAMILY)
}

/// Answers for ever.
pub(crate) async fn serve(listener: TcpListener, endpoints: Endpoints) {
    let endpoints = Arc::new(endpoints);
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                open.retain(|each| !each.is_finished());
                // A request is answered within milliseconds: the oldest connection is one that says nothing.
                if open.len() >= CONNECTIONS
                    && let Some(oldest) = open.pop_front()
                {
                    oldest.abort();
                }
                let endpoints = Arc::clone(&endpoints);
                let conversation = tokio::spawn(async move {
                    // Whoever is too slow is cut off.
                    _ = tokio::time::timeout(CONNECTION_WITHIN, converse(stream, endpoints)).await;
                });
                open.push_back(conversation.abort_handle());
                // What has come already is read before the next connection is taken.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                tracing::debug!(%error, "no connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, endpoints: Arc<Endpoints>) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let response: Response<Full<Bytes>> = endpoints.answer(&request);
        async { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(HEAD_SIZE)
        .max_headers(HEADERS)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "a request was not answered");
    }
}

#[cfg(test)]
mod tests {
    use super::super::Watched;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn start() -> SocketAddr {
        let listener = bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, Endpoints::new(Watched::default())));
        address
    }

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn all_addresses_are_those_of_both_families() {
        let listener = bind("[::]:0".parse().unwrap()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(serve(listener, Endpoints::new(Watched::default())));
        let asked = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        assert!(ask((Ipv4Addr::LOCALHOST, port).into(), asked).await.starts_with("HTTP/1.1 200 OK"));
        assert!(has_no_ipv6(&Error::from_raw_os_error(NO_SUCH_FAMILY)));
        assert!(!has_no_ipv6(&Error::from(ErrorKind::AddrInUse)));
    }

    #[tokio::test]
    async fn a_request_is_answered_and_the_connection_closed() {
        let address = start().await;
        let answer = ask(address, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("\r\n\r\nok\n"), "{answer}");
        let answer = ask(address, "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    }

    #[tokio::test]
    async fn metrics_are_answered_in_the_form_that_is_asked_for() {
        let address = start().await;
        let plain = ask(address, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(plain.contains("content-type: text/plain; version=0.0.4"), "{plain}");
        assert!(plain.contains("\nportolan_build_info{version=") && !plain.contains("# EOF"), "{plain}");
        let accept = "Accept: application/openmetrics-text; version=1.0.0,text/plain;q=0.5\r\n";
        let open = ask(address, &format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{accept}\r\n")).await;
        assert!(
            open.contains("content-type: application/openmetrics-text") && open.ends_with("# EOF\n"),
            "{open}"
        );
    }

    #[tokio::test]
    async fn a_body_is_not_read_and_a_head_without_end_is_refused() {
        let address = start().await;
        let answer =
            ask(address, "GET /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "answered without waiting for the body: {answer}");
        let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(2 * HEAD_SIZE));
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(long.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The rest of the request was not read, so that the connection may be reset.
        _ = stream.read_to_end(&mut answer).await;
        assert!(!String::from_utf8_lossy(&answer).contains("200 OK"));
    }

    #[tokio::test]
    async fn connections_that_say_nothing_keep_nobody_out() {
        let address = start().await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS + 100 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let answer = ask(address, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        // It did not wait until they were cut off.
        let is_open = |stream: &&TcpStream| {
            let read = stream.try_read(&mut [0]);
            read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        };
        let open = silent.iter().filter(is_open).count();
        assert!(open >= CONNECTIONS - 1, "{open} are open");
    }
}
