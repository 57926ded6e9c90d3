//! Letting a member go.

use super::apply::PeerError;
use super::finalizer::release;
use super::namespaces::{Departure, give_back, opened, opened_locally};
use super::objects::Names;
use super::peer::NAMESPACE;
use k8s_openapi::api::core::v1::{LimitRange, ResourceQuota, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{DeleteParams, ListParams, Preconditions, Request};
use kube::{Api, Client, Resource};
use portolan_api::Reason;
use portolan_api::{
    API_VERSION, ClusterReport, ForeignCluster, MultiClusterDeployment, MultiClusterJob, MultiClusterService,
};
use portolan_runtime::{CallError, call};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;

/// Something of a workload that a member holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding {
    /// The kind of the workload, in lower case.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// How many replicas, completions or endpoints are there, as far as that is counted.
    pub replicas: i64,
    /// Whether the workload is being deleted.
    pub deleting: bool,
    /// Whether its deletion waits for members, as its status says.
    pub awaiting: bool,
}

/// What the workloads of the hub have in a member.
///
/// # Errors
/// The hub does not answer.
pub async fn holdings(hub: &Client, cluster: &str) -> Result<Vec<Holding>, PeerError> {
    let mut found = holding::<MultiClusterDeployment>(hub, cluster).await?;
    found.extend(holding::<MultiClusterJob>(hub, cluster).await?);
    found.extend(holding::<MultiClusterService>(hub, cluster).await?);
    found.sort();
    Ok(found)
}

/// What is read of a workload here. Whatever else it says may be wrong, and makes no difference.
#[derive(Deserialize)]
struct Declared {
    metadata: Meta,
    #[serde(default)]
    status: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Meta {
    namespace: String,
    name: String,
    deletion_timestamp: Option<String>,
}

#[derive(Deserialize)]
struct List {
    items: Vec<Declared>,
}

async fn holding<K>(hub: &Client, cluster: &str) -> Result<Vec<Holding>, PeerError>
where
    K: Resource<DynamicType = ()>,
{
    let what = format!("list {}s", K::kind(&()));
    let request = Request::new(K::url_path(&(), None)).list(&ListParams::default());
    let list = async {
        let request = request.map_err(kube::Error::BuildRequest)?;
        hub.request::<List>(request).await
    };
    let declared = call(what, list).await?.items.into_iter();
    Ok(declared.filter_map(|each| each.holding(&K::kind(&()), cluster)).collect())
}

impl Declared {
    /// What the status says that it has in a cluster.
    fn holding(self, kind: &str, cluster: &str) -> Option<Holding> {
        let reason = |entry: &Value| entry["reason"].as_str().and_then(Reason::parse);
        let lists = ["placements", "clusters"].map(|field| self.status[field].as_array());
        // A part of a job whose Job is gone is only a number on record.
        let here = |entry: &&Value| {
            (entry["cluster"] == cluster || entry["name"] == cluster)
                && reason(entry) != Some(Reason::Finished)
        };
        let entry = lists.into_iter().flatten().flatten().find(here)?;
        let counted = ["replicas", "completions", "readyEndpoints"];
        let conditions = self.status["conditions"].as_array();
        let awaits = |condition: &Value| {
            condition["type"] == "Ready"
                && matches!(reason(condition), Some(Reason::AwaitingMember | Reason::DeletionFailed))
        };
        Some(Holding {
            kind: kind.to_lowercase(),
            replicas: counted.iter().find_map(|field| entry[*field].as_i64()).unwrap_or(0),
            deleting: self.metadata.deletion_timestamp.is_some(),
            awaiting: conditions.is_some_and(|all| all.iter().any(awaits)),
            namespace: self.metadata.namespace,
            name: self.metadata.name,
        })
    }
}

/// Takes the member out of the hub: its ForeignCluster and its credential, whatever workloads have there. Answers whether
/// there was anything.
///
/// # Errors
/// The hub refused, or does not answer.
pub async fn leave_hub(hub: &Client, name: &str) -> Result<bool, PeerError> {
    let clusters: Api<ForeignCluster> = Api::all(hub.clone());
    let what = format!("delete ForeignCluster {name}");
    let declared = gone(call(what, clusters.delete(name, &DeleteParams::default())).await)?;
    release(hub, name).await?;
    Ok(forget_credential(hub, name).await? || declared)
}

/// Whether the hub has anything of a member of this name.
///
/// # Errors
/// The hub does not answer.
pub async fn has_credential(hub: &Client, name: &str) -> Result<bool, PeerError> {
    Ok(is_credential(&credential(hub, name).await?.unwrap_or_default(), name))
}

/// What the Secret says of itself that has the name of a credential.
async fn credential(hub: &Client, name: &str) -> Result<Option<ObjectMeta>, CallError> {
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let what = format!("read Secret {NAMESPACE}/{name}");
    Ok(call(what, secrets.get_metadata_opt(name)).await?.map(|secret| secret.metadata))
}

/// Whether a Secret holds the credential of the member of this name: others may have the name by chance.
fn is_credential(meta: &ObjectMeta, name: &str) -> bool {
    let labels = meta.labels.as_ref();
    labels.and_then(|labels| labels.get(super::objects::CLUSTER_LABEL)).is_some_and(|label| label == name)
}

/// Refuses a name by which a Secret exists that is not peering's: it is neither overwritten nor ever deleted.
pub(crate) async fn check_credential(hub: &Client, name: &str) -> Result<(), PeerError> {
    match credential(hub, name).await? {
        Some(meta) if !is_credential(&meta, name) => Err(PeerError::NotOurs {
            object: format!("Secret {NAMESPACE}/{name}"),
            help: format!(
                "peer by another name (`portolan peer --name`), or delete the Secret if nobody needs it: the credential of \
                 {name} would have that name"
            ),
        }),
        _ => Ok(()),
    }
}

/// Deletes the credential that peering put into the hub. Answers whether there was one.
pub(super) async fn forget_credential(hub: &Client, name: &str) -> Result<bool, PeerError> {
    let found = credential(hub, name).await?.filter(|meta| is_credential(meta, name));
    let Some(meta) = found else { return Ok(false) };
    let secrets: Api<Secret> = Api::namespaced(hub.clone(), NAMESPACE);
    let what = format!("delete Secret {NAMESPACE}/{name}");
    Ok(gone(call(what, secrets.delete(name, &if_same(&meta))).await)?)
}

/// Takes the hub's account, roles and bindings out of the member, and the namespaces and labels that peering made, as far
/// as nobody else uses them; says what went, and what stays and why.
///
/// # Errors
/// The member refused, or does not answer.
pub async fn leave_member(member: &Client, hub: &str) -> Result<Departure, PeerError> {
    let names = Names::of(hub);
    let opened = opened(member, &names).await?;
    // First, since the bindings tell which namespaces were opened: interrupted here, the next run still knows.
    let mut came = give_back(member, &names, &opened, |namespace| namespace != NAMESPACE).await?;
    // The rights go first, then the account that had them, then the namespace of the account.
    came.went.extend(sweep::<ClusterRoleBinding>(member, &names.selector()).await?);
    came.went.extend(sweep::<RoleBinding>(member, &names.selector()).await?);
    came.went.extend(sweep::<ClusterRole>(member, &names.selector()).await?);
    came.went.extend(sweep::<Role>(member, &names.selector()).await?);
    // Without its rights the hub does not make it again.
    forget_report(member, &names, &mut came).await?;
    came.went.extend(sweep::<ServiceAccount>(member, &names.selector()).await?);
    let own = give_back(member, &names, &opened, |namespace| namespace == NAMESPACE).await?;
    came.went.extend(own.went);
    came.stays.extend(own.stays);
    Ok(came)
}

/// Deletes the hub's report, if there is one. A member without Portolan has no such kind. Of a user who may not delete it, it stays:
/// nobody keeps it up to date any more.
async fn forget_report(member: &Client, names: &Names, came: &mut Departure) -> Result<(), PeerError> {
    let reports: Api<ClusterReport> = Api::namespaced(member.clone(), NAMESPACE);
    let called = format!("ClusterReport {NAMESPACE}/{}", names.account);
    let what = format!("delete {called} in the member");
    match gone(call(what, reports.delete(&names.account, &DeleteParams::default())).await) {
        Ok(true) => came.went.push(called),
        Ok(false) => {}
        Err(error) if error.code() == Some(403) => {
            if has_reports(member).await? {
                came.stays.push(format!("{called}, if the hub made one: you may not delete it"));
            }
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

/// Whether the member has the kind of reports. Everybody may ask for that.
async fn has_reports(member: &Client) -> Result<bool, CallError> {
    let what = format!("list the kinds of {API_VERSION} in the member");
    match call(what, member.list_api_group_resources(API_VERSION)).await {
        Ok(list) => Ok(list.resources.iter().any(|each| each.name == ClusterReport::plural(&()))),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes back what made the hub a member of its own fleet: the namespaces and labels that peering made, as far as nobody
/// else uses them. Portolan's own namespace stays; says what went, and what stays and why.
///
/// # Errors
/// The hub refused, or does not answer.
pub async fn leave_local(hub: &Client, id: &str) -> Result<Departure, PeerError> {
    let names = Names::of(id);
    let opened = opened_locally(hub, &names).await?;
    give_back(hub, &names, &opened, |namespace| namespace != NAMESPACE).await
}

/// Deletes an object only if it is still the one that was looked at.
pub(crate) fn if_same(meta: &ObjectMeta) -> DeleteParams {
    DeleteParams::default().preconditions(Preconditions { uid: meta.uid.clone(), resource_version: None })
}

/// Deletes all objects of a kind that have these labels; says which.
async fn sweep<K>(member: &Client, selector: &str) -> Result<Vec<String>, PeerError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + SweepIn,
{
    sweep_those::<K>(member, selector, |_| true).await
}

/// Deletes those of the objects of a kind with these labels that are meant; says which.
pub(crate) async fn sweep_those<K>(
    member: &Client,
    selector: &str,
    is_meant: impl Fn(&ObjectMeta) -> bool,
) -> Result<Vec<String>, PeerError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + SweepIn,
{
    let kind = K::kind(&()).into_owned();
    let all: Api<K> = Api::all(member.clone());
    let params = ListParams::default().labels(selector);
    let list = call(format!("list {kind}s in the member"), all.list_metadata(&params)).await?;
    let mut went = Vec::new();
    for meta in list.items.into_iter().map(|object| object.metadata).filter(is_meant) {
        let only_it = if_same(&meta);
        let name = meta.name.unwrap_or_default();
        let namespace = meta.namespace;
        let called = match &namespace {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        };
        let api = K::api(member.clone(), namespace.as_deref());
        let what = format!("delete {called} in the member");
        match gone(call(what, api.delete(&name, &only_it)).await) {
            Ok(true) => went.push(called),
            Ok(false) => {}
            // It was deleted, and another one has its name by now.
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(went)
}

/// The API in which an object is deleted.
pub(crate) trait SweepIn: Sized {
    fn api(client: Client, namespace: Option<&str>) -> Api<Self>;
}

macro_rules! sweep_in {
    (cluster: $($whole:ty),*; namespace: $($part:ty),*) => {
        $(impl SweepIn for $whole {
            fn api(client: Client, _: Option<&str>) -> Api<Self> {
                Api::all(client)
            }
        })*
        $(impl SweepIn for $part {
            fn api(client: Client, namespace: Option<&str>) -> Api<Self> {
                Api::namespaced(client, namespace.unwrap_or_default())
            }
        })*
    };
}

sweep_in!(
    cluster: ClusterRole, ClusterRoleBinding;
    namespace: Role, RoleBinding, ServiceAccount, ResourceQuota, LimitRange
);

/// Whether something went; that it was not there is no mistake.
fn gone<T>(result: Result<T, CallError>) -> Result<bool, CallError> {
    match result {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use serde_json::json;

    /// A hub whose lists hold these objects.
    fn hub(items: Value) -> Client {
        let send = tower::service_fn(move |_: http::Request<Body>| {
            let body = Body::from(json!({ "items": items }).to_string().into_bytes());
            async move { Ok::<_, std::convert::Infallible>(http::Response::new(body)) }
        });
        Client::new(send, "default")
    }

    #[tokio::test]
    async fn a_workload_that_cannot_be_read_holds_up_no_member_that_it_is_not_in() {
        let unreadable = |name: &str, status: Value| {
            let spec = json!({"replicas": "many", "template": []});
            json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": status})
        };
        let there = json!({"placements": [{"cluster": "paris", "replicas": 2}]});
        let items = json!([
            unreadable("odd", there),
            unreadable("new", Value::Null),
            unreadable("broken", json!("x"))
        ]);
        let hub = hub(items);
        let found = holding::<MultiClusterDeployment>(&hub, "paris").await.unwrap();
        let found: Vec<_> = found.iter().map(|each| (each.name.as_str(), each.replicas)).collect();
        assert_eq!(found, [("odd", 2)]);
        assert_eq!(holdings(&hub, "rome").await.unwrap(), []);
    }
}
