//! A ForeignCluster that somebody has torn out together with its finalizers: nobody keeps rights by that.

use super::*;

/// Deletes a ForeignCluster of the provider as somebody does who has no patience.
async fn tear_out(stage: &Stage, name: &str) {
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    clusters.delete(name, &DeleteParams::default()).await.unwrap();
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    let _ = clusters.patch(name, &PatchParams::default(), &release).await;
    assert!(clusters.get_opt(name).await.unwrap().is_none());
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), NAMESPACE)
}

async fn peered() -> Stage {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn a_tenant_whose_foreign_cluster_was_torn_out_has_no_rights_from_then_on() {
    let mut stage = peered().await;
    let tenant = stage.as_tenant().await;
    pods(&tenant).list(&ListParams::default()).await.unwrap();
    tear_out(&stage, "rome").await;
    pass(2).await;
    assert_eq!(code(pods(&tenant).list(&ListParams::default()).await), 403);
    pass(60).await;
    assert_eq!(stage.left().await, Vec::<String>::new());
    // The same cluster peers again.
    peering::leave_hub(&stage.consumer.client("admin"), "paris").await.unwrap();
    pass(20).await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    assert!(stage.user_of("rome").await.is_some_and(|user| user.ends_with(&line.invitation)));
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_was_torn_out_while_nobody_looked_has_no_rights_either() {
    let mut stage = peered().await;
    let tenant = stage.as_tenant().await;
    stage.controllers.shutdown().await;
    tear_out(&stage, "rome").await;
    pass(60).await;
    pods(&tenant).list(&ListParams::default()).await.unwrap();
    stage.control();
    pass(5).await;
    assert_eq!(code(pods(&tenant).list(&ListParams::default()).await), 403);
    pass(60).await;
    assert_eq!(stage.left().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn rights_stay_while_nobody_tells_which_foreign_clusters_there_are() {
    let mut stage = peered().await;
    let tenant = stage.as_tenant().await;
    for answer in [404, 500] {
        stage.controllers.shutdown().await;
        let lists = RequestFilter::any().party(PROVIDER).resource("foreignclusters.portolan.dev");
        stage.world.add_fault(PartialFault::new("silent", lists, FaultAnswer::Status(answer)));
        stage.control();
        pass(700).await;
        pods(&tenant).list(&ListParams::default()).await.unwrap();
        assert!(stage.left().await.contains(&"Namespace portolan-tenant-rome".to_owned()), "{answer}");
        stage.world.end_fault("silent");
    }
    pass(60).await;
    assert!(stage.user_of("rome").await.is_some());
    pods(&tenant).list(&ListParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_namespace_in_which_something_runs_stays_and_what_bounds_it_too() {
    let stage = peered().await;
    let user = stage.provider.client("user");
    let tenant = stage.as_tenant().await;
    let home = "portolan-tenant-rome";
    for place in [home, NAMESPACE] {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "runs", "namespace": place},
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        });
        // Nothing is offered in the home of a tenant: its quota admits no pod.
        let quotas: Api<ResourceQuota> = Api::namespaced(user.clone(), place);
        if place == home {
            quotas.delete("portolan", &DeleteParams::default()).await.unwrap();
        }
        apply(&user, &pod).await;
    }
    pass(20).await;
    tear_out(&stage, "rome").await;
    pass(60).await;
    assert_eq!(code(pods(&tenant).list(&ListParams::default()).await), 403);
    for place in [home, NAMESPACE] {
        let pods: Api<Pod> = Api::namespaced(user.clone(), place);
        assert!(pods.get("runs").await.unwrap().metadata.deletion_timestamp.is_none(), "{place}");
        let quotas: Api<ResourceQuota> = Api::namespaced(user.clone(), place);
        assert!(quotas.get_opt("portolan").await.unwrap().is_some(), "{place} has a quota");
        pods.delete("runs", &DeleteParams::default()).await.unwrap();
    }
    pass(700).await;
    assert_eq!(stage.left().await, Vec::<String>::new(), "with the last pod it goes");
}
