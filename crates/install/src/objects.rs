//! What Portolan consists of in a cluster.

use crate::document::{CONTROLLER, Document, NAMESPACE, labels, selector};
use crate::monitoring;
use crate::node::{Item, Node, Part, at, field, field_when, fixed, is_set, object};
use crate::{VERSION, Values};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use portolan_api::{RenderError, VERSION_LABEL};
use portolan_control::peering::{
    capacity_report_bindings, hub_as_member_binding, hub_roles, measurement_binding,
};
use serde_json::{Value, json};

/// The ConfigMap with what the cluster tells of itself.
pub const CLUSTER_CONFIG: &str = "portolan-cluster";

/// The port of the controller's probes and metrics.
const PORT: u16 = 8080;

/// What is applied to a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rendered {
    /// The definitions, which go first.
    pub crds: Vec<Value>,
    /// The other objects, in the order in which they are applied.
    pub objects: Vec<Value>,
}

/// The objects for these values.
///
/// # Errors
/// A definition cannot be written.
pub fn render(values: &Values) -> Result<Rendered, RenderError> {
    let values = serde_json::to_value(values)
        .map_err(|error| RenderError { name: "the values".to_owned(), message: error.to_string() })?;
    let holds = |document: &&Document| document.when.iter().all(|path| is_set(at(&values, path)));
    let all = documents()?;
    let mut rendered = Rendered::default();
    for document in all.iter().filter(holds) {
        let object = document.node.evaluate(&values);
        let list = if document.file == "crds" { &mut rendered.crds } else { &mut rendered.objects };
        list.push(object);
    }
    Ok(rendered)
}

/// Everything, in the order in which it is applied.
pub(crate) fn documents() -> Result<Vec<Document>, RenderError> {
    let always = |file, node| Document { file, when: Vec::new(), node };
    let mut documents = vec![always("namespace", namespace())];
    documents.extend(crds()?);
    let roles = hub_roles().into_iter().filter(|object| object["kind"] != "Namespace");
    documents.extend(roles.map(|role| always("roles", fixed(labelled(role)))));
    documents.push(Document {
        file: "roles",
        when: vec!["controller.hubAsMember"],
        node: fixed(labelled(hub_as_member_binding())),
    });
    documents.push(Document {
        file: "roles",
        when: vec!["controller.measureLatency"],
        node: fixed(labelled(measurement_binding())),
    });
    documents.extend(capacity_report_bindings().map(|binding| Document {
        file: "roles",
        when: vec!["controller.reportCapacity"],
        node: fixed(labelled(binding)),
    }));
    documents.push(always("cluster", cluster_config()));
    documents.push(always("controller", deployment()));
    documents.push(Document {
        file: "controller",
        when: vec!["highAvailability"],
        node: fixed(disruption_budget()),
    });
    documents.extend(monitoring::documents()?);
    Ok(documents)
}

fn crds() -> Result<Vec<Document>, RenderError> {
    let each = |crd: CustomResourceDefinition| -> Result<Document, RenderError> {
        let mut when = vec!["crds.install"];
        if crd.spec.group != portolan_api::GROUP {
            when.push("crds.clusterProfiles");
        }
        if !portolan_api::is_served(&crd) {
            when.push("crds.experimental");
        }
        let name = crd.metadata.name.clone().unwrap_or_default();
        let node = serde_json::to_value(&crd)
            .map(Node::Fixed)
            .map_err(|error| RenderError { name, message: error.to_string() })?;
        Ok(Document { file: "crds", when, node })
    };
    portolan_api::all_crds()?.into_iter().map(each).collect()
}

fn namespace() -> Node {
    let labels = json!({
        "app.kubernetes.io/part-of": "portolan",
        "pod-security.kubernetes.io/enforce": "restricted",
    });
    fixed(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}))
}

fn cluster_config() -> Node {
    let metadata = json!({"name": CLUSTER_CONFIG, "namespace": NAMESPACE, "labels": labels()});
    object([
        field("apiVersion", fixed("v1")),
        field("kind", fixed("ConfigMap")),
        field("metadata", fixed(metadata)),
        field(
            "data",
            object([
                field("name", Node::Value("cluster.name")),
                field("labels", Node::JsonText("cluster.labels")),
                field("provider", Node::Value("cluster.provider")),
                field("apiServerURL", Node::Value("cluster.apiServerURL")),
                field("podCIDR", Node::Value("cluster.podCIDR")),
                field("serviceCIDR", Node::Value("cluster.serviceCIDR")),
                field("reservedSubnets", Node::JsonText("cluster.reservedSubnets")),
            ]),
        ),
    ])
}

fn deployment() -> Node {
    let mut labels = labels();
    labels[VERSION_LABEL] = json!(VERSION);
    let metadata = json!({"name": CONTROLLER, "namespace": NAMESPACE, "labels": labels});
    let strategy = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    object([
        field("apiVersion", fixed("apps/v1")),
        field("kind", fixed("Deployment")),
        field("metadata", fixed(metadata)),
        field(
            "spec",
            object([
                field("replicas", Node::Either("highAvailability", Box::new(fixed(2)), Box::new(fixed(1)))),
                field("revisionHistoryLimit", fixed(3)),
                field("selector", fixed(json!({"matchLabels": selector()}))),
                field("strategy", fixed(strategy)),
                field("template", pod()),
            ]),
        ),
    ])
}

fn pod() -> Node {
    let spread = |key: &str| {
        json!({
            "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": selector()}, "matchLabelKeys": ["pod-template-hash"],
        })
    };
    let spreads = json!([spread("topology.kubernetes.io/zone"), spread("kubernetes.io/hostname")]);
    let security = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    object([
        field(
            "metadata",
            object([
                field_when(
                    "controller.podAnnotations",
                    "annotations",
                    Node::Value("controller.podAnnotations"),
                ),
                field("labels", Node::Extended(selector(), "controller.podLabels")),
            ]),
        ),
        field(
            "spec",
            object([
                field("serviceAccountName", fixed(CONTROLLER)),
                field("securityContext", fixed(security)),
                field_when(
                    "image.pullSecrets",
                    "imagePullSecrets",
                    Node::List(vec![Item::Named("image.pullSecrets")]),
                ),
                field_when(
                    "controller.priorityClassName",
                    "priorityClassName",
                    Node::Value("controller.priorityClassName"),
                ),
                field_when("controller.nodeSelector", "nodeSelector", Node::Value("controller.nodeSelector")),
                field_when("controller.tolerations", "tolerations", Node::Value("controller.tolerations")),
                field_when("highAvailability", "topologySpreadConstraints", fixed(spreads)),
                field("containers", Node::List(vec![Item::One(container())])),
            ]),
        ),
    ])
}

fn container() -> Node {
    let security = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
    });
    let repository = || Part::Value("image.repository");
    let by_tag = Node::Text(vec![repository(), Part::Fixed(":"), Part::Value("image.tag")]);
    let by_digest = Node::Text(vec![repository(), Part::Fixed("@"), Part::Value("image.digest")]);
    let sharing = Node::Text(vec![Part::Fixed("--share-by-default="), Part::Value("cluster.sharing")]);
    let prometheus = Node::Text(vec![Part::Fixed("--prometheus="), Part::Value("controller.prometheus")]);
    object([
        field("name", fixed("controller")),
        field("image", Node::Either("image.digest", Box::new(by_digest), Box::new(by_tag))),
        field("imagePullPolicy", Node::Value("image.pullPolicy")),
        field(
            "args",
            Node::List(vec![
                Item::One(fixed("controller")),
                Item::One(fixed(format!("--listen=[::]:{PORT}"))),
                Item::When("cluster.sharing", sharing),
                Item::When("controller.prometheus", prometheus),
                Item::When("controller.measureLatency", fixed("--measure-latency")),
                Item::When("controller.reportCapacity", fixed("--report-capacity")),
                Item::Each("controller.extraArgs"),
            ]),
        ),
        field("ports", fixed(json!([{"name": "metrics", "containerPort": PORT}]))),
        field("livenessProbe", fixed(probe("/healthz", 10, 6))),
        field("readinessProbe", fixed(probe("/readyz", 2, 3))),
        field_when("controller.resources", "resources", Node::Value("controller.resources")),
        field("securityContext", fixed(security)),
    ])
}

fn probe(path: &str, period: u32, failures: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "metrics"}, "periodSeconds": period, "timeoutSeconds": 2,
        "failureThreshold": failures,
    })
}

fn disruption_budget() -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": CONTROLLER, "namespace": NAMESPACE, "labels": labels()},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": selector()}},
    })
}

fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"]["app.kubernetes.io/part-of"] = json!("portolan");
    object
}
