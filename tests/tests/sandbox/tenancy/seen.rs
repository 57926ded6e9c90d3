//! One bad object is one bad object, and what fails is seen.

use super::*;
use portolan_control::Monitor;
use portolan_control::monitor::{QUEUE_ADDS, RECONCILE_ERRORS};
use portolan_control::sharing::{Providing, provide_with};

/// A ForeignCluster that another version of Portolan has written.
async fn add_unreadable(stage: &Stage) {
    let odd = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "odd"},
        "spec": {"clusterIdentity": {"clusterID": "odd", "clusterName": "odd"}, "incoming": {}},
    });
    apply(&stage.provider.client("admin"), &odd).await;
    let reads = RequestFilter::any().party(PROVIDER).resource("foreignclusters.portolan.dev");
    let unreadable = HostileAnswer::edit(|object| {
        if object["metadata"]["name"] == "odd" {
            object["spec"]["type"] = json!("Teleported");
        }
    });
    stage.world.hostile("paris", vec![HostileRule::new(reads, unreadable)]);
}

#[tokio::test(start_paused = true)]
async fn a_foreign_cluster_that_cannot_be_read_stops_no_renewal_and_no_peering() {
    let mut stage = Stage::new().await;
    add_unreadable(&stage).await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_in(&stage.consumer, "keys", 600, &line).await.unwrap();
    // Several certificates later.
    pass(3000).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Authenticated).await);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_another_version_has_written_is_still_revoked() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(10).await;
    let reads = RequestFilter::any().party(PROVIDER).resource("foreignclusters.portolan.dev");
    let unreadable = HostileAnswer::edit(|object| object["spec"]["type"] = json!("Teleported"));
    stage.world.hostile("paris", vec![HostileRule::new(reads, unreadable)]);
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    let without_membership = Patch::Merge(json!({"metadata": {"finalizers": ["portolan.dev/tenancy"]}}));
    clusters.patch("rome", &PatchParams::default(), &without_membership).await.unwrap();
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    pass(10).await;
    assert!(clusters.get_opt("rome").await.unwrap().is_none());
    assert_eq!(stage.left().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_is_in_the_metrics() {
    let mut stage = Stage::new().await;
    let monitor = Monitor::default();
    stage.controllers = JoinSet::new();
    let (clock, term) = (stage.world.clock().clone(), Term::alone("test"));
    let client = stage.provider.client(PROVIDER);
    let connect = Arc::new(Credentials::from_hub(client.clone()));
    let (of, connecting) = (monitor.clone(), client.clone());
    let (now, leading) = (clock.clone(), term.clone());
    stage
        .controllers
        .spawn(async move { tenancy::run_with(connecting, now, Seed::new(1), leading, &of).await });
    let (of, sharing, now) = (monitor.clone(), stage.provider.client("sharing"), clock.clone());
    stage.controllers.spawn(async move {
        let providing = Providing { term: Term::alone("test"), by_default: None, monitor: of };
        provide_with(sharing, now, Seed::new(2), providing).await;
    });
    let (of, hub, now, by) = (monitor.clone(), client.clone(), clock.clone(), connect.clone());
    stage.controllers.spawn(async move { peering::run_with(hub, by, now, Seed::new(3), &of).await });
    let of = monitor.clone();
    stage.controllers.spawn(async move {
        tenancy::renew_with(client, connect, clock, Seed::new(4), term, keys("renewals"), &of).await;
    });
    let quotas =
        RequestFilter::any().party("sharing").resource("resourcequotas").verb("patch").verb("create");
    stage.world.add_fault(PartialFault::new("quotas", quotas, FaultAnswer::Status(500)));
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(15 * 60).await;
    let samples = monitor.samples();
    for name in ["Invitation", "ResourceOffer", "Certificate", "Token", "Departure"] {
        assert!(samples.get(&QUEUE_ADDS, &[name]).is_some(), "{name} is not shown");
    }
    let errors = samples.get(&RECONCILE_ERRORS, &["ResourceOffer"]).unwrap_or_default();
    assert!(errors >= 10.0, "{errors} in a quarter of an hour");
    // Their numbers go with them.
    stage.controllers.shutdown().await;
    assert_eq!(monitor.samples().get(&QUEUE_ADDS, &["ResourceOffer"]), None);
}

#[tokio::test(start_paused = true)]
async fn a_credential_without_a_foreign_cluster_is_waited_for_and_not_asked_for() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    let creates = RequestFilter::any()
        .party(CLI)
        .cluster("rome")
        .verb("create")
        .resource("foreignclusters.portolan.dev");
    stage.world.add_fault(PartialFault::new("interrupted", creates, FaultAnswer::Status(500)));
    stage.redeem_in(&stage.consumer, "keys", 600, &line).await.unwrap_err();
    stage.world.end_fault("interrupted");
    let reads = || -> u64 {
        let calls = stage.consumer.calls();
        let gets =
            calls.iter().filter(|call| call.verb == "get" && call.resource == "foreignclusters.portolan.dev");
        gets.map(|call| call.count).sum()
    };
    let before = reads();
    pass(120).await;
    assert!(reads() - before < 10, "{} in two minutes", reads() - before);
    // The same command goes on, and its certificate is renewed from then on.
    stage.redeem_in(&stage.consumer, "keys", 600, &line).await.unwrap();
    pass(3000).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}
