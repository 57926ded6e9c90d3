//! What is read to find clusters: contexts of the kubeconfig, ClusterProfiles, and who has peered.

use super::candidates::{Answer, Context, Peer, Profile};
use crate::connection;
use crate::failure::Failure;
use crate::kind::Kind;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_api::ForeignCluster;
use portolan_api::clusterprofile::{API_VERSION, CLUSTER_ID};
use portolan_runtime::{CallError, call, chain, foreign_text};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Who has peered with this cluster; nobody where Portolan's definitions are not installed.
pub(super) async fn peers(hub: &Client) -> Result<Vec<Peer>, Failure> {
    let objects = match Kind::Cluster.list(hub, None, &ListParams::default()).await {
        Err(failure) if failure.is_not_found() => return Ok(Vec::new()),
        other => other?,
    };
    let peer = |object: Value| -> Result<Peer, Failure> {
        let cluster: ForeignCluster = serde_json::from_value(object).map_err(Failure::other)?;
        let name = cluster.metadata.name.unwrap_or_default();
        Ok(Peer { name, id: cluster.spec.cluster_identity.cluster_id })
    };
    objects.into_iter().map(peer).collect()
}

/// The ClusterProfiles of all managers; none where the kind is not known.
pub(super) async fn profiles(hub: &Client) -> Result<Vec<Profile>, Failure> {
    let (group, version) = API_VERSION.split_once('/').unwrap_or_default();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, "ClusterProfile"));
    let api: Api<DynamicObject> = Api::all_with(hub.clone(), &resource);
    match call("list ClusterProfiles", api.list(&ListParams::default())).await {
        Ok(list) => Ok(list.items.iter().map(profile).collect()),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(Failure::call(&error)),
    }
}

/// What a profile tells; what is not as the kind has it tells nothing.
fn profile(object: &DynamicObject) -> Profile {
    let (meta, status) = (&object.metadata, &object.data["status"]);
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let properties = status["properties"].as_array().into_iter().flatten();
    let id = properties.filter(|each| each["name"] == CLUSTER_ID).find_map(|each| text(&each["value"]));
    let ways = ["accessProviders", "credentialProviders"].map(|field| status[field].as_array());
    let servers = ways.into_iter().flatten().flatten().filter_map(|way| text(&way["cluster"]["server"]));
    Profile {
        name: meta.name.clone().unwrap_or_default(),
        namespace: meta.namespace.clone().unwrap_or_default(),
        id,
        version: text(&status["version"]["kubernetes"]),
        servers: servers.collect(),
    }
}

/// Asks the cluster of a context who it is.
pub(super) async fn context(file: Option<&Path>, name: String, limit: Duration) -> Context {
    let (server, answer) = match connection::remote(file, &name).await {
        Err(failure) => (None, Answer::Silent(failure.message().to_owned())),
        Ok(remote) => {
            let asked = tokio::time::timeout(limit, ask(&remote.client)).await;
            let silent = || format!("no answer within {}", portolan_api::duration::Duration(limit));
            (Some(remote.address.server), asked.unwrap_or_else(|_| Answer::Silent(silent())))
        }
    };
    Context { name, server, answer }
}

async fn ask(client: &Client) -> Answer {
    let version = match call("ask for the version", client.apiserver_version()).await {
        Ok(answer) => foreign_text(&answer.git_version),
        Err(error) => return failed(&error),
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match call("read namespace kube-system", namespaces.get_metadata("kube-system")).await {
        Ok(found) => match found.metadata.uid {
            Some(id) => Answer::Known { id, version },
            None => Answer::Refuses("namespace kube-system has no uid".to_owned()),
        },
        Err(error) => failed(&error),
    }
}

fn failed(error: &CallError) -> Answer {
    let why = foreign_text(&chain(error));
    if error.code().is_some() { Answer::Refuses(why) } else { Answer::Silent(why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_profile_is_read_whatever_its_manager_wrote() {
        let read = |status: Value| {
            let object = json!({
                "apiVersion": API_VERSION, "kind": "ClusterProfile",
                "metadata": {"name": "lyon", "namespace": "fleet"}, "status": status,
            });
            profile(&serde_json::from_value(object).unwrap())
        };
        let full = read(json!({
            "version": {"kubernetes": "v1.33.1"},
            "properties": [{"name": "zone", "value": "a"}, {"name": CLUSTER_ID, "value": "lyon-id"}],
            "accessProviders": [{"name": "x", "cluster": {"server": "https://lyon:6443"}}],
            "credentialProviders": [{"name": "y", "cluster": {}}],
        }));
        let (id, version) = (Some("lyon-id".to_owned()), Some("v1.33.1".to_owned()));
        let servers = vec!["https://lyon:6443".to_owned()];
        let (name, namespace) = ("lyon".to_owned(), "fleet".to_owned());
        assert_eq!(full, Profile { name, namespace, id, version, servers });
        let odd = read(json!({"version": 7, "properties": {"a": 1}, "accessProviders": [3]}));
        assert_eq!((odd.id, odd.version, odd.servers.len()), (None, None, 0));
        assert_eq!(read(Value::Null).name, "lyon");
    }
}
