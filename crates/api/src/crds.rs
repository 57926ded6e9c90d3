//! The CustomResourceDefinitions, as objects and as the files in `deploy/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::clusterprofile::upstream_crds;
use crate::{
    CloudProvisioner, ClusterReport, FeatureConfig, ForeignCluster, Invitation, LiveMigration,
    MultiClusterDeployment, MultiClusterHorizontalPodAutoscaler, MultiClusterJob, MultiClusterRescheduler,
    MultiClusterService, NamespaceOffloading, PlacementReview, ResourceOffer, SharingClass,
};

/// The kinds that have a schema but no controller yet. An object of them is stored and nothing happens, so their
/// definitions are installed only on request.
pub const EXPERIMENTAL_KINDS: [&str; 3] = ["FeatureConfig", "LiveMigration", "NamespaceOffloading"];

/// The version of Portolan that these definitions are of.
pub const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");

/// On definitions, roles and the Deployment of the controller: the version of Portolan that they are of.
pub const VERSION_LABEL: &str = "app.kubernetes.io/version";

/// Whether a controller serves the kind of this definition.
pub fn is_served(crd: &CustomResourceDefinition) -> bool {
    !EXPERIMENTAL_KINDS.contains(&crd.spec.names.kind.as_str())
}

/// The definitions of Portolan's own kinds that a controller serves, ordered by name.
pub fn served_crds() -> Vec<CustomResourceDefinition> {
    crds().into_iter().filter(is_served).collect()
}

/// The definitions of all of Portolan's own kinds, also of those that no controller serves, ordered by name.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        CloudProvisioner::crd(),
        ClusterReport::crd(),
        FeatureConfig::crd(),
        ForeignCluster::crd(),
        Invitation::crd(),
        LiveMigration::crd(),
        MultiClusterDeployment::crd(),
        MultiClusterHorizontalPodAutoscaler::crd(),
        MultiClusterJob::crd(),
        MultiClusterRescheduler::crd(),
        MultiClusterService::crd(),
        NamespaceOffloading::crd(),
        PlacementReview::crd(),
        ResourceOffer::crd(),
        SharingClass::crd(),
    ];
    crds.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    for crd in &mut crds {
        crd.metadata.labels = Some([(VERSION_LABEL.to_owned(), PROGRAM_VERSION.to_owned())].into());
        for schema in crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()) {
            if let Some(schema) = &mut schema.open_api_v3_schema {
                tidy(schema);
            }
        }
    }
    crds
}

/// Takes back what kube's schema transformation adds: a title, and `nullable` at optional numbers-or-strings. With
/// `nullable` a `null` would be kept, and every rule would have to reckon with it.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.title = None;
    schema.nullable = None;
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(tidy);
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &mut schema.items {
        tidy(items);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
}

/// Why the definitions could not be written as YAML.
#[derive(Debug, thiserror::Error)]
#[error("the definition {name} cannot be written as YAML: {message}")]
pub struct RenderError {
    /// The name of the definition.
    pub name: String,
    /// What went wrong.
    pub message: String,
}

/// The definitions that a hub needs: Portolan's own, ordered by name, then those of other projects' kinds.
pub fn hub_crds() -> Result<Vec<CustomResourceDefinition>, RenderError> {
    Ok(all_crds()?.into_iter().filter(is_served).collect())
}

/// The definitions of [`hub_crds`] and of the kinds that no controller serves.
pub fn all_crds() -> Result<Vec<CustomResourceDefinition>, RenderError> {
    let upstream = upstream_crds().map_err(|error| RenderError {
        name: "clusterprofiles.multicluster.x-k8s.io".to_owned(),
        message: error.to_string(),
    })?;
    Ok(crds().into_iter().chain(upstream).collect())
}

/// The files of `deploy/crds`: path and content. Kinds that no controller serves are in a folder of their own, so that
/// `kubectl apply -f deploy/crds` leaves them out. The same types always give the same bytes.
pub fn render_crds() -> Result<Vec<(String, String)>, RenderError> {
    let crds = all_crds()?;
    let folders = crds.iter().map(|crd| if is_served(crd) { "" } else { "experimental/" });
    let files = folders.zip(render(&crds)?);
    Ok(files.map(|(folder, (name, text))| (format!("{folder}{name}"), text)).collect())
}

/// Definitions as files: name and content.
pub fn render(crds: &[CustomResourceDefinition]) -> Result<Vec<(String, String)>, RenderError> {
    crds.iter()
        .map(|crd| {
            let name = crd.metadata.name.clone().unwrap_or_default();
            let error = |message: String| RenderError { name: name.clone(), message };
            let value = serde_json::to_value(crd).map_err(|e| error(e.to_string()))?;
            let yaml = serde_saphyr::to_string(&value).map_err(|e| error(e.to_string()))?;
            Ok((
                format!("{name}.yaml"),
                format!("# Generated by `cargo xtask generate`. Do not edit.\n{yaml}"),
            ))
        })
        .collect()
}
