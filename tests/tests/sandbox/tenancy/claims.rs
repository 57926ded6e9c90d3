//! Who somebody says that they are: an identity is a claim, and a key is not.

use super::*;
use portolan_control::peering::identity;
use portolan_core::tenancy::fingerprint;

fn clusters(cluster: &Cluster) -> Api<ForeignCluster> {
    Api::all(cluster.client("user"))
}

#[tokio::test(start_paused = true)]
async fn a_line_that_names_a_member_does_not_replace_its_credential() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    stage.world.add_cluster(ClusterConfig::named("evil"));
    let secrets: Api<Secret> = Api::namespaced(stage.consumer.client("user"), "portolan");
    let before = secrets.get("paris").await.unwrap().data;
    // Every line tells the identity of the cluster that has made it.
    let mut forged = stage.invite(|inviting| inviting.namespaces.clear()).await;
    forged.server = "https://evil".to_owned();
    let refused = stage.redeem(&forged).await.unwrap_err();
    assert!(matches!(refused, TenancyError::OtherProvider { .. }), "{refused}");
    let told = refused.to_string();
    for words in ["paris", "https://paris", "https://evil", "its credential is not replaced"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert_eq!(secrets.get("paris").await.unwrap().data, before);
    // What is of paris is asked of paris, which says what it thinks of a second identity.
    let second = stage.invite(|inviting| inviting.namespaces.clear()).await;
    let refused = stage.redeem(&second).await.unwrap_err();
    assert!(refused.to_string().contains("peered already, as rome"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn the_identity_of_a_cluster_that_is_known_is_taken_only_by_whom_it_is_meant_for() {
    let mut stage = Stage::new().await;
    let id = identity(&stage.consumer.client("user"), "the consumer").await.unwrap();
    let milan = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "milan"},
        "spec": {
            "clusterIdentity": {"clusterID": id, "clusterName": "milan"},
            "incoming": {"sharing": {"percentage": 100}},
        },
    });
    apply(&stage.provider.client("admin"), &milan).await;
    let line = stage.invite(|inviting| inviting.namespaces.clear()).await;
    let waits = stage.redeem(&line).await.unwrap_err().to_string();
    assert!(waits.contains("which is ForeignCluster milan here"), "{waits}");
    assert_eq!(stage.phase(&line).await, InvitationPhase::AwaitingAcceptance);
    assert_eq!(stage.user_of("milan").await, None);

    let line = stage
        .invite(|inviting| {
            inviting.namespaces.clear();
            inviting.consumer = Some("milan".to_owned());
        })
        .await;
    stage.redeem(&line).await.unwrap();
    let cluster = clusters(&stage.provider).get("milan").await.unwrap();
    let incoming = cluster.spec.incoming.unwrap();
    assert!(incoming.user.unwrap().ends_with(&line.invitation));
    assert_eq!(incoming.sharing.unwrap().percentage, Some(100), "it was meant for it");
}

#[tokio::test(start_paused = true)]
async fn who_accepts_sees_the_key_that_the_consumer_shows() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|inviting| inviting.acceptance = Acceptance::Manual).await;
    let waits = stage.redeem(&line).await.unwrap_err().to_string();
    let status = stage.invitation(&line).await.status.unwrap();
    let key = fingerprint(&status.key_digest.unwrap());
    assert_eq!(key.len(), 19, "{key}");
    assert!(stage.message(&line).await.contains(&format!("by key {key}")), "{}", stage.message(&line).await);
    // Its own, and what the provider says.
    assert_eq!(waits.matches(&key).count(), 2, "{waits}");

    // What was shown does not change until it is accepted.
    let requests: Api<CertificateSigningRequest> = Api::all(stage.provider.client("user"));
    let renamed = Patch::Merge(json!({"metadata": {"annotations": {"portolan.dev/cluster-name": "milan"}}}));
    let name = format!("portolan-invitation-{}", line.invitation);
    requests.patch(&name, &PatchParams::default(), &renamed).await.unwrap();
    pass(5).await;
    assert!(stage.message(&line).await.contains("cluster rome "), "{}", stage.message(&line).await);
}

#[tokio::test(start_paused = true)]
async fn leases_of_others_are_no_work() {
    let stage = Stage::new().await;
    let user = stage.provider.client("user");
    for name in ["dev", "portolan-tenant-nobody"] {
        apply(&user, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    }
    pass(5).await;
    let deletes = || -> u64 {
        let calls = stage.provider.calls();
        calls.iter().filter(|call| call.verb == "delete").map(|call| call.count).sum()
    };
    let before = deletes();
    let letters = "abcdefghijkmnopqrst";
    for (one, other) in
        letters.chars().flat_map(|one| letters.chars().map(move |other| (one, other))).take(200)
    {
        let holder = format!("portolan:tenant:3fa2bc91-1111-2222-3333-444455556666:aaaaaaaa{one}{other}");
        let lease = |namespace: &str, name: &str| {
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {"name": name, "namespace": namespace, "labels": {"portolan.dev/tenant": "rome"}},
                "spec": {"holderIdentity": holder},
            })
        };
        for (namespace, name) in [
            ("dev", format!("l{one}{other}")),
            ("dev", "consumer".to_owned()),
            ("portolan-tenant-nobody", "consumer".to_owned()),
        ] {
            apply(&user, &lease(namespace, &name)).await;
        }
    }
    pass(60).await;
    assert_eq!(deletes(), before);
}
