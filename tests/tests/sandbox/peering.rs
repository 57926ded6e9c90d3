//! Peering on the sandbox, whose roles really refuse: the controller works with the credential of `peer` and no more.

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use portolan_api::{ClusterReport, ForeignCluster, MultiClusterDeployment, MultiClusterDeploymentStatus};
use portolan_control::fleet::{Connect, ConnectError};
use portolan_control::peering::{
    Address, Names, Peer, PeerError, Sides, TokenFacts, holdings, identity, join, leave_hub, leave_local,
    leave_member, publish, rights,
};
use portolan_control::{Settings, run_with};
use portolan_runtime::{Seed, Term};
use portolan_sandbox::{Cluster, ClusterConfig, NodeConfig, User, World, WorldConfig};
use portolan_tests::simulation::apply;
use portolan_tests::{NAMESPACE, open_namespace, workload};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const HOUR: i64 = 3600;

struct Fleet {
    world: World,
    hub: Cluster,
    members: Vec<Cluster>,
}

impl Fleet {
    fn new() -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let world = World::new(WorldConfig { seed: 1, start, ..WorldConfig::default() });
        let hub = world.add_cluster(ClusterConfig::named("hub").nodes(1, NodeConfig::new("2", "8Gi")));
        let member =
            |name: &str| world.add_cluster(ClusterConfig::named(name).nodes(1, NodeConfig::new("4", "8Gi")));
        let members = vec![member("paris"), member("rome")];
        Self { world, hub, members }
    }

    fn sides(&self, member: &Cluster) -> Sides {
        let address = Address { server: format!("https://{}", member.name()), ..Address::default() };
        Sides { hub: self.hub.client("admin"), member: member.client("admin"), address }
    }

    async fn join(&self, peer: &Peer) -> Result<(), PeerError> {
        let member = self.world.cluster(&peer.name).unwrap_or_else(|| self.hub.clone());
        join(&self.sides(&member), peer, self.world.clock().now(), &|_| ()).await.map(|_| ())
    }

    /// The controller, which reaches members by the account that peering made for it.
    async fn control(&self) -> tokio::task::JoinHandle<()> {
        self.control_with(Settings::default()).await
    }

    /// The same, with what its operator has set.
    async fn control_with(&self, settings: Settings) -> tokio::task::JoinHandle<()> {
        let hub = identity(&self.hub.client("admin"), "the hub").await.unwrap();
        let connect = Arc::new(AsAccount { world: self.world.clone(), account: Names::of(&hub).account });
        let client = self.hub.client("controller");
        let (clock, term) = (self.world.clock().clone(), Term::alone("test"));
        tokio::spawn(run_with(client, connect, clock, Seed::new(1), term, settings))
    }

    async fn status(&self, name: &str) -> MultiClusterDeploymentStatus {
        let api: Api<MultiClusterDeployment> = Api::namespaced(self.hub.client("user"), NAMESPACE);
        api.get(name).await.unwrap().status.unwrap_or_default()
    }
}

struct AsAccount {
    world: World,
    account: String,
}

impl Connect for AsAccount {
    fn connect<'a>(&'a self, cluster: &'a ForeignCluster) -> BoxFuture<'a, Result<Client, ConnectError>> {
        let name = cluster.metadata.name.as_deref().unwrap_or_default();
        let user = User::service_account("portolan", &self.account);
        let client = self.world.cluster(name).map(|cluster| cluster.client_as("controller", user));
        Box::pin(async { client.ok_or(ConnectError::NoCredentials) })
    }

    fn server(&self, cluster: &str) -> Option<String> {
        Some(format!("https://{cluster}:6443"))
    }
}

fn peer(name: &str) -> Peer {
    Peer {
        name: name.to_owned(),
        namespaces: vec![NAMESPACE.to_owned()],
        token_lifetime: HOUR,
        ..Peer::default()
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn everything_that_placement_does_works_with_the_rights_of_peering() {
    let fleet = Fleet::new();
    fleet.join(&peer("paris")).await.unwrap();
    fleet.join(&peer("rome")).await.unwrap();
    let _controller = fleet.control().await;
    let user = fleet.hub.client("user");
    apply(&user, &open_namespace()).await;
    apply(&user, &workload("web", 2, json!({"locations": ["paris", "rome"]}))).await;
    pass(20).await;
    assert_eq!(fleet.status("web").await.ready_summary.as_deref(), Some("4/4"));

    // Scaled, changed by somebody in a member, and deleted.
    apply(&user, &workload("web", 1, json!({"locations": ["paris", "rome"]}))).await;
    let copies: Api<Deployment> = Api::namespaced(fleet.members[0].client("somebody"), NAMESPACE);
    pass(20).await;
    let drift = Patch::Merge(json!({"spec": {"replicas": 3}}));
    copies.patch("web", &PatchParams::default(), &drift).await.unwrap();
    pass(20).await;
    assert_eq!(copies.get("web").await.unwrap().spec.unwrap().replicas, Some(1));
    let api: Api<MultiClusterDeployment> = Api::namespaced(user, NAMESPACE);
    api.delete("web", &DeleteParams::default()).await.unwrap();
    pass(20).await;
    assert!(api.get_opt("web").await.unwrap().is_none() && copies.get_opt("web").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_not_opened_to_the_hub_refuses_whatever_label_it_has() {
    let fleet = Fleet::new();
    fleet.join(&Peer { namespaces: Vec::new(), ..peer("paris") }).await.unwrap();
    let _controller = fleet.control().await;
    apply(&fleet.members[0].client("admin"), &open_namespace()).await;
    apply(&fleet.hub.client("user"), &open_namespace()).await;
    apply(&fleet.hub.client("user"), &workload("web", 1, json!({"locations": ["paris"]}))).await;
    pass(20).await;
    let status = fleet.status("web").await;
    let message = status.placements[0].message.clone().unwrap_or_default();
    assert!(message.contains("is forbidden") && message.contains(NAMESPACE), "{message}");
    fleet.join(&peer("paris")).await.unwrap();
    pass(60).await;
    assert_eq!(fleet.status("web").await.ready_summary.as_deref(), Some("1/1"), "opened by the same command");
}

#[tokio::test(start_paused = true)]
async fn joining_again_changes_nothing_but_what_is_said_anew() {
    let fleet = Fleet::new();
    let labelled = Peer { labels: [("tier".to_owned(), "edge".to_owned())].into(), ..peer("paris") };
    fleet.join(&labelled).await.unwrap();
    let api: Api<ForeignCluster> = Api::all(fleet.hub.client("user"));
    let before = api.get("paris").await.unwrap();
    fleet.join(&peer("paris")).await.unwrap();
    let after = api.get("paris").await.unwrap();
    assert_eq!(
        (after.metadata.uid, after.metadata.generation),
        (before.metadata.uid, before.metadata.generation)
    );
    assert_eq!(after.metadata.labels, before.metadata.labels, "a label that is not said again stays");
    assert_eq!(after.spec.cluster_identity.cluster_id.len(), 36, "the uid of kube-system");
}

#[tokio::test(start_paused = true)]
async fn who_a_cluster_is_decides_and_not_what_it_is_called() {
    let fleet = Fleet::new();
    fleet.join(&peer("paris")).await.unwrap();
    let (paris, rome) = (&fleet.members[0], &fleet.members[1]);
    let now = fleet.world.clock().now();
    let taken = join(&fleet.sides(rome), &peer("paris"), now, &|_| ()).await.unwrap_err();
    assert!(matches!(taken, PeerError::NameTaken { .. }), "{taken}");
    let twice = join(&fleet.sides(paris), &peer("lutetia"), now, &|_| ()).await.unwrap_err();
    assert!(matches!(&twice, PeerError::MemberAlready { name } if name == "paris"), "{twice}");
    let itself = join(&fleet.sides(&fleet.hub), &peer("me"), now, &|_| ()).await.unwrap_err();
    assert!(matches!(itself, PeerError::SameCluster { .. }), "{itself}");
    let local = Peer { local: true, ..peer("home") };
    join(&fleet.sides(&fleet.hub), &local, now, &|_| ()).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(fleet.hub.client("user"));
    let labels = namespaces.get(NAMESPACE).await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels["portolan.dev/placement"], "allowed");
}

#[tokio::test(start_paused = true)]
async fn the_hub_that_leaves_its_own_fleet_gets_its_namespaces_back() {
    let fleet = Fleet::new();
    let (user, now) = (fleet.hub.client("user"), fleet.world.clock().now());
    let space = |name: &str, labels: Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    apply(&user, &space("older", json!({}))).await;
    apply(&user, &space("own", json!({"portolan.dev/placement": "allowed"}))).await;
    let names = ["fresh", "filled", "older"].map(str::to_owned).to_vec();
    let local = Peer { local: true, namespaces: names, ..peer("home") };
    join(&fleet.sides(&fleet.hub), &local, now, &|_| ()).await.unwrap();
    let config =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "filled"}});
    apply(&user, &config).await;
    let id = identity(&user, "the hub").await.unwrap();
    let came = leave_local(&user, &id).await.unwrap();
    let label = |name: &str| format!("label portolan.dev/placement of Namespace {name}");
    assert_eq!(came.went, [label("filled"), "Namespace fresh".to_owned(), label("older")]);
    assert_eq!(came.stays, ["Namespace filled: ConfigMap mine is in it"]);
    pass(10).await;
    let namespaces: Api<Namespace> = Api::all(user.clone());
    assert!(namespaces.get_opt("fresh").await.unwrap().is_none());
    let open = async |name: &str| {
        let labels = namespaces.get(name).await.unwrap().metadata.labels.unwrap_or_default();
        labels.contains_key("portolan.dev/placement")
    };
    assert!(!open("filled").await && !open("older").await, "what peering opened is closed");
    assert!(open("own").await, "what a user opened stays open");
    let again = leave_local(&user, &id).await.unwrap();
    assert_eq!(again.went, [""; 0], "it can be repeated");
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_named_verb_by_verb_before_anything_is_made() {
    let fleet = Fleet::new();
    let rules = json!([
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "create", "patch"]},
        {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["create", "patch"]},
    ]);
    let admin = fleet.members[0].client("admin");
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "some"}, "rules": rules});
    apply(&admin, &role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "some"},
        "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "some"},
    });
    apply(&admin, &binding).await;
    let jane = fleet.members[0].client_as("jane", User::named("jane"));
    let sides = Sides { member: jane, ..fleet.sides(&fleet.members[0]) };
    let refused = join(&sides, &peer("paris"), fleet.world.clock().now(), &|_| ()).await.unwrap_err();
    let PeerError::MissingRights { missing, .. } = &refused else { panic!("{refused}") };
    assert!(missing.contains(&"create clusterroles.rbac.authorization.k8s.io".to_owned()), "{missing:?}");
    assert!(
        missing.contains(&"create serviceaccounts/token in namespace portolan".to_owned()),
        "{missing:?}"
    );
    assert!(missing.contains(&"list nodes".to_owned()), "nobody gives away what they lack: {missing:?}");
    assert!(!missing.iter().any(|each| each.contains("patch serviceaccounts")), "{missing:?}");
    let accounts: Api<ServiceAccount> = Api::namespaced(admin, "portolan");
    assert!(accounts.list(&Default::default()).await.unwrap().items.is_empty(), "nothing was made");
}

#[tokio::test(start_paused = true)]
async fn who_has_no_rights_on_reports_peers_without_them_and_unpeers_to_the_end() {
    let fleet = Fleet::new();
    let admin = fleet.members[0].client("admin");
    define_reports(&admin).await;
    let groups = rights().into_iter().map(|right| right.group).filter(|group| *group != portolan_api::GROUP);
    let groups: BTreeSet<&str> = groups.chain(["rbac.authorization.k8s.io"]).collect();
    let verbs = ["get", "list", "watch", "create", "update", "patch", "delete"];
    let rules = json!([{"apiGroups": groups, "resources": ["*"], "verbs": verbs}]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "most"}, "rules": rules});
    apply(&admin, &role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "most"},
        "subjects": [{"kind": "User", "name": "jane"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "most"},
    });
    apply(&admin, &binding).await;
    let jane = fleet.members[0].client_as("jane", User::named("jane"));
    let sides = Sides { member: jane.clone(), ..fleet.sides(&fleet.members[0]) };
    let now = fleet.world.clock().now();
    let joined = join(&sides, &peer("paris"), now, &|_| ()).await.unwrap();
    assert!(!joined.can_report);
    let hub = identity(&fleet.hub.client("admin"), "the hub").await.unwrap();
    let name = Names::of(&hub).account;
    let roles: Api<Role> = Api::namespaced(admin.clone(), "portolan");
    let rules = roles.get(&name).await.unwrap().rules.unwrap();
    let resources: Vec<String> = rules.into_iter().flat_map(|rule| rule.resources.unwrap()).collect();
    assert_eq!(resources, ["serviceaccounts/token"]);

    assert!(join(&fleet.sides(&fleet.members[0]), &peer("paris"), now, &|_| ()).await.unwrap().can_report);
    let came = leave_member(&jane, &hub).await.unwrap();
    let report = format!("ClusterReport portolan/{name}, if the hub made one: you may not delete it");
    assert!(came.stays.contains(&report), "{came:?}");
    assert!(came.went.contains(&format!("ServiceAccount portolan/{name}")), "{came:?}");
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_named_also_to_a_user_who_may_read_no_namespace() {
    let fleet = Fleet::new();
    let now = fleet.world.clock().now();
    let nobody = |cluster: &Cluster| cluster.client_as("jane", User::named("jane"));
    let in_hub = Sides { hub: nobody(&fleet.hub), ..fleet.sides(&fleet.members[0]) };
    let in_member = Sides { member: nobody(&fleet.members[0]), ..fleet.sides(&fleet.members[0]) };
    for (sides, place) in [(in_hub, "in the hub"), (in_member, "in paris")] {
        let refused = join(&sides, &peer("paris"), now, &|_| ()).await.unwrap_err();
        let PeerError::MissingRights { missing, side } = &refused else { panic!("{place}: {refused}") };
        assert_eq!(side, place);
        for need in ["get namespaces", "create namespaces"] {
            assert!(missing.contains(&need.to_owned()), "{missing:?}");
        }
    }
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(fleet.hub.client("admin"), &ApiResource::from_gvk(&kind));
    assert!(api.list(&Default::default()).await.unwrap().items.is_empty(), "nothing was made in the hub");
}

/// What an installation of Portolan brings into a member, as far as it matters to reports.
async fn define_reports(member: &Client) {
    let definitions = portolan_api::crds().into_iter().filter(|crd| crd.spec.names.kind == "ClusterReport");
    for definition in definitions {
        apply(member, &serde_json::to_value(definition).unwrap()).await;
    }
}

/// What the operator of a hub sets so that members measure.
fn measuring() -> Settings {
    Settings { measure_latency: true, ..Settings::default() }
}

#[tokio::test(start_paused = true)]
async fn what_was_reported_goes_with_the_right_to_the_report_also_if_the_hub_begins_anew() {
    let fleet = Fleet::new();
    let admin = fleet.members[0].client("admin");
    define_reports(&admin).await;
    fleet.join(&peer("paris")).await.unwrap();
    fleet.join(&peer("rome")).await.unwrap();
    let controller = fleet.control_with(measuring()).await;
    pass(60).await;
    let user = fleet.hub.client("user");
    let hub = identity(&user, "the hub").await.unwrap();
    let name = Names::of(&hub).account;
    let reports: Api<ClusterReport> = Api::namespaced(admin.clone(), "portolan");
    let status =
        json!({"observedAt": fleet.world.clock().now(), "latencies": [{"to": "rome", "rtt": "7ms"}]});
    let measured = Patch::Merge(json!({ "status": status }));
    reports.patch_status(&name, &PatchParams::default(), &measured).await.unwrap();
    pass(60).await;
    let reported = async || {
        let api: Api<ForeignCluster> = Api::all(user.clone());
        let latencies = api.get("paris").await.unwrap().status.unwrap_or_default().reported_latencies;
        latencies.into_iter().map(|each| each.to).collect::<Vec<_>>()
    };
    assert_eq!(reported().await, ["rome"]);
    controller.abort();
    let roles: Api<Role> = Api::namespaced(admin, "portolan");
    roles.delete(&name, &DeleteParams::default()).await.unwrap();
    let _controller = fleet.control_with(measuring()).await;
    pass(400).await;
    assert_eq!(reported().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn the_rights_of_peering_do_for_a_report_which_goes_when_the_hub_leaves() {
    let fleet = Fleet::new();
    let admin = fleet.members[0].client("admin");
    define_reports(&admin).await;
    fleet.join(&peer("paris")).await.unwrap();
    fleet.join(&peer("rome")).await.unwrap();
    let controller = fleet.control_with(measuring()).await;
    pass(60).await;
    let user = fleet.hub.client("user");
    let hub = identity(&user, "the hub").await.unwrap();
    let name = Names::of(&hub).account;
    let reports: Api<ClusterReport> = Api::namespaced(admin.clone(), "portolan");
    let measured = Patch::Merge(json!({"status": {"observedAt": fleet.world.clock().now()}}));
    reports.patch_status(&name, &PatchParams::default(), &measured).await.unwrap();
    pass(60).await;
    let targets = reports.get(&name).await.unwrap().spec.targets;
    let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["rome"], "a member that measures learns where the others are");
    controller.abort();
    assert!(leave_hub(&user, "paris").await.unwrap());
    let came = leave_member(&admin, &hub).await.unwrap();
    assert!(came.went.contains(&format!("ClusterReport portolan/{name}")), "{:?}", came.went);
    assert_eq!(came.stays, [""; 0]);
    assert!(reports.get_opt(&name).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn leaving_takes_back_what_joining_made() {
    let fleet = Fleet::new();
    fleet.join(&peer("paris")).await.unwrap();
    fleet.join(&peer("rome")).await.unwrap();
    let controller = fleet.control().await;
    let user = fleet.hub.client("user");
    apply(&user, &open_namespace()).await;
    apply(&user, &workload("web", 2, json!({"placementPolicy": "worst-fit"}))).await;
    pass(20).await;
    let home = fleet.status("web").await.locations[0].clone();
    let other = if home == "paris" { "rome" } else { "paris" };
    assert_eq!(holdings(&user, &home).await.unwrap().len(), 1);

    // What a member that is to be left holds goes elsewhere first.
    let clusters: Api<ForeignCluster> = Api::all(user.clone());
    let taints = json!([{"key": "portolan.dev/leaving", "effect": "NoExecute"}]);
    let taint = Patch::Merge(json!({"spec": {"taints": taints}}));
    clusters.patch(&home, &PatchParams::default(), &taint).await.unwrap();
    pass(30).await;
    let status = fleet.status("web").await;
    assert_eq!(status.locations_summary.as_deref(), Some(format!("{other}=2").as_str()));
    assert!(holdings(&user, &home).await.unwrap().is_empty());

    controller.abort();
    let hub = identity(&user, "the hub").await.unwrap();
    assert!(leave_hub(&user, &home).await.unwrap());
    assert!(!leave_hub(&user, &home).await.unwrap(), "it is gone already");
    let member = fleet.world.cluster(&home).unwrap().client("admin");
    let came = leave_member(&member, &hub).await.unwrap();
    assert_eq!(came.stays, [""; 0]);
    let went = came.went;
    for namespace in ["portolan", NAMESPACE] {
        assert!(went.contains(&format!("Namespace {namespace}")), "{went:?}");
    }
    assert!(went.iter().any(|each| each.starts_with("ServiceAccount portolan/hub-")), "{went:?}");
    let roles: Api<ClusterRole> = Api::all(member.clone());
    let bindings: Api<ClusterRoleBinding> = Api::all(member.clone());
    let in_namespaces: Api<RoleBinding> = Api::all(member);
    let ours = |name: Option<String>| name.is_some_and(|name| name.contains("hub-"));
    assert!(
        !roles
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .any(|each| ours(each.metadata.name))
    );
    assert!(
        !bindings
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .any(|each| ours(each.metadata.name))
    );
    assert!(
        !in_namespaces
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .into_iter()
            .any(|each| ours(each.metadata.name))
    );
    let secrets: Api<Secret> = Api::namespaced(user, "portolan");
    assert!(secrets.get_opt(&home).await.unwrap().is_none());
    assert!(secrets.get_opt(other).await.unwrap().is_some(), "the other member's stays");
}

#[tokio::test(start_paused = true)]
async fn leaving_leaves_what_others_made_or_use_and_says_why() {
    let fleet = Fleet::new();
    let paris = fleet.members[0].client("admin");
    // One namespace was there before, closed; one was opened by the member itself; one is made by peering.
    let before = |name: &str, labels: serde_json::Value| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    apply(&paris, &before("old", json!({}))).await;
    apply(&paris, &before("theirs", json!({"portolan.dev/placement": "allowed"}))).await;
    let namespaces = ["old", "theirs", "new", "used"].map(str::to_owned).to_vec();
    fleet.join(&Peer { namespaces, ..peer("paris") }).await.unwrap();
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "used"}});
    apply(&paris, &map).await;
    pass(5).await;

    let hub = identity(&fleet.hub.client("admin"), "the hub").await.unwrap();
    let came = leave_member(&paris, &hub).await.unwrap();
    let expected = [
        "label portolan.dev/placement of Namespace theirs: somebody else set it",
        "Namespace used: ConfigMap mine is in it",
    ];
    assert_eq!(came.stays, expected);
    for gone in ["label portolan.dev/placement of Namespace old", "Namespace new", "Namespace portolan"] {
        assert!(came.went.contains(&gone.to_owned()), "{gone}: {:?}", came.went);
    }
    pass(30).await;
    let api: Api<Namespace> = Api::all(paris.clone());
    let label = async |name: &str| {
        let labels = api.get(name).await.unwrap().metadata.labels.unwrap_or_default();
        labels.contains_key("portolan.dev/placement")
    };
    assert!(!label("old").await && label("theirs").await && !label("used").await);
    for gone in ["new", "portolan"] {
        assert!(api.get_opt(gone).await.unwrap().is_none(), "{gone} is still there");
    }
    let again = leave_member(&paris, &hub).await.unwrap();
    assert!(again.went.is_empty() && again.stays.is_empty(), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_keeps_its_pod_security_whichever_hubs_peer_and_part() {
    let fleet = Fleet::new();
    let (paris, rome) = (&fleet.members[0], &fleet.members[1]);
    let admin = paris.client("admin");
    let second = Sides { hub: rome.client("admin"), ..fleet.sides(paris) };
    let now = fleet.world.clock().now();
    let api: Api<Namespace> = Api::all(admin.clone());
    let level = async |name: &str| {
        let labels = api.get(name).await.unwrap().metadata.labels.unwrap_or_default();
        labels.get("pod-security.kubernetes.io/enforce").cloned()
    };
    let baseline = Some("baseline".to_owned());
    fleet.join(&peer("paris")).await.unwrap();
    join(&second, &peer("paris"), now, &|_| ()).await.unwrap();
    assert_eq!(level(NAMESPACE).await, baseline, "a second hub peers");
    assert_eq!(level("portolan").await, baseline);
    fleet.join(&peer("paris")).await.unwrap();
    assert_eq!(level(NAMESPACE).await, baseline, "the first hub peers again");

    // The hub whose peering created it leaves first, then the other one.
    let first = identity(&fleet.hub.client("admin"), "the hub").await.unwrap();
    let other = identity(&second.hub, "the hub").await.unwrap();
    leave_member(&admin, &first).await.unwrap();
    assert_eq!(level(NAMESPACE).await, baseline, "the first hub leaves");
    leave_member(&admin, &other).await.unwrap();
    assert_eq!(level(NAMESPACE).await, baseline, "the second hub leaves");

    // What its owner says stays, also if peering created the namespace.
    let owned = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    api.patch(NAMESPACE, &PatchParams::default(), &Patch::Merge(owned)).await.unwrap();
    fleet.join(&peer("paris")).await.unwrap();
    join(&second, &peer("paris"), now, &|_| ()).await.unwrap();
    assert_eq!(level(NAMESPACE).await.as_deref(), Some("restricted"));

    // A member that becomes a hub keeps the namespace that peering created in it.
    let before = api.get("portolan").await.unwrap().metadata;
    let address = Address { server: "https://rome".to_owned(), ..Address::default() };
    let as_hub = Sides { hub: admin.clone(), member: rome.client("admin"), address };
    join(&as_hub, &peer("rome"), now, &|_| ()).await.unwrap();
    let after = api.get("portolan").await.unwrap().metadata;
    assert_eq!((after.labels, after.annotations), (before.labels, before.annotations));
}

#[tokio::test(start_paused = true)]
async fn every_member_is_published_as_a_cluster_profile_that_goes_with_it() {
    let fleet = Fleet::new();
    fleet.join(&Peer { labels: region("eu-west"), ..peer("paris") }).await.unwrap();
    fleet.join(&peer("rome")).await.unwrap();
    let _controller = fleet.control().await;
    let publishing = publish(fleet.hub.client("controller"), fleet.world.clock().clone(), Seed::new(2));
    let _publishing = tokio::spawn(publishing);
    pass(30).await;
    let kind = GroupVersionKind::gvk("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile");
    let kind = ApiResource::from_gvk(&kind);
    let user = fleet.hub.client("user");
    let api: Api<DynamicObject> = Api::namespaced_with(user.clone(), "portolan", &kind);
    let profile = api.get("paris").await.unwrap().data;
    assert_eq!(profile["spec"]["clusterManager"]["name"], "portolan");
    let told = |profile: &serde_json::Value, name: &str| {
        let all = profile["status"]["properties"].as_array().unwrap().clone();
        all.into_iter().find(|each| each["name"] == name).map(|each| each["value"].clone())
    };
    let id = identity(&fleet.members[0].client("admin"), "paris").await.unwrap();
    assert_eq!(told(&profile, "clusterset.k8s.io/cluster-id"), Some(json!(id)));
    assert_eq!(told(&profile, "topology.kubernetes.io/region"), Some(json!("eu-west")));
    assert_eq!(told(&profile, "portolan.dev/capacity-cpu"), Some(json!("4")));
    assert!(profile["status"]["version"]["kubernetes"].is_string(), "{profile}");
    let healthy = |profile: &serde_json::Value| {
        let condition = &profile["status"]["conditions"][0];
        assert_eq!(condition["type"], "ControlPlaneHealthy");
        condition["status"].clone()
    };
    assert_eq!(healthy(&profile), "True");

    fleet.world.partition("controller", "paris");
    pass(30).await;
    assert_eq!(healthy(&api.get("paris").await.unwrap().data), "Unknown");
    leave_hub(&user, "rome").await.unwrap();
    pass(30).await;
    let left = api.list(&Default::default()).await.unwrap().items;
    assert_eq!(left.into_iter().filter_map(|each| each.metadata.name).collect::<Vec<_>>(), ["paris"]);
}

fn region(name: &str) -> std::collections::BTreeMap<String, String> {
    [("topology.kubernetes.io/region".to_owned(), name.to_owned())].into()
}

#[tokio::test(start_paused = true)]
async fn the_secret_says_when_its_token_ends_and_when_a_new_one_is_due() {
    let fleet = Fleet::new();
    fleet.join(&peer("paris")).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(fleet.hub.client("user"), "portolan");
    let secret = secrets.get("paris").await.unwrap();
    let facts = TokenFacts::read(&secret.metadata.annotations.unwrap()).unwrap();
    let now = fleet.world.clock().now();
    assert!((facts.expires.as_second() - now.as_second() - HOUR).abs() <= 2);
    assert!((facts.renew.as_second() - now.as_second() - HOUR / 2).abs() <= 2);
    let kubeconfig: serde_json::Value =
        serde_json::from_slice(&secret.data.unwrap()["kubeconfig"].0).unwrap();
    assert_eq!(kubeconfig["clusters"][0]["cluster"]["server"], "https://paris");
    assert!(kubeconfig["users"][0]["user"]["token"].as_str().unwrap().len() > 20);
}
