//! The commands on members and on one workload over its members, as a user meets them.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::{World, job, namespace, text, workload};

/// An escape sequence, a line that looks like one of ours, and a mark that reverses what follows.
const HOSTILE: &str = "v1\u{1b}]0;x\u{7}\u{1b}[2J\nc9  True  forged\u{202e}";

fn assert_harmless(what: &str, output: &str) {
    let odd = |each: char| each != '\n' && (each.is_control() || each == '\u{202e}');
    assert!(!output.contains(odd), "{what}: {output:?}");
}

#[test]
fn no_text_of_an_object_reaches_the_terminal_raw() {
    // Without a controller: what the hub holds is what a hostile member made it hold.
    let world = World::start("hostile", 2);
    world.portolan(&["peer", "--remote-context", "c2", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 1, "100m", &json!({"locations": ["c2"]})));
    let condition = json!([{
        "type": "Ready", "status": "False", "reason": "Failed", "message": HOSTILE,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]);
    let version = json!({"kubernetesVersion": HOSTILE, "conditions": condition});
    world.set_status("foreignclusters", None, "c2", &version);
    let placements = json!([{"cluster": "c2", "replicas": 1, "state": "Failed", "message": HOSTILE}]);
    let status = json!({
        "readySummary": HOSTILE, "conditions": condition, "placements": placements, "observedGeneration": 1,
    });
    world.set_status("multiclusterdeployments", Some("shop"), "web", &status);

    let clusters = text(&world.portolan(&["get", "clusters"]).stdout);
    assert_harmless("get clusters", &clusters);
    assert_eq!(clusters.lines().count(), 2, "a row was forged: {clusters}");
    let workloads = text(&world.portolan(&["get", "mcd", "-n", "shop", "-o", "wide"]).stdout);
    assert_harmless("get mcd", &workloads);
    assert_eq!(workloads.lines().count(), 2, "a row was forged: {workloads}");
    for command in [&["status"][..], &["status", "mcd", "web", "-n", "shop"], &["status", "clusters/c2"]] {
        let output = world.portolan(command);
        assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
        assert_harmless(&command.join(" "), &text(&output.stdout));
        assert!(!text(&output.stdout).lines().any(|line| line.starts_with("c9")), "{command:?}");
    }
    for format in ["json", "yaml"] {
        let data = text(&world.portolan(&["get", "clusters", "c2", "-o", format]).stdout);
        assert!(!data.contains(['\u{1b}', '\u{202e}']), "{format}: {data:?}");
        let read: Value = match format {
            "json" => serde_json::from_str(&data).unwrap(),
            _ => serde_saphyr::from_str(data.trim_start_matches("---\n")).unwrap(),
        };
        assert_eq!(read["status"]["kubernetesVersion"], HOSTILE, "data stays the same data");
    }
}

#[test]
fn members_are_cordoned_and_uncordoned() {
    let world = World::start("cordon", 2);
    world.portolan(&["peer", "--remote-context", "c2", "--timeout", "0s"]);
    assert_eq!(world.succeeds(&["cordon", "c2"]), "foreigncluster.portolan.dev/c2 cordoned\n");
    assert_eq!(world.succeeds(&["cordon", "c2"]), "foreigncluster.portolan.dev/c2 already cordoned\n");
    let leaving = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "c2"},
        "spec": {"taints": [{"key": "portolan.dev/leaving", "effect": "NoExecute"}]},
    });
    world.apply("c1", &leaving);
    assert_eq!(world.succeeds(&["uncordon", "c2"]), "foreigncluster.portolan.dev/c2 uncordoned\n");
    let object: Value = serde_json::from_str(&world.succeeds(&["get", "fc", "c2", "-o", "json"])).unwrap();
    assert!(object["spec"].get("taints").is_none_or(|taints| taints == &json!([])), "{object}");
    assert_ne!(object["spec"]["unschedulable"], true);
    let unknown = world.portolan(&["cordon", "c2", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(text(&unknown.stderr).contains("\"nowhere\" not found"), "{}", text(&unknown.stderr));
    assert!(unknown.stdout.is_empty(), "nothing is changed before all names are known");
}

#[test]
fn logs_and_events_come_from_all_clusters_with_the_users_own_contexts() {
    let mut world = World::start("logs", 3);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.succeeds(&["peer", "--remote-context", "c3", "-n", "shop", "--name", "rome"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 1, "100m", &json!({"locations": ["c2", "rome"]})));
    world.until(&["get", "mcd", "-n", "shop"], &["2/2"]);

    let none = world.portolan(&["logs", "mcd/web", "-n", "shop"]);
    assert_eq!(none.status.code(), Some(2), "{}", text(&none.stderr));
    let told = text(&none.stderr);
    for words in
        ["rome: the kubeconfig has no context \"rome\"", "c1, c2, c3", "--member-context rome=CONTEXT"]
    {
        assert!(told.contains(words), "{words}: {told}");
    }
    assert!(text(&none.stdout).lines().all(|line| line.starts_with("[c2/web-")), "{}", text(&none.stdout));
    let wrong = world.portolan(&["logs", "mcd/web", "-n", "shop", "--member-context", "rome=c2"]);
    assert!(text(&wrong.stderr).contains("leads to another cluster than rome"), "{}", text(&wrong.stderr));
    let context = ["--member-context", "rome=c3"];
    world.succeeds(&[&["logs", "mcd", "web", "-n", "shop", "--tail", "5"][..], &context].concat());
    let mistyped =
        [&["logs", "mcd/web", "-n", "shop"][..], &context, &["--member-context", "roma=c3"]].concat();
    let mistyped = world.portolan(&mistyped);
    assert_eq!(mistyped.status.code(), Some(0), "a list of contexts serves for longer than a member stays");
    assert!(text(&mistyped.stderr).contains("--member-context roma"), "{}", text(&mistyped.stderr));
    let elsewhere = world.portolan(&["logs", "mcd/web", "-n", "shop", "--cluster", "c9"]);
    assert!(text(&elsewhere.stderr).contains("it is in c2, rome"), "{}", text(&elsewhere.stderr));

    let events = world.succeeds(&[&["events", "mcd/web", "-n", "shop"][..], &context].concat());
    for words in ["LAST SEEN", " hub ", " c2 ", " rome ", "deployment/web", "multiclusterdeployment/web"] {
        assert!(events.contains(words), "{words}: {events}");
    }
}

#[test]
fn versions_of_all_parts_are_printed() {
    let mut world = World::start("version", 2);
    let client = world.succeeds(&["version", "--client"]);
    assert_eq!(client, format!("client      {}\n", env!("CARGO_PKG_VERSION")));
    let empty = world.succeeds(&["version"]);
    assert!(empty.contains("none has led yet") && empty.contains("`portolan peer` installs them"), "{empty}");
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2"]);
    let controller = format!("controller  {}, leader ", env!("CARGO_PKG_VERSION"));
    world.until(&["version"], &[&controller, "MultiClusterDeployment", "Kubernetes v1."]);
    let data: Value = serde_json::from_str(&world.succeeds(&["version", "-o", "json"])).unwrap();
    assert_eq!(data["client"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_job_that_runs_is_well_and_objects_are_named_in_either_form() {
    let mut world = World::start("forms", 2);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &job("sum", 1, "100m", &json!({"locations": ["c2"]})));
    world.until(&["get", "mcj", "-n", "shop"], &["STATUS", "Running"]);
    let fleet = world.portolan(&["status"]);
    assert_eq!(fleet.status.code(), Some(0), "{}", text(&fleet.stdout));
    assert!(text(&fleet.stdout).starts_with("1 member, 1 ready\n"), "{}", text(&fleet.stdout));
    assert!(world.succeeds(&["status", "mcj", "sum", "-n", "shop"]).contains("0/1 finished"));
    let member = world.succeeds(&["status", "clusters/c2"]);
    assert!(member.contains("nodes ready") && member.contains("mcj/sum in shop"), "{member}");
    let data: Value = serde_json::from_str(&world.succeeds(&["status", "-o", "json"])).unwrap();
    assert_eq!((&data["ready"], &data["clusters"][0]["name"]), (&json!(true), &json!("c2")), "{data}");

    let list: Value = serde_json::from_str(&world.succeeds(&["get", "clusters", "-o", "json"])).unwrap();
    assert_eq!(
        (&list["kind"], list["items"].as_array().unwrap().len()),
        (&json!("List"), 1),
        "as kubectl does"
    );
    let bare = world.succeeds(&["get", "clusters", "--no-headers"]);
    assert!(bare.starts_with("c2 ") && bare.lines().count() == 1, "{bare}");
    let missing = world.portolan(&["status", "mcd/nothing", "-n", "shop"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("not found in namespace shop"), "{}", text(&missing.stderr));
    let kind = world.portolan(&["status", "web"]);
    assert_eq!(kind.status.code(), Some(2));
    assert!(text(&kind.stderr).contains("give mcd/web"), "{}", text(&kind.stderr));
}

#[test]
fn status_says_that_no_controller_leads() {
    let mut world = World::start("leader", 2);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    let well = world.portolan(&["status"]);
    assert_eq!(well.status.code(), Some(0), "{}{}", text(&well.stdout), text(&well.stderr));
    assert!(!text(&well.stdout).contains("controller"), "{}", text(&well.stdout));
    world.kill_controller();
    let alone = world.until(&["status"], &["no controller leads: Lease portolan/portolan-controller"]);
    assert_eq!(alone.status.code(), Some(3), "{}", text(&alone.stdout));
    assert!(text(&alone.stdout).contains("1 member, 1 ready"), "{}", text(&alone.stdout));
    let data = world.portolan(&["status", "clusters/c2", "-o", "json"]);
    assert_eq!(data.status.code(), Some(3));
    let data: Value = serde_json::from_slice(&data.stdout).unwrap();
    assert_eq!((&data["ready"], &data["controller"]["ready"]), (&json!(false), &json!(false)), "{data}");
}

#[test]
fn members_that_leave_or_have_orphans_are_marked() {
    let world = World::start("marks", 2);
    world.portolan(&["peer", "--remote-context", "c2", "--timeout", "0s"]);
    let condition = |type_: &str, message: &str| {
        json!({
            "type": type_, "status": "True", "reason": "Some", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        })
    };
    let lost = "1 objects were placed by this hub and have no object in it; see `portolan adopt --list`";
    let status = json!({"conditions": [condition("Ready", "fine"), condition("Orphaned", lost)]});
    world.set_status("foreignclusters", None, "c2", &status);
    let clusters = world.succeeds(&["get", "clusters"]);
    assert!(clusters.contains(" True,Orphans "), "{clusters}");
    let leaving = json!({
        "apiVersion": "portolan.dev/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": "c2"},
        "spec": {"taints": [{"key": "portolan.dev/leaving", "effect": "NoExecute"}]},
    });
    world.apply("c1", &leaving);
    let clusters = world.succeeds(&["get", "clusters"]);
    assert!(clusters.contains(" True,Leaving,Orphans "), "{clusters}");
    let fleet = text(&world.portolan(&["status"]).stdout);
    assert!(fleet.contains(", leaving, orphans: `portolan adopt --list` names them"), "{fleet}");
    let member = text(&world.portolan(&["status", "clusters/c2"]).stdout);
    assert!(member.contains("member c2, leaving, orphans, "), "{member}");
    let list = world.succeeds(&["adopt", "--list"]);
    assert!(!list.contains("adopt --list"), "{list}");
}

#[test]
fn what_cannot_be_adopted_is_refused_also_in_a_dry_run() {
    let world = World::start("adopt", 2);
    world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    for name in ["web", "legacy"] {
        world.apply("c1", &workload(name, 1, "100m", &json!({"locations": ["c2"]})));
    }
    let status = json!({"placements": [{"cluster": "c2", "replicas": 1}]});
    world.set_status("multiclusterdeployments", Some("shop"), "web", &status);
    let deployment = |name: &str, labels: &Value| {
        let pod = json!({"containers": [{"name": "main", "image": "app:1"}]});
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": name, "namespace": "shop", "labels": labels},
            "spec": {"selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": pod}},
        })
    };
    let (one, other) = ("6f0c2b1e-7c55-4a41-9d0c-2f4b6b8f3a10", "6f0c2b1e-7c55-4a41-9d0c-2f4b6b8f3a11");
    world.apply("c2", &deployment("legacy", &json!({})));
    world.apply("c2", &deployment("lost", &json!({"portolan.dev/hub": one})));
    world.apply("c2", &deployment("fresh", &json!({})));
    let adopt = |name: &str, more: &[&str]| {
        let output = world.portolan(&[&["adopt", "deployment", name, "-n", "shop"], more].concat());
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    for more in [&["--unmanaged"][..], &["--unmanaged", "--dry-run"]] {
        let (code, told) = adopt("web", more);
        assert!(code == Some(1) && told.contains("web is placed already: not marked"), "{told}");
    }
    let (code, told) = adopt("legacy", &["--from-hub", "abc"]);
    assert!(code == Some(2) && told.contains("\"abc\" is not the id of a hub"), "{told}");

    let create = ["--create", "--from-context", "c2", "--cluster", "c2", "--dry-run"];
    let (code, told) = adopt("legacy", &[&create[..], &["--unmanaged"]].concat());
    assert!(code == Some(1) && told.contains("shop/legacy already exists"), "{told}");
    let (code, told) = adopt("fresh", &[&create[..], &["--from-hub", one]].concat());
    assert!(code == Some(2) && told.contains("belongs to no hub"), "{told}");
    let (code, told) = adopt("lost", &[&create[..], &["--from-hub", other]].concat());
    assert!(code == Some(2) && told.contains(&format!("belongs to the hub {one}")), "{told}");
    for (name, whose) in [("fresh", &["--unmanaged"][..]), ("lost", &["--from-hub", one])] {
        let (code, told) = adopt(name, &[&create[..], whose].concat());
        assert!(code == Some(0) && told.contains("(dry run)"), "{told}");
    }
    let names = world.succeeds(&["get", "mcd", "-n", "shop", "-o", "name"]);
    assert_eq!(names.lines().count(), 2, "nothing was created: {names}");
}

#[test]
fn a_developer_sees_what_may_be_read_and_hears_what_is_missing() {
    let world = World::start("developer", 2);
    world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 1, "100m", &json!({"locations": ["c2"]})));
    let rbac = "rbac.authorization.k8s.io";
    let bind = |kind: &str, namespace: Option<&str>, role: &str| {
        let scope = if namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        json!({
            "apiVersion": format!("{rbac}/v1"), "kind": scope,
            "metadata": {"name": format!("dev-{role}"), "namespace": namespace},
            "roleRef": {"apiGroup": rbac, "kind": kind, "name": role},
            "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": "dev"}],
        })
    };
    let token = world.account("shop", "dev");
    let kinds = json!(["multiclusterdeployments", "multiclusterjobs", "multiclusterservices"]);
    world.apply("c1", &json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "kinds", "namespace": "shop"},
        "rules": [{"apiGroups": ["portolan.dev"], "resources": kinds, "verbs": ["get", "list"]}],
    }));
    world.apply("c1", &bind("Role", Some("shop"), "kinds"));

    let one = world.as_token(&token, &["status", "mcd/web", "-n", "shop"]);
    let (told, missing) = (text(&one.stdout), text(&one.stderr));
    assert!(told.contains("multiclusterdeployment shop/web"), "{told}{missing}");
    for words in
        ["not shown: cannot list the events of namespace shop", "Lease", "hint: ", "portolan-developer"]
    {
        assert!(missing.contains(words), "{words}: {missing}");
    }
    let all = world.as_token(&token, &["status", "-n", "shop"]);
    let (told, missing) = (text(&all.stdout), text(&all.stderr));
    assert!(told.starts_with("1 MultiClusterDeployment, 0 ready"), "{told}{missing}");
    assert!(missing.contains("not shown: cannot list clusters"), "{missing}");
    let everywhere = world.as_token(&token, &["status"]);
    assert_eq!(everywhere.status.code(), Some(1));
    assert!(text(&everywhere.stderr).contains("-n NAMESPACE"), "{}", text(&everywhere.stderr));
    let events = world.as_token(&token, &["events", "mcd/web", "-n", "shop"]);
    assert_eq!(events.status.code(), Some(0), "{}", text(&events.stderr));
    assert!(text(&events.stderr).contains("not shown: cannot list the events"), "{}", text(&events.stderr));

    // The roles that are printed for developers are enough.
    let mut print = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"));
    let printed = print.args(["crds", "--roles", "-o", "json"]).output().unwrap();
    let printed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let is_role = |object: &&Value| object["kind"] == "ClusterRole";
    let roles: Vec<Value> = printed["items"].as_array().unwrap().iter().filter(is_role).cloned().collect();
    roles.iter().for_each(|role| world.apply("c1", role));
    world.apply("c1", &bind("ClusterRole", Some("shop"), "portolan-developer"));
    world.apply("c1", &bind("ClusterRole", None, "portolan-fleet-viewer"));
    for command in [&["status", "-n", "shop"][..], &["status", "mcd/web", "-n", "shop"]] {
        let shown = world.as_token(&token, command);
        assert_eq!(shown.status.code(), Some(3), "{}", text(&shown.stderr));
        assert_eq!(text(&shown.stderr), "", "{command:?}");
    }
    let planned = world.as_token(&token, &["explain", "mcd/web", "-n", "shop", "--timeout", "1s"]);
    assert!(text(&planned.stderr).contains("no controller answered"), "{}", text(&planned.stderr));
}
