//! Where nobody signs certificates for clients: a token takes the place of the certificate, and nobody but the consumer has it.

use super::*;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use kube::api::PostParams;
use portolan_sandbox::MutatingHook;

const HOME: &str = "portolan-tenant-rome";
const ACCOUNT: &str = "portolan-consumer";

fn accounts(client: Client) -> Api<ServiceAccount> {
    Api::namespaced(client, HOME)
}

fn pods(client: &Client) -> Api<Pod> {
    Api::namespaced(client.clone(), NAMESPACE)
}

/// A stage without a signer, in which the consumer has peered by an invitation.
async fn peered(lifetime: i32) -> (Stage, InvitationLine, Redeemed) {
    let mut stage = Stage::new().await;
    stage.provider.stop_signers(true);
    let line = stage.invite(|_| ()).await;
    let redeemed = stage.redeem_in(&stage.consumer, "keys", lifetime, &line).await.unwrap();
    pass(20).await;
    (stage, line, redeemed)
}

/// A client by the line, as whoever has a copy of it.
fn by_line(stage: &Stage, line: &InvitationLine) -> Client {
    let mut config = Config::new("https://paris".parse().unwrap());
    config.auth_info = serde_json::from_value(json!({"token": line.token})).unwrap();
    by_config(&stage.world, "thief", &config).unwrap()
}

fn request_name(line: &InvitationLine) -> String {
    format!("portolan-invitation-{}", line.invitation)
}

async fn condition(stage: &Stage, cluster: &Cluster, name: &str, type_: ConditionType) -> (String, String) {
    let api: Api<ForeignCluster> = Api::all(cluster.client("user"));
    let status = api.get(name).await.unwrap().status.unwrap();
    let found = conditions::find(&status.conditions, type_).cloned();
    let found = found.unwrap_or_else(|| unreachable!("{type_:?} of {name} at {}", stage.world.clock().now()));
    (found.reason, found.message)
}

async fn ask_for_token(client: Client, name: &str, seconds: i64) -> kube::Result<TokenRequest> {
    let spec = TokenRequestSpec { expiration_seconds: Some(seconds), ..TokenRequestSpec::default() };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    accounts(client).create_token_request(name, &PostParams::default(), &request).await
}

#[tokio::test(start_paused = true)]
async fn without_a_signer_an_invitation_ends_in_a_ready_peering_by_token() {
    let (stage, line, redeemed) = peered(3600).await;
    assert_eq!((redeemed.kind, redeemed.tenant_namespace.as_str()), ("token", HOME));
    for type_ in [ConditionType::Ready, ConditionType::Authenticated, ConditionType::OutgoingPeering] {
        assert!(stage.holds(&stage.consumer, "paris", type_).await, "{type_:?}");
    }
    let (reason, message) = condition(&stage, &stage.consumer, "paris", ConditionType::Authenticated).await;
    assert!(reason == "TokenIssued" && message.contains(&line.invitation), "{reason}: {message}");
    assert!(stage.holds(&stage.provider, "rome", ConditionType::IncomingPeering).await);
    assert_eq!(stage.phase(&line).await, InvitationPhase::Used);

    apply(&stage.consumer.client("user"), &open_namespace()).await;
    apply(&stage.consumer.client("user"), &workload("web", 2, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    let copies: Api<Deployment> = Api::namespaced(stage.provider.client("user"), NAMESPACE);
    assert_eq!(copies.get("web").await.unwrap().status.unwrap().ready_replicas, Some(2));

    // The rights are those of a tenant, and the account's only.
    let bindings: Api<RoleBinding> = Api::all(stage.provider.client("user"));
    let own = ListParams::default().labels("portolan.dev/tenant=rome");
    for binding in bindings.list(&own).await.unwrap().items {
        let subjects = binding.subjects.unwrap();
        assert!(
            subjects.iter().all(|each| each.kind == "ServiceAccount" && each.name == ACCOUNT),
            "{subjects:?}"
        );
    }
    // The same line again: it has peered.
    assert_eq!(stage.redeem(&line).await.unwrap().expires, redeemed.expires);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_by_token_is_bounded_as_one_by_certificate_is() {
    let (stage, line, _) = peered(3600).await;
    let tenant = stage.as_tenant().await;
    let place = Place { open: NAMESPACE, home: HOME, invitation: &line.invitation };
    // It asks for no certificates.
    let others = |all: Vec<Attempt>| -> Vec<Attempt> {
        all.into_iter().filter(|each| each.object["kind"] != "CertificateSigningRequest").collect()
    };
    accepted(&tenant, others(tenants::accepted(&place))).await;
    refused(&tenant, others(tenants::refused(&place))).await;
    let secrets = |namespace: &str| Api::<Secret>::namespaced(tenant.clone(), namespace);
    for namespace in ["kube-system", "portolan", HOME] {
        assert_eq!(code(secrets(namespace).list(&ListParams::default()).await), 403, "{namespace}");
    }
    assert_eq!(code(accounts(tenant.clone()).list(&ListParams::default()).await), 403);
    // Tokens of its own account, and none that lasts for years.
    ask_for_token(tenant.clone(), ACCOUNT, 3600).await.unwrap();
    let long = ask_for_token(tenant.clone(), ACCOUNT, 31 * 24 * 3600).await;
    assert!(long.as_ref().is_err_and(|error| error.to_string().contains("at most 2592000 s")), "{long:?}");
    assert_eq!(code(ask_for_token(tenant, "default", 3600).await), 403);
}

#[tokio::test(start_paused = true)]
async fn tokens_are_renewed_by_the_consumer_and_no_watch_is_lost() {
    let (stage, line, first) = peered(600).await;
    let lists = called(&stage.world, "list", "nodes");
    let asked = called(&stage.world, "create", "serviceaccounts/token");
    // Each is valid for ten minutes, and no controller of the provider has a part in it.
    pass(3000).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Authenticated).await);
    let renewed = called(&stage.world, "create", "serviceaccounts/token") - asked;
    assert!((5..=20).contains(&renewed), "{renewed} tokens in fifty minutes");
    assert_eq!(called(&stage.world, "list", "nodes"), lists, "the connection is the first one");
    assert!(stage.redeem(&line).await.unwrap().expires > first.expires);
    apply(&stage.consumer.client("user"), &open_namespace()).await;
    apply(&stage.consumer.client("user"), &workload("web", 1, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    let copies: Api<Deployment> = Api::namespaced(stage.provider.client("user"), NAMESPACE);
    assert_eq!(copies.get("web").await.unwrap().status.unwrap().ready_replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_worth_nothing_from_the_moment_on_in_which_its_account_is_deleted() {
    let (stage, _, _) = peered(3600).await;
    let tenant = stage.as_tenant().await;
    pods(&tenant).list(&ListParams::default()).await.unwrap();
    let admin = stage.provider.client("admin");
    accounts(admin.clone()).delete(ACCOUNT, &DeleteParams::default()).await.unwrap();
    assert_eq!(code(pods(&tenant).list(&ListParams::default()).await), 401);
    // Nobody makes the account again: that would undo what was wanted.
    pass(6 * 60).await;
    assert!(accounts(admin.clone()).get_opt(ACCOUNT).await.unwrap().is_none());
    let (reason, message) = condition(&stage, &stage.provider, "rome", ConditionType::IncomingPeering).await;
    assert!(reason == "PeeringRevoked" && message.contains("portolan unpeer rome"), "{reason}: {message}");
    let (reason, _) = condition(&stage, &stage.consumer, "paris", ConditionType::OutgoingPeering).await;
    assert_eq!(reason, "PeeringRevoked");
    // Also an account of the same name is another one.
    let again = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": HOME},
    });
    apply(&admin, &again).await;
    assert_eq!(code(pods(&tenant).list(&ListParams::default()).await), 401);
}

#[tokio::test(start_paused = true)]
async fn a_revoked_tenant_by_token_leaves_nothing_and_the_next_one_is_another() {
    let (mut stage, _, _) = peered(3600).await;
    let old = stage.as_tenant().await;
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    pass(5).await;
    assert_eq!(code(pods(&old).list(&ListParams::default()).await), 401);
    pass(20).await;
    assert!(clusters.get_opt("rome").await.unwrap().is_none(), "no finalizer holds it");
    assert_eq!(stage.left().await, Vec::<String>::new());

    // By now somebody signs: it is a certificate again.
    stage.provider.stop_signers(false);
    let line = stage.invite(|_| ()).await;
    let redeemed = stage.redeem_in(&stage.consumer, "anew", 3600, &line).await.unwrap();
    assert_eq!(redeemed.kind, "certificate");
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    pods(&stage.as_tenant().await).list(&ListParams::default()).await.unwrap();
    assert_eq!(code(pods(&old).list(&ListParams::default()).await), 401);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_by_token_that_leaves_leaves_nothing_behind() {
    let (stage, _, _) = peered(3600).await;
    let hub = stage.consumer.client("admin");
    let world = stage.world.clone();
    let dial = move |config: Config| by_config(&world, CLI, &config);
    assert_eq!(tenancy::tell_provider(&hub, "paris", &dial).await.unwrap(), Some(true));
    peering::leave_hub(&hub, "paris").await.unwrap();
    pass(30).await;
    assert_eq!(stage.left().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn whoever_has_a_copy_of_the_line_sees_the_token_only_encrypted() {
    let mut stage = Stage::new().await;
    stage.provider.stop_signers(true);
    let line = stage.invite(|_| ()).await;
    stage.redeem_until_issued(&line).await;
    let thief = by_line(&stage, &line);
    let requests: Api<CertificateSigningRequest> = Api::all(thief.clone());
    let seen = requests.get(&request_name(&line)).await.unwrap();
    let annotations = seen.metadata.annotations.unwrap();
    assert!(annotations.contains_key("portolan.dev/sealed-token"), "{annotations:?}");
    let text = annotations.values().cloned().collect::<String>();
    // Tokens begin with a header in JSON, in base64.
    assert!(!text.contains("eyJ"), "{annotations:?}");
    // The thief can write nothing there any more, and reads no Secrets and asks for no tokens.
    let overwrite = Patch::Merge(json!({"metadata": {"annotations": {"portolan.dev/sealed-token": "x"}}}));
    let params = PatchParams::default();
    assert_eq!(code(requests.patch(&request_name(&line), &params, &overwrite).await), 403);
    assert_eq!(code(ask_for_token(thief.clone(), ACCOUNT, 3600).await), 403);
    let milan = stage.world.add_cluster(ClusterConfig::named("milan"));
    let stolen = stage.redeem_in(&milan, "thief", 3600, &line).await.unwrap_err();
    assert!(matches!(stolen, TenancyError::OtherKey { .. }), "{stolen}");

    // The consumer goes on with its key, and then the line is worth nothing.
    assert_eq!(stage.redeem(&line).await.unwrap().kind, "token");
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    assert_eq!(code(requests.get(&request_name(&line)).await), 401);
    let stolen = stage.redeem_in(&milan, "thief", 3600, &line).await.unwrap_err();
    assert!(matches!(stolen, TenancyError::NotAccepted { .. }), "{stolen}");
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_was_away_for_hours_finds_a_token_that_is_valid() {
    let mut stage = Stage::new().await;
    stage.provider.stop_signers(true);
    let line = stage.invite(|inviting| inviting.expires += SignedDuration::from_hours(6)).await;
    stage.redeem_until_issued(&line).await;
    let requests: Api<CertificateSigningRequest> = Api::all(stage.provider.client("user"));
    let sealed = async || requests.get(&request_name(&line)).await.unwrap().metadata.annotations.unwrap();
    let first = sealed().await;
    pass(2 * 3600).await;
    assert_ne!(sealed().await, first, "the first one has ended");
    // Kubernetes deletes the request meanwhile: it begins again, by the same key.
    requests.delete(&request_name(&line), &DeleteParams::default()).await.unwrap();
    pass(2).await;
    assert_eq!(stage.redeem(&line).await.unwrap().kind, "token");
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}

#[tokio::test(start_paused = true)]
async fn a_token_that_a_thief_has_put_there_before_is_not_taken() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|inviting| inviting.acceptance = Acceptance::Manual).await;
    stage.provider.stop_signers(true);
    stage.redeem(&line).await.unwrap_err();
    // Nobody was accepted yet: whoever has the line may still write.
    let thief = by_line(&stage, &line);
    let requests: Api<CertificateSigningRequest> = Api::all(thief);
    let written = json!({"metadata": {"annotations": {"portolan.dev/sealed-token": "dGhpZWY=", "portolan.dev/sealing-key": "x"}}});
    let patch = Patch::Merge(written);
    requests.patch(&request_name(&line), &PatchParams::default(), &patch).await.unwrap();
    let api: Api<Invitation> = Api::namespaced(stage.provider.client("user"), "portolan");
    let accept = Patch::Merge(json!({"spec": {"accepted": true}}));
    // The consumer comes back before it is accepted, and states its key anew.
    let accepts = async {
        pass(5).await;
        api.patch(&line.invitation, &PatchParams::default(), &accept).await.unwrap();
    };
    let (redeemed, ()) = tokio::join!(stage.redeem(&line), accepts);
    assert_eq!(redeemed.unwrap().kind, "token");
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_signed_late_changes_nothing() {
    let (stage, _, _) = peered(3600).await;
    stage.provider.stop_signers(false);
    pass(120).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    pods(&stage.as_tenant().await).list(&ListParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn no_token_is_given_where_the_policy_would_not_bound_it_or_the_consumer_has_stated_no_key() {
    let mut stage = Stage::new().await;
    stage.provider.stop_signers(true);
    let line = stage.invite(|_| ()).await;
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(stage.provider.client("admin"));
    // As an earlier version had it.
    let earlier = json!({"spec": {"matchConditions": [
        {"name": "tenants", "expression": "'portolan:tenants' in request.userInfo.groups"},
    ]}});
    policies.patch("portolan-tenants", &PatchParams::default(), &Patch::Merge(earlier)).await.unwrap();
    let refused = waits_in_vain(&stage, &line).await;
    assert!(refused.contains("admission policy portolan-tenants"), "{refused}");
    assert!(refused.contains("portolan peer --remote-context"), "{refused}");
    pass(60).await;
    assert_eq!(stage.left().await, Vec::<String>::new());

    // An invitation applies the policy. A consumer of an earlier version states no key.
    let line = stage.invite(|_| ()).await;
    stage.provider.add_hook(MutatingHook::new("earlier", "CertificateSigningRequest", |request| {
        if let Some(annotations) = request["metadata"]["annotations"].as_object_mut() {
            annotations.remove("portolan.dev/sealing-key");
        }
    }));
    let refused = waits_in_vain(&stage, &line).await;
    assert!(refused.contains("for which key a token is to be encrypted"), "{refused}");
}

/// Uses a line until it is refused, and answers why.
async fn waits_in_vain(stage: &Stage, line: &InvitationLine) -> String {
    stage.redeem(line).await.unwrap_err();
    pass(60).await;
    let status = stage.invitation(line).await.status.unwrap();
    let ready = conditions::find(&status.conditions, ConditionType::Ready).unwrap().clone();
    assert_eq!((status.phase, ready.reason.as_str()), (InvitationPhase::Refused, "SignerMissing"));
    ready.message
}
