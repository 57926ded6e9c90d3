//! What a CloudProvisioner does about what it does not know, or what is not its own any more.

use crate::provision::joined;
use crate::stage::pass;
use kube::Api;
use kube::api::{Patch, PatchParams};
use portolan_api::conditions::ConditionType;
use portolan_api::{CloudProvisioner, ForeignCluster};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_cluster_that_lost_a_label_is_left_alone_and_no_second_one_is_bought() {
    let (stage, name, _) = joined(7, 1, json!({})).await;
    let user = stage.hub.client("user");
    let uid = Api::<CloudProvisioner>::all(user.clone()).get("cp1").await.unwrap().metadata.uid;
    let label = async |label: &str, value: Option<&str>| {
        let patch = Patch::Merge(json!({"metadata": {"labels": {label: value}}}));
        stage.api("Cluster", "clusters").patch(&name, &PatchParams::default(), &patch).await.unwrap();
    };
    let lost = [
        ("portolan.dev/cloud-provisioner", uid.as_deref()),
        ("portolan.dev/cloud-cluster-number", Some("1")),
    ];
    for (lost, value) in lost {
        label(lost, None).await;
        pass(10 * 60).await;
        let there: Vec<_> =
            stage.clusters().await.into_iter().filter_map(|each| each.metadata.name).collect();
        assert_eq!(there, [name.clone()], "without {lost}");
        assert_eq!(stage.placed("web").await, [("cloud1".to_owned(), 3), ("home".to_owned(), 4)]);
        let member = Api::<ForeignCluster>::all(user.clone()).get("cloud1").await.unwrap();
        assert!(member.metadata.deletion_timestamp.is_none() && member.spec.taints.is_empty());
        let (status, reason, message) = stage.condition("cp1", ConditionType::Ready).await;
        assert_eq!((status.as_str(), reason.as_str()), ("False", "CloudClusterNotOwned"), "{message}");
        label(lost, value).await;
        pass(60).await;
        assert_eq!(stage.condition("cp1", ConditionType::Ready).await.0, "True", "with {lost} again");
    }
}
