//! The credentials of members: tokens that end, Secrets that change, clusters that are not who they were.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client, Config};
use portolan_api::ForeignCluster;
use portolan_api::conditions::{self, ConditionType};
use portolan_control::fleet::{Bearer, Credentials};
use portolan_control::peering::{self, Address, Peer, Sides, join};
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, User, World, WorldConfig};
use portolan_tests::simulation::apply;
use portolan_tests::{NAMESPACE, open_namespace, workload};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// A hub and two members, with controllers that reach them by the credentials of `peer` and nothing else.
pub(crate) struct Stage {
    pub(crate) world: World,
    pub(crate) hub: Cluster,
    pub(crate) controllers: JoinSet<()>,
}

/// What a member makes of an answer to a request for a token.
pub(crate) type Tamper = fn(&mut Value);

impl Stage {
    pub(crate) async fn new(lifetime: i64) -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let world = World::new(WorldConfig { seed: 1, start, ..WorldConfig::default() });
        let cluster =
            |name: &str| world.add_cluster(ClusterConfig::named(name).nodes(1, NodeConfig::new("4", "8Gi")));
        let hub = cluster("hub");
        cluster("paris");
        cluster("rome");
        let mut stage = Self { world, hub, controllers: JoinSet::new() };
        for name in ["paris", "rome"] {
            stage.join(name, lifetime).await;
        }
        apply(&stage.hub.client("user"), &open_namespace()).await;
        stage.control(None);
        stage
    }

    pub(crate) async fn join(&self, name: &str, lifetime: i64) {
        let member = self.world.cluster(name).unwrap().client("admin");
        let address = Address { server: format!("https://{name}"), ..Address::default() };
        let sides = Sides { hub: self.hub.client("admin"), member, address };
        let peer = Peer {
            name: name.to_owned(),
            namespaces: vec![NAMESPACE.to_owned()],
            token_lifetime: lifetime,
            ..Peer::default()
        };
        join(&sides, &peer, self.world.clock().now(), &|_| ()).await.unwrap();
    }

    /// Starts the controllers, or starts them anew.
    pub(crate) fn control(&mut self, tamper: Option<Tamper>) {
        self.controllers = JoinSet::new();
        let (hub, clock) = (self.hub.client("controller"), self.world.clock().clone());
        let world = self.world.clone();
        let dial = move |config: Config, bearer: Option<&Bearer>| {
            let host = config.cluster_url.host().unwrap_or_default().to_owned();
            let cluster = world.cluster(&host).ok_or_else(|| format!("no cluster is called {host}"))?;
            let client = cluster.client_as("controller", User::named("system:anonymous"));
            let client = match tamper {
                Some(tamper) => tampered(client, tamper),
                None => client,
            };
            Ok(bearer.map_or(client.clone(), |bearer| bearer.put_on(client)))
        };
        let connect = Arc::new(Credentials::dialling(hub.clone(), Arc::new(dial)));
        let term = Term::alone("test");
        let running = portolan_control::run(hub.clone(), connect.clone(), clock.clone(), Seed::new(1), term);
        self.controllers.spawn(running);
        self.controllers.spawn(peering::run(hub, connect, clock, Seed::new(2)));
    }

    pub(crate) async fn cluster(&self, name: &str) -> ForeignCluster {
        Api::<ForeignCluster>::all(self.hub.client("user")).get(name).await.unwrap()
    }

    pub(crate) async fn condition(&self, name: &str, type_: ConditionType) -> Condition {
        let status = self.cluster(name).await.status.unwrap_or_default();
        conditions::find(&status.conditions, type_).cloned().unwrap()
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.hub.client("user"), "portolan")
    }

    async fn patch(&self, name: &str, spec: Value) {
        let clusters: Api<ForeignCluster> = Api::all(self.hub.client("user"));
        let patch = Patch::Merge(json!({ "spec": spec }));
        clusters.patch(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Reasons and notes of the events about a ForeignCluster, in the order of their time.
    pub(crate) async fn events(&self, name: &str) -> Vec<(String, String)> {
        let api: Api<Event> = Api::namespaced(self.hub.client("user"), "default");
        let mut all = api.list(&Default::default()).await.unwrap().items;
        all.retain(|event| event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(name));
        all.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
        all.into_iter()
            .map(|event| (event.reason.unwrap_or_default(), event.note.unwrap_or_default()))
            .collect()
    }

    pub(crate) async fn ready(&self, workload: &str) -> Option<String> {
        let api: Api<portolan_api::MultiClusterDeployment> =
            Api::namespaced(self.hub.client("user"), NAMESPACE);
        api.get(workload).await.unwrap().status.unwrap_or_default().ready_summary
    }

    fn called(&self, verb: &str, resource: &str) -> u64 {
        let calls = self.world.calls();
        calls
            .iter()
            .filter(|call| call.verb == verb && call.resource == resource)
            .map(|call| call.count)
            .sum()
    }
}

/// A client whose tokens a member that lies has made.
fn tampered(client: Client, tamper: Tamper) -> Client {
    let send = tower::service_fn(move |request: http::Request<Body>| {
        let client = client.clone();
        async move {
            let of_token = request.uri().path().ends_with("/token");
            let response = client.send(request).await?;
            if !of_token {
                return Ok::<_, tower::BoxError>(response);
            }
            let (parts, body) = response.into_parts();
            let bytes = http_body_util::BodyExt::collect(body).await?.to_bytes();
            let mut answer: Value = serde_json::from_slice(&bytes)?;
            tamper(&mut answer);
            Ok(http::Response::from_parts(parts, Body::from(serde_json::to_vec(&answer)?)))
        }
    });
    Client::new(send, "default")
}

pub(crate) async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_member_answers_on_the_same_connection_after_its_first_token_has_ended() {
    let stage = Stage::new(600).await;
    pass(20).await;
    let joined = stage.condition("paris", ConditionType::Reachable).await;
    assert_eq!(joined.status, "True", "{}", joined.message);
    let lists = stage.called("list", "nodes");
    // Ten tokens later.
    pass(3000).await;
    let now = stage.condition("paris", ConditionType::Reachable).await;
    assert_eq!(now.status, "True", "{}", now.message);
    assert_eq!(now.last_transition_time, joined.last_transition_time, "it was lost meanwhile");
    assert!(stage.called("create", "serviceaccounts/token") >= 20, "tokens were renewed");
    assert_eq!(stage.called("list", "nodes"), lists, "the connection is the first one");
    apply(&stage.hub.client("user"), &workload("web", 2, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    assert_eq!(stage.ready("web").await.as_deref(), Some("2/2"), "it takes writes");
}

#[tokio::test(start_paused = true)]
async fn a_member_that_makes_tokens_of_the_past_is_asked_once_a_minute_and_it_is_told_why() {
    let mut stage = Stage::new(3600).await;
    stage.control(Some(|answer| answer["status"]["expirationTimestamp"] = json!("2020-01-01T00:00:00Z")));
    pass(1820).await;
    let (asked, before) =
        (stage.called("create", "serviceaccounts/token"), stage.secrets().get("paris").await);
    let before = before.unwrap().metadata.resource_version;
    pass(600).await;
    let asked = stage.called("create", "serviceaccounts/token") - asked;
    assert!((2..=22).contains(&asked), "asked {asked} times in ten minutes by two members");
    assert_eq!(stage.secrets().get("paris").await.unwrap().metadata.resource_version, before, "not written");
    let events = stage.events("paris").await;
    let told = events.iter().find(|(reason, _)| reason == "TokenRenewalFailed").map(|(_, note)| note.clone());
    assert!(told.as_ref().is_some_and(|note| note.contains("it ends at 2020-01-01")), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_no_header_takes_is_refused_and_no_panic() {
    let mut stage = Stage::new(3600).await;
    stage.control(Some(|answer| answer["status"]["token"] = json!("a\nb")));
    pass(1900).await;
    let events = stage.events("paris").await;
    assert!(
        events.iter().any(|(reason, note)| reason == "TokenRenewalFailed" && note.contains("no HTTP header"))
    );
    assert_eq!(stage.condition("paris", ConditionType::Ready).await.status, "True");
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_taints_or_latencies_does_not_connect_again() {
    let stage = Stage::new(86_400).await;
    pass(20).await;
    let lists = stage.called("list", "pods");
    let spec = json!({"taints": [{"key": "a", "effect": "NoSchedule"}], "latencies": [{"to": "rome", "rtt": "5ms"}]});
    stage.patch("paris", spec).await;
    stage.patch("rome", json!({"unschedulable": true})).await;
    pass(20).await;
    assert_eq!(stage.called("list", "pods"), lists);
    let paris = stage.cluster("paris").await;
    let ready = stage.condition("paris", ConditionType::Ready).await;
    assert_eq!((ready.status.as_str(), ready.observed_generation), ("True", paris.metadata.generation));
}

#[tokio::test(start_paused = true)]
async fn another_cluster_behind_the_address_is_seen_and_nothing_is_applied_there() {
    let stage = Stage::new(86_400).await;
    pass(20).await;
    let secrets = stage.secrets();
    let (paris, rome) = (secrets.get("paris").await.unwrap(), secrets.get("rome").await.unwrap());
    // The credential of paris leads to rome from now on.
    let lead = |to: &Secret| Patch::Merge(json!({ "data": to.data }));
    secrets.patch("paris", &PatchParams::default(), &lead(&rome)).await.unwrap();
    pass(20).await;
    let ready = stage.condition("paris", ConditionType::Ready).await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "ClusterIdentityMismatch"),
        "{}",
        ready.message
    );
    assert_ne!(stage.condition("paris", ConditionType::Reachable).await.status, "True");
    assert!(stage.events("paris").await.iter().any(|(reason, _)| reason == "ClusterIdentityMismatch"));
    apply(&stage.hub.client("user"), &workload("web", 1, json!({"locations": ["paris"]}))).await;
    pass(30).await;
    let copies: Api<Deployment> = Api::all(stage.world.cluster("rome").unwrap().client("user"));
    assert!(copies.list(&Default::default()).await.unwrap().items.is_empty(), "rome is not paris");
    // Back again, without the ForeignCluster being touched.
    secrets.patch("paris", &PatchParams::default(), &lead(&paris)).await.unwrap();
    pass(30).await;
    assert_eq!(stage.condition("paris", ConditionType::Ready).await.status, "True");
    assert_eq!(stage.ready("web").await.as_deref(), Some("1/1"));
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_goes_or_cannot_be_used_takes_the_word_reachable_with_it() {
    let stage = Stage::new(86_400).await;
    pass(20).await;
    let secrets = stage.secrets();
    let mut secret = secrets.get("paris").await.unwrap();
    let version = secret.metadata.resource_version.clone();
    assert_eq!(stage.cluster("paris").await.status.unwrap().credentials_resource_version, version);
    secrets.delete("paris", &Default::default()).await.unwrap();
    pass(5).await;
    let ready = stage.condition("paris", ConditionType::Ready).await;
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "ConnectionFailed"),
        "{}",
        ready.message
    );
    assert_eq!(stage.condition("paris", ConditionType::Reachable).await.status, "Unknown");
    secret.metadata.resource_version = None;
    secret.metadata.uid = None;
    secrets.create(&Default::default(), &secret).await.unwrap();
    pass(15).await;
    assert_eq!(stage.condition("paris", ConditionType::Reachable).await.status, "True");
    let now = secrets.get("paris").await.unwrap().metadata.resource_version;
    assert_eq!(stage.cluster("paris").await.status.unwrap().credentials_resource_version, now);
}

#[tokio::test(start_paused = true)]
async fn a_new_controller_says_nothing_of_a_member_before_its_first_probe_has_ended() {
    let mut stage = Stage::new(86_400).await;
    pass(20).await;
    let before = stage.condition("paris", ConditionType::Reachable).await;
    stage.control(None);
    pass(20).await;
    let after = stage.condition("paris", ConditionType::Reachable).await;
    assert_eq!(after.last_transition_time, before.last_transition_time);
    // A member that is away at that moment is still found silent.
    stage.world.partition("controller", "paris");
    stage.control(None);
    pass(20).await;
    assert_eq!(stage.condition("paris", ConditionType::Reachable).await.status, "Unknown");
}

#[tokio::test(start_paused = true)]
async fn when_a_member_was_seen_is_fresh_and_its_comings_and_goings_are_told() {
    let stage = Stage::new(86_400).await;
    pass(400).await;
    let seen = stage.cluster("paris").await.status.unwrap().last_seen.unwrap().0;
    let age = stage.world.clock().now().duration_since(seen).as_secs();
    assert!(age <= 75, "{age} s old");
    let writes = stage.called("update", "foreignclusters.portolan.dev/status");
    pass(600).await;
    let writes = stage.called("update", "foreignclusters.portolan.dev/status") - writes;
    assert!(writes <= 24, "{writes} writes in ten minutes for two members");
    for _ in 0..2 {
        stage.world.partition("controller", "paris");
        pass(60).await;
        stage.world.heal("controller", "paris");
        pass(60).await;
    }
    let reasons: Vec<String> = stage.events("paris").await.into_iter().map(|(reason, _)| reason).collect();
    assert_eq!(reasons, ["Joined", "Unreachable", "Reachable", "Unreachable", "Reachable"]);
}
