//! From an HTTP request to a verb, and from its outcome to an HTTP answer.

mod body;
mod call;
mod calls;
mod computed;
mod fixed;
mod form;
mod openapi;
mod options;
mod path;
mod protobuf;
mod query;
mod route;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use rustls::pki_types::CertificateDer;
use serde_json::Value;

use crate::api::{Api, in_turn};
use crate::auth::User;
use crate::error::ApiError;
use crate::usage::Traffic;
use crate::verbs::WatchBody;

pub use calls::Called;
pub(crate) use calls::{Calls, key as resource_and_verb};
pub(crate) use form::Form;
pub(crate) use path::place;

/// A request, received whole.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Who writes if the request does not say.
    pub(crate) party: Arc<str>,
    /// Who calls, if the connection tells; a token in the request goes before it.
    pub(crate) user: Option<User>,
    /// The chain of certificates that the connection showed; the caller's own is the first.
    pub(crate) certificates: Arc<[CertificateDer<'static>]>,
}

/// An answer.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content_type: &'static str,
    pub(crate) body: ReplyBody,
    /// Sent as `Warning` headers.
    pub(crate) warnings: Vec<String>,
}

pub(crate) enum ReplyBody {
    Full(Bytes),
    Watch(WatchBody),
}

impl Reply {
    fn json(code: u16, bytes: Bytes) -> Self {
        Self { code, content_type: "application/json", body: ReplyBody::Full(bytes), warnings: Vec::new() }
    }

    fn value(code: u16, value: &Value) -> Self {
        Self::json(code, serde_json::to_vec(value).unwrap_or_default().into())
    }

    fn text(code: u16, text: &'static str) -> Self {
        let body = ReplyBody::Full(Bytes::from_static(text.as_bytes()));
        Self { code, content_type: "text/plain; charset=utf-8", body, warnings: Vec::new() }
    }

    pub(crate) fn plain(code: u16, text: String) -> Self {
        let body = ReplyBody::Full(text.into());
        Self { code, content_type: "text/plain; charset=utf-8", body, warnings: Vec::new() }
    }

    pub(crate) fn error(error: &ApiError) -> Self {
        Self::value(error.code, &error.status())
    }
}

/// The API server of a cluster, as requests reach it.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) api: Arc<Mutex<Api>>,
    pub(crate) traffic: Arc<Traffic>,
    removed: Arc<AtomicBool>,
}

impl Server {
    pub(crate) fn new(api: Arc<Mutex<Api>>, traffic: Arc<Traffic>) -> Self {
        Self { api, traffic, removed: Arc::default() }
    }

    /// From now on there is nobody to connect to.
    pub(crate) fn remove(&self) {
        self.removed.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_removed(&self) -> bool {
        self.removed.load(Ordering::Relaxed)
    }

    /// Answers a request. Never fails: what is wrong is said in a Status.
    pub(crate) fn handle(&self, request: &Request) -> Reply {
        let outcome = route::route(self, request);
        let served = match &outcome {
            Ok(reply) => reply.code != 404,
            Err(error) => !error.is_unserved(),
        };
        let mut reply = outcome.unwrap_or_else(|error| Reply::error(&error));
        let mut api = self.api();
        api.calls.add(request, served);
        reply.warnings = std::mem::take(&mut api.warnings);
        reply
    }

    /// Waits until a request would not hold up the thread.
    pub(crate) async fn turn(&self) {
        drop(in_turn(&self.api).await);
    }

    pub(crate) fn api(&self) -> MutexGuard<'_, Api> {
        self.api.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
