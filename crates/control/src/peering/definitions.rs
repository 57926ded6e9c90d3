//! Which definitions and roles a command applies to a cluster.
//!
//! Where Portolan is installed, its installer alone changes them. Elsewhere a command applies what it needs, but leaves what a
//! newer version applied: the API server would remove the fields that an older definition does not have from all objects.

use super::apply::{PeerError, api_of, apply, called};
use super::hub_role::CONTROLLER;
use super::peer::NAMESPACE;
use crate::names::{FIELD_MANAGER, INSTALL_RECORD};
use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use portolan_api::{PROGRAM_VERSION, VERSION_LABEL};
use portolan_core::version::{Version, check_skew};
use portolan_runtime::{CallError, call};
use serde_json::Value;
use std::time::Duration;

/// How soon to look again whether a definition is served.
const SOON: Duration = Duration::from_millis(100);

/// On what Helm installed: its release.
const HELM_RELEASE: &str = "meta.helm.sh/release-name";

/// An installation of Portolan in a cluster, whose definitions and roles are its installer's to change.
struct Installation {
    version: String,
    /// The command that upgrades it.
    upgrade: String,
}

impl Installation {
    fn check(&self) -> Result<(), PeerError> {
        let upgrade = self.upgrade.clone();
        check_skew(&self.version, PROGRAM_VERSION).map_err(|skew| PeerError::Skew { skew, upgrade })
    }
}

/// Looks for an installation. Who may not look is told of none: definitions of a newer version stay all the same.
async fn installation(cluster: &Client) -> Result<Option<Installation>, CallError> {
    let records: Api<ConfigMap> = Api::namespaced(cluster.clone(), NAMESPACE);
    let what = format!("look for the record of an installation, ConfigMap {NAMESPACE}/{INSTALL_RECORD}");
    let record = readable(call(what, records.get_opt(INSTALL_RECORD)).await)?.flatten();
    if let Some(version) = record.and_then(|record| record.data?.remove("version")) {
        let upgrade = "`portolan upgrade`, by the program of each minor version in between,".to_owned();
        return Ok(Some(Installation { version, upgrade }));
    }
    let deployments: Api<Deployment> = Api::namespaced(cluster.clone(), NAMESPACE);
    let what = format!("look for Deployment {NAMESPACE}/{CONTROLLER}");
    let found = readable(call(what, deployments.get_metadata_opt(CONTROLLER)).await)?.flatten();
    let Some(meta) = found.map(|found| found.metadata) else { return Ok(None) };
    let Some(version) = version_of(&meta) else { return Ok(None) };
    let release = meta.annotations.unwrap_or_default().remove(HELM_RELEASE);
    let upgrade = match release {
        Some(release) => format!("`helm upgrade {release} --namespace {NAMESPACE}`"),
        None => "the command that installed it".to_owned(),
    };
    Ok(Some(Installation { version, upgrade }))
}

/// What was read, or nothing if that is not allowed.
fn readable<T>(answer: Result<T, CallError>) -> Result<Option<T>, CallError> {
    match answer {
        Err(error) if error.code() == Some(403) => Ok(None),
        other => other.map(Some),
    }
}

fn version_of(meta: &ObjectMeta) -> Option<String> {
    meta.labels.as_ref()?.get(VERSION_LABEL).cloned()
}

/// Whether a newer version than this one applied an object. It may be too much newer to work with.
fn is_newer(found: Option<&ObjectMeta>) -> Result<bool, PeerError> {
    let Some(theirs) = found.and_then(version_of) else { return Ok(false) };
    let newer = Version::parse(&theirs)
        .is_ok_and(|theirs| Version::parse(PROGRAM_VERSION).is_ok_and(|own| theirs > own));
    if newer {
        let upgrade = "a newer version of this program".to_owned();
        check_skew(&theirs, PROGRAM_VERSION).map_err(|skew| PeerError::Skew { skew, upgrade })?;
    }
    Ok(newer)
}

/// Installs Portolan's definitions where nobody else does, and waits until they are served.
///
/// # Errors
/// The hub refused, or does not serve them, or a version is installed there that is too far from this one.
pub async fn install_definitions(hub: &Client) -> Result<(), PeerError> {
    if let Some(installation) = installation(hub).await? {
        return installation.check();
    }
    let upstream = portolan_api::clusterprofile::upstream_crds()
        .map_err(|source| PeerError::Encode { what: "a definition", source })?;
    let all = portolan_api::served_crds().into_iter().chain(upstream);
    try_join_all(all.map(|crd| install_definition(hub, crd))).await?;
    Ok(())
}

async fn install_definition(hub: &Client, crd: CustomResourceDefinition) -> Result<(), PeerError> {
    let api: Api<CustomResourceDefinition> = Api::all(hub.clone());
    let name = crd.metadata.name.clone().unwrap_or_default();
    let looked = call(format!("look for {name}"), api.get_metadata_opt(&name)).await;
    let found = readable(looked)?.flatten();
    // What another project defines is its to change.
    let foreign = crd.spec.group != portolan_api::GROUP;
    if foreign && found.is_some() {
        return Ok(());
    }
    if !is_newer(found.as_ref().map(|found| &found.metadata))? {
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let what = format!("apply CustomResourceDefinition {name} in the hub");
        match call(what, api.patch(&name, &params, &Patch::Apply(&crd))).await {
            // Somebody else installs definitions here: that they are there will do.
            Err(error) if error.code() == Some(403) => {
                let what = format!("look for CustomResourceDefinition {name} in the hub");
                call(what, api.get_metadata(&name)).await.map_err(|_| error)?;
            }
            other => {
                other?;
            }
        }
    }
    let served = |crd: &CustomResourceDefinition| {
        let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|each| each.type_ == "Established" && each.status == "True")
    };
    loop {
        let what = format!("read CustomResourceDefinition {name} in the hub");
        if served(&call(what, api.get(&name)).await?) {
            return Ok(());
        }
        tokio::time::sleep(SOON).await;
    }
}

/// Applies roles where nobody else does.
///
/// # Errors
/// The cluster refused, or a version is installed there that is too far from this one.
pub(crate) async fn install_roles(cluster: &Client, roles: &[Value], place: &str) -> Result<(), PeerError> {
    if let Some(installation) = installation(cluster).await? {
        return installation.check();
    }
    for role in roles {
        let name = role["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("look for {} in {place}", called(role));
        let found = call(what, api_of(cluster, role).get_metadata_opt(name)).await?;
        if !is_newer(found.as_ref().map(|found| &found.metadata))? {
            apply(cluster, role, place).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(version: &str) -> ObjectMeta {
        serde_json::from_value(json!({"labels": {VERSION_LABEL: version}})).unwrap()
    }

    #[test]
    fn what_a_newer_version_applied_stays_and_one_that_is_too_new_is_told() {
        let own = PROGRAM_VERSION.split('.').map(|part| part.parse::<u64>().unwrap()).collect::<Vec<_>>();
        let (major, minor) = (own[0], own[1]);
        assert!(!is_newer(None).unwrap());
        assert!(!is_newer(Some(&ObjectMeta::default())).unwrap());
        assert!(!is_newer(Some(&of(PROGRAM_VERSION))).unwrap());
        assert!(!is_newer(Some(&of("0.0.1"))).unwrap());
        assert!(is_newer(Some(&of(&format!("{major}.{}.0", minor + 1)))).unwrap());
        let error = is_newer(Some(&of(&format!("{major}.{}.0", minor + 2)))).unwrap_err();
        assert!(matches!(error, PeerError::Skew { .. }), "{error}");
    }

    #[test]
    fn definitions_and_roles_say_which_version_they_are_of() {
        let versions = portolan_api::served_crds().into_iter().map(|crd| version_of(&crd.metadata));
        assert!(versions.into_iter().all(|version| version.as_deref() == Some(PROGRAM_VERSION)));
        for object in crate::peering::hub_roles().iter().filter(|object| object["kind"] != "Namespace") {
            assert_eq!(object["metadata"]["labels"][VERSION_LABEL], PROGRAM_VERSION, "{object}");
        }
    }
}
