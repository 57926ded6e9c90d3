//! `install`, `upgrade` and `uninstall` as a user meets them, on a cluster whose kubelets run no images.

#![allow(clippy::unwrap_used)]

mod support;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};
use support::{World, namespace, text, workload};

const RECORD: &str = "configmaps/portolan/portolan-install ";

/// Installs Portolan in a cluster of the sandbox. Its pods are pictures: the controller that leads runs beside it.
fn install(world: &mut World, flags: &[&str]) {
    let begun = world.begin(&[&["install", "--cluster-name", "paris"], flags].concat());
    world.until_there("c1", RECORD);
    world.control();
    let ended = begun.wait_with_output().unwrap();
    assert!(ended.status.success(), "{}", text(&ended.stderr));
}

/// An object that a command would apply.
fn rendered(world: &World, arguments: &[&str], kind: &str, name: &str) -> Value {
    let printed = world.succeeds(&[arguments, &["--dry-run", "-o", "json"]].concat());
    let list: Value = serde_json::from_str(&printed).unwrap();
    let is_it = |each: &&Value| each["kind"] == kind && each["metadata"]["name"] == name;
    list["items"].as_array().unwrap().iter().find(is_it).cloned().unwrap()
}

#[test]
fn it_is_installed_once_changed_and_deleted() {
    let mut world = World::start("install", 1);
    let bare = world.everything("c1");
    install(&mut world, &["--sharing", "50%", "--cluster-labels", "tier=edge,zone=a"]);
    let first = world.everything("c1");
    world.succeeds(&["install"]);
    assert_eq!(world.everything("c1"), first, "the same again changes nothing");

    let config = |flags: &[&str]| {
        rendered(&world, &[&["upgrade"], flags].concat(), "ConfigMap", "portolan-cluster")["data"].clone()
    };
    let labels: Value = serde_json::from_str(config(&[])["labels"].as_str().unwrap()).unwrap();
    assert_eq!(labels, json!({"portolan.dev/provider": "generic", "tier": "edge", "zone": "a"}));
    let shares = |percentage: &str| {
        let deployment = rendered(&world, &["upgrade"], "Deployment", "portolan-controller");
        let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        let args = args.as_array().unwrap().clone();
        assert!(args.contains(&json!(format!("--share-by-default={percentage}"))), "{args:?}");
    };
    shares("50%");
    let has = |flags: &[&str], arg: &str| {
        let flags = [&["upgrade"], flags].concat();
        let deployment = rendered(&world, &flags, "Deployment", "portolan-controller");
        let args = deployment["spec"]["template"]["spec"]["containers"][0]["args"].clone();
        args.as_array().unwrap().contains(&json!(arg))
    };
    assert!(!has(&[], "--report-capacity") && has(&["--report-capacity"], "--report-capacity"));
    let measures = |flags: &[&str]| has(flags, "--measure-latency");
    assert!(!measures(&[]) && measures(&["--measure-latency"]));
    assert!(!measures(&["--measure-latency", "--set", "controller.measureLatency=false"]));

    world.succeeds(&["upgrade", "--enable-ha", "--set", "cluster.sharing=10%"]);
    assert_eq!(config(&[])["name"], json!("paris"));
    shares("10%");
    let budget = "poddisruptionbudgets/portolan/portolan-controller ";
    let with_budget = world.everything("c1");
    assert!(with_budget.contains(budget), "{with_budget}");
    let told = text(&world.portolan(&["upgrade", "--set", "highAvailability=false", "--dry-run"]).stderr);
    for line in [
        "would change Deployment portolan/portolan-controller",
        "would leave ServiceAccount portolan/portolan-controller as it is",
        "would delete PodDisruptionBudget portolan/portolan-controller",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    assert_eq!(world.everything("c1"), with_budget, "a dry run changes nothing");
    world.succeeds(&["upgrade", "--set", "highAvailability=false"]);
    assert!(!world.everything("c1").contains(budget));

    world.kill_controller();
    let told = text(&world.portolan(&["uninstall"]).stderr);
    assert!(told.contains("stays: Namespace portolan: --purge deletes it"), "{told}");
    let left = world.everything("c1");
    assert!(left.contains("portolan.dev ") && !left.contains("portolan-controller"), "{left}");
    let none = world.portolan(&["upgrade"]);
    assert!(text(&none.stderr).contains("no installation of Portolan is on record"));
    world.succeeds(&["uninstall", "--purge"]);
    assert_eq!(
        without_upstream(world.everything("c1")),
        bare,
        "the namespace was made by Portolan, though no record says so"
    );
}

/// Without the definition that is not Portolan's own: no record says who made it.
fn without_upstream(all: String) -> String {
    let own = |line: &&str| !line.contains("clusterprofiles.multicluster.x-k8s.io");
    all.lines().filter(own).collect::<Vec<_>>().join("\n")
}

/// The labels of namespace portolan.
fn labels(world: &World) -> Value {
    let found = world.with("c1", async |client| {
        let api: Api<Namespace> = Api::all(client);
        api.get("portolan").await.unwrap()
    });
    json!(found.metadata.labels.unwrap_or_default())
}

const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";

#[test]
fn what_pods_may_do_in_a_namespace_that_was_there_is_for_its_owner_to_say() {
    let mut world = World::start("namespace", 1);
    let mut own = namespace("portolan");
    own["metadata"]["labels"] = json!({ POD_SECURITY: "privileged", "team": "a" });
    world.apply("c1", &own);
    let before = labels(&world);
    install(&mut world, &[]);
    assert_eq!(labels(&world), before);
    world.succeeds(&["upgrade", "--set", "controller.podLabels.tier=edge"]);
    assert_eq!(labels(&world), before);
    world.kill_controller();
    world.succeeds(&["uninstall"]);
    assert_eq!(labels(&world), before);
}

#[test]
fn an_invitation_and_a_peering_leave_the_labels_of_the_namespace() {
    let mut world = World::start("labels", 2);
    install(&mut world, &[]);
    let before = labels(&world);
    assert_eq!(before[POD_SECURITY], "restricted");
    world.succeeds(&["invite"]);
    assert_eq!(labels(&world), before);
    // As a member of another hub, which leaves again.
    let peered = world.run(&["peer", "--context", "c2", "--remote-context", "c1", "--timeout", "0s"]);
    assert!(peered.status.success(), "{}", text(&peered.stderr));
    assert_eq!(labels(&world), before);
    let left = world.run(&["unpeer", "c1", "--context", "c2", "--remote-context", "c1", "--force"]);
    assert!(left.status.success(), "{}", text(&left.stderr));
    assert_eq!(labels(&world), before);
}

#[test]
fn a_purge_leaves_nothing_of_invitations() {
    let mut world = World::start("invited", 2);
    let bare = world.everything("c1");
    install(&mut world, &[]);
    world.succeeds(&["invite", "-n", "market"]);
    let line = world.run(&["invite", "--context", "c2"]);
    assert!(line.status.success(), "{}", text(&line.stderr));
    // An invitation that is given up leaves the key of the consumer.
    let given_up = world.with_input("c1", &["peer", "-", "--timeout", "0s"], &text(&line.stdout));
    assert_eq!(given_up.status.code(), Some(1));
    let keys =
        |all: &str| all.lines().filter(|line| line.starts_with("secrets/portolan/invitation-")).count();
    assert_eq!(keys(&world.everything("c1")), 2);
    world.kill_controller();
    world.succeeds(&["uninstall"]);
    let left = world.everything("c1");
    assert!(!left.contains("invitation-"), "without --purge too nobody can use them any more: {left}");
    assert!(left.contains("namespaces//market "), "{left}");
    world.succeeds(&["uninstall", "--purge"]);
    assert_eq!(without_upstream(world.everything("c1")), bare);
}

#[test]
fn what_the_installation_tells_is_what_others_are_told() {
    let mut world = World::start("told", 2);
    let url = "https://paris.example:6443";
    install(&mut world, &["--api-server-url", url, "--cluster-labels", "tier=edge"]);
    let line = portolan_core::tenancy::InvitationLine::decode(&world.succeeds(&["invite"])).unwrap();
    assert_eq!((line.server.as_str(), line.provider.name.as_str()), (url, "paris"));
    let flags = ["invite", "--server", "https://10.0.0.5:6443", "--cluster-name", "lyon"];
    let line = portolan_core::tenancy::InvitationLine::decode(&world.succeeds(&flags)).unwrap();
    assert_eq!((line.server.as_str(), line.provider.name.as_str()), ("https://10.0.0.5:6443", "lyon"));
    let flags = ["peer", "--context", "c2", "--remote-context", "c1", "--timeout", "0s", "-o", "json"];
    let peered = world.run(&flags);
    assert!(peered.status.success(), "{}", text(&peered.stderr));
    assert!(text(&peered.stderr).contains(url), "{}", text(&peered.stderr));
    let peered: Value = serde_json::from_slice(&peered.stdout).unwrap();
    assert!(peered.to_string().contains(r#""tier":"edge""#), "{peered:#}");
}

/// Changes a definition as another version would have it: with one field more, and the version that it says it is of.
fn redefine(world: &World, context: &str, version: &str) {
    world.with(context, async |client| {
        let api: Api<CustomResourceDefinition> = Api::all(client);
        let mut crd = api.get("invitations.portolan.dev").await.unwrap();
        let labels = crd.metadata.labels.get_or_insert_default();
        labels.insert("app.kubernetes.io/version".to_owned(), version.to_owned());
        let schema = crd.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        let spec = schema.properties.as_mut().unwrap().get_mut("spec").unwrap();
        let more = serde_json::from_value(json!({"type": "string"})).unwrap();
        spec.properties.as_mut().unwrap().insert("newField".to_owned(), more);
        api.replace("invitations.portolan.dev", &Default::default(), &crd).await.unwrap();
    });
}

/// Whether that field is still there.
fn has_field(world: &World, context: &str) -> bool {
    world.with(context, async |client| {
        let api: Api<CustomResourceDefinition> = Api::all(client);
        let crd = api.get("invitations.portolan.dev").await.unwrap();
        serde_json::to_string(&crd.spec).unwrap().contains("newField")
    })
}

#[test]
fn commands_of_another_version_leave_definitions_and_roles_to_the_installer() {
    let mut world = World::start("versions", 2);
    install(&mut world, &[]);
    let other = |minor: u64| {
        let own: Vec<u64> = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap()).collect();
        format!("{}.{}.0", own[0], own[1] + minor)
    };
    redefine(&world, "c1", &other(1));
    world.with("c1", async |client| {
        let roles: Api<ClusterRole> = Api::all(client);
        roles.delete("portolan-tenant-sight", &Default::default()).await.unwrap();
    });
    world.succeeds(&["invite"]);
    world.succeeds(&["peer", "--remote-context", "c2", "--timeout", "0s"]);
    assert!(has_field(&world, "c1"));
    assert!(!world.everything("c1").contains("portolan-tenant-sight "), "roles are the installer's");
    let record = |version: &str| {
        let patch = json!({"data": {"version": version}});
        world.with("c1", async |client| {
            let maps: Api<ConfigMap> = Api::namespaced(client, "portolan");
            maps.patch("portolan-install", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        });
    };
    record(&other(1));
    world.succeeds(&["invite"]);
    record(&other(2));
    for command in [&["invite"][..], &["peer", "--remote-context", "c2", "--timeout", "0s"]] {
        let refused = world.portolan(command);
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{told}");
        assert!(told.contains(&other(2)) && told.contains("portolan upgrade"), "{told}");
    }

    // Without an installation a newer version replaces, and an older one takes nothing away.
    let invite = |world: &World| world.run(&["invite", "--context", "c2"]);
    assert!(invite(&world).status.success());
    redefine(&world, "c2", &other(1));
    assert!(invite(&world).status.success());
    assert!(has_field(&world, "c2"));
    redefine(&world, "c2", &other(2));
    let refused = invite(&world);
    assert!(text(&refused.stderr).contains(&other(2)), "{}", text(&refused.stderr));
    redefine(&world, "c2", "0.0.1");
    assert!(invite(&world).status.success());
    assert!(!has_field(&world, "c2"));
}

#[test]
fn what_helm_installed_is_left_to_helm() {
    let world = World::start("helm", 1);
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["crds", "--roles", "-o", "json"])
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&program.stdout).unwrap();
    for object in list["items"].as_array().unwrap() {
        world.apply("c1", object);
    }
    let mut deployment = rendered(&world, &["install"], "Deployment", "portolan-controller");
    deployment["metadata"]["annotations"] = json!({"meta.helm.sh/release-name": "fleet"});
    deployment["metadata"]["labels"]["app.kubernetes.io/version"] = json!("99.0.0");
    world.apply("c1", &deployment);
    let refused = world.portolan(&["invite"]);
    let told = text(&refused.stderr);
    assert!(told.contains("99.0.0") && told.contains("helm upgrade fleet --namespace portolan"), "{told}");
}

#[test]
fn a_purge_leaves_the_cluster_as_it_was() {
    let mut world = World::start("purge", 1);
    let bare = world.everything("c1");
    let parts = "crds.experimental=true,controller.hubAsMember=true";
    let all = ["--enable-ha", "--measure-latency", "--report-capacity", "--set", parts];
    install(&mut world, &all);
    assert!(world.everything("c1").contains("rolebindings/portolan/portolan-measurement "));
    assert!(world.everything("c1").contains("rolebindings/portolan/portolan-capacity-report "));
    world.kill_controller();
    let dry = world.succeeds(&["uninstall", "--purge", "--dry-run"]);
    assert!(
        dry.contains("would delete Namespace portolan") && dry.contains("portolan-hub-as-member"),
        "{dry}"
    );
    world.succeeds(&["uninstall", "--purge"]);
    assert_eq!(world.everything("c1"), bare);
    let again = world.portolan(&["uninstall", "--purge"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
}

#[test]
fn what_others_have_by_the_same_name_is_not_uninstalled() {
    let world = World::start("strangers", 1);
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "portolan-controller"},
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}],
    });
    world.apply("c1", &role);
    let before = world.everything("c1");
    let dry = world.portolan(&["uninstall", "--dry-run"]);
    assert_eq!(dry.status.code(), Some(2), "{}", text(&dry.stdout));
    let refused = world.portolan(&["uninstall", "--purge"]);
    assert_eq!(refused.status.code(), Some(2));
    let told = text(&refused.stderr);
    assert!(
        told.contains("ClusterRole portolan-controller: nothing in it says that it is Portolan's"),
        "{told}"
    );
    assert_eq!(world.everything("c1"), before);
}

#[test]
fn what_does_not_run_in_time_is_rolled_back() {
    let mut world = World::start("rollback", 1);
    let bare = world.everything("c1");
    let large = ["--set", "controller.resources.requests.cpu=100", "--timeout", "10s"];
    let failed = world.portolan(&[&["install"], &large[..]].concat());
    let told = text(&failed.stderr);
    assert_eq!(failed.status.code(), Some(1), "{told}");
    assert!(told.contains("has no node") && told.contains("everything is as it was before"), "{told}");
    assert_eq!(world.everything("c1"), bare);

    install(&mut world, &[]);
    let fine = world.everything("c1");
    let pods = |world: &World| {
        rendered(world, &["upgrade"], "Deployment", "portolan-controller")["spec"]["template"].clone()
    };
    let template = pods(&world);
    let failed = world.portolan(&[&["upgrade", "--enable-ha"], &large[..]].concat());
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
    assert_eq!(pods(&world), template, "the values are those of before");
    let without_revisions = |all: String| {
        let lines = all.lines().filter(|line| !line.starts_with("replicasets/"));
        lines.map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(without_revisions(world.everything("c1")), without_revisions(fine));
    world.succeeds(&["upgrade"]);
}

#[test]
fn a_quota_that_leaves_no_room_is_told() {
    let world = World::start("quota", 1);
    world.apply("c1", &namespace("portolan"));
    let meta = json!({"name": "none", "namespace": "portolan"});
    let spec = json!({"hard": {"pods": "0"}});
    world.apply("c1", &json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}));
    let before = world.everything("c1");
    let failed = world.portolan(&["install", "--timeout", "15s"]);
    let told = text(&failed.stderr);
    assert!(told.contains("no pod can be created") && told.contains("exceeded quota"), "{told}");
    assert_eq!(world.everything("c1"), before, "a namespace that was there stays");
}

#[test]
fn an_interrupted_installation_goes_on_and_can_be_deleted() {
    let mut world = World::start("interrupted", 1);
    let bare = world.everything("c1");
    for _ in 0..2 {
        let mut begun = world.begin(&["install"]);
        world.until_there("c1", "deployments/portolan/portolan-controller ");
        begun.kill().unwrap();
        begun.wait().unwrap();
    }
    world.succeeds(&["uninstall", "--purge"]);
    assert_eq!(world.everything("c1"), bare, "what the interrupted run made is known as such");
    let mut begun = world.begin(&["install"]);
    world.until_there("c1", RECORD);
    begun.kill().unwrap();
    begun.wait().unwrap();
    world.control();
    world.succeeds(&["install"]);
}

#[test]
fn what_kubectl_applied_is_taken_over_and_deleted() {
    let mut world = World::start("adopted", 1);
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["crds", "--roles", "-o", "json"])
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&program.stdout).unwrap();
    for object in list["items"].as_array().unwrap() {
        world.apply("c1", object);
    }
    world.control();
    world.succeeds(&["install"]);
    world.kill_controller();
    let told = text(&world.portolan(&["uninstall", "--purge"]).stderr);
    assert!(told.contains("Namespace portolan: it was there before"), "{told}");
    let left = world.everything("c1");
    assert!(!left.contains("portolan-controller ") && !left.contains(".portolan.dev "), "{left}");
    assert!(left.contains("clusterprofiles.multicluster.x-k8s.io"), "not Portolan's own: {left}");
}

#[test]
fn a_cluster_in_use_is_not_uninstalled() {
    let mut world = World::start("in-use", 2);
    install(&mut world, &[]);
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 1, "100m", &json!({"placementPolicy": "worst-fit"})));
    world.until(&["get", "mcd", "-n", "shop"], &["1/1"]);
    let before = world.everything("c1");
    let refused = world.portolan(&["uninstall", "--purge"]);
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("ForeignCluster c2, MultiClusterDeployment shop/web"), "{told}");
    assert_eq!(world.everything("c1"), before);
    let member = world.run(&["uninstall", "--purge", "--context", "c2"]);
    let told = text(&member.stderr);
    assert!(told.contains("a member of other hubs") && told.contains("hub-"), "{told}");
}

#[test]
fn who_may_not_is_told_before_anything_is_made() {
    let world = World::start("rights", 1);
    world.apply("c1", &namespace("team"));
    let token = world.account("team", "alice");
    let read = json!([
        {"apiGroups": ["", "apps", "policy", "rbac.authorization.k8s.io", "apiextensions.k8s.io", "admissionregistration.k8s.io"],
         "resources": ["*"], "verbs": ["get", "list"]},
    ]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "look"}, "rules": read});
    world.apply("c1", &role);
    let to = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "look"});
    world.apply("c1", &json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "look"},
        "roleRef": to, "subjects": [{"kind": "ServiceAccount", "namespace": "team", "name": "alice"}],
    }));
    let before = world.everything("c1");
    let refused = world.as_token(&token, &["install"]);
    let told = text(&refused.stderr);
    assert!(told.contains("rights are missing") && told.contains("create clusterroles"), "{told}");
    assert_eq!(world.everything("c1"), before);
}

#[test]
fn values_that_are_wrong_are_refused_and_those_that_are_right_are_written() {
    let world = World::start("values", 1);
    let bare = world.everything("c1");
    let file = world.write_text("values.yaml", "image: {pullPolicy: Always}\ncluster: {name: rome}\n");
    let wrong: [(&[&str], &str); 7] = [
        (&["--set", "controller.replicas=3"], "value controller.replicas: unknown field"),
        (&["--set", "highAvailability=perhaps"], "value highAvailability: invalid type"),
        (&["--set", "highAvailability"], "PATH=VALUE"),
        (&["--sharing", "all"], "value cluster.sharing"),
        (&["--cluster-labels", "tier"], "KEY=VALUE"),
        (&["kind", "--eks-cluster-name", "paris"], "flags of eks"),
        (&["abacus"], "no provider"),
    ];
    for (flags, word) in wrong {
        let refused = world.portolan(&[&["install"], flags].concat());
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{flags:?}: {told}");
        assert!(told.contains(word), "{flags:?}: {told}");
    }
    let flags = ["install", "eks", "--eks-cluster-name", "Paris_1", "--eks-cluster-region", "eu-west-1"];
    let config =
        rendered(&world, &[&flags[..], &["--sharing", "20%"]].concat(), "ConfigMap", "portolan-cluster");
    assert_eq!(config["data"]["name"], "paris-1");
    assert!(
        config["data"]["labels"].as_str().unwrap().contains(r#""topology.kubernetes.io/region":"eu-west-1""#)
    );
    let flags = ["install", "--values", &file, "--cluster-name", "oslo", "--set", "image.tag=1.2"];
    let deployment = rendered(&world, &flags, "Deployment", "portolan-controller");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "ghcr.io/portolan-dev/portolan:1.2");
    assert_eq!(container["imagePullPolicy"], "Always");

    let out = world.write_text("out.yaml", "");
    let write = ["--only-output-values", "--dump-values-path", &out];
    world.succeeds(&[&flags[..], &write].concat());
    let written = std::fs::read_to_string(&out).unwrap();
    assert!(written.contains("name: oslo") && written.contains("pullPolicy: Always"), "{written}");
    world.succeeds(&["install", "--values", &out, "--dry-run"]);
    assert_eq!(world.everything("c1"), bare);
}

/// Flags that other programs need are taken, and what they are worth is said.
#[test]
fn flags_of_clouds_that_are_not_needed_are_ignored_with_a_warning() {
    let world = World::start("unneeded", 1);
    let bare = world.everything("c1");
    let gke = ["install", "gke", "--project-id", "p", "--cluster-id", "lyon", "--zone", "europe-west1-b"];
    let flags = ["--credentials-path", "/no/such/file", "--disable-endpoint-check", "--dry-run"];
    let output = world.portolan(&[&gke[..], &flags].concat());
    let told = text(&output.stderr);
    assert!(output.status.success(), "{told}");
    for flag in ["--credentials-path", "--disable-endpoint-check"] {
        assert!(told.contains(&format!("warning: {flag}: it is not needed and ignored")), "{told}");
    }
    let without = world.portolan(&[&gke[..], &["--dry-run"]].concat());
    assert!(!text(&without.stderr).contains("warning"), "{}", text(&without.stderr));
    assert_eq!(output.stdout, without.stdout, "they change nothing");

    let shares = |flags: &[&str]| {
        let flags = [&["install"], flags].concat();
        rendered(&world, &flags, "Deployment", "portolan-controller")["spec"]["template"].clone()
    };
    let expected = shares(&["--sharing", "30%"]);
    assert!(expected.to_string().contains("--share-by-default=30%"), "{expected}");
    assert_eq!(shares(&["--sharing-percentage", "30"]), expected);
    assert_eq!(shares(&["--sharing-percentage", "30%"]), expected);
    let refused = world.portolan(&["install", "--sharing-percentage", "130"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert_eq!(world.everything("c1"), bare);
}

/// A definition as the Prometheus Operator has it, as far as names go.
fn operator_crd(kind: &str) -> Value {
    let (singular, plural) = (kind.to_lowercase(), format!("{}s", kind.to_lowercase()));
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
        "spec": {
            "group": "monitoring.coreos.com", "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
        },
    })
}

#[test]
fn what_prometheus_needs_is_installed_on_request_where_its_operator_is() {
    let mut world = World::start("monitoring", 1);
    let bare = world.everything("c1");
    let flags = ["--set", "monitoring.enabled=true,monitoring.labels.release=prometheus"];
    let refused = world.portolan(&[&["install"], &flags[..]].concat());
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("does not serve ServiceMonitor of monitoring.coreos.com/v1"), "{told}");
    assert!(told.contains("Prometheus Operator"), "{told}");
    assert_eq!(world.everything("c1"), bare, "nothing was made");

    for kind in ["ServiceMonitor", "PrometheusRule"] {
        world.apply("c1", &operator_crd(kind));
    }
    world.until_there("c1", "customresourcedefinitions//servicemonitors.monitoring.coreos.com ");
    let bare = world.everything("c1");
    install(&mut world, &flags);
    let objects = [
        "services/portolan/portolan-controller ",
        "servicemonitors/portolan/portolan-controller ",
        "prometheusrules/portolan/portolan-controller ",
        "configmaps/portolan/portolan-dashboard ",
    ];
    let all = world.everything("c1");
    assert!(objects.iter().all(|object| all.contains(object)), "{all}");
    let rule = rendered(&world, &["upgrade"], "PrometheusRule", "portolan-controller");
    assert_eq!(rule["metadata"]["labels"]["release"], "prometheus");
    world.succeeds(&["upgrade", "--set", "monitoring.enabled=false"]);
    let all = world.everything("c1");
    assert!(!objects.iter().any(|object| all.contains(object)), "{all}");
    world.succeeds(&["upgrade", "--set", "monitoring.enabled=true"]);
    world.kill_controller();
    world.succeeds(&["uninstall", "--purge"]);
    assert_eq!(world.everything("c1"), bare);
}
