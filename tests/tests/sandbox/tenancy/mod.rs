//! Peering by invitation, on clusters whose roles refuse: the provider's controller has the rights that it is documented to
//! have, the consumer those of its invitation and then of its certificate.

mod claims;
mod ends;
mod gone;
mod keys;
mod owners;
mod seen;
mod tokens;
mod torn;
mod versions;

use crate::credentials::pass;
use http::header::{AUTHORIZATION, HeaderValue};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{LimitRange, Namespace, Pod, ResourceQuota, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client, Config};
use portolan_api::conditions::{self, ConditionType};
use portolan_api::invitation::{Acceptance, InvitationPhase};
use portolan_api::sharing::Sharing;
use portolan_api::{ForeignCluster, Invitation};
use portolan_control::fleet::{Bearer, Credentials};
use portolan_control::peering::{self, Address, Peer, PeerError, hub_roles, install_definitions};
use portolan_control::sharing::provide;
use portolan_control::tenancy::{self, Inviting, NewKey, Redeemed, Redeeming, TenancyError, invite, redeem};
use portolan_core::tenancy::InvitationLine;
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{
    ClientCertificate, Cluster, ClusterConfig, FaultAnswer, HostileAnswer, HostileRule, NodeConfig,
    PartialFault, RequestFilter, User, World, WorldConfig,
};
use portolan_tests::simulation::apply;
use portolan_tests::tenants::{self, Attempt, Place, attempt};
use portolan_tests::{NAMESPACE, open_namespace, workload};
use rcgen::KeyPair;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

const PROVIDER: &str = "provider-controller";
const CONSUMER: &str = "consumer-controller";
const CLI: &str = "consumer-cli";

pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) provider: Cluster,
    pub(crate) consumer: Cluster,
    controllers: JoinSet<()>,
    /// How many invitations were made.
    invited: u8,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let world = World::new(WorldConfig { seed: 1, start, ..WorldConfig::default() });
        let nodes = |name: &str| ClusterConfig::named(name).nodes(1, NodeConfig::new("4", "8Gi"));
        let provider = world.add_cluster(nodes("paris"));
        let consumer = world.add_cluster(nodes("rome"));
        let admin = provider.client("admin");
        install_definitions(&admin).await.unwrap();
        for role in hub_roles() {
            apply(&admin, &role).await;
        }
        let mut stage = Self { world, provider, consumer, controllers: JoinSet::new(), invited: 0 };
        stage.control();
        stage
    }

    /// Starts the controllers, or starts them anew.
    fn control(&mut self) {
        self.controllers = JoinSet::new();
        let clock = self.world.clock().clone();
        let account = User::service_account("portolan", "portolan-controller");
        let provider = self.provider.client_as(PROVIDER, account);
        let term = Term::alone("test");
        self.controllers.spawn(tenancy::run(provider.clone(), clock.clone(), Seed::new(3), term.clone()));
        self.controllers.spawn(peering::depart(provider.clone(), clock.clone(), Seed::new(4)));
        self.controllers.spawn(provide(provider, clock.clone(), Seed::new(6)));
        let hub = self.consumer.client(CONSUMER);
        let world = self.world.clone();
        let dial = move |config: Config, bearer: Option<&Bearer>| {
            let client = by_config(&world, CONSUMER, &config)?;
            Ok(bearer.map_or(client.clone(), |bearer| bearer.put_on(client)))
        };
        let connect = Arc::new(Credentials::dialling(hub.clone(), Arc::new(dial)));
        let fleet =
            portolan_control::run(hub.clone(), connect.clone(), clock.clone(), Seed::new(1), term.clone());
        self.controllers.spawn(fleet);
        self.controllers.spawn(peering::run(hub.clone(), connect.clone(), clock.clone(), Seed::new(2)));
        self.controllers.spawn(tenancy::renew(hub, connect, clock, Seed::new(5), term, keys("renewals")));
    }

    /// What an administrator of the provider says by default.
    pub(crate) fn inviting(&self) -> Inviting {
        let now = self.world.clock().now();
        Inviting {
            provider: "paris".to_owned(),
            consumer: None,
            namespaces: vec![NAMESPACE.to_owned()],
            sees_cluster: false,
            sharing: Some(Sharing { percentage: Some(100), ..Sharing::default() }),
            acceptance: Acceptance::Automatic,
            expires: now + SignedDuration::from_mins(15),
            address: Address { server: "https://paris".to_owned(), ..Address::default() },
            random: [self.invited; 10],
        }
    }

    pub(crate) async fn invite(&mut self, edit: impl FnOnce(&mut Inviting)) -> InvitationLine {
        self.invited += 1;
        let now = self.world.clock().now();
        let mut inviting = self.inviting();
        edit(&mut inviting);
        let line = Box::pin(invite(&self.provider.client("admin"), &inviting, now)).await.unwrap();
        InvitationLine::decode(&line.encode()).unwrap()
    }

    pub(crate) async fn redeem(&self, line: &InvitationLine) -> Result<Redeemed, TenancyError> {
        self.redeem_in(&self.consumer, "keys", 3600, line).await
    }

    pub(crate) async fn redeem_in(
        &self,
        consumer: &Cluster,
        key: &'static str,
        lifetime: i32,
        line: &InvitationLine,
    ) -> Result<Redeemed, TenancyError> {
        let world = self.world.clone();
        let dial = move |config: Config| by_config(&world, CLI, &config);
        let with = Redeeming {
            hub: consumer.client(CLI),
            own_name: consumer.name().to_owned(),
            peer: Peer { name: "paris".to_owned(), ..Peer::default() },
            line,
            lifetime,
            timeout: Duration::from_secs(60),
            dial: &dial,
            new_key: keys(key),
        };
        let clock = self.world.clock().clone();
        Box::pin(redeem(&with, &move || clock.now(), &|_| ())).await
    }

    async fn invitation(&self, line: &InvitationLine) -> Invitation {
        let api: Api<Invitation> = Api::namespaced(self.provider.client("user"), "portolan");
        api.get(&line.invitation).await.unwrap()
    }

    /// Uses an invitation, and is interrupted when it has the certificate and cannot keep it.
    async fn redeem_until_issued(&self, line: &InvitationLine) {
        let writes =
            RequestFilter::any().party(CLI).cluster("rome").verb("patch").resource("secrets").name("paris");
        self.world.add_fault(PartialFault::new("interrupted", writes, FaultAnswer::Status(500)));
        assert!(self.redeem(line).await.is_err());
        self.world.end_fault("interrupted");
        assert_eq!(self.phase(line).await, InvitationPhase::Issued);
    }

    async fn message(&self, line: &InvitationLine) -> String {
        self.invitation(line).await.status.unwrap_or_default().message.unwrap_or_default()
    }

    /// Whose the ForeignCluster of the consumer is.
    async fn user_of(&self, name: &str) -> Option<String> {
        let api: Api<ForeignCluster> = Api::all(self.provider.client("user"));
        api.get_opt(name).await.unwrap()?.spec.incoming?.user
    }

    pub(crate) async fn phase(&self, line: &InvitationLine) -> InvitationPhase {
        self.invitation(line).await.status.unwrap_or_default().phase
    }

    /// Whether a condition of a ForeignCluster is true.
    pub(crate) async fn holds(&self, cluster: &Cluster, name: &str, type_: ConditionType) -> bool {
        let api: Api<ForeignCluster> = Api::all(cluster.client("user"));
        let found = api.get_opt(name).await.unwrap();
        found.is_some_and(|found| conditions::is_true(&found.status.unwrap_or_default().conditions, type_))
    }

    /// A client of the provider by the credential that the consumer has.
    pub(crate) async fn as_tenant(&self) -> Client {
        let api: Api<Secret> = Api::namespaced(self.consumer.client("user"), "portolan");
        let secret = api.get("paris").await.unwrap();
        let kubeconfig: Value = serde_json::from_slice(&secret.data.unwrap()["kubeconfig"].0).unwrap();
        let mut config = Config::new("https://paris".parse().unwrap());
        config.auth_info = serde_json::from_value(kubeconfig["users"][0]["user"].clone()).unwrap();
        by_config(&self.world, "somebody", &config).unwrap()
    }

    /// What of invitations and tenants is left in the provider.
    pub(crate) async fn left(&self) -> Vec<String> {
        let client = self.provider.client("user");
        let mut left = Vec::new();
        for label in ["portolan.dev/invitation", "portolan.dev/tenant", "portolan.dev/request-of"] {
            let params = ListParams::default().labels(label);
            macro_rules! look {
                ($($kind:ty),*) => {$(
                    let api: Api<$kind> = Api::all(client.clone());
                    let found = api.list_metadata(&params).await.unwrap().items;
                    left.extend(found.into_iter().map(|each| {
                        format!("{} {}", stringify!($kind), each.metadata.name.unwrap_or_default())
                    }));
                )*};
            }
            look!(ClusterRole, ClusterRoleBinding, RoleBinding, ServiceAccount, Secret, Namespace);
            look!(CertificateSigningRequest, ResourceQuota, LimitRange);
        }
        left
    }
}

/// Keys that a name stands for.
fn keys(name: &'static str) -> NewKey {
    let count = AtomicU64::new(0);
    Arc::new(move || {
        use rand::Rng;
        let number = count.fetch_add(1, Ordering::SeqCst);
        let mut secret = [0_u8; 32];
        Seed::new(number).child(name).rng().fill_bytes(&mut secret);
        let head =
            [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];
        KeyPair::try_from([&head[..], &secret[..]].concat())
    })
}

/// A client of the cluster that a configuration names, with its token or its certificate.
fn by_config(world: &World, party: &str, config: &Config) -> Result<Client, String> {
    use base64::Engine;
    let host = config.cluster_url.host().unwrap_or_default().to_owned();
    let cluster = world.cluster(&host).ok_or_else(|| format!("no cluster is called {host}"))?;
    let user = serde_json::to_value(&config.auth_info).map_err(|error| error.to_string())?;
    let pem = |field: &str| -> Option<String> {
        let bytes = base64::prelude::BASE64_STANDARD.decode(user[field].as_str()?).ok()?;
        String::from_utf8(bytes).ok()
    };
    if let (Some(certificate), Some(key)) = (pem("client-certificate-data"), pem("client-key-data")) {
        let shown = ClientCertificate { certificate, key };
        return cluster.client_with(party, &shown).map_err(|error| error.to_string());
    }
    let client = cluster.client_as(party, User::named("system:anonymous"));
    let Some(token) = user["token"].as_str() else { return Ok(client) };
    let value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|error| error.to_string())?;
    let send = tower::service_fn(move |mut request: http::Request<Body>| {
        let (client, value) = (client.clone(), value.clone());
        request.headers_mut().insert(AUTHORIZATION, value);
        async move { client.send(request).await }
    });
    Ok(Client::new(send, "default"))
}

pub(crate) fn code<T: std::fmt::Debug>(result: kube::Result<T>) -> u16 {
    match result {
        Err(kube::Error::Api(status)) => status.code,
        other => unreachable!("no refusal: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn an_invitation_ends_in_a_ready_peering_and_in_nothing_else() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    let redeemed = stage.redeem(&line).await.unwrap();
    assert_eq!(redeemed.tenant_namespace, "portolan-tenant-rome");
    assert_eq!(redeemed.skew, None);
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Authenticated).await);
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::OutgoingPeering).await);
    assert!(stage.holds(&stage.provider, "rome", ConditionType::IncomingPeering).await);
    assert_eq!(stage.phase(&line).await, InvitationPhase::Used);
    let left = stage.left().await;
    assert!(
        !left.iter().any(|each| each.starts_with("Secret") || each.starts_with("ServiceAccount")),
        "{left:?}"
    );

    // It places what it may place, where it may.
    apply(&stage.consumer.client("user"), &open_namespace()).await;
    apply(&stage.consumer.client("user"), &workload("web", 2, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    let copies: Api<Deployment> = Api::namespaced(stage.provider.client("user"), NAMESPACE);
    assert_eq!(copies.get("web").await.unwrap().status.unwrap().ready_replicas, Some(2));
    let tenant = stage.as_tenant().await;
    let secrets = |namespace: &str| Api::<Secret>::namespaced(tenant.clone(), namespace);
    assert_eq!(code(secrets("kube-system").list(&ListParams::default()).await), 403);
    assert_eq!(code(secrets("portolan").list(&ListParams::default()).await), 403);
    let requests: Api<CertificateSigningRequest> = Api::all(tenant.clone());
    assert_eq!(code(requests.list(&ListParams::default()).await), 403);
    let bindings: Api<RoleBinding> = Api::namespaced(tenant, "portolan-tenant-rome");
    assert_eq!(code(bindings.list(&ListParams::default()).await), 403);

    // The same command again says the same, and changes nothing.
    let again = stage.redeem(&line).await.unwrap();
    assert_eq!(again.expires, redeemed.expires);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_writes_what_workloads_need_and_nothing_that_reaches_further() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    let place = Place { open: NAMESPACE, home: "portolan-tenant-rome", invitation: &line.invitation };
    let tenant = stage.as_tenant().await;
    accepted(&tenant, tenants::accepted(&place)).await;
    refused(&tenant, tenants::refused(&place)).await;
    let mut other = tenants::accepted(&place).into_iter().find(|each| each.what == "its Lease").unwrap();
    other.object["metadata"]["name"] = json!("another");
    assert_eq!(code(attempt(&tenant, &other.object).await), 403, "one Lease, by its name");

    // Also where an administrator has given a tenant further rights. Nobody else is bound.
    let group = User::admin().group("portolan:tenants");
    let mighty = stage.provider.client_as("tenant", group);
    refused(&mighty, tenants::refused_whatever_the_role(&place)).await;
    let admin = stage.provider.client("admin");
    let others = [tenants::refused(&place), tenants::refused_whatever_the_role(&place)].concat();
    accepted(&admin, others).await;

    let annotate = json!({"metadata": {"annotations": tenants::allowing()}});
    let namespaces: Api<Namespace> = Api::all(admin);
    namespaces.patch(NAMESPACE, &PatchParams::default(), &Patch::Merge(annotate)).await.unwrap();
    accepted(&tenant, tenants::accepted_if_allowed(&place)).await;
}

async fn accepted(client: &Client, attempts: Vec<Attempt>) {
    for each in attempts {
        let tried = attempt(client, &each.object).await;
        assert!(tried.is_ok(), "{} in a {}: {tried:?}", each.what, each.object["kind"]);
    }
}

async fn refused(client: &Client, attempts: Vec<Attempt>) {
    for each in attempts {
        let what = format!("{} in a {}", each.what, each.object["kind"]);
        match attempt(client, &each.object).await {
            Err(kube::Error::Api(status)) => {
                let by_policy = status.message.contains("ValidatingAdmissionPolicy 'portolan-tenants'");
                assert!(by_policy && status.message.contains(each.named), "{what}: {}", status.message);
            }
            other => unreachable!("{what} is not refused: {other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_invitation_asks_by_a_request_that_is_seen_and_that_goes() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    let mut config = Config::new("https://paris".parse().unwrap());
    config.auth_info = serde_json::from_value(json!({"token": line.token})).unwrap();
    let bootstrap = by_config(&stage.world, "somebody", &config).unwrap();
    let place = Place { open: NAMESPACE, home: "none", invitation: &line.invitation };
    let named = |mut each: Attempt| {
        each.object["metadata"]["name"] = json!(format!("portolan-invitation-{}", line.invitation));
        each
    };
    let of_requests = |all: Vec<Attempt>| -> Vec<Attempt> {
        all.into_iter().filter(|each| each.object["kind"] == "CertificateSigningRequest").map(named).collect()
    };
    let all = of_requests(tenants::refused(&place));
    assert_eq!(all.len(), 3);
    refused(&bootstrap, all).await;
    accepted(&bootstrap, of_requests(tenants::accepted(&place))).await;
}

#[tokio::test(start_paused = true)]
async fn a_tenant_without_open_namespaces_sees_its_own_only_and_is_no_member() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|inviting| inviting.namespaces.clear()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    let tenant = stage.as_tenant().await;
    assert_eq!(code(Api::<Pod>::all(tenant.clone()).list(&ListParams::default()).await), 403);
    assert_eq!(code(Api::<Namespace>::all(tenant).list(&ListParams::default()).await), 403);
    apply(&stage.consumer.client("user"), &open_namespace()).await;
    apply(&stage.consumer.client("user"), &workload("web", 1, json!({}))).await;
    pass(20).await;
    let copies: Api<Deployment> = Api::all(stage.provider.client("user"));
    assert!(copies.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_invitation_is_for_one_key_and_for_a_while() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    // Whoever has stolen the line and is first, is the one; the owner learns of it.
    let milan = stage.world.add_cluster(ClusterConfig::named("milan"));
    stage.redeem_in(&milan, "thief", 3600, &line).await.unwrap();
    let late = stage.redeem(&line).await.unwrap_err();
    let told = late.to_string();
    assert!(matches!(late, TenancyError::OtherKey { .. } | TenancyError::NotAccepted { .. }), "{told}");
    pass(10).await;
    let late = stage.redeem(&line).await.unwrap_err();
    assert!(matches!(late, TenancyError::NotAccepted { .. }), "{late}");

    // The namespace belongs to the thief now.
    let line = stage.invite(|inviting| inviting.namespaces.clear()).await;
    pass(16 * 60).await;
    assert_eq!(stage.phase(&line).await, InvitationPhase::Expired);
    let expired = stage.redeem(&line).await.unwrap_err();
    assert!(matches!(expired, TenancyError::Expired { .. }), "{expired}");
    assert!(expired.to_string().contains("minutes ago"), "{expired}");

    let line = stage.invite(|inviting| inviting.namespaces.clear()).await;
    let itself = stage.redeem_in(&stage.provider.clone(), "own", 3600, &line).await.unwrap_err();
    assert!(matches!(itself, TenancyError::Peer(PeerError::SameCluster { .. })), "{itself}");

    // A lifetime that no provider signs is refused, with the number.
    let refused = stage.redeem_in(&stage.consumer, "long", 40 * 24 * 3600, &line).await.unwrap_err();
    assert!(refused.to_string().contains("3456000 s"), "{refused}");
    assert_eq!(stage.phase(&line).await, InvitationPhase::Refused);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_one_identity_however_many_invitations_it_uses() {
    let mut stage = Stage::new().await;
    let (first, second) = (stage.invite(|_| ()).await, stage.invite(|_| ()).await);
    stage.redeem(&first).await.unwrap();
    let refused = stage.redeem(&second).await.unwrap_err();
    assert!(refused.to_string().contains("peered already, as rome"), "{refused}");
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    let all = clusters.list(&ListParams::default()).await.unwrap().items;
    let users: Vec<_> = all.iter().filter_map(|each| each.spec.incoming.as_ref()?.user.clone()).collect();
    assert_eq!(users.len(), 1, "{users:?}");
    assert!(users[0].ends_with(&first.invitation));
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_to_be_asked_is_asked() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|inviting| inviting.acceptance = Acceptance::Manual).await;
    let waits = stage.redeem(&line).await.unwrap_err();
    assert!(waits.to_string().contains("portolan accept"), "{waits}");
    assert_eq!(stage.phase(&line).await, InvitationPhase::AwaitingAcceptance);
    assert!(!stage.left().await.iter().any(|each| each.starts_with("Namespace")), "nothing is made of it");
    let api: Api<Invitation> = Api::namespaced(stage.provider.client("user"), "portolan");
    let accept = Patch::Merge(json!({"spec": {"accepted": true}}));
    api.patch(&line.invitation, &PatchParams::default(), &accept).await.unwrap();
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}

#[tokio::test(start_paused = true)]
async fn certificates_are_renewed_and_no_watch_is_lost() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem_in(&stage.consumer, "keys", 600, &line).await.unwrap();
    pass(30).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    let lists = called(&stage.world, "list", "nodes");
    // Each is valid for ten minutes.
    pass(3000).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
    let signed = called(&stage.world, "update", "certificatesigningrequests.certificates.k8s.io/approval");
    assert!(signed >= 5, "{signed} certificates in fifty minutes");
    assert_eq!(called(&stage.world, "list", "nodes"), lists, "the connection is the first one");
    apply(&stage.consumer.client("user"), &open_namespace()).await;
    apply(&stage.consumer.client("user"), &workload("web", 1, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    let copies: Api<Deployment> = Api::namespaced(stage.provider.client("user"), NAMESPACE);
    assert_eq!(copies.get("web").await.unwrap().status.unwrap().ready_replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_revoked_certificate_is_worth_nothing_also_after_the_next_peering() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    let old = stage.as_tenant().await;
    let pods = |client: &Client| Api::<Pod>::namespaced(client.clone(), NAMESPACE);
    pods(&old).list(&ListParams::default()).await.unwrap();
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    clusters.delete("rome", &DeleteParams::default()).await.unwrap();
    pass(5).await;
    assert_eq!(code(pods(&old).list(&ListParams::default()).await), 403);
    pass(20).await;
    assert!(clusters.get_opt("rome").await.unwrap().is_none(), "no finalizer holds it");
    assert_eq!(stage.left().await, Vec::<String>::new());

    let line = stage.invite(|_| ()).await;
    stage.redeem_in(&stage.consumer, "anew", 3600, &line).await.unwrap();
    pass(20).await;
    pods(&stage.as_tenant().await).list(&ListParams::default()).await.unwrap();
    assert_eq!(code(pods(&old).list(&ListParams::default()).await), 403, "it is another user");
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_leaves_leaves_nothing_behind() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    let hub = stage.consumer.client("admin");
    let world = stage.world.clone();
    let dial = move |config: Config| by_config(&world, CLI, &config);
    assert_eq!(tenancy::tell_provider(&hub, "paris", &dial).await.unwrap(), Some(true));
    peering::leave_hub(&hub, "paris").await.unwrap();
    pass(30).await;
    let clusters: Api<ForeignCluster> = Api::all(stage.provider.client("user"));
    assert!(clusters.get_opt("rome").await.unwrap().is_none());
    assert_eq!(stage.left().await, Vec::<String>::new());
    let secrets: Api<Secret> = Api::namespaced(hub, "portolan");
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_ten_minutes_off_is_named_and_does_no_harm() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    let world = stage.world.clone();
    let dial = move |config: Config| by_config(&world, CLI, &config);
    let with = Redeeming {
        hub: stage.consumer.client(CLI),
        own_name: "rome".to_owned(),
        peer: Peer { name: "paris".to_owned(), ..Peer::default() },
        line: &line,
        lifetime: 3600,
        timeout: Duration::from_secs(60),
        dial: &dial,
        new_key: keys("keys"),
    };
    let ahead = stage.world.clock().skewed(SignedDuration::from_mins(10));
    let redeemed = Box::pin(redeem(&with, &move || ahead.now(), &|_| ())).await.unwrap();
    let told = redeemed.skew.unwrap().to_string();
    assert_eq!(told, "the clock here is 10 minutes ahead of that of the provider");
}

#[tokio::test(start_paused = true)]
async fn without_a_controller_or_a_signer_it_is_said_what_is_missing() {
    let mut stage = Stage::new().await;
    stage.controllers = JoinSet::new();
    let line = stage.invite(|_| ()).await;
    let alone = stage.redeem(&line).await.unwrap_err();
    assert!(alone.to_string().contains("`portolan controller` must run there"), "{alone}");
    // The same line goes on when it runs.
    stage.control();
    stage.redeem(&line).await.unwrap();
}

fn called(world: &World, verb: &str, resource: &str) -> u64 {
    let calls = world.calls();
    calls.iter().filter(|call| call.verb == verb && call.resource == resource).map(|call| call.count).sum()
}
