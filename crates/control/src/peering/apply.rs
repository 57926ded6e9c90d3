//! Making objects as they are wanted, however often that is asked for.

use crate::names::FIELD_MANAGER;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_core::version::SkewError;
use portolan_runtime::{CallError, Term};
use serde_json::Value;

/// Why two clusters do not peer, or do not part.
#[derive(Debug, thiserror::Error)]
pub enum PeerError {
    /// An API server refused, or did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// A cluster without identity.
    #[error("namespace kube-system of {called} has no uid, by which Portolan tells clusters apart")]
    NoIdentity {
        /// What the user calls the cluster.
        called: String,
    },
    /// Both contexts lead to one cluster.
    #[error("the hub and the member are one cluster (kube-system has uid {id} in both)")]
    SameCluster {
        /// The identity of both.
        id: String,
    },
    /// Two contexts that were to lead to one cluster do not.
    #[error("this is another cluster: its identity is {found}, that of ForeignCluster {name} is {known}")]
    OtherCluster {
        /// The ForeignCluster.
        name: String,
        /// The identity it has on record.
        known: String,
        /// The identity found.
        found: String,
    },
    /// The name belongs to another cluster.
    #[error("the name {name} is taken by another cluster (identity {known}; this one has {found})")]
    NameTaken {
        /// The ForeignCluster.
        name: String,
        /// The identity it has on record.
        known: String,
        /// The identity found.
        found: String,
    },
    /// The cluster has another name already.
    #[error("this cluster is a member already, by the name {name}")]
    MemberAlready {
        /// The ForeignCluster that stands for it.
        name: String,
    },
    /// The ForeignCluster is being deleted.
    #[error("ForeignCluster {name} is being deleted: it cannot be a member again before it is gone")]
    Leaving {
        /// The ForeignCluster.
        name: String,
    },
    /// Something has the name of what peering would make.
    #[error("{object} exists, and Portolan has not made it: {help}")]
    NotOurs {
        /// Kind and name.
        object: String,
        /// What would help.
        help: String,
    },
    /// Rights that the user would need.
    #[error("rights are missing {side}: {}", .missing.join(", "))]
    MissingRights {
        /// In which cluster.
        side: String,
        /// What may not be done, such as `create clusterroles.rbac.authorization.k8s.io`.
        missing: Vec<String>,
    },
    /// The API server made no token.
    #[error("the member made no token for service account {account}")]
    NoToken {
        /// Namespace and name.
        account: String,
    },
    /// The API server made a token that is not used.
    #[error("the token that the member made for service account {account} is refused: {why}")]
    TokenRefused {
        /// Namespace and name.
        account: String,
        /// Why; never the token itself.
        why: String,
    },
    /// Portolan is installed there in a version that is too far from this one.
    #[error("{skew}")]
    Skew {
        /// By how much.
        skew: SkewError,
        /// What upgrades it.
        upgrade: String,
    },
    /// An object of ours that cannot be written as JSON.
    #[error("cannot write {what}: {source}")]
    Encode {
        /// What it is.
        what: &'static str,
        /// Why not.
        source: serde_json::Error,
    },
}

/// The API of an object given as JSON.
pub(crate) fn api_of(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("kind")));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// What an object is called in messages.
pub(crate) fn called(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

/// Applies an object on the server's side.
///
/// # Errors
/// The API server refused, or did not answer.
pub async fn apply(client: &Client, object: &Value, place: &str) -> Result<DynamicObject, CallError> {
    apply_by(&Term::alone(FIELD_MANAGER), client, object, place).await
}

/// The same in the name of a term: nothing is written when it has ended.
///
/// # Errors
/// As [`apply`], or the term has ended.
pub(crate) async fn apply_by(
    term: &Term,
    client: &Client,
    object: &Value,
    place: &str,
) -> Result<DynamicObject, CallError> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let what = format!("apply {} in {place}", called(object));
    term.call(what, api_of(client, object).patch(name, &params, &Patch::Apply(object))).await
}
