//! The kinds that users ask for, by the names they give them.

use crate::failure::Failure;
use kube::api::{DynamicObject, ListParams};
use kube::discovery::ApiResource;
use kube::{Api, Client, Resource};
use portolan_api::{
    CloudProvisioner, ForeignCluster, MultiClusterDeployment, MultiClusterHorizontalPodAutoscaler,
    MultiClusterJob, MultiClusterRescheduler, MultiClusterService,
};
use portolan_runtime::call;
use serde_json::Value;

/// Kinds of Kubernetes that users ask for, as kubectl names them.
const KUBERNETES_KINDS: [&str; 15] = [
    "pod",
    "deployment",
    "replicaset",
    "statefulset",
    "daemonset",
    "job",
    "cronjob",
    "service",
    "ingress",
    "configmap",
    "secret",
    "namespace",
    "node",
    "event",
    "horizontalpodautoscaler",
];

/// Their short names that are not one of those in front of an s.
const KUBERNETES_SHORT_NAMES: [&str; 13] =
    ["po", "deploy", "rs", "sts", "ds", "cj", "svc", "ing", "cm", "ns", "no", "ev", "hpa"];

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
    /// MultiClusterHorizontalPodAutoscaler.
    Autoscaler,
    /// CloudProvisioner.
    Provisioner,
    /// MultiClusterRescheduler.
    Rescheduler,
}

impl Kind {
    /// The workloads.
    pub(crate) const WORKLOADS: [Kind; 3] = [Kind::Deployment, Kind::Job, Kind::Service];

    /// What fits workloads and clusters to the load. Members have no copies of it.
    pub(crate) const ELASTIC: [Kind; 3] = [Kind::Autoscaler, Kind::Provisioner, Kind::Rescheduler];

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
            "mchpa" | "multiclusterhorizontalpodautoscaler" | "multiclusterhorizontalpodautoscalers" => {
                Self::Autoscaler
            }
            "cp" | "cpca" | "cloudprovisioner" | "cloudprovisioners" => Self::Provisioner,
            "mcr" | "multiclusterrescheduler" | "multiclusterreschedulers" => Self::Rescheduler,
            other => return Err(unknown(kind, other, name.as_deref())),
        };
        Ok((found, name.into_iter().collect()))
    }

    /// Reads one object: KIND/NAME, or KIND and NAME as two words.
    pub(crate) fn parse_one(words: &[String]) -> Result<(Self, String), Failure> {
        let (kind, mut names) = Self::parse(words.first().map(String::as_str).unwrap_or_default())?;
        names.extend(words.iter().skip(1).cloned());
        match names.as_slice() {
            [name] if !name.is_empty() => Ok((kind, name.clone())),
            [] => Err(Failure::input(format!("{:?} is a kind without a name", words.join(" ")))
                .hint(format!("give {}/NAME; `portolan get {0}` lists the names", kind.short()))),
            _ => Err(Failure::input(format!("{:?} is not one object", words.join(" ")))
                .hint("give KIND/NAME or KIND NAME")),
        }
    }

    /// Its name in lower case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Cluster => "foreigncluster",
            Self::Deployment => "multiclusterdeployment",
            Self::Job => "multiclusterjob",
            Self::Service => "multiclusterservice",
            Self::Autoscaler => "multiclusterhorizontalpodautoscaler",
            Self::Provisioner => "cloudprovisioner",
            Self::Rescheduler => "multiclusterrescheduler",
        }
    }

    /// What to ask for it by.
    pub(crate) fn short(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::Deployment => "mcd",
            Self::Job => "mcj",
            Self::Service => "mcs",
            Self::Autoscaler => "mchpa",
            Self::Provisioner => "cp",
            Self::Rescheduler => "mcr",
        }
    }

    /// So many of it, in words: 1 member, 2 MultiClusterJobs.
    pub(crate) fn count(self, number: usize) -> String {
        let plural = if self == Self::Cluster { "members" } else { self.plural() };
        format!("{number} {}", if number == 1 { self.singular() } else { plural })
    }

    /// One of it, in words.
    pub(crate) fn singular(self) -> &'static str {
        let plural = if self == Self::Cluster { "members" } else { self.plural() };
        plural.strip_suffix('s').unwrap_or(plural)
    }

    /// Many of it, in words.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Cluster => "clusters",
            Self::Deployment => "MultiClusterDeployments",
            Self::Job => "MultiClusterJobs",
            Self::Service => "MultiClusterServices",
            Self::Autoscaler => "MultiClusterHorizontalPodAutoscalers",
            Self::Provisioner => "CloudProvisioners",
            Self::Rescheduler => "MultiClusterReschedulers",
        }
    }

    /// Whether it is in namespaces.
    pub(crate) fn namespaced(self) -> bool {
        !matches!(self, Self::Cluster | Self::Provisioner | Self::Rescheduler)
    }

    /// The kind of [`Self::ELASTIC`] that a manifest calls so.
    pub(crate) fn elastic(kind: &str) -> Option<Self> {
        Self::ELASTIC.into_iter().find(|each| each.resource().kind == kind)
    }

    /// Whether it is placed in members.
    pub(crate) fn is_workload(self) -> bool {
        Self::WORKLOADS.contains(&self)
    }

    /// The namespace of one object: the one that is given, or that of the context; none for kinds without.
    pub(crate) fn namespace(self, hub: &Client, given: Option<&str>) -> Option<String> {
        self.namespaced().then(|| given.unwrap_or(hub.default_namespace()).to_owned())
    }

    fn resource(self) -> ApiResource {
        match self {
            Self::Cluster => ApiResource::erase::<ForeignCluster>(&()),
            Self::Deployment => ApiResource::erase::<MultiClusterDeployment>(&()),
            Self::Job => ApiResource::erase::<MultiClusterJob>(&()),
            Self::Service => ApiResource::erase::<MultiClusterService>(&()),
            Self::Autoscaler => ApiResource::erase::<MultiClusterHorizontalPodAutoscaler>(&()),
            Self::Provisioner => ApiResource::erase::<CloudProvisioner>(&()),
            Self::Rescheduler => ApiResource::erase::<MultiClusterRescheduler>(&()),
        }
    }

    /// All of it in a namespace, or everywhere, as JSON without the bookkeeping of fields.
    pub(crate) async fn list(
        self,
        hub: &Client,
        namespace: Option<&str>,
        params: &ListParams,
    ) -> Result<Vec<Value>, Failure> {
        let api = self.api(hub, namespace);
        let list = call(format!("list {}", self.plural()), api.list(params)).await.map_err(|error| {
            let failure = Failure::call(&error);
            if error.is_not_found() {
                failure.hint("the hub does not have Portolan's custom resource definitions").hint(
                    "`portolan peer` installs them, or `portolan crds | kubectl apply --server-side -f -`",
                )
            } else {
                failure
            }
        })?;
        list.items.into_iter().map(|object| self.shown(object)).collect()
    }

    /// One object by its name; a failure if there is none.
    pub(crate) async fn get(
        self,
        hub: &Client,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Value, Failure> {
        let only = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = self.list(hub, namespace, &only).await?;
        found.into_iter().next().ok_or_else(|| self.missing(namespace, name))
    }

    /// The failure of a name that does not exist.
    pub(crate) fn missing(self, namespace: Option<&str>, name: &str) -> Failure {
        match namespace {
            Some(namespace) => {
                Failure::other(format!("{} {name:?} not found in namespace {namespace}", self.name()))
                    .hint(format!("`portolan get {} -A` lists those of all namespaces", self.short()))
            }
            None => Failure::other(format!("{} {name:?} not found", self.name()))
                .hint(format!("`portolan get {}` lists all", self.short())),
        }
    }

    /// The objects of the hub, in a namespace or everywhere.
    pub(crate) fn api(self, hub: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = self.resource();
        match namespace {
            Some(namespace) => Api::namespaced_with(hub.clone(), namespace, &resource),
            None => Api::all_with(hub.clone(), &resource),
        }
    }

    /// The object as JSON without the bookkeeping of fields.
    pub(crate) fn shown(self, mut object: DynamicObject) -> Result<Value, Failure> {
        let resource = self.resource();
        object.meta_mut().managed_fields = None;
        object.types.get_or_insert_with(|| kube::core::TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        serde_json::to_value(object).map_err(Failure::other)
    }
}

/// The failure of a kind that Portolan does not have.
fn unknown(given: &str, lower: &str, name: Option<&str>) -> Failure {
    let failure = Failure::input(format!("{given} is no kind of Portolan"))
        .hint("the kinds are clusters, mcd, mcj, mcs, mchpa, cp and mcr, such as mcd/web");
    if is_of_kubernetes(lower) {
        let object = name.map(|name| format!("/{name}")).unwrap_or_default();
        return failure
            .hint(format!("kubectl shows {given}: `kubectl --context CLUSTER get {given}{object}`"));
    }
    match name {
        None => failure.hint(format!("for a MultiClusterDeployment called {given}, give mcd/{given}")),
        Some(_) => failure,
    }
}

/// Whether a word is a kind of Kubernetes, such as pods, po or deployments.apps.
fn is_of_kubernetes(lower: &str) -> bool {
    let kind = lower.split('.').next().unwrap_or_default();
    let singular = kind.strip_suffix("es").filter(|kind| *kind == "ingress").or(kind.strip_suffix('s'));
    KUBERNETES_SHORT_NAMES.contains(&kind)
        || KUBERNETES_KINDS.contains(&kind)
        || singular.is_some_and(|kind| KUBERNETES_KINDS.contains(&kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_kubernetes_are_not_taken_for_names() {
        for word in ["pods", "po", "pod", "Deployments.apps", "ingress", "ingresses", "svc", "ns", "hpa"] {
            assert!(is_of_kubernetes(&word.to_lowercase()), "{word}");
        }
        for word in ["web", "podsy", "services-of-mine", "ingresse", ""] {
            assert!(!is_of_kubernetes(word), "{word}");
        }
        assert!(format!("{:?}", Kind::parse("pods").unwrap_err()).contains("kubectl shows pods"));
        assert!(format!("{:?}", Kind::parse("web").unwrap_err()).contains("give mcd/web"));
    }

    #[test]
    fn kinds_have_the_names_of_their_definitions() {
        let all = [&[Kind::Cluster][..], &Kind::WORKLOADS, &Kind::ELASTIC].concat();
        for crd in portolan_api::served_crds() {
            let names = crd.spec.names;
            let Some(kind) = all.iter().copied().find(|kind| kind.resource().kind == names.kind) else {
                let unasked =
                    ["ClusterReport", "Invitation", "PlacementReview", "ResourceOffer", "SharingClass"];
                assert!(unasked.contains(&names.kind.as_str()), "users ask for {} too", names.kind);
                continue;
            };
            let mut words = vec![names.kind.clone(), names.plural.clone()];
            words.push(format!("{}.portolan.dev", names.plural));
            words.extend([kind.name().to_owned(), kind.short().to_owned()]);
            words.extend(names.short_names.unwrap_or_default());
            for word in words {
                assert_eq!(
                    Kind::parse(&format!("{word}/x")).unwrap(),
                    (kind, vec!["x".to_owned()]),
                    "{word}"
                );
            }
            assert_eq!(kind.namespaced(), crd.spec.scope == "Namespaced", "{}", names.kind);
        }
        assert_eq!(Kind::Provisioner.count(1), "1 CloudProvisioner");
        assert_eq!((Kind::Cluster.count(2), Kind::Cluster.singular()), ("2 members".to_owned(), "member"));
    }
}
