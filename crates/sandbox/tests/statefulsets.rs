//! StatefulSets: names that stay, order, updates, claims.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{cluster, code, eventually, message};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet, StatefulSetStatus};
use k8s_openapi::api::core::v1::{Event, PersistentVolumeClaim, Pod};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy};
use kube::{Api, ResourceExt};
use portolan_sandbox::{Cluster, World};
use serde_json::{Value, json};

const REVISION: &str = "controller-revision-hash";

/// A cluster and what a test asks it about.
struct Ground {
    world: World,
    cluster: Cluster,
    sets: Api<StatefulSet>,
    pods: Api<Pod>,
    claims: Api<PersistentVolumeClaim>,
}

fn ground() -> Ground {
    let (world, cluster) = cluster();
    let client = cluster.client("test");
    Ground {
        sets: Api::namespaced(client.clone(), "default"),
        pods: Api::namespaced(client.clone(), "default"),
        claims: Api::namespaced(client, "default"),
        world,
        cluster,
    }
}

fn stateful_set(name: &str, replicas: i32, spec: Value) -> StatefulSet {
    let mut set = json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
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
    serde_json::from_value(set).unwrap()
}

impl Ground {
    async fn create(&self, name: &str, replicas: i32, spec: Value) {
        self.sets.create(&PostParams::default(), &stateful_set(name, replicas, spec)).await.unwrap();
        self.settled(name, replicas).await;
    }

    async fn status(&self, name: &str) -> StatefulSetStatus {
        self.sets.get(name).await.unwrap().status.unwrap()
    }

    /// Waits until all pods are there and available, and of the present template.
    async fn settled(&self, name: &str, replicas: i32) {
        eventually(&format!("{replicas} pods of {name}"), async || {
            let set = self.sets.get(name).await.unwrap();
            let status = set.status.unwrap();
            status.observed_generation == set.metadata.generation
                && status.available_replicas == Some(replicas)
                && status.replicas == replicas
                && status.current_revision == status.update_revision
        })
        .await;
    }

    async fn patch(&self, name: &str, patch: Value) {
        self.sets.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    }

    async fn set_image(&self, name: &str, image: &str) {
        let containers = json!([{"name": "main", "image": image}]);
        self.patch(name, json!({"spec": {"template": {"spec": {"containers": containers}}}})).await;
    }

    async fn names(&self) -> Vec<String> {
        self.pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    }

    /// The images of the pods, by ordinal.
    async fn images(&self) -> Vec<String> {
        let pods = self.pods.list(&ListParams::default()).await.unwrap();
        pods.iter().map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap()).collect()
    }

    async fn claim_names(&self) -> Vec<String> {
        self.claims.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect()
    }
}

fn ready_since(pod: &Pod) -> k8s_openapi::jiff::Timestamp {
    let conditions = pod.status.clone().unwrap().conditions.unwrap();
    conditions.iter().find(|c| c.type_ == "Ready").unwrap().last_transition_time.clone().unwrap().0
}

#[tokio::test(start_paused = true)]
async fn pods_come_one_after_the_other_with_names_that_stay() {
    let ground = ground();
    ground.create("db", 3, json!({})).await;
    let found = ground.pods.list(&ListParams::default()).await.unwrap().items;
    let names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
    for pair in found.windows(2) {
        let created = pair[1].creation_timestamp().unwrap().0;
        assert!(created >= ready_since(&pair[0]), "{} waits for the one before", pair[1].name_any());
    }
    let status = ground.status("db").await;
    let revision = status.update_revision.clone().unwrap();
    let pod = &found[2];
    for (label, value) in [
        ("statefulset.kubernetes.io/pod-name", "db-2"),
        ("apps.kubernetes.io/pod-index", "2"),
        (REVISION, revision.as_str()),
    ] {
        assert_eq!(pod.labels()[label], value);
    }
    let spec = pod.spec.clone().unwrap();
    assert_eq!((spec.hostname.as_deref(), spec.subdomain.as_deref()), (Some("db-2"), Some("db")));
    let expected = StatefulSetStatus {
        available_replicas: Some(3),
        collision_count: Some(0),
        current_replicas: Some(3),
        current_revision: Some(revision.clone()),
        observed_generation: Some(1),
        ready_replicas: Some(3),
        replicas: 3,
        update_revision: Some(revision),
        updated_replicas: Some(3),
        ..StatefulSetStatus::default()
    };
    assert_eq!(status, expected);
    let events: Api<Event> = Api::namespaced(ground.cluster.client("test"), "default");
    let told = events.list(&ListParams::default().fields("reason=SuccessfulCreate")).await.unwrap();
    let told: Vec<_> = told.iter().filter_map(|event| event.message.as_deref()).collect();
    assert!(told.contains(&"Create Pod db-1 in StatefulSet db successful"), "{told:?}");

    let before = found[1].uid();
    ground.pods.delete("db-1", &DeleteParams::default()).await.unwrap();
    eventually("it is back under its name", async || {
        ground.pods.get_opt("db-1").await.unwrap().is_some_and(|pod| pod.uid() != before)
    })
    .await;
    ground.settled("db", 3).await;
    ground.sets.delete("db", &DeleteParams::default()).await.unwrap();
    eventually("all goes with the set", async || {
        ground.cluster.count("", "pods") == 0 && ground.cluster.count("apps", "controllerrevisions") == 0
    })
    .await;
    assert_eq!(ground.world.check(), []);
}

#[tokio::test(start_paused = true)]
async fn in_parallel_nobody_waits_and_ordinals_begin_where_they_are_told_to() {
    let ground = ground();
    ground.create("db", 3, json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}})).await;
    let found = ground.pods.list(&ListParams::default()).await.unwrap().items;
    let names: Vec<_> = found.iter().map(ResourceExt::name_any).collect();
    assert_eq!(names, ["db-5", "db-6", "db-7"]);
    assert_eq!(found[0].creation_timestamp(), found[2].creation_timestamp());
    ground.patch("db", json!({"spec": {"ordinals": {"start": 6}}})).await;
    eventually("the window moves", async || ground.names().await == ["db-6", "db-7", "db-8"]).await;
}

#[tokio::test(start_paused = true)]
async fn scaling_down_takes_the_highest_first_and_one_at_a_time() {
    let ground = ground();
    ground.create("db", 4, json!({})).await;
    let scale = Patch::Merge(json!({"spec": {"replicas": 1}}));
    let answer = ground.sets.patch_scale("db", &PatchParams::default(), &scale).await.unwrap();
    assert_eq!(answer.status.unwrap().selector.as_deref(), Some("app=db"));
    let mut seen = vec![4];
    eventually("one is left", async || {
        let pods = ground.pods.list(&ListParams::default()).await.unwrap().items;
        let leaving = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some());
        let leaving: Vec<_> = leaving.map(ResourceExt::name_any).collect();
        let last = pods.last().unwrap().name_any();
        assert!(leaving.is_empty() || leaving == [last], "{leaving:?} go");
        if seen.last() != Some(&pods.len()) {
            seen.push(pods.len());
        }
        pods.len() == 1 && leaving.is_empty()
    })
    .await;
    assert_eq!(seen, [4, 3, 2, 1]);
    assert_eq!(ground.names().await, ["db-0"]);
    ground.settled("db", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_template_rolls_from_the_highest_down_and_back() {
    let ground = ground();
    ground.create("db", 3, json!({})).await;
    let first = ground.status("db").await.current_revision.unwrap();
    ground.set_image("db", "main:2").await;
    let mut seen: Vec<Vec<String>> = Vec::new();
    eventually("all are new", async || {
        let (images, status) = (ground.images().await, ground.status("db").await);
        assert!(status.available_replicas >= Some(2), "more than one away: {status:?}");
        if images.len() == 3 && seen.last() != Some(&images) {
            seen.push(images);
        }
        status.current_revision.as_ref() == Some(status.update_revision.as_ref().unwrap())
            && status.update_revision.as_ref() != Some(&first)
    })
    .await;
    let step = |new: usize| -> Vec<String> {
        (0..3).map(|ordinal| format!("main:{}", if ordinal + new >= 3 { 2 } else { 1 })).collect()
    };
    assert_eq!(seen, [step(0), step(1), step(2), step(3)]);

    let revisions: Api<ControllerRevision> = Api::namespaced(ground.cluster.client("test"), "default");
    let numbers = async || {
        let mut found: Vec<(i64, String)> = revisions
            .list(&ListParams::default())
            .await
            .unwrap()
            .iter()
            .map(|found| (found.revision, found.name_any()))
            .collect();
        found.sort();
        found
    };
    let second = ground.status("db").await.current_revision.unwrap();
    assert_eq!(numbers().await, [(1, first.clone()), (2, second.clone())]);
    ground.set_image("db", "main:1").await;
    ground.settled("db", 3).await;
    assert_eq!(ground.images().await, step(0));
    assert_eq!(numbers().await, [(2, second), (3, first)], "the first template is the newest again");

    ground.patch("db", json!({"spec": {"revisionHistoryLimit": 1}})).await;
    ground.set_image("db", "main:3").await;
    ground.settled("db", 3).await;
    eventually("history is cut", async || numbers().await.len() == 2).await;
    assert_eq!(numbers().await[1].0, 4);
}

#[tokio::test(start_paused = true)]
async fn a_partition_keeps_lower_pods_as_they_are_even_when_they_are_made_anew() {
    let ground = ground();
    let rolling = |partition: i32| json!({"updateStrategy": {"rollingUpdate": {"partition": partition}}});
    ground.create("db", 3, rolling(2)).await;
    ground.set_image("db", "main:2").await;
    let partly = ["main:1", "main:1", "main:2"];
    eventually("one is new", async || ground.images().await == partly).await;
    ground.pods.delete("db-0", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(ground.images().await, partly);
    let status = ground.status("db").await;
    assert_eq!((status.current_replicas, status.updated_replicas), (Some(2), Some(1)));
    assert_ne!(status.current_revision, status.update_revision);
    ground.patch("db", json!({"spec": rolling(0)})).await;
    ground.settled("db", 3).await;
    assert_eq!(ground.images().await, ["main:2"; 3]);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_does_not_come_up_stops_and_one_on_delete_waits_for_the_user() {
    let ground = ground();
    ground.create("db", 3, json!({})).await;
    let huge = json!([{"name": "main", "resources": {"requests": {"cpu": "99"}}}]);
    ground.patch("db", json!({"spec": {"template": {"spec": {"containers": huge}}}})).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let status = ground.status("db").await;
    assert_eq!((status.ready_replicas, status.updated_replicas), (Some(2), Some(1)), "{status:?}");

    ground.create("cache", 2, json!({"updateStrategy": {"type": "OnDelete"}})).await;
    ground.set_image("cache", "main:2").await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let images = async |name: &str| {
        let pod = ground.pods.get(name).await.unwrap();
        pod.spec.unwrap().containers[0].image.clone().unwrap()
    };
    assert_eq!(images("cache-1").await, "main:1");
    ground.pods.delete("cache-1", &DeleteParams::default()).await.unwrap();
    eventually("what is deleted is made anew", async || {
        ground.status("cache").await.ready_replicas == Some(2) && images("cache-1").await == "main:2"
    })
    .await;
    assert_eq!(images("cache-0").await, "main:1");
}

#[tokio::test(start_paused = true)]
async fn the_next_pod_waits_until_the_last_one_has_been_ready_for_long_enough() {
    let ground = ground();
    let set = stateful_set("db", 2, json!({"minReadySeconds": 20}));
    ground.sets.create(&PostParams::default(), &set).await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    let status = ground.status("db").await;
    assert_eq!((status.replicas, status.ready_replicas, status.available_replicas), (1, Some(1), Some(0)));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ground.status("db").await.replicas, 2);
    ground.settled("db", 2).await;
}

fn with_claims(retention: Value) -> Value {
    json!({
        "persistentVolumeClaimRetentionPolicy": retention,
        "volumeClaimTemplates": [{
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }],
    })
}

#[tokio::test(start_paused = true)]
async fn each_pod_has_its_claims_and_finds_them_again() {
    let ground = ground();
    ground.create("db", 2, with_claims(json!({}))).await;
    let claim = ground.claims.get("data-db-1").await.unwrap();
    assert_eq!(claim.labels()["app"], "db");
    assert!(claim.owner_references().is_empty(), "it outlives its set");
    let status = claim.status.clone().unwrap();
    assert_eq!(status.phase.as_deref(), Some("Bound"));
    assert_eq!(status.capacity.unwrap()["storage"].0, "1Gi");
    let volume = ground.pods.get("db-1").await.unwrap().spec.unwrap().volumes.unwrap()[0].clone();
    assert_eq!(
        (volume.name.as_str(), volume.persistent_volume_claim.unwrap().claim_name.as_str()),
        ("data", "data-db-1")
    );
    assert_eq!(ground.cluster.count("", "persistentvolumes"), 2);

    ground.patch("db", json!({"spec": {"replicas": 1}})).await;
    ground.settled("db", 1).await;
    ground.patch("db", json!({"spec": {"replicas": 2}})).await;
    ground.settled("db", 2).await;
    assert_eq!(ground.claims.get("data-db-1").await.unwrap().uid(), claim.uid(), "the same as before");
    ground.sets.delete("db", &DeleteParams::default()).await.unwrap();
    eventually("the pods go", async || ground.cluster.count("", "pods") == 0).await;
    assert_eq!(ground.claim_names().await, ["data-db-0", "data-db-1"]);
    ground.claims.delete("data-db-0", &DeleteParams::default()).await.unwrap();
    eventually("a volume goes with its claim", async || ground.cluster.count("", "persistentvolumes") == 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn claims_go_with_their_pod_or_their_set_if_that_is_wanted() {
    let ground = ground();
    ground.create("db", 3, with_claims(json!({"whenScaled": "Delete", "whenDeleted": "Delete"}))).await;
    let before = ground.claims.get("data-db-2").await.unwrap().uid();
    ground.pods.delete("db-2", &DeleteParams::default()).await.unwrap();
    let gone =
        async || ground.pods.get("db-2").await.is_ok_and(|pod| pod.metadata.deletion_timestamp.is_none());
    eventually("another pod takes its place", gone).await;
    ground.settled("db", 3).await;
    assert_eq!(
        ground.claims.get("data-db-2").await.unwrap().uid(),
        before,
        "a deleted pod is not scaled down"
    );
    ground.patch("db", json!({"spec": {"replicas": 2}})).await;
    eventually("its claim goes", async || ground.claim_names().await == ["data-db-0", "data-db-1"]).await;
    ground.patch("db", json!({"spec": {"replicas": 3}})).await;
    ground.settled("db", 3).await;
    assert_ne!(ground.claims.get("data-db-2").await.unwrap().uid(), before, "a new one");
    ground.sets.delete("db", &DeleteParams::default()).await.unwrap();
    eventually("all claims go", async || ground.claim_names().await.is_empty()).await;

    ground.create("log", 2, with_claims(json!({"whenScaled": "Delete"}))).await;
    ground.sets.delete("log", &DeleteParams::default()).await.unwrap();
    eventually("the pods go", async || ground.cluster.count("", "pods") == 0).await;
    assert_eq!(ground.claim_names().await, ["data-log-0", "data-log-1"], "kept when the set is deleted");
}

#[tokio::test(start_paused = true)]
async fn pods_that_a_set_left_behind_are_taken_over_by_the_next_of_its_name() {
    let ground = ground();
    ground.create("db", 2, json!({})).await;
    let uids = async || -> Vec<_> {
        ground.pods.list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::uid).collect()
    };
    let before = uids().await;
    let orphan =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
    ground.sets.delete("db", &orphan).await.unwrap();
    eventually("the set goes", async || ground.sets.get_opt("db").await.unwrap().is_none()).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(uids().await, before);
    ground.create("db", 3, json!({})).await;
    assert_eq!(uids().await[..2], before[..]);
    assert_eq!(ground.cluster.count("apps", "controllerrevisions"), 1, "its revision, too");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_has_failed_is_made_anew() {
    let ground = ground();
    ground.create("db", 2, json!({})).await;
    let before = ground.pods.get("db-0").await.unwrap().uid();
    let failed = Patch::Merge(json!({"status": {"phase": "Failed", "reason": "Evicted"}}));
    ground.pods.patch_status("db-0", &PatchParams::default(), &failed).await.unwrap();
    eventually("another one", async || {
        ground.pods.get_opt("db-0").await.unwrap().is_some_and(|pod| pod.uid() != before)
    })
    .await;
    ground.settled("db", 2).await;
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_is_refused_in_the_words_of_the_api_server() {
    let ground = ground();
    ground.create("db", 1, json!({})).await;
    let patch = Patch::Merge(json!({"spec": {"serviceName": "other"}}));
    let refused = ground.sets.patch("db", &PatchParams::default(), &patch).await.unwrap_err();
    assert_eq!(code(&refused), 422);
    assert_eq!(
        message(&refused),
        "StatefulSet.apps \"db\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than \
         'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', \
         'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
    );
    for (spec, expected) in [
        (
            json!({"podManagementPolicy": "Any"}),
            "spec.podManagementPolicy: Invalid value: \"Any\": must be 'OrderedReady' or 'Parallel'",
        ),
        (
            json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}),
            "spec.updateStrategy.rollingUpdate: Invalid value: {\"Partition\":1,\"MaxUnavailable\":null}: only allowed for updateStrategy \
             'RollingUpdate'",
        ),
        (
            json!({"updateStrategy": {"rollingUpdate": {"partition": -1}}}),
            "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Never"}}),
            "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: \"Never\": supported values: \
             \"Retain\", \"Delete\"",
        ),
        (
            json!({"updateStrategy": {"type": "Any"}}),
            "spec.updateStrategy: Invalid value: {\"Type\":\"Any\",\"RollingUpdate\":null}: must be 'RollingUpdate' or \
             'OnDelete'",
        ),
        (
            json!({"ordinals": {"start": -1}}),
            "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"selector": {}}),
            "spec.selector: Invalid value: {}: empty selector is invalid for statefulset",
        ),
    ] {
        let set = stateful_set("bad", 1, spec);
        let refused = ground.sets.create(&PostParams::default(), &set).await.unwrap_err();
        assert_eq!(message(&refused), format!("StatefulSet.apps \"bad\" is invalid: {expected}"));
    }
}
