//! A cluster's API server as a tower service, seen by one party.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

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
use super::hostile::{self, HostileAnswer};
use super::link::{CONNECTION_TIMEOUT, Links};
use super::log::LogEntry;
use super::partial::{self, FaultAnswer};
use super::requests::Asked;
use crate::auth::User;
use crate::error::{About, ApiError};
use crate::server::{Reply, ReplyBody, Request, Server, place, resource_and_verb};

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
        passed.map_err(|error| io::Error::new(io::ErrorKind::TimedOut, error.to_string()))?;
        if self.server.is_removed() {
            let text = format!("connection refused: cluster {} was removed", self.cluster);
            return Err(io::Error::new(io::ErrorKind::ConnectionRefused, text));
        }
        Ok(())
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
        let course = self.course(&request);
        if let Course::Partial(_, FaultAnswer::Slow(seconds), _) = &course {
            tokio::time::sleep(Duration::from_secs(*seconds)).await;
        }
        self.server.turn().await;
        let reply = self.carry_out(&request, &course, &line);
        if crash == Some(CrashPoint::After) {
            self.links()
                .crash(&self.party, &format!("after request {number}: {} {}", request.method, request.uri));
        }
        self.links().travel(&self.party, &self.cluster).await;
        self.pass().await?;
        match course {
            Course::Fault(Fault::LostRequest | Fault::LostAnswer) => Err(reset()),
            Course::Fault(Fault::TimeoutBefore | Fault::TimeoutAfter) => {
                tokio::time::sleep(CONNECTION_TIMEOUT).await;
                self.pass().await?;
                Err(io::Error::new(io::ErrorKind::TimedOut, "timed out waiting for the answer"))
            }
            Course::Partial(name, FaultAnswer::Hang | FaultAnswer::NoAnswer, _) => {
                self.links().fault_over(&name).await;
                Err(reset())
            }
            Course::Partial(_, FaultAnswer::TooManyRequests(seconds), _) => {
                let mut response = self.respond(reply);
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
                Ok(response)
            }
            Course::Hostile(answer) => self.mislead(answer, reply).await,
            Course::Fault(_) | Course::Partial(..) | Course::Honest => Ok(self.respond(reply)),
        }
    }

    /// What becomes of a request.
    fn course(&self, request: &Request) -> Course {
        let (resource, verb) = resource_and_verb(request);
        let (namespace, name) = place(request.uri.path());
        let asked = Asked {
            party: &self.party,
            cluster: &self.cluster,
            verb,
            resource: &resource,
            namespace: &namespace,
            name: &name,
        };
        if let Some(answer) = self.links().hostile_answer(&asked) {
            return Course::Hostile(answer);
        }
        if let Some((name, answer)) = self.links().partial_fault(&asked) {
            let refused = match answer {
                FaultAnswer::Status(code) => Some(partial::refusal(code, &asked)),
                FaultAnswer::TooManyRequests(seconds) => {
                    Some(ApiError::too_many_requests("Too many requests, please try again later.", seconds))
                }
                FaultAnswer::FailedCheck(check) => Some(ApiError::internal(check)),
                FaultAnswer::Hang => Some(ApiError::internal("the request was lost")),
                FaultAnswer::NoAnswer | FaultAnswer::Slow(_) => None,
            };
            return Course::Partial(name, answer, refused);
        }
        let write = request.method != Method::GET;
        match self.links().draw(&self.party, &self.cluster, write) {
            Some(fault) => Course::Fault(fault),
            None => Course::Honest,
        }
    }

    /// What a hostile cluster answers, given what an honest one would.
    async fn mislead(&self, answer: HostileAnswer, honest: Reply) -> io::Result<Response<AnswerBody>> {
        let stream = |chunks| {
            let mut response = Response::new(AnswerBody::Stream(chunks));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        };
        match answer {
            HostileAnswer::Reply { status, headers, body } => {
                tokio::time::sleep(hostile::PACE).await;
                let mut response = Response::new(AnswerBody::Full(Some(body)));
                *response.status_mut() = http::StatusCode::from_u16(status).map_err(io::Error::other)?;
                response
                    .headers_mut()
                    .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                for (name, value) in headers {
                    let name: http::HeaderName = name.parse().map_err(io::Error::other)?;
                    response.headers_mut().append(name, value.parse().map_err(io::Error::other)?);
                }
                Ok(response)
            }
            HostileAnswer::Endless { head, chunk, limit } => Ok(stream(hostile::endless(head, chunk, limit))),
            HostileAnswer::Lines(lines) => Ok(stream(hostile::lines(lines))),
            HostileAnswer::Hang => std::future::pending().await,
            HostileAnswer::Late(time) => {
                tokio::time::sleep(time).await;
                self.pass().await?;
                Ok(self.respond(honest))
            }
            HostileAnswer::Edit(edit) => {
                let response = self.respond(honest);
                let (parts, body) = response.into_parts();
                let body = match body {
                    AnswerBody::Full(Some(bytes)) => {
                        AnswerBody::Full(Some(hostile::edit_answer(&bytes, &edit)))
                    }
                    AnswerBody::Full(None) => AnswerBody::Full(None),
                    AnswerBody::Stream(chunks) => AnswerBody::Stream(Box::pin(
                        chunks.map(move |chunk| chunk.map(|chunk| hostile::edit_events(&chunk, &edit))),
                    )),
                };
                Ok(Response::from_parts(parts, body))
            }
        }
    }

    /// Does what the request asks for, unless a fault comes before.
    fn carry_out(&self, request: &Request, course: &Course, line: &str) -> Reply {
        let name = request.uri.path().rsplit('/').next().unwrap_or_default();
        let about = About { group: "", resource: "objects", name };
        let lost = || Some(ApiError::internal("the request was lost"));
        let refused = match course {
            Course::Fault(Fault::ServerError) => Some(ApiError::internal("injected fault")),
            Course::Fault(Fault::Conflict) => Some(ApiError::modified(about)),
            Course::Fault(Fault::TooManyRequests) => {
                Some(ApiError::too_many_requests("Too many requests, please try again later.", 1))
            }
            Course::Fault(Fault::LostRequest | Fault::TimeoutBefore) => lost(),
            Course::Partial(_, _, refused) => refused.clone(),
            Course::Hostile(HostileAnswer::Edit(_) | HostileAnswer::Late(_)) => None,
            Course::Hostile(_) => lost(),
            Course::Fault(Fault::LostAnswer | Fault::TimeoutAfter) | Course::Honest => None,
        };
        let reply = match (&refused, course) {
            (Some(_), Course::Partial(_, FaultAnswer::FailedCheck(check), _)) => {
                Reply::plain(500, partial::failed_check(request.uri.path(), check))
            }
            (Some(error), _) => Reply::error(error),
            (None, _) => {
                self.world.log.tell(&LogEntry::Begins { cluster: &self.cluster, party: &self.party });
                let reply = self.server.handle(request);
                self.world.log.tell(&LogEntry::Ends { cluster: &self.cluster });
                reply
            }
        };
        let outcome = match course {
            Course::Fault(fault) => format!("{line} -> {} ({fault:?})", reply.code),
            Course::Partial(name, answer, _) => format!("{line} -> {} ({name}: {answer:?})", reply.code),
            Course::Hostile(answer) => format!("{line} -> {} (hostile: {answer:?})", reply.code),
            Course::Honest => format!("{line} -> {}", reply.code),
        };
        self.world.log.record(self.world.clock.now(), &self.cluster, &outcome, &request.body);
        reply
    }

    fn respond(&self, reply: Reply) -> Response<AnswerBody> {
        let body = match reply.body {
            ReplyBody::Full(bytes) => AnswerBody::Full(Some(bytes)),
            ReplyBody::Watch(watch) => {
                let service = self.clone();
                let ended = self.world.links.watches_end(&self.party, &self.cluster);
                let chunks = watch.then(move |chunk| service.clone().deliver(chunk));
                AnswerBody::Stream(Box::pin(chunks.take_until(ended)))
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
            return Err(reset());
        }
        Ok(chunk)
    }
}

/// What becomes of a request.
enum Course {
    Honest,
    Fault(Fault),
    /// A fault of a part of the cluster, by its name, and what it refuses.
    Partial(String, FaultAnswer, Option<ApiError>),
    Hostile(HostileAnswer),
}

fn reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer")
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
