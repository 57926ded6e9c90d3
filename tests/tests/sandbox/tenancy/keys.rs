//! Certificates: of the right key, asked for again when the request is gone, and signed late or never.

use super::*;
use k8s_openapi::ByteString;
use portolan_sandbox::MutatingHook;
use rcgen::{CertificateParams, DistinguishedName, DnType};

fn requests(stage: &Stage) -> Api<CertificateSigningRequest> {
    Api::all(stage.provider.client("user"))
}

/// Kubernetes deletes requests an hour after they were approved.
async fn collect(stage: &Stage, line: &InvitationLine) {
    let name = format!("portolan-invitation-{}", line.invitation);
    requests(stage).delete(&name, &DeleteParams::default()).await.unwrap();
    pass(2).await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_collected_is_made_again_by_the_same_key_and_by_no_other() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|inviting| inviting.expires += SignedDuration::from_hours(6)).await;
    stage.redeem_until_issued(&line).await;
    pass(2 * 3600).await;
    collect(&stage, &line).await;
    assert_eq!(stage.phase(&line).await, InvitationPhase::Accepted);
    assert!(stage.message(&line).await.contains("with the same key"), "{}", stage.message(&line).await);
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    assert_eq!(stage.phase(&line).await, InvitationPhase::Used);
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);

    // Whoever has the line and not the key gets nothing, and the line is known to be stolen.
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    tenancy_of_consumer_ends(&stage).await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_until_issued(&line).await;
    collect(&stage, &line).await;
    let milan = stage.world.add_cluster(ClusterConfig::named("milan"));
    let stolen = stage.redeem_in(&milan, "thief", 3600, &line).await.unwrap_err();
    assert!(matches!(stolen, TenancyError::Refused { .. } | TenancyError::OtherKey { .. }), "{stolen}");
    pass(60).await;
    assert_eq!(stage.phase(&line).await, InvitationPhase::Refused);
    assert_eq!(stage.left().await, Vec::<String>::new());
}

async fn tenancy_of_consumer_ends(stage: &Stage) {
    peering::leave_hub(&stage.consumer.client("admin"), "paris").await.unwrap();
    pass(20).await;
}

#[tokio::test(start_paused = true)]
async fn a_signer_that_stands_still_for_a_while_is_waited_for() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.provider.stop_signers(true);
    let signs_again = async {
        pass(25).await;
        stage.provider.stop_signers(false);
    };
    let (redeemed, ()) = tokio::join!(stage.redeem(&line), signs_again);
    assert_eq!(redeemed.unwrap().kind, "certificate");
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}

#[tokio::test(start_paused = true)]
async fn who_asks_again_gets_no_more_than_was_accepted() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_until_issued(&line).await;
    collect(&stage, &line).await;
    // The consumer itself, by the key that was accepted, would rather be somebody else.
    let name = format!("portolan-invitation-{}", line.invitation);
    let wanted = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"name": name, "labels": {"portolan.dev/request-of": line.invitation}},
        "spec": {
            "request": request_of("kubernetes-admin", &keys("keys")().unwrap()),
            "signerName": "kubernetes.io/kube-apiserver-client", "expirationSeconds": 3600,
            "usages": ["client auth", "digital signature"],
        },
    });
    let mut config = Config::new("https://paris".parse().unwrap());
    config.auth_info = serde_json::from_value(json!({"token": line.token})).unwrap();
    apply(&by_config(&stage.world, CLI, &config).unwrap(), &wanted).await;
    pass(5).await;
    let found = requests(&stage).get_opt(&name).await.unwrap().and_then(|found| found.status);
    assert!(found.is_none_or(|found| found.certificate.is_none()), "signed for somebody else");
    assert_eq!(stage.phase(&line).await, InvitationPhase::Refused);
    assert!(stage.message(&line).await.contains("kubernetes-admin"), "{}", stage.message(&line).await);
}

/// The text of a request for a certificate.
fn request_of(user: &str, key: &KeyPair) -> Value {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "portolan:tenants");
    params.distinguished_name.push(DnType::CommonName, user);
    let pem = params.serialize_request(key).unwrap().pem().unwrap();
    serde_json::to_value(ByteString(pem.into_bytes())).unwrap()
}

/// Somebody else's request is where the consumer's own would be: that of a copy of its hub, or one that was long on its way.
fn others_request(user: &str) -> MutatingHook {
    let text = request_of(user, &keys("another copy")().unwrap());
    MutatingHook::new("copy", "CertificateSigningRequest", move |request| {
        request["spec"]["request"] = text.clone();
    })
}

#[tokio::test(start_paused = true)]
async fn a_certificate_of_another_key_is_never_stored_with_ours() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_in(&stage.consumer, "keys", 600, &line).await.unwrap();
    pass(20).await;
    let user = stage.user_of("rome").await.unwrap();
    stage.provider.add_hook(others_request(&user));
    // The first renewal is due meanwhile.
    pass(400).await;
    let api: Api<ForeignCluster> = Api::all(stage.consumer.client("user"));
    let status = api.get("paris").await.unwrap().status.unwrap();
    let told = conditions::find(&status.conditions, ConditionType::Authenticated).unwrap();
    assert_eq!(told.reason, "CertificateRenewalFailed", "{}", told.message);
    assert!(told.message.contains("by another key"), "{}", told.message);
    Api::<Pod>::namespaced(stage.as_tenant().await, NAMESPACE).list(&ListParams::default()).await.unwrap();
    stage.provider.remove_admission("copy");
    pass(60).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Authenticated).await);
    pass(1200).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    Api::<Pod>::namespaced(stage.as_tenant().await, NAMESPACE).list(&ListParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_has_ended_the_peering_is_asked_seldom_for_another_certificate() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_in(&stage.consumer, "keys", 600, &line).await.unwrap();
    pass(20).await;
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    let asked = || {
        let is_request = |line: &&String| line.contains(" PATCH ") && line.contains("/portolan-renewal-");
        stage.world.log().lines().iter().filter(is_request).count()
    };
    // A renewal is due within half of ten minutes, and whoever ended the peering is not asked more than every five.
    pass(550).await;
    assert!((1..=2).contains(&asked()), "{} requests", asked());
    let api: Api<ForeignCluster> = Api::all(stage.consumer.client("user"));
    let status = api.get("paris").await.unwrap().status.unwrap();
    let told = conditions::find(&status.conditions, ConditionType::OutgoingPeering).unwrap();
    assert_eq!(told.reason, "PeeringRevoked", "{}", told.message);
}
