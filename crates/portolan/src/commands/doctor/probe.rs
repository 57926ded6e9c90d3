//! The way to an API server, hop by hop: name, connection, privacy, credential, readiness, clock and speed.

use super::certificates;
use super::report::{Sheet, unasked};
use super::way::Way;
use futures::future::join_all;
use http::header::DATE;
use jiff::{SignedDuration, Timestamp};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use portolan_core::doctor::{
    Answer, Check, Clock, Dns, Evidence, Latency, Ready, Tcp, TcpFailure, Tls, TlsFailure,
};
use portolan_runtime::{CallError, call, chain, foreign_text};
use rustls::CertificateError;
use rustls::pki_types::{CertificateDer, ServerName};
use std::io::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

/// How long a hop may take.
const HOP_LIMIT: Duration = Duration::from_secs(5);
/// How many addresses of a name are tried.
const ADDRESSES: usize = 8;
/// How many answers are timed.
const TIMED: usize = 5;

/// Checks each hop; whether the API server answers and takes the credential.
pub(super) async fn hops(sheet: &Sheet, way: &Way) -> bool {
    let url = &way.config.cluster_url;
    let server = url.to_string();
    let server = server.trim_end_matches('/');
    let private = url.scheme_str() == Some("https");
    let Some(host) = url.host().map(|host| host.trim_start_matches('[').trim_end_matches(']').to_owned())
    else {
        let why = format!("{server:?} is no URL of an API server");
        let advice = "correct the server in the kubeconfig".to_owned();
        sheet.add(Check::Address, server, &Evidence::BadAddress { why, advice });
        return false;
    };
    let port = url.port_u16().unwrap_or(if private { 443 } else { 80 });
    let found = resolve(&host, port).await;
    let addresses: Vec<SocketAddr> = found.clone().unwrap_or_default();
    let named = found.map(|found| found.iter().map(|each| each.ip().to_string()).collect());
    sheet.add(Check::Dns, &host, &Evidence::Dns(Dns { host: host.clone(), found: named }));
    if addresses.is_empty() {
        return skip(sheet, Check::Dns, &[Check::Tcp, Check::Tls, Check::Api]);
    }
    let (tcp, stream) = connect(port, &addresses).await;
    sheet.add(Check::Tcp, &format!("{host}:{port}"), &Evidence::Tcp(tcp));
    let Some((address, stream)) = stream else {
        return skip(sheet, Check::Tcp, &[Check::Tls, Check::Api]);
    };
    if private {
        let (tls, shown) = handshake(&way.config, &host, &address.to_string(), stream).await;
        let failed = tls.outcome.is_err();
        sheet.add(Check::Tls, &address.to_string(), &Evidence::Tls(tls));
        certificates::check(sheet, way, &address.to_string(), shown.as_ref());
        if failed {
            return skip(sheet, Check::Tls, &[Check::Api]);
        }
    }
    let version = call("ask for its version", way.client.apiserver_version()).await;
    let answers = version.is_ok();
    let answer = Answer {
        server: server.to_owned(),
        credential: way.credential.called.clone(),
        answer: version.map(|info| foreign_text(&info.git_version)).map_err(|error| refusal(&error)),
        renew: way.credential.renew,
    };
    sheet.add(Check::Api, server, &Evidence::Api(answer));
    if !answers {
        return skip(sheet, Check::Api, &[Check::Ready, Check::Clock, Check::Latency]);
    }
    sheet.add(Check::Ready, server, &ready(&way.client, server).await);
    speed(sheet, &way.client, server).await;
    true
}

/// Notes that checks were not made, since one before them failed.
fn skip(sheet: &Sheet, after: Check, checks: &[Check]) -> bool {
    checks.iter().for_each(|check| sheet.add(*check, "", &Evidence::NotReached { after }));
    false
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    match timeout(HOP_LIMIT, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(found)) => {
            let mut found: Vec<SocketAddr> = found.take(ADDRESSES).collect();
            found.sort();
            found.dedup();
            Ok(found)
        }
        Ok(Err(error)) => Err(foreign_text(&error.to_string())),
        Err(_) => Err(format!("no answer within {} s", HOP_LIMIT.as_secs())),
    }
}

/// Connects to all of the addresses; the first connection is kept.
async fn connect(port: u16, addresses: &[SocketAddr]) -> (Tcp, Option<(SocketAddr, TcpStream)>) {
    let tries = addresses.iter().map(|address| async move {
        let asked = Instant::now();
        let outcome = timeout(HOP_LIMIT, TcpStream::connect(address)).await;
        (*address, asked.elapsed(), outcome)
    });
    let (mut tried, mut kept) = (Vec::new(), None);
    for (address, took, outcome) in join_all(tries).await {
        let outcome = match outcome {
            Ok(Ok(stream)) => {
                kept.get_or_insert((address, stream));
                Ok(took)
            }
            Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused => Err(TcpFailure::Refused),
            Ok(Err(error)) => Err(TcpFailure::Other(error.to_string())),
            Err(_) => Err(TcpFailure::TimedOut(HOP_LIMIT)),
        };
        tried.push((address.to_string(), outcome));
    }
    (Tcp { port, tried }, kept)
}

async fn handshake(
    config: &Config,
    host: &str,
    target: &str,
    stream: TcpStream,
) -> (Tls, Option<CertificateDer<'static>>) {
    let name = config.tls_server_name.clone().unwrap_or_else(|| host.to_owned());
    let unchecked = config.accept_invalid_certs;
    let tls = |outcome| Tls { target: target.to_owned(), name: name.clone(), unchecked, outcome };
    let other = |error: String| TlsFailure::Other(foreign_text(&error));
    let client = match config.rustls_client_config() {
        Ok(client) => TlsConnector::from(Arc::new(client)),
        Err(error) => return (tls(Err(other(error.to_string()))), None),
    };
    let server = match ServerName::try_from(name.clone()) {
        Ok(server) => server,
        Err(error) => return (tls(Err(other(error.to_string()))), None),
    };
    match timeout(HOP_LIMIT, client.connect(server, stream)).await {
        Ok(Ok(stream)) => {
            let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
            (tls(Ok(())), chain.first().cloned().map(CertificateDer::into_owned))
        }
        Ok(Err(error)) => (tls(Err(failure(&error))), None),
        Err(_) => (tls(Err(TlsFailure::TimedOut(HOP_LIMIT))), None),
    }
}

/// Why a handshake failed, by what the library found.
fn failure(error: &Error) -> TlsFailure {
    let known = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match known {
        Some(rustls::Error::InvalidCertificate(why)) => match why {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => TlsFailure::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                TlsFailure::NotYetValid
            }
            // Another authority of the same name has another key: the signature does not fit.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => TlsFailure::UnknownIssuer,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                TlsFailure::WrongName
            }
            other => TlsFailure::Other(foreign_text(&other.to_string())),
        },
        Some(other) => TlsFailure::Other(foreign_text(&other.to_string())),
        None => TlsFailure::Other(foreign_text(&error.to_string())),
    }
}

/// The status of a refusal, and what the API server says.
fn refusal(error: &CallError) -> (Option<u16>, String) {
    (error.code(), foreign_text(&chain(error)))
}

async fn ready(client: &Client, server: &str) -> Evidence {
    let request = match http::Request::get("/readyz").body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return Evidence::NotAsked { why: error.to_string(), advice: String::new() },
    };
    let problem = match call("ask whether it is ready", client.request_text(request)).await {
        Ok(_) => None,
        Err(error) if matches!(error.code(), Some(403 | 404)) => return unasked(&error, "get /readyz"),
        Err(error) => Some(foreign_text(&chain(&error))),
    };
    Evidence::Ready(Ready { server: server.to_owned(), problem })
}

/// Times some answers, and reads the clock out of them. The first one made the connection, and does not count.
async fn speed(sheet: &Sheet, client: &Client, server: &str) {
    let (mut times, mut failed, mut clock) = (Vec::new(), 0, None::<Clock>);
    for _ in 0..TIMED {
        let Ok(request) = http::Request::get("/version").body(Body::empty()) else { break };
        let (before, asked) = (sheet.clock().now(), Instant::now());
        match timeout(HOP_LIMIT, client.send(request)).await {
            Ok(Ok(answer)) => {
                let took = asked.elapsed();
                times.push(took);
                let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
                let read = date.and_then(|date| skew(date, before, took));
                // The quickest answer is the surest.
                if read
                    .as_ref()
                    .is_some_and(|read| clock.as_ref().is_none_or(|best| read.within < best.within))
                {
                    clock = read;
                }
            }
            Ok(Err(_)) | Err(_) => failed += 1,
        }
    }
    let clock = clock.map(Evidence::Clock).unwrap_or_else(|| Evidence::NotAsked {
        why: "its answers have no Date".to_owned(),
        advice: "a proxy on the way may take it out".to_owned(),
    });
    sheet.add(Check::Clock, server, &clock);
    sheet.add(Check::Latency, server, &Evidence::Latency(Latency { times, failed }));
}

/// By how much the clock that wrote this Date, in whole seconds, is ahead of ours.
fn skew(date: &str, before: Timestamp, took: Duration) -> Option<Clock> {
    let second = Duration::from_secs(1);
    let told = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    let (half, took) = (SignedDuration::try_from(second / 2).ok()?, SignedDuration::try_from(took).ok()?);
    let theirs = told.checked_add(half).ok()?;
    let ours = before.checked_add(took / 2).ok()?;
    Some(Clock { ahead: theirs.duration_since(ours), within: second / 2 + took.unsigned_abs() / 2 })
}

#[cfg(test)]
mod tests;
