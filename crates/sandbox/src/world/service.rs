//! A cluster's API server as a tower service, seen by one party.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::{HeaderValue, Method, Response, header};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use kube::client::Body as ClientBody;
use rustls::pki_types::CertificateDer;

use super::Inner;
use super::fault::{CrashPoint, Fault};
use super::link::{CONNECTION_TIMEOUT, Links};
use crate::auth::User;
use crate::error::{About, ApiError};
use crate::server::{Reply, ReplyBody, Request, Server};

/// The service behind a client.
#[derive(Clone)]
pub(crate) struct ApiService {
    server: Server,
    world: Arc<Inner>,
    cluster: Arc<str>,
    party: Arc<str>,
    incarnation: u64,
    /// Who calls if the request does not say; nobody, on a socket.
    user: Option<User>,
    /// The chain of certificates that the connection showed.
    certificates: Arc<[CertificateDer<'static>]>,
}

impl ApiService {
    pub(super) fn new(
        server: Server,
        world: Arc<Inner>,
        cluster: Arc<str>,
        party: &str,
        user: Option<User>,
    ) -> Self {
        let incarnation = world.links.incarnation(party);
        Self { server, world, cluster, party: party.into(), incarnation, user, certificates: Arc::default() }
    }

    /// The same service for a connection that showed a chain of certificates.
    pub(crate) fn shown(self, certificates: Arc<[CertificateDer<'static>]>) -> Self {
        Self { certificates, ..self }
    }

    fn links(&self) -> &Links {
        &self.world.links
    }

    async fn pass(&self) -> io::Result<()> {
        let passed = self.links().pass(&self.party, self.incarnation, &self.cluster).await;
        passed.map_err(|error| io::Error::new(io::ErrorKind::TimedOut, error.to_string()))
    }

    pub(crate) async fn answer(self, request: http::Request<ClientBody>) -> io::Result<Response<AnswerBody>> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        let request = Request {
            method: parts.method,
            uri: parts.uri,
            headers: parts.headers,
            body,
            party: self.party.clone(),
            user: self.user.clone(),
            certificates: self.certificates.clone(),
        };
        let (number, crash) = self.links().count(&self.party);
        let line = format!("{} #{number} {} {}", self.party, request.method, request.uri);
        if crash == Some(CrashPoint::Before) {
            self.links()
                .crash(&self.party, &format!("before request {number}: {} {}", request.method, request.uri));
        }
        self.pass().await?;
        self.links().travel(&self.party, &self.cluster).await;
        let write = request.method != Method::GET;
        let fault = self.links().draw(&self.party, &self.cluster, write);
        self.server.turn().await;
        let reply = self.carry_out(&request, fault, &line);
        if crash == Some(CrashPoint::After) {
            self.links()
                .crash(&self.party, &format!("after request {number}: {} {}", request.method, request.uri));
        }
        self.links().travel(&self.party, &self.cluster).await;
        self.pass().await?;
        match fault {
            Some(Fault::LostRequest | Fault::LostAnswer) => {
                return Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer"));
            }
            Some(Fault::TimeoutBefore | Fault::TimeoutAfter) => {
                tokio::time::sleep(CONNECTION_TIMEOUT).await;
                self.pass().await?;
                return Err(io::Error::new(io::ErrorKind::TimedOut, "timed out waiting for the answer"));
            }
            _ => {}
        }
        Ok(self.respond(reply))
    }

    /// Does what the request asks for, unless a fault comes before.
    fn carry_out(&self, request: &Request, fault: Option<Fault>, line: &str) -> Reply {
        let name = request.uri.path().rsplit('/').next().unwrap_or_default();
        let about = About { group: "", resource: "objects", name };
        let refused = match fault {
            Some(Fault::ServerError) => Some(ApiError::internal("injected fault")),
            Some(Fault::Conflict) => Some(ApiError::modified(about)),
            Some(Fault::TooManyRequests) => {
                Some(ApiError::too_many_requests("Too many requests, please try again later.", 1))
            }
            Some(Fault::LostRequest | Fault::TimeoutBefore) => {
                Some(ApiError::internal("the request was lost"))
            }
            Some(Fault::LostAnswer | Fault::TimeoutAfter) | None => None,
        };
        let reply = match &refused {
            Some(error) => Reply::error(error),
            None => self.server.handle(request),
        };
        let outcome = match fault {
            Some(fault) => format!("{line} -> {} ({fault:?})", reply.code),
            None => format!("{line} -> {}", reply.code),
        };
        self.world.log.record(self.world.clock.now(), &self.cluster, &outcome, &request.body);
        reply
    }

    fn respond(&self, reply: Reply) -> Response<AnswerBody> {
        let body = match reply.body {
            ReplyBody::Full(bytes) => AnswerBody::Full(Some(bytes)),
            ReplyBody::Watch(watch) => {
                let service = self.clone();
                AnswerBody::Stream(Box::pin(watch.then(move |chunk| service.clone().deliver(chunk))))
            }
        };
        let mut response = Response::new(body);
        // Every code here is a constant between 200 and 504.
        *response.status_mut() =
            http::StatusCode::from_u16(reply.code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
        for warning in &reply.warnings {
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
        response
    }

    /// Brings a chunk of a watch to the party, unless the watch breaks.
    async fn deliver(self, chunk: Bytes) -> io::Result<Bytes> {
        self.links().travel(&self.party, &self.cluster).await;
        let delay = self.links().watch_delay(&self.party, &self.cluster);
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        self.pass().await?;
        if self.links().drops_watch(&self.party, &self.cluster) {
            self.world.log.record(
                self.world.clock.now(),
                &self.cluster,
                &format!("{} loses a watch", self.party),
                &[],
            );
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer"));
        }
        Ok(chunk)
    }
}

impl tower::Service<http::Request<ClientBody>> for ApiService {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Response<AnswerBody>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<ClientBody>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// The body of an answer: whole, or a watch.
pub(crate) enum AnswerBody {
    Full(Option<Bytes>),
    Stream(BoxStream<'static, io::Result<Bytes>>),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        match &mut *self {
            AnswerBody::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            AnswerBody::Stream(stream) => {
                stream.as_mut().poll_next(cx).map(|next| next.map(|chunk| chunk.map(Frame::data)))
            }
        }
    }
}
