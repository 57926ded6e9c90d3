//! DaemonSets: a pod on every node that is one for it, and new ones in the place of old ones.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{cluster, code, eventually, message};
use k8s_openapi::api::apps::v1::{DaemonSet, DaemonSetStatus};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Api, ResourceExt};
use portolan_sandbox::{Cluster, World};
use serde_json::{Value, json};

/// A cluster of three nodes and what a test asks it about.
struct Ground {
    world: World,
    cluster: Cluster,
    sets: Api<DaemonSet>,
    pods: Api<Pod>,
    nodes: Api<Node>,
}

fn ground() -> Ground {
    let (world, cluster) = cluster();
    let client = cluster.client("test");
    Ground {
        sets: Api::namespaced(client.clone(), "default"),
        pods: Api::namespaced(client.clone(), "default"),
        nodes: Api::all(client),
        world,
        cluster,
    }
}

/// `spec` is that of the DaemonSet, `pod` that of its template.
fn daemon_set(name: &str, spec: &Value, pod: &Value) -> DaemonSet {
    let mut set = json!({
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "main:1"}]},
            },
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        set["spec"][key] = value.clone();
    }
    for (key, value) in pod.as_object().unwrap() {
        set["spec"]["template"]["spec"][key] = value.clone();
    }
    serde_json::from_value(set).unwrap()
}

impl Ground {
    async fn create(&self, spec: Value, pod: Value) {
        self.sets.create(&PostParams::default(), &daemon_set("agent", &spec, &pod)).await.unwrap();
    }

    async fn status(&self) -> DaemonSetStatus {
        self.sets.get("agent").await.unwrap().status.unwrap()
    }

    /// Waits until the pods run on these nodes and no other, all available and of the present template.
    async fn settled(&self, nodes: &[&str]) {
        let count = i32::try_from(nodes.len()).unwrap();
        eventually(&format!("pods on {nodes:?}"), async || {
            let set = self.sets.get("agent").await.unwrap();
            let status = set.status.unwrap();
            status.observed_generation == set.metadata.generation
                && status.desired_number_scheduled == count
                && status.updated_number_scheduled.unwrap_or(0) == count
                && status.number_available.unwrap_or(0) == count
                && self.places().await == nodes
        })
        .await;
    }

    /// The nodes of the pods.
    async fn places(&self) -> Vec<String> {
        let pods = self.pods.list(&ListParams::default()).await.unwrap();
        let mut nodes: Vec<String> =
            pods.iter().map(|pod| pod.spec.as_ref().unwrap().node_name.clone().unwrap_or_default()).collect();
        nodes.sort();
        nodes
    }

    async fn patch_node(&self, node: &str, patch: Value) {
        self.nodes.patch(node, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn set_image(&self, image: &str) {
        let containers = json!([{"name": "main", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        self.sets.patch("agent", &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn every_node_has_a_pod_whether_it_comes_or_goes() {
    let ground = ground();
    ground.create(json!({}), json!({})).await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
    let expected = DaemonSetStatus {
        current_number_scheduled: 3,
        desired_number_scheduled: 3,
        number_available: Some(3),
        number_ready: 3,
        observed_generation: Some(1),
        updated_number_scheduled: Some(3),
        ..DaemonSetStatus::default()
    };
    assert_eq!(ground.status().await, expected);
    let pod = ground.pods.list(&ListParams::default()).await.unwrap().items.remove(0);
    assert!(pod.name_any().starts_with("agent-"));
    assert_eq!(pod.labels()["pod-template-generation"], "1");
    assert!(pod.labels().contains_key("controller-revision-hash"));
    let tolerations = pod.spec.unwrap().tolerations.unwrap();
    let tolerated: Vec<_> = tolerations.iter().map(|each| each.key.as_deref().unwrap()).collect();
    let expected =
        ["not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"];
    assert_eq!(tolerated, expected.map(|taint| format!("node.kubernetes.io/{taint}")));
    assert!(tolerations.iter().all(|each| each.toleration_seconds.is_none()));

    let mut another = ground.nodes.get("c1-1").await.unwrap();
    another.metadata.resource_version = None;
    another.metadata.uid = None;
    another.metadata.name = Some("c1-4".to_owned());
    another.labels_mut().insert("kubernetes.io/hostname".to_owned(), "c1-4".to_owned());
    ground.nodes.create(&PostParams::default(), &another).await.unwrap();
    ground.settled(&["c1-1", "c1-2", "c1-3", "c1-4"]).await;
    ground.nodes.delete("c1-2", &DeleteParams::default()).await.unwrap();
    ground.settled(&["c1-1", "c1-3", "c1-4"]).await;
    ground.sets.delete("agent", &DeleteParams::default()).await.unwrap();
    eventually("all goes with the set", async || {
        ground.cluster.count("", "pods") == 0 && ground.cluster.count("apps", "controllerrevisions") == 0
    })
    .await;
    assert_eq!(ground.world.check(), []);
}

#[tokio::test(start_paused = true)]
async fn selectors_and_taints_say_which_nodes() {
    let ground = ground();
    for node in ["c1-1", "c1-2"] {
        ground.patch_node(node, json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    }
    ground.patch_node("c1-1", json!({"spec": {"unschedulable": true}})).await;
    ground.create(json!({}), json!({"nodeSelector": {"disk": "ssd"}})).await;
    ground.settled(&["c1-1", "c1-2"]).await;
    ground.patch_node("c1-3", json!({"metadata": {"labels": {"disk": "ssd"}}})).await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
    ground.patch_node("c1-2", json!({"metadata": {"labels": {"disk": null}}})).await;
    ground.settled(&["c1-1", "c1-3"]).await;

    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "mine", "effect": effect}]}});
    ground.patch_node("c1-3", taint("NoSchedule")).await;
    eventually("the pod is where it would not be put", async || {
        let status = ground.status().await;
        (status.desired_number_scheduled, status.number_misscheduled) == (1, 1)
    })
    .await;
    assert_eq!(ground.places().await, ["c1-1", "c1-3"], "it stays");
    ground.patch_node("c1-3", taint("NoExecute")).await;
    ground.settled(&["c1-1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_does_not_fit_waits_for_its_own_node() {
    let ground = ground();
    let big =
        json!({"containers": [{"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "3"}}}]});
    let filler: Pod = serde_json::from_value(json!({
        "metadata": {"name": "filler"},
        "spec": {"nodeName": "c1-2", "containers": [
            {"name": "main", "image": "main:1", "resources": {"requests": {"cpu": "2"}}}]},
    }))
    .unwrap();
    ground.pods.create(&PostParams::default(), &filler).await.unwrap();
    ground.create(json!({}), big).await;
    eventually("two fit", async || ground.status().await.number_available == Some(2)).await;
    let status = ground.status().await;
    assert_eq!((status.current_number_scheduled, status.number_unavailable), (3, Some(1)));
    ground.pods.delete("filler", &DeleteParams::default()).await.unwrap();
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
}

#[tokio::test(start_paused = true)]
async fn pods_stay_on_a_node_that_falls_silent() {
    let ground = ground();
    ground.create(json!({}), json!({})).await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
    ground.cluster.fail_node("c1-2");
    tokio::time::sleep(Duration::from_secs(900)).await;
    let status = ground.status().await;
    let told = (status.desired_number_scheduled, status.number_misscheduled, status.number_ready);
    assert_eq!(told, (2, 1, 2), "no pod would be put there now, as the taint of a silent node says");
    let pods = ground.pods.list(&ListParams::default()).await.unwrap().items;
    assert!(pods.iter().all(|pod| pod.metadata.deletion_timestamp.is_none()));
    ground.cluster.restore_node("c1-2");
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
}

/// Rolls to another image; the fewest that were available and the most pods at any time.
async fn rolled(ground: &Ground, rolling: Value) -> (i32, usize) {
    let strategy = json!({"updateStrategy": {"rollingUpdate": rolling}});
    ground.create(strategy, json!({})).await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
    ground.set_image("main:2").await;
    let (mut fewest, mut most) = (3, 0);
    eventually("all are new", async || {
        let status = ground.status().await;
        fewest = fewest.min(status.number_available.unwrap_or(0));
        most = most.max(ground.pods.list(&ListParams::default()).await.unwrap().items.len());
        status.observed_generation == Some(2)
            && status.updated_number_scheduled == Some(3)
            && status.number_available == Some(3)
    })
    .await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
    for pod in ground.pods.list(&ListParams::default()).await.unwrap() {
        assert_eq!(pod.spec.as_ref().unwrap().containers[0].image.as_deref(), Some("main:2"));
        assert_eq!(pod.labels()["pod-template-generation"], "2");
    }
    (fewest, most)
}

#[tokio::test(start_paused = true)]
async fn a_new_template_takes_one_pod_away_at_a_time() {
    let ground = ground();
    assert_eq!(rolled(&ground, json!({"maxUnavailable": 1})).await, (2, 3));
    assert_eq!(ground.cluster.count("apps", "controllerrevisions"), 2);
}

#[tokio::test(start_paused = true)]
async fn with_a_surge_no_node_is_without_a_pod() {
    let ground = ground();
    assert_eq!(rolled(&ground, json!({"maxUnavailable": 0, "maxSurge": 1})).await.0, 3);
    let ground = self::ground();
    assert_eq!(rolled(&ground, json!({"maxUnavailable": 0, "maxSurge": "100%"})).await, (3, 6));
}

#[tokio::test(start_paused = true)]
async fn on_delete_the_user_says_when() {
    let ground = ground();
    ground.create(json!({"updateStrategy": {"type": "OnDelete"}}), json!({})).await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
    ground.set_image("main:2").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(ground.status().await.updated_number_scheduled, None);
    let first = ground.pods.list(&ListParams::default()).await.unwrap().items.remove(0);
    ground.pods.delete(&first.name_any(), &DeleteParams::default()).await.unwrap();
    eventually("one is new", async || {
        let status = ground.status().await;
        status.updated_number_scheduled == Some(1) && status.number_available == Some(3)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pods_that_have_ended_are_replaced_and_those_left_behind_are_taken_over() {
    let ground = ground();
    ground.create(json!({}), json!({})).await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;
    let ended = ground.pods.list(&ListParams::default()).await.unwrap().items.remove(0).name_any();
    let failed = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
    ground.pods.patch_status(&ended, &PatchParams::default(), &failed).await.unwrap();
    eventually("it goes", async || ground.pods.get_opt(&ended).await.unwrap().is_none()).await;
    ground.settled(&["c1-1", "c1-2", "c1-3"]).await;

    let names = async || -> Vec<_> {
        ground.pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    };
    let before = names().await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    ground.sets.delete("agent", &orphan).await.unwrap();
    eventually("the set goes", async || ground.sets.get_opt("agent").await.unwrap().is_none()).await;
    ground.create(json!({}), json!({})).await;
    eventually("none is made beside them", async || {
        assert_eq!(names().await, before);
        ground.status().await.number_available == Some(3)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_is_refused_in_the_words_of_the_api_server() {
    let ground = ground();
    ground.create(json!({}), json!({})).await;
    let patch = Patch::Merge(json!({"spec": {"selector": {"matchLabels": {"b": "c"}},
        "template": {"metadata": {"labels": {"b": "c"}}}}}));
    let refused = ground.sets.patch("agent", &PatchParams::default(), &patch).await.unwrap_err();
    assert_eq!(code(&refused), 422);
    assert!(message(&refused).ends_with("field is immutable"), "{}", message(&refused));
    let unknown = daemon_set("bad", &json!({"updateStrategy": {"type": "Any"}}), &json!({}));
    let refused = ground.sets.create(&PostParams::default(), &unknown).await.unwrap_err();
    assert_eq!(
        message(&refused),
        "DaemonSet.apps \"bad\" is invalid: spec.updateStrategy: Unsupported value: \
         {\"Type\":\"Any\",\"RollingUpdate\":null}: supported values: \"RollingUpdate\", \"OnDelete\""
    );
    for (rolling, expected) in [
        (
            json!({"maxUnavailable": 1, "maxSurge": 1}),
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
        ),
        (
            json!({"maxUnavailable": 0}),
            "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
        ),
    ] {
        let set = daemon_set("bad", &json!({"updateStrategy": {"rollingUpdate": rolling}}), &json!({}));
        let refused = ground.sets.create(&PostParams::default(), &set).await.unwrap_err();
        assert_eq!(message(&refused), format!("DaemonSet.apps \"bad\" is invalid: {expected}"));
    }
}
