//! Whether the cluster that answers is the one that the ForeignCluster stands for.
//!
//! A cluster is known by the uid of its kube-system namespace. Behind the address of a member there may be another
//! cluster one day: rebuilt, restored, by a name that leads elsewhere. No request is sent to a cluster before it was asked
//! who it is; after a silence it is asked again.

use http::{Request, Response};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::client::Body;
use kube::{Api, Client};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long the answer may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(3);

/// Who answers.
pub(super) struct Identity {
    expected: String,
    /// Whether the cluster was asked and is the right one.
    verified: AtomicBool,
    /// Who it is, if it is another one.
    other: Mutex<Option<String>>,
    /// Only one request at a time asks; the others wait for its answer.
    asking: tokio::sync::Mutex<()>,
    news: Box<dyn Fn() + Send + Sync>,
}

/// A refusal to talk to another cluster.
#[derive(Debug, thiserror::Error)]
#[error("another cluster answers: its kube-system has uid {found}, not {expected}")]
struct OtherCluster {
    expected: String,
    found: String,
}

impl Identity {
    /// A client that talks to the cluster of this identity only, and who answers it. An identity that is no uid is a
    /// name that somebody gave, and nothing can be compared with it. Tells when another cluster is found.
    pub(super) fn guard(
        client: Client,
        expected: &str,
        news: impl Fn() + Send + Sync + 'static,
    ) -> (Client, Option<Arc<Self>>) {
        if !is_uid(expected) {
            return (client, None);
        }
        let identity = Arc::new(Self {
            expected: expected.to_owned(),
            verified: AtomicBool::new(false),
            other: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            news: Box::new(news),
        });
        let namespace = client.default_namespace().to_owned();
        let guard = Arc::clone(&identity);
        let send = tower::service_fn(move |request: Request<Body>| {
            let (client, guard) = (client.clone(), Arc::clone(&guard));
            async move { guard.send(&client, request).await }
        });
        (Client::new(send, namespace), Some(identity))
    }

    /// The uid of the cluster that answers, if it is another one.
    pub(super) fn other(&self) -> Option<String> {
        self.other.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks again before the next request.
    pub(super) fn forget(&self) {
        self.verified.store(false, Ordering::Release);
    }

    async fn send(&self, client: &Client, request: Request<Body>) -> Result<Response<Body>, tower::BoxError> {
        if !self.verified.load(Ordering::Acquire)
            && let Some(refusal) = self.verify(client).await?
        {
            return Ok(refusal);
        }
        Ok(client.send(request).await?)
    }

    /// Asks who the cluster is; answers what an API server refused instead of telling.
    async fn verify(&self, client: &Client) -> Result<Option<Response<Body>>, tower::BoxError> {
        let _asking = self.asking.lock().await;
        if self.verified.load(Ordering::Acquire) {
            return Ok(None);
        }
        // The hub may list namespaces in a member, and need not have the right to read one.
        let api: Api<Namespace> = Api::all(client.clone());
        let params = ListParams::default().fields("metadata.name=kube-system").limit(1);
        let list = match tokio::time::timeout(ANSWERS_WITHIN, api.list_metadata(&params)).await {
            Ok(Ok(list)) => list,
            Ok(Err(kube::Error::Api(status))) => {
                let code = http::StatusCode::from_u16(status.code).unwrap_or(http::StatusCode::BAD_GATEWAY);
                let body = Body::from(serde_json::to_vec(&status)?);
                return Ok(Some(Response::builder().status(code).body(body)?));
            }
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => {
                let limit = ANSWERS_WITHIN.as_secs();
                return Err(format!("the cluster did not say who it is within {limit} s").into());
            }
        };
        let found = list.items.into_iter().find(|each| each.metadata.name.as_deref() == Some("kube-system"));
        let found = found.and_then(|namespace| namespace.metadata.uid).unwrap_or_else(|| "none".to_owned());
        let found = portolan_runtime::bounded_text(&found, 64);
        let is_other = found != self.expected;
        let before = {
            let mut other = self.other.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *other, is_other.then(|| found.clone()))
        };
        self.verified.store(!is_other, Ordering::Release);
        if before.is_some() != is_other {
            (self.news)();
        }
        if is_other { Err(OtherCluster { expected: self.expected.clone(), found }.into()) } else { Ok(None) }
    }
}

/// Whether a text has the form of a uid: 32 hexadecimal digits in five groups.
fn is_uid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_somebody_gave_is_no_uid() {
        assert!(is_uid("3fa2bc91-1111-2222-3333-444455556666"));
        assert!(!is_uid("paris") && !is_uid("") && !is_uid("3fa2bc91-1111-2222-3333-44445555666g"));
    }
}
