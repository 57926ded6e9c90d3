//! The kinds that users ask for, by the names they give them.

use crate::failure::Failure;
use kube::api::{DynamicObject, ListParams};
use kube::discovery::ApiResource;
use kube::{Api, Client, Resource};
use portolan_api::{ForeignCluster, MultiClusterDeployment, MultiClusterJob, MultiClusterService};
use portolan_runtime::{call, chain};
use serde_json::Value;

/// A kind of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// ForeignCluster.
    Cluster,
    /// MultiClusterDeployment.
    Deployment,
    /// MultiClusterJob.
    Job,
    /// MultiClusterService.
    Service,
}

impl Kind {
    /// The workloads.
    pub(crate) const WORKLOADS: [Kind; 3] = [Kind::Deployment, Kind::Job, Kind::Service];

    /// Reads KIND or KIND/NAME.
    pub(crate) fn parse(text: &str) -> Result<(Self, Vec<String>), Failure> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (kind, Some(name.to_owned())),
            None => (text, None),
        };
        let lower = kind.to_lowercase();
        let found = match lower.strip_suffix(".portolan.dev").unwrap_or(&lower) {
            "cluster" | "clusters" | "foreigncluster" | "foreignclusters" | "fc" => Self::Cluster,
            "mcd" | "multiclusterdeployment" | "multiclusterdeployments" => Self::Deployment,
            "mcj" | "multiclusterjob" | "multiclusterjobs" => Self::Job,
            "mcs" | "multiclusterservice" | "multiclusterservices" => Self::Service,
            _ => {
                return Err(Failure::input(format!("{kind:?} is no kind that Portolan knows"))
                    .hint("there are clusters, mcd, mcj and mcs"));
            }
        };
        Ok((found, name.into_iter().collect()))
    }

    /// Its name in lower case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "foreigncluster",
            Self::Deployment => "multiclusterdeployment",
            Self::Job => "multiclusterjob",
            Self::Service => "multiclusterservice",
        }
    }

    /// What to ask for it by.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::Deployment => "mcd",
            Self::Job => "mcj",
            Self::Service => "mcs",
        }
    }

    /// Many of it, in words.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::Deployment => "MultiClusterDeployments",
            Self::Job => "MultiClusterJobs",
            Self::Service => "MultiClusterServices",
        }
    }

    /// Whether it is in namespaces.
    pub(crate) fn namespaced(self) -> bool {
        self != Self::Cluster
    }

    fn resource(self) -> ApiResource {
        match self {
            Self::Cluster => ApiResource::erase::<ForeignCluster>(&()),
            Self::Deployment => ApiResource::erase::<MultiClusterDeployment>(&()),
            Self::Job => ApiResource::erase::<MultiClusterJob>(&()),
            Self::Service => ApiResource::erase::<MultiClusterService>(&()),
        }
    }

    /// All of it in a namespace, or everywhere, as JSON without the bookkeeping of fields.
    pub(crate) async fn list(
        self,
        hub: &Client,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Vec<Value>, Failure> {
        let resource = self.resource();
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(hub.clone(), namespace, &resource),
            None => Api::all_with(hub.clone(), &resource),
        };
        let list = call(format!("list {}", self.plural()), api.list(params)).await.map_err(|error| {
            let failure = Failure::other(chain(&error));
            match error.is_not_found() {
                true => failure
                    .hint("its definition is not installed: `portolan peer` or `portolan crds` does that"),
                false => failure,
            }
        })?;
        let shown = |mut object: DynamicObject| {
            object.meta_mut().managed_fields = None;
            object.types.get_or_insert_with(|| kube::core::TypeMeta {
                api_version: resource.api_version.clone(),
                kind: resource.kind.clone(),
            });
            serde_json::to_value(object).map_err(Failure::other)
        };
        list.items.into_iter().map(shown).collect()
    }
}
