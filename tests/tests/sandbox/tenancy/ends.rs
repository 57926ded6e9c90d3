//! Every invitation that was accepted ends: used, or with a reason, and then nothing is left of it, and nothing else goes.

use super::*;
use portolan_control::peering::identity;

#[tokio::test(start_paused = true)]
async fn an_invitation_that_was_not_fetched_ends_no_later_peering() {
    let mut stage = Stage::new().await;
    let first = stage.invite(|_| ()).await;
    stage.redeem_until_issued(&first).await;
    // The next one is refused, and says what helps.
    let second = stage.invite(|_| ()).await;
    let refused = stage.redeem(&second).await.unwrap_err();
    assert!(refused.to_string().contains("portolan unpeer rome"), "{refused}");
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    pass(5).await;
    assert_eq!(stage.phase(&first).await, InvitationPhase::Refused);
    assert!(stage.message(&first).await.contains("ended on the provider"), "{}", stage.message(&first).await);

    let third = stage.invite(|_| ()).await;
    stage.redeem(&third).await.unwrap();
    // Longer than the first one would have waited.
    pass(21 * 60).await;
    assert!(stage.user_of("rome").await.is_some_and(|user| user.ends_with(&third.invitation)));
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    Api::<Pod>::namespaced(stage.as_tenant().await, NAMESPACE).list(&ListParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_invitation_whose_tenant_cannot_be_made_ends_with_the_reason() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    let namespaces: Api<Namespace> = Api::all(stage.provider.client("user"));
    namespaces.delete(NAMESPACE, &DeleteParams::default()).await.unwrap();
    pass(5).await;
    let refused = stage.redeem(&line).await.unwrap_err();
    assert!(
        refused.to_string().contains("namespace shop, which the invitation opens, does not exist"),
        "{refused}"
    );
    assert_eq!(stage.phase(&line).await, InvitationPhase::Refused);
    pass(60).await;
    assert_eq!(stage.left().await, Vec::<String>::new());
    assert_eq!(stage.user_of("rome").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_whose_name_is_too_long_for_a_namespace_is_refused_and_a_wish_is_cut() {
    let mut stage = Stage::new().await;
    let admin = stage.provider.client("admin");
    let id = identity(&stage.consumer.client("user"), "the consumer").await.unwrap();
    let declare = |name: &str, id: &str| {
        json!({
            "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": name},
            "spec": {"clusterIdentity": {"clusterID": id, "clusterName": "long"}, "incoming": {}},
        })
    };
    let long = "a".repeat(60);
    apply(&admin, &declare(&long, &id)).await;
    let line = stage.invite(|_| ()).await;
    let invitations: Api<Invitation> = Api::namespaced(admin.clone(), "portolan");
    let accept = Patch::Merge(json!({"spec": {"accepted": true}}));
    invitations.patch(&line.invitation, &PatchParams::default(), &accept).await.unwrap();
    let refused = stage.redeem(&line).await.unwrap_err();
    assert!(
        refused.to_string().contains("60 characters; ") && refused.to_string().contains("47"),
        "{refused}"
    );
    Api::<ForeignCluster>::all(admin.clone()).delete(&long, &DeleteParams::default()).await.unwrap();

    // What the invitation calls it is taken by another cluster.
    let wish = "b".repeat(40);
    apply(&admin, &declare(&wish, "11111111-2222-3333-4444-555555555555")).await;
    let line = stage.invite(|inviting| inviting.consumer = Some(wish)).await;
    let redeemed = stage.redeem(&line).await.unwrap();
    assert_eq!(redeemed.tenant_namespace.len(), 63, "{}", redeemed.tenant_namespace);
}

#[tokio::test(start_paused = true)]
async fn an_invitation_that_waits_for_another_peering_to_end_ends_in_time() {
    let mut stage = Stage::new().await;
    let first = stage.invite(|_| ()).await;
    stage.redeem(&first).await.unwrap();
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    let keep =
        Patch::Merge(json!({"metadata": {"finalizers": ["example.com/kept", "portolan.dev/tenancy"]}}));
    clusters.patch("rome", &PatchParams::default(), &keep).await.unwrap();
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    pass(10).await;
    let second = stage.invite(|_| ()).await;
    let waits = stage.redeem(&second).await.unwrap_err();
    assert!(waits.to_string().contains("ForeignCluster rome is gone"), "{waits}");
    pass(21 * 60).await;
    assert_eq!(stage.phase(&second).await, InvitationPhase::Expired);
    assert!(stage.message(&second).await.contains("ForeignCluster rome is gone"));
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    clusters.patch("rome", &PatchParams::default(), &release).await.unwrap();
    pass(5).await;
    assert_eq!(stage.left().await, Vec::<String>::new());
}
