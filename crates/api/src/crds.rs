//! The CustomResourceDefinitions, as objects and as the files in `deploy/crds`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::{ForeignCluster, MultiClusterDeployment};

/// All CustomResourceDefinitions, ordered by name.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![ForeignCluster::crd(), MultiClusterDeployment::crd()];
    crds.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    for crd in &mut crds {
        for schema in crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()) {
            if let Some(schema) = &mut schema.open_api_v3_schema {
                schema.title = None;
            }
        }
    }
    crds
}
