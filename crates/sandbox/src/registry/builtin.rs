//! The built-in resources, one row each.

use std::sync::{Arc, LazyLock};

use super::{Generation, Nature, Resource, Rows, ScalePaths};
use crate::schema;

static ROWS: LazyLock<Arc<Rows>> = LazyLock::new(|| Arc::new(build()));

pub(super) fn rows() -> Arc<Rows> {
    ROWS.clone()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trait {
    Namespaced,
    Status,
    Scale,
    Generation,
    All,
    Review,
    Metrics,
}

use Trait::{All, Generation as Gen, Metrics, Namespaced as Ns, Review, Scale, Status};

struct Row(&'static str, &'static str, &'static str, &'static str, &'static [&'static str], &'static [Trait]);

/// Group, version, kind, plural, short names, traits.
const TABLE: &[Row] = &[
    Row("", "v1", "Namespace", "namespaces", &["ns"], &[Status]),
    Row("", "v1", "Node", "nodes", &["no"], &[Status]),
    Row("", "v1", "Pod", "pods", &["po"], &[Ns, Status, Gen, All]),
    Row("", "v1", "Service", "services", &["svc"], &[Ns, Status, All]),
    Row("", "v1", "Endpoints", "endpoints", &["ep"], &[Ns]),
    Row("", "v1", "ConfigMap", "configmaps", &["cm"], &[Ns]),
    Row("", "v1", "Secret", "secrets", &[], &[Ns]),
    Row("", "v1", "ServiceAccount", "serviceaccounts", &["sa"], &[Ns]),
    Row("", "v1", "Event", "events", &["ev"], &[Ns]),
    Row("", "v1", "PersistentVolume", "persistentvolumes", &["pv"], &[Status]),
    Row("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], &[Ns, Status]),
    Row("", "v1", "ResourceQuota", "resourcequotas", &["quota"], &[Ns, Status]),
    Row("", "v1", "LimitRange", "limitranges", &["limits"], &[Ns]),
    Row("apps", "v1", "Deployment", "deployments", &["deploy"], &[Ns, Status, Scale, Gen, All]),
    Row("apps", "v1", "ReplicaSet", "replicasets", &["rs"], &[Ns, Status, Scale, Gen, All]),
    Row("apps", "v1", "StatefulSet", "statefulsets", &["sts"], &[Ns, Status, Scale, Gen, All]),
    Row("apps", "v1", "DaemonSet", "daemonsets", &["ds"], &[Ns, Status, Gen, All]),
    Row("apps", "v1", "ControllerRevision", "controllerrevisions", &[], &[Ns]),
    Row("batch", "v1", "Job", "jobs", &[], &[Ns, Status, Gen, All]),
    Row("batch", "v1", "CronJob", "cronjobs", &["cj"], &[Ns, Status, Gen, All]),
    Row(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        &["hpa"],
        &[Ns, Status, All],
    ),
    Row("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"], &[Ns, Status, Gen]),
    Row("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", &[], &[Ns, Gen]),
    Row("events.k8s.io", "v1", "Event", "events", &["ev"], &[Ns]),
    Row("coordination.k8s.io", "v1", "Lease", "leases", &[], &[Ns]),
    Row("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", &["netpol"], &[Ns, Gen]),
    Row("networking.k8s.io", "v1", "Ingress", "ingresses", &["ing"], &[Ns, Status, Gen]),
    Row("networking.k8s.io", "v1", "IngressClass", "ingressclasses", &[], &[Gen]),
    Row("storage.k8s.io", "v1", "StorageClass", "storageclasses", &["sc"], &[]),
    Row("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", &["pc"], &[Gen]),
    Row("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", &[], &[]),
    Row("rbac.authorization.k8s.io", "v1", "Role", "roles", &[], &[Ns]),
    Row("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", &[], &[Ns]),
    Row("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", &[], &[]),
    Row("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", &[], &[]),
    Row(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        &["csr"],
        &[Status],
    ),
    Row("metrics.k8s.io", "v1beta1", "NodeMetrics", "nodes", &[], &[Metrics]),
    Row("metrics.k8s.io", "v1beta1", "PodMetrics", "pods", &[], &[Ns, Metrics]),
    Row("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", &[], &[Review]),
    Row("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", &[], &[Review]),
    Row("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", &[], &[Review]),
    Row("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", &[], &[Review]),
    Row("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", &[], &[Review]),
    Row(
        "authorization.k8s.io",
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
        &[],
        &[Ns, Review],
    ),
    Row(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        &[],
        &[Gen],
    ),
    Row(
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        &[],
        &[Gen],
    ),
    Row(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        &[],
        &[Status, Gen],
    ),
    Row(
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        &[],
        &[Gen],
    ),
    Row("apiregistration.k8s.io", "v1", "APIService", "apiservices", &[], &[Status]),
    Row(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        &["crd", "crds"],
        &[Status, Gen],
    ),
];

/// Fields that can be selected by, beyond name and namespace.
fn selectable(kind: &str) -> &'static [&'static str] {
    match kind {
        "Pod" => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        "Node" => &["spec.unschedulable"],
        "Namespace" => &["status.phase"],
        "Secret" => &["type"],
        "Service" => &["spec.clusterIP", "spec.type"],
        "Job" => &["status.successful"],
        "ReplicaSet" => &["status.replicas"],
        "CertificateSigningRequest" => &["spec.signerName"],
        "Event" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        _ => &[],
    }
}

fn build() -> Rows {
    let mut rows = Rows::new();
    for Row(group, version, kind, plural, short_names, traits) in TABLE {
        let has = |wanted: Trait| traits.contains(&wanted);
        // Events of both groups are one set of objects.
        let (home, stored_as) = match (*group, *kind) {
            ("events.k8s.io", "Event") => ("", "v1".to_owned()),
            ("", _) => ("", (*version).to_owned()),
            _ => (*group, format!("{group}/{version}")),
        };
        let row = Resource {
            group: (*group).to_owned(),
            version: (*version).to_owned(),
            kind: (*kind).to_owned(),
            plural: (*plural).to_owned(),
            singular: kind.to_lowercase(),
            short_names: short_names.iter().map(|name| (*name).to_owned()).collect(),
            categories: if has(All) { vec!["all".to_owned()] } else { Vec::new() },
            namespaced: has(Ns),
            table: format!("{home}/{plural}").into(),
            stored_as,
            status: has(Status),
            scale: has(Scale).then(|| ScalePaths {
                spec: "/spec/replicas".to_owned(),
                status: "/status/replicas".to_owned(),
                selector: None,
            }),
            generation: if has(Gen) { Generation::Spec } else { Generation::None },
            selectable: selectable(kind)
                .iter()
                .map(|field| ((*field).to_owned(), format!("/{}", field.replace('.', "/"))))
                .collect(),
            node: schema::builtin(group, version, kind),
            custom: false,
            nature: match () {
                () if has(Review) => Nature::Review,
                () if has(Metrics) => Nature::Metrics,
                () => Nature::Stored,
            },
            columns: Vec::new(),
            definition: None,
        };
        rows.insert((row.group.clone(), row.version.clone(), row.plural.clone()), Arc::new(row));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Node;

    #[test]
    fn every_row_has_a_structure() {
        for row in rows().values().filter(|row| row.nature != Nature::Metrics) {
            assert!(matches!(row.node.resolve(), Node::Struct(_)), "{} {}", row.api_version(), row.kind);
        }
    }
}
