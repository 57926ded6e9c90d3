//! Requests to an API server, with objects as plain values.

use std::collections::BTreeMap;

use http::{Method, Request};
use kube::Client;
use portolan_runtime::{CallError, call};
use serde_json::{Value, json};

use super::json::{has_finalizer, list, name, namespace};
use super::kinds::{ALL, Kind, VERSION};

/// The field manager of all writes.
const MANAGER: &str = "capi-sandbox";

/// An API server, as its administrator reaches it.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) client: Client,
    /// The only namespace that is looked at, if it is not all of them.
    pub(super) namespace: Option<String>,
}

/// All objects of Cluster API in the management cluster, by kind, namespace and name.
#[derive(Default)]
pub(super) struct Objects(BTreeMap<(Kind, String, String), Value>);

impl Objects {
    pub(super) fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Value> {
        self.0.get(&(kind, namespace.to_owned(), name.to_owned()))
    }

    /// All objects of a kind.
    pub(super) fn all(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        let from = (kind, String::new(), String::new());
        self.0.range(from..).take_while(move |((found, ..), _)| *found == kind).map(|(_, object)| object)
    }

    /// The objects of a kind that belong to a cluster.
    pub(super) fn of_cluster(&self, kind: Kind, cluster: &Value) -> impl Iterator<Item = &Value> {
        let (space, name) = (namespace(cluster).to_owned(), name(cluster).to_owned());
        self.all(kind).filter(move |object| {
            namespace(object) == space
                && object.pointer("/spec/clusterName").and_then(Value::as_str) == Some(&name)
        })
    }

    /// The object that a reference (`apiGroup`, `kind`, `name`) names.
    pub(super) fn referenced(&self, namespace: &str, reference: Option<&Value>) -> Option<&Value> {
        let part = |key: &str| reference?.get(key)?.as_str();
        let kind = ALL.into_iter().find(|kind| {
            part("kind") == Some(kind.name) && part("apiGroup").is_none_or(|group| group == kind.group)
        })?;
        self.get(kind, namespace, part("name")?)
    }
}

impl Access {
    /// Everything of Cluster API that is looked at.
    pub(super) async fn objects(&self) -> Result<Objects, CallError> {
        let mut all = BTreeMap::new();
        for kind in ALL {
            let path = match &self.namespace {
                Some(namespace) => collection(kind, namespace),
                None => format!("/apis/{}/{VERSION}/{}", kind.group, kind.plural()),
            };
            let found = self.send(Method::GET, &path, None).await?;
            for object in list(&found, "/items") {
                all.insert((kind, namespace(object).to_owned(), name(object).to_owned()), object.clone());
            }
        }
        Ok(Objects(all))
    }

    /// Creates an object; one that exists already is left as it is.
    pub(super) async fn create(&self, kind: Kind, mut object: Value) -> Result<(), CallError> {
        object["apiVersion"] = json!(kind.api_version());
        object["kind"] = json!(kind.name);
        let path = collection(kind, namespace(&object));
        unless(self.send(Method::POST, &path, Some(&object)).await, EXISTS)
    }

    /// Changes an object by a merge patch.
    pub(super) async fn patch(&self, kind: Kind, object: &Value, patch: &Value) -> Result<(), CallError> {
        unless(self.send(Method::PATCH, &path(kind, object), Some(patch)).await, NOT_FOUND)
    }

    /// Makes the status of an object what it should be, if it is not.
    pub(super) async fn set_status(
        &self,
        kind: Kind,
        object: &Value,
        status: &Value,
    ) -> Result<(), CallError> {
        if object.get("status") == Some(status) {
            return Ok(());
        }
        let path = format!("{}/status", path(kind, object));
        unless(self.send(Method::PATCH, &path, Some(&json!({ "status": status }))).await, NOT_FOUND)
    }

    /// Deletes an object, unless it is being deleted already.
    pub(super) async fn delete(&self, kind: Kind, object: &Value) -> Result<(), CallError> {
        if super::json::deleting(object) {
            return Ok(());
        }
        unless(self.send(Method::DELETE, &path(kind, object), None).await, NOT_FOUND)
    }

    /// Adds or removes a finalizer.
    pub(super) async fn set_finalizer(
        &self,
        kind: Kind,
        object: &Value,
        finalizer: &str,
        wanted: bool,
    ) -> Result<(), CallError> {
        if has_finalizer(object, finalizer) == wanted {
            return Ok(());
        }
        let mut finalizers = list(object, "/metadata/finalizers").to_vec();
        finalizers.retain(|found| found.as_str() != Some(finalizer));
        if wanted {
            finalizers.push(json!(finalizer));
        }
        // Somebody else's finalizer of the meantime must not be lost.
        let version = object.pointer("/metadata/resourceVersion");
        let patch = json!({"metadata": {"finalizers": finalizers, "resourceVersion": version}});
        unless(self.send(Method::PATCH, &path(kind, object), Some(&patch)).await, NOT_FOUND)
    }

    /// Sends a request and reads the answer.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, CallError> {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let what = format!("{} {path}", method.as_str().to_lowercase());
        let uri = format!("{path}{}fieldManager={MANAGER}", if path.contains('?') { '&' } else { '?' });
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(method).uri(uri).header("content-type", content).body(body);
        call(what, async { self.client.request(request.map_err(kube::Error::HttpError)?).await }).await
    }
}

/// What an API server says of an object that is there already.
pub(super) const EXISTS: &str = "AlreadyExists";
/// What an API server says of an object that is not there.
pub(super) const NOT_FOUND: &str = "NotFound";

/// Takes a refusal of one reason for success.
pub(super) fn unless(outcome: Result<Value, CallError>, reason: &str) -> Result<(), CallError> {
    match outcome {
        Err(error) if !is_refused(&error, reason) => Err(error),
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Whether a request was refused for this reason.
pub(super) fn is_refused(error: &CallError, reason: &str) -> bool {
    match error {
        CallError::Refused { source, .. } => {
            matches!(source.as_ref(), kube::Error::Api(status) if status.reason == reason)
        }
        CallError::Silent { .. } | CallError::Busy { .. } | CallError::NotLeading { .. } => false,
    }
}

fn collection(kind: Kind, namespace: &str) -> String {
    format!("/apis/{}/{VERSION}/namespaces/{namespace}/{}", kind.group, kind.plural())
}

fn path(kind: Kind, object: &Value) -> String {
    format!("{}/{}", collection(kind, namespace(object)), name(object))
}
