//! Reading, applying, restoring and deleting objects of any kind.

use crate::failure::Failure;
use futures::future::try_join_all;
use kube::api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_control::names::FIELD_MANAGER;
use portolan_control::peering;
use portolan_install::{Identity, NAMESPACE, RECORD, Record};
use portolan_runtime::{CallError, call};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How soon to look again at something that is about to change.
pub(crate) const SOON: Duration = Duration::from_millis(200);

/// What is written by the API server and differs from look to look.
const OF_THE_SERVER: [&str; 5] =
    ["resourceVersion", "uid", "creationTimestamp", "generation", "managedFields"];

/// The API of an object.
pub(crate) fn api(client: &Client, object: &Identity) -> Api<DynamicObject> {
    let (group, version) = object.api_version.split_once('/').unwrap_or(("", &object.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &object.kind));
    match &object.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// An object, if it exists. That its kind is not known is no failure either.
pub(crate) async fn read(client: &Client, object: &Identity) -> Result<Option<Value>, Failure> {
    let found = call(format!("read {object}"), api(client, object).get_opt(&object.name)).await;
    let found = found.map_err(|error| Failure::call(&error))?;
    found.map(|found| serde_json::to_value(found).map_err(Failure::other)).transpose()
}

/// Those of the objects that exist, as they are.
pub(crate) async fn read_all(
    client: &Client,
    objects: impl IntoIterator<Item = Identity>,
) -> Result<BTreeMap<Identity, Value>, Failure> {
    let each = async |object: Identity| -> Result<_, Failure> {
        Ok(read(client, &object).await?.map(|found| (object, found)))
    };
    Ok(try_join_all(objects.into_iter().map(each)).await?.into_iter().flatten().collect())
}

/// Applies an object. A binding whose role cannot be changed is made anew.
pub(crate) async fn apply(client: &Client, object: &Value) -> Result<(), Failure> {
    let place = "the cluster";
    match peering::apply(client, object, place).await {
        Err(error) if error.code() == Some(422) && object.get("roleRef").is_some() => {
            delete(client, &Identity::of(object)).await?;
            peering::apply(client, object, place).await.map(|_| ()).map_err(|error| refused(&error))
        }
        other => other.map(|_| ()).map_err(|error| refused(&error)),
    }
}

/// What would become of an object that exists.
pub(crate) async fn apply_dry(client: &Client, object: &Value) -> Result<Value, Failure> {
    let identity = Identity::of(object);
    let params = PatchParams { dry_run: true, ..PatchParams::apply(FIELD_MANAGER).force() };
    let what = format!("try to apply {identity}");
    let applied =
        call(what, api(client, &identity).patch(&identity.name, &params, &Patch::Apply(object))).await;
    serde_json::to_value(applied.map_err(|error| refused(&error))?).map_err(Failure::other)
}

/// Whether two states of an object are the same but for what the API server counts.
pub(crate) fn is_same(left: &Value, right: &Value) -> bool {
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| !OF_THE_SERVER.contains(&key.as_str()));
        }
        if let Some(fields) = object.as_object_mut() {
            fields.remove("status");
        }
        object
    };
    plain(left) == plain(right)
}

/// Makes an object as it was.
pub(crate) async fn restore(client: &Client, object: &Identity, before: &Value) -> Result<(), Failure> {
    let mut wanted = before.clone();
    if let Some(metadata) = wanted["metadata"].as_object_mut() {
        metadata.retain(|key, _| key == "managedFields" || !OF_THE_SERVER.contains(&key.as_str()));
    }
    let params = PostParams::default();
    let api = api(client, object);
    let typed = |value: Value| serde_json::from_value::<DynamicObject>(value).map_err(Failure::other);
    let Some(current) = read(client, object).await? else {
        wanted["metadata"]["managedFields"] = Value::Null;
        let created = call(format!("restore {object}"), api.create(&params, &typed(wanted)?)).await;
        return created.map(|_| ()).map_err(|error| Failure::call(&error));
    };
    if is_same(&current, before) {
        return Ok(());
    }
    // Some kinds, such as definitions, are not replaced without it.
    wanted["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"].clone();
    let replaced =
        call(format!("restore {object}"), api.replace(&object.name, &params, &typed(wanted)?)).await;
    replaced.map(|_| ()).map_err(|error| Failure::call(&error))
}

/// Deletes an object; the pods of a Deployment go first. Answers whether it existed.
pub(crate) async fn delete(client: &Client, object: &Identity) -> Result<bool, Failure> {
    let is_deployment = object.kind == "Deployment";
    let params = if is_deployment { DeleteParams::foreground() } else { DeleteParams::background() };
    match call(format!("delete {object}"), api(client, object).delete(&object.name, &params)).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(Failure::call(&error)),
    }
}

/// Waits until objects are gone.
pub(crate) async fn until_gone(client: &Client, objects: &[Identity]) -> Result<(), Failure> {
    for object in objects {
        while read(client, object).await?.is_some() {
            tokio::time::sleep(SOON).await;
        }
    }
    Ok(())
}

/// The record of the installation, if there is one.
pub(crate) async fn record(client: &Client) -> Result<Option<Record>, Failure> {
    let found = read(client, &record_identity()).await?;
    found.map(|object| Record::from_config_map(&object)).transpose().map_err(|error| {
        Failure::other(error).hint(format!("`kubectl -n {NAMESPACE} delete configmap {RECORD}` forgets it"))
    })
}

/// Whether a namespace was made for Portolan by itself: then it is deleted with Portolan.
pub(crate) fn is_own(namespace: &Value) -> bool {
    peering::is_own_namespace(&metadata(namespace))
}

/// The metadata of an object, as far as it can be read.
pub(crate) fn metadata(object: &Value) -> ObjectMeta {
    serde_json::from_value(object["metadata"].clone()).unwrap_or_default()
}

/// Which object the record is.
pub(crate) fn record_identity() -> Identity {
    let metadata = json!({"name": RECORD, "namespace": NAMESPACE});
    Identity::of(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
}

/// Which of the objects' kinds the cluster does not serve, of those that are neither Kubernetes' nor Portolan's own.
pub(crate) async fn unserved(client: &Client, objects: &[Value]) -> Result<Vec<String>, Failure> {
    let foreign = |object: &Identity| {
        let group = object.api_version.split_once('/').map_or("", |(group, _)| group);
        group.contains('.') && !group.ends_with(".k8s.io") && group != portolan_api::GROUP
    };
    let mut unserved = Vec::new();
    for object in objects.iter().map(Identity::of).filter(foreign) {
        let what = format!("ask which kinds of {} are served", object.api_version);
        let served = match call(what, client.list_api_group_resources(&object.api_version)).await {
            Ok(list) => list.resources.iter().any(|each| each.kind == object.kind),
            Err(error) if error.is_not_found() => false,
            Err(error) => return Err(Failure::call(&error)),
        };
        if !served {
            unserved.push(format!("{} of {}", object.kind, object.api_version));
        }
    }
    Ok(unserved)
}

/// Refuses a cluster in which Helm installed Portolan: two installers would undo each other's work.
pub(crate) fn refuse_helm(objects: &BTreeMap<Identity, Value>, instead: &str) -> Result<(), Failure> {
    let release = |object: &Value| {
        let annotation = &object["metadata"]["annotations"]["meta.helm.sh/release-name"];
        annotation.as_str().map(str::to_owned)
    };
    let deployed = objects.iter().filter(|(object, _)| object.kind == "Deployment");
    match deployed.map(|(_, found)| found).find_map(release) {
        None => Ok(()),
        Some(release) => {
            Err(Failure::other(format!("Portolan was installed by Helm here, as release {release}"))
                .hint(format!("`helm {instead} {release} --namespace {NAMESPACE}` is the command for it")))
        }
    }
}

fn refused(error: &CallError) -> Failure {
    let failure = Failure::call(error);
    if error.code() == Some(403) {
        failure.hint(
            "install as an administrator of the cluster: nobody may give away rights that they do not have",
        )
    } else {
        failure
    }
}
