//! What somebody deletes by hand in a peering that begins or stands.

use super::*;
use k8s_openapi::api::coordination::v1::Lease;

fn clusters(stage: &Stage) -> Api<ForeignCluster> {
    Api::all(stage.provider.client("user"))
}

fn invitations(stage: &Stage) -> Api<Invitation> {
    Api::namespaced(stage.provider.client("user"), "portolan")
}

async fn incoming(stage: &Stage) -> (String, String, String) {
    let found = clusters(stage).get("rome").await.unwrap().status.unwrap_or_default();
    let condition = conditions::find(&found.conditions, ConditionType::IncomingPeering).unwrap();
    (condition.status.clone(), condition.reason.clone(), condition.message.clone())
}

#[tokio::test(start_paused = true)]
async fn an_invitation_that_is_deleted_ends_the_tenant_that_has_not_come_by_it() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_until_issued(&line).await;
    assert!(stage.user_of("rome").await.is_some());
    invitations(&stage).delete(&line.invitation, &DeleteParams::default()).await.unwrap();
    pass(30).await;
    assert_eq!(stage.user_of("rome").await, None);
    assert_eq!(stage.left().await, Vec::<String>::new());

    // Whoever has come stays, also when what it says is missing for a while.
    let line = stage.invite(|_| ()).await;
    stage.redeem_in(&stage.consumer, "anew", 3600, &line).await.unwrap();
    pass(20).await;
    let leases: Api<Lease> = Api::namespaced(stage.provider.client("user"), "portolan-tenant-rome");
    leases.delete("consumer", &DeleteParams::default()).await.unwrap();
    invitations(&stage).delete(&line.invitation, &DeleteParams::default()).await.unwrap();
    pass(30).await;
    assert!(stage.user_of("rome").await.is_some_and(|user| user.ends_with(&line.invitation)));
}

#[tokio::test(start_paused = true)]
async fn an_invitation_that_was_deleted_while_nobody_looked_is_not_waited_for_for_ever() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_until_issued(&line).await;
    stage.controllers.shutdown().await;
    invitations(&stage).delete(&line.invitation, &DeleteParams::default()).await.unwrap();
    stage.control();
    pass(20 * 60).await;
    assert_eq!(stage.user_of("rome").await, None);
    assert_eq!(stage.left().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_said_to_be_and_is_made_again() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    assert_eq!(incoming(&stage).await.0, "True");
    let leases: Api<Lease> = Api::namespaced(stage.provider.client("user"), "portolan-tenant-rome");
    leases.delete("consumer", &DeleteParams::default()).await.unwrap();
    pass(3).await;
    let (status, reason, message) = incoming(&stage).await;
    assert_eq!((status.as_str(), reason.as_str()), ("False", "ConsumerNotSeen"), "{message}");
    assert!(message.contains("Lease portolan-tenant-rome/consumer"), "{message}");
    Api::<Pod>::namespaced(stage.as_tenant().await, NAMESPACE).list(&ListParams::default()).await.unwrap();
    pass(6 * 60).await;
    assert_eq!(incoming(&stage).await.1, "PeeringEstablished");
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_leaves_stays_what_else_it_is() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    // The provider is a tenant of its consumer too, without a right to place there.
    let other = Patch::Merge(json!({"spec": {
        "outgoing": {"tenantNamespace": "portolan-tenant-paris"},
        "credentials": {"secretRef": {"namespace": "portolan", "name": "rome"}},
    }}));
    clusters(&stage).patch("rome", &PatchParams::default(), &other).await.unwrap();
    pass(10).await;
    let hub = stage.consumer.client("admin");
    let world = stage.world.clone();
    let dial = move |config: Config| by_config(&world, CLI, &config);
    assert_eq!(tenancy::tell_provider(&hub, "paris", &dial).await.unwrap(), Some(true));
    peering::leave_hub(&hub, "paris").await.unwrap();
    pass(60).await;
    let cluster = clusters(&stage).get("rome").await.unwrap();
    assert!(cluster.spec.incoming.is_none() && cluster.spec.outgoing.is_some(), "{:?}", cluster.spec);
    assert_eq!(incoming(&stage).await.1, "PeeringRevoked");
    assert_eq!(stage.left().await, Vec::<String>::new());
}
