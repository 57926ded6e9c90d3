//! `peer`, `get`, `status` and `unpeer` as a user meets them, on clusters whose roles refuse.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use support::{World, namespace, text, workload};

#[test]
fn members_come_are_seen_and_go() {
    let mut world = World::start("peering", 3);
    world.control();
    let joined =
        world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--region", "eu", "-o", "name"]);
    assert!(joined.status.success(), "{}", text(&joined.stderr));
    assert_eq!(text(&joined.stdout), "foreigncluster.portolan.dev/c2\n");
    assert!(text(&joined.stderr).contains("making the hub's account"), "{}", text(&joined.stderr));
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.succeeds(&["peer", "--remote-context", "c3", "-n", "shop"]);

    let same = world.portolan(&["peer", "--remote-context", "c1"]);
    assert_eq!(same.status.code(), Some(1));
    assert!(text(&same.stderr).contains("one cluster") && text(&same.stderr).contains("--local"));
    let taken = world.portolan(&["peer", "--remote-context", "c3", "--name", "c2"]);
    assert!(text(&taken.stderr).contains("taken by another cluster"), "{}", text(&taken.stderr));
    let unknown = world.portolan(&["peer", "--remote-context", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("it has c1, c2, c3"), "{}", text(&unknown.stderr));

    let clusters = world.succeeds(&["get", "clusters", "-o", "wide"]);
    let line = clusters.lines().find(|line| line.starts_with("c2")).unwrap();
    assert!(line.contains("True") && line.contains(" eu ") && line.contains("Remote"), "{clusters}");
    assert_eq!(world.succeeds(&["get", "clusters", "c3", "-o", "name"]), "foreigncluster.portolan.dev/c3\n");
    let missing = world.portolan(&["get", "cluster/c9"]);
    assert!(text(&missing.stderr).contains("\"c9\" not found"), "{}", text(&missing.stderr));
    let odd = world.portolan(&["get", "pods"]);
    assert_eq!(odd.status.code(), Some(2));
    let told = text(&odd.stderr);
    assert!(told.contains("pods is no kind of Portolan") && told.contains("kubectl shows pods"), "{told}");
    assert!(
        told.contains("clusters, mcd, mcj, mcs, mchpa, cp and mcr") && !told.contains("mcd/pods"),
        "{told}"
    );

    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 2, "100m", &json!({"placementPolicy": "worst-fit"})));
    world.until(&["get", "mcd", "-n", "shop"], &["2/2"]);
    let told = world.succeeds(&["status", "mcd/web", "-n", "shop"]);
    assert!(told.contains("2/2  Ready  Policy") && told.contains("placed c"), "{told}");
    assert!(!told.contains('\u{1b}'), "colour without a terminal");
    assert!(world.succeeds(&["status"]).contains("2 members, 2 ready"));

    let home = if told.contains("c2  2/2") { "c2" } else { "c3" };
    let held = world.portolan(&["unpeer", home, "--remote-context", home]);
    assert_eq!(held.status.code(), Some(1));
    assert!(text(&held.stderr).contains("multiclusterdeployment/web in shop (2)"), "{}", text(&held.stderr));
    let gone = world.portolan(&["unpeer", home, "--remote-context", home, "--drain"]);
    assert!(gone.status.success(), "{}", text(&gone.stderr));
    assert!(!text(&gone.stderr).contains("stays in"), "{}", text(&gone.stderr));
    let moved = world.succeeds(&["status", "mcd/web", "-n", "shop"]);
    assert!(moved.contains("2/2  Ready") && !moved.contains(&format!("─ {home}")), "{moved}");
    let gone = world.portolan(&["unpeer", home]);
    assert_eq!(gone.status.code(), Some(2));
    let profiles = world.succeeds(&["get", "clusters", "-o", "name"]);
    assert_eq!(profiles.lines().count(), 1, "{profiles}");
}

#[test]
fn a_dry_run_prints_what_would_be_made_and_makes_nothing() {
    let world = World::start("dry-run", 2);
    let yaml = world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop", "--dry-run"]);
    for word in ["kind: ServiceAccount", "kind: ClusterRole", "kind: ForeignCluster", "serviceaccounts/token"]
    {
        assert!(yaml.contains(word), "{word}: {yaml}");
    }
    assert!(!yaml.contains("cluster-admin") && !yaml.contains("\"*\""));
    assert!(!yaml.contains("services/proxy"), "only who asks for it: {yaml}");
    let by_traffic = ["--traffic-from-prometheus", "monitoring/prometheus:9090", "--traffic-query", "sum(r)"];
    let peer = ["peer", "--remote-context", "c2", "--dry-run"];
    let yaml = world.succeeds(&[&peer[..], &by_traffic[..]].concat());
    for word in ["services/proxy", "prometheus:9090", "query: sum(r)", "namespace: monitoring"] {
        assert!(yaml.contains(word), "{word}: {yaml}");
    }
    let odd = world.portolan(
        &[&peer[..], &["--traffic-from-prometheus", "prometheus", "--traffic-query", "r"]].concat(),
    );
    assert_eq!(odd.status.code(), Some(2));
    assert!(text(&odd.stderr).contains("NAMESPACE/SERVICE:PORT"), "{}", text(&odd.stderr));
    let none = world.portolan(&["get", "clusters"]);
    assert_eq!(none.status.code(), Some(1), "not even the definitions are there");
    assert!(text(&none.stderr).contains("portolan peer"), "{}", text(&none.stderr));
    let alone = world.portolan(&["peer", "--remote-context", "c2", "--timeout", "1s"]);
    assert_eq!(alone.status.code(), Some(1));
    assert!(text(&alone.stderr).contains("start `portolan controller`"), "{}", text(&alone.stderr));
}

#[test]
fn flags_that_are_wrong_are_refused_before_anything_is_made() {
    let world = World::start("wrong-flags", 2);
    let wrong: [(&[&str], &str); 8] = [
        (&["--remote-server", "foo"], "https://"),
        (&["--remote-server", "http://10.0.0.5"], "clear text"),
        (&["--label", "bad key=x"], "cannot be a label"),
        (&["--region", "eu west"], "--region"),
        (&["--latency", "no where=12ms"], "--latency"),
        (&["--namespace", "kube-system"], "--allow-system-namespaces"),
        (&["--namespace", "portolan"], "--allow-system-namespaces"),
        (&["--pod-security", "none"], "--pod-security"),
    ];
    for (flags, word) in wrong {
        let refused = world.portolan(&[&["peer", "--remote-context", "c2"], flags].concat());
        let told = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{flags:?}: {told}");
        assert!(told.contains(word), "{flags:?}: {told}");
    }
    let none = world.portolan(&["get", "clusters"]);
    assert_eq!(none.status.code(), Some(1), "not even the definitions are there");
}

#[test]
fn kubeconfigs_that_cannot_be_used_are_told_without_their_secrets_and_without_a_panic() {
    let world = World::start("bad-kubeconfigs", 1);
    let run = |text: &str| {
        let file = world.write_text("bad.yaml", text);
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["get", "clusters", "--kubeconfig", &file])
            .output()
            .unwrap();
        (output.status.code(), self::text(&output.stderr))
    };
    let config = |server: &str, token: &str| {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "u"}}],
        })
        .to_string()
    };
    let (code, told) = run("users:\n- name: u\n  user:\n    token: [SECRETTOKEN]\n");
    assert!(code == Some(2) && !told.contains("SECRETTOKEN") && told.contains("not valid YAML"), "{told}");
    let (code, told) = run(&config("https://127.0.0.1:1", "SECRET\ntoken"));
    assert!(code == Some(2) && !told.contains("SECRET") && !told.contains("panicked"), "{told}");
    let (code, told) = run(&config("foo", "token"));
    assert!(code == Some(2) && told.contains("foo") && !told.contains("panicked"), "{told}");
}

#[test]
fn who_is_refused_and_which_contexts_there_are_is_told() {
    let world = World::start("refusals", 1);
    let refused = world.with_token("c1", "not-a-token");
    assert!(
        refused.contains("does not accept the credential") && !refused.contains("does not answer"),
        "{refused}"
    );
    let unknown = world.run(&["get", "clusters", "--context", "nosuch"]);
    assert!(text(&unknown.stderr).contains("it has c1"), "{}", text(&unknown.stderr));
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_member_is_not_removed_under_another_name() {
    let world = World::start("other-name", 2);
    let joined = world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    assert!(joined.status.success(), "{}", text(&joined.stderr));
    for more in [&[][..], &["--dry-run"]] {
        let wrong = world.portolan(&[&["unpeer", "c9", "--remote-context", "c2"], more].concat());
        let told = text(&wrong.stderr);
        assert_eq!(wrong.status.code(), Some(2), "{told}");
        assert!(told.contains("the cluster of context c2 is member c2"), "{told}");
        assert!(wrong.stdout.is_empty() && !told.contains("taking"), "{told}");
    }
    // The member still has what peering created: it is deleted now, and not before.
    world.succeeds(&["unpeer", "c2"]);
    let cleaned = world.portolan(&["unpeer", "c9", "--remote-context", "c2"]);
    assert!(cleaned.status.success(), "a cluster that is no member is cleaned up: {}", text(&cleaned.stderr));
    let again = world.portolan(&["unpeer", "c2", "--remote-context", "c2"]);
    let told = text(&again.stderr);
    assert_eq!(again.status.code(), Some(2), "{told}");
    assert!(told.starts_with("error: no member is called c2"), "{told}");
}

#[test]
fn a_member_that_is_being_deleted_is_not_peered_again() {
    let world = World::start("leaving", 2);
    let peer = || world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    let joined = peer();
    assert!(joined.status.success(), "{}", text(&joined.stderr));
    world.apply(
        "c1",
        &json!({
            "apiVersion": "portolan.dev/v1alpha1",
            "kind": "ForeignCluster",
            "metadata": {"name": "c2", "finalizers": ["example.com/waits"]},
        }),
    );
    world.succeeds(&["unpeer", "c2"]);
    let refused = peer();
    let told = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{told}");
    assert!(told.contains("ForeignCluster c2 is being deleted"), "{told}");
    assert!(told.contains("`portolan unpeer c2 --force`"), "{told}");
}

#[test]
fn a_member_without_an_open_namespace_is_told_how_to_open_one() {
    let world = World::start("no-namespace", 2);
    let peer = |more: &[&str]| {
        let start = ["peer", "--remote-context", "c2", "--timeout", "0s"];
        let joined = world.portolan(&[&start, more].concat());
        assert!(joined.status.success(), "{}", text(&joined.stderr));
        text(&joined.stderr)
    };
    let told = peer(&[]);
    assert!(told.contains("nothing can be placed in c2 yet"), "{told}");
    assert!(told.contains("`portolan peer --context c1 --remote-context c2 --namespace NAME`"), "{told}");
    assert!(!peer(&["-n", "shop"]).contains("nothing can be placed"));
    let again = peer(&[]);
    assert!(!again.contains("nothing can be placed"), "shop is open: {again}");
}

#[test]
fn kubeconfigs_that_do_not_exist_are_skipped_as_kubectl_does() {
    let world = World::start("kubeconfigs", 1);
    let run = |files: &str, more: &[&str]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
            .args(["version"])
            .args(more)
            .env("KUBECONFIG", files)
            .env("HOME", "/nonexistent")
            .env_remove("KUBERNETES_SERVICE_HOST")
            .output()
            .unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let some = format!("/nonexistent/a:{}:/nonexistent/b", world.file());
    for more in [&[][..], &["--context", "c1"]] {
        let (code, told, error) = run(&some, more);
        assert!(code == Some(0) && told.contains("Kubernetes v1."), "{more:?}: {told}{error}");
        let (code, _, error) = run("/nonexistent/a:/nonexistent/b", more);
        assert_eq!(code, Some(2), "{error}");
        assert!(
            error.contains("none of the files of KUBECONFIG exists: /nonexistent/a, /nonexistent/b"),
            "{error}"
        );
        let (code, _, error) = run("", more);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains("/nonexistent/.kube/config does not exist"), "{error}");
        assert!(!error.contains("incluster") && !error.contains("infer"), "{error}");
    }
    let broken = world.write_text("broken.yaml", "clusters: [\n");
    let (code, _, error) = run(&format!("{}:{broken}", world.file()), &[]);
    assert!(
        code == Some(2) && error.contains(&format!("kubeconfig {broken}: it is not valid YAML")),
        "{error}"
    );
    let empty = world.write_text("empty.yaml", "apiVersion: v1\nkind: Config\n");
    let (code, _, error) = run(&empty, &[]);
    assert!(code == Some(2) && error.contains(&empty) && error.contains("no current-context"), "{error}");
}
