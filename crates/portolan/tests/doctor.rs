//! `portolan doctor` and `portolan bug-report` on clusters of the sandbox, as a user meets them.

#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use flate2::read::GzDecoder;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::io::Read;
use support::{World, namespace, text, workload};

/// What doctor says, and its exit code.
fn doctor(world: &World, more: &[&str]) -> (i32, Value) {
    let output = world.portolan(&[&["doctor", "-o", "json"], more].concat());
    let data = serde_json::from_slice(&output.stdout);
    (output.status.code().unwrap(), data.unwrap_or_else(|_| panic!("{}", text(&output.stderr))))
}

/// The verdict of a check, with its message and advice.
fn found(data: &Value, cluster: &str, check: &str) -> (String, String) {
    let all = data["checks"].as_array().unwrap();
    let line = all.iter().find(|line| line["cluster"] == cluster && line["check"] == check);
    let line = line.unwrap_or_else(|| panic!("{cluster} {check}: {data:#}"));
    let words = |field: &str| line[field].as_str().unwrap().to_owned();
    (words("verdict"), format!("{} → {}", words("message"), words("advice")))
}

#[track_caller]
fn assert_found(data: &Value, cluster: &str, check: &str, verdict: &str, words: &[&str]) {
    let (is, said) = found(data, cluster, check);
    assert_eq!(is, verdict, "{cluster} {check}: {said}");
    words.iter().for_each(|word| assert!(said.contains(word), "{cluster} {check}: no {word:?} in {said}"));
}

/// Changes the kubeconfig in the Secret of a member.
fn edit_credential(world: &World, edit: impl Fn(&mut Value)) {
    world.with("c1", async |client| {
        let secrets: Api<Secret> = Api::namespaced(client, "portolan");
        let mut secret = secrets.get("c2").await.unwrap();
        let data = secret.data.as_mut().unwrap().get_mut("kubeconfig").unwrap();
        let mut kubeconfig: Value = serde_json::from_slice(&data.0).unwrap();
        edit(&mut kubeconfig);
        data.0 = kubeconfig.to_string().into_bytes();
        secrets.replace("c2", &PostParams::default(), &secret).await.unwrap();
    });
}

/// All secrets that the clusters of this world have in kubeconfigs.
fn secrets(world: &World) -> Vec<String> {
    let file: Value = serde_json::from_slice(&std::fs::read(world.file()).unwrap()).unwrap();
    let users = file["users"].as_array().unwrap();
    let mut all: Vec<String> =
        users.iter().map(|user| user["user"]["token"].as_str().unwrap().to_owned()).collect();
    let stored = world.with("c1", async |client| {
        let secrets: Api<Secret> = Api::namespaced(client, "portolan");
        secrets.list(&ListParams::default()).await.unwrap()
    });
    for bytes in stored.items.into_iter().flat_map(|secret| secret.data.unwrap_or_default().into_values()) {
        let kubeconfig: Value = serde_json::from_slice(&bytes.0).unwrap();
        all.push(kubeconfig["users"][0]["user"]["token"].as_str().unwrap().to_owned());
    }
    all
}

#[test]
fn each_broken_hop_is_named_with_what_to_do_and_what_is_well_is_healthy() {
    let mut world = World::start("doctor", 2);
    world.control();
    world.succeeds(&["peer", "--remote-context", "c2", "-n", "shop"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 1, "100m", &json!({"locations": ["c2"]})));
    world.until(&["get", "mcd", "-n", "shop"], &["1/1"]);

    let (code, data) = doctor(&world, &[]);
    assert_eq!(code, 0, "{data:#}");
    for check in [
        "dns",
        "tcp",
        "tls",
        "certificate",
        "api",
        "ready",
        "clock",
        "kubernetes",
        "portolan",
        "definitions",
        "leader",
        "caller-rights",
        "tenant-policy",
        "webhooks",
        "api-services",
    ] {
        assert_found(&data, "hub", check, "Healthy", &[]);
    }
    for check in [
        "condition",
        "last-seen",
        "credential",
        "tcp",
        "tls",
        "api",
        "kubernetes",
        "rights",
        "namespaces",
        "webhooks",
    ] {
        assert_found(&data, "c2", check, "Healthy", &[]);
    }
    assert_found(&data, "c2", "credential", "Healthy", &["system:serviceaccount:portolan:hub-"]);
    assert_found(&data, "hub", "controller-rights", "Unknown", &["does not exist"]);
    assert_found(&data, "hub", "controller", "Unknown", &["outside of the hub"]);
    let (code, status) = world.outcome(&["status", "--verbose"]);
    assert!(code == 0 && status.contains("Checks\n") && status.contains("1 member, 1 ready"), "{status}");
    let peers = status.split("\nPeers\n").nth(1).unwrap().split("\nChecks\n").next().unwrap();
    for words in [
        "c2\n",
        "role            member\n",
        "authentication  the token of system:serviceaccount:portolan:hub-",
        "namespaces      1 namespace open: shop",
        "from here: ",
        "certificate     ",
    ] {
        assert!(peers.contains(words), "{words:?}: {status}");
    }
    assert!(status.contains("\nController\n") && status.contains(" leads: Lease "), "{status}");
    let (_, one) = world.outcome(&["status", "clusters/c2", "-v", "-o", "json"]);
    let one: Value = serde_json::from_str(&one).unwrap();
    assert_eq!(
        (&one["peers"][0]["name"], &one["peers"][0]["role"]),
        (&json!("c2"), &json!(["member"])),
        "{one:#}"
    );
    assert!(one["controller"]["checks"][1].as_str().unwrap().contains(" leads: Lease "), "{one:#}");
    for secret in secrets(&world) {
        assert!(!data.to_string().contains(&secret) && !status.contains(&secret), "a secret is shown");
    }

    // A namespace that is closed while a workload is placed there, and a right that is taken away.
    world.with("c2", async |client| {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let patch = json!({"metadata": {"labels": {"portolan.dev/placement": null}}});
        namespaces.patch("shop", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        let roles: Api<ClusterRole> = Api::all(client);
        let list = roles.list(&ListParams::default()).await.unwrap();
        let mut sight = list.items.into_iter().find(|role| {
            let name = role.metadata.name.clone().unwrap();
            name.starts_with("portolan-hub-") && !name.ends_with("-placement")
        });
        let role = sight.as_mut().unwrap();
        role.rules.as_mut().unwrap().retain(|rule| rule.resources != Some(vec!["nodes".to_owned()]));
        let name = role.metadata.name.clone().unwrap();
        roles.replace(&name, &PostParams::default(), role).await.unwrap();
    });
    let (code, data) = doctor(&world, &["c2"]);
    assert_eq!(code, 1, "{data:#}");
    assert_found(&data, "c2", "namespaces", "Problem", &["not open: shop", "--namespace"]);
    assert_found(&data, "c2", "rights", "Problem", &["list nodes", "watch nodes", "portolan peer"]);

    // A webhook without a backend, an API that nobody serves, kinds that are missing or old.
    world.apply("c1", &json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "policy"},
        "webhooks": [{
            "name": "check.policy.example", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "policy", "name": "gone", "port": 8443}},
            "rules": [{"apiGroups": ["portolan.dev"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}],
        }],
    }));
    world.with("c1", async |client| {
        let definitions: Api<CustomResourceDefinition> = Api::all(client);
        definitions.delete("multiclusterjobs.portolan.dev", &Default::default()).await.unwrap();
        let mut old = definitions.get("foreignclusters.portolan.dev").await.unwrap();
        let schema = old.spec.versions[0].schema.as_mut().unwrap().open_api_v3_schema.as_mut().unwrap();
        let spec = schema.properties.as_mut().unwrap().get_mut("spec").unwrap();
        spec.properties.as_mut().unwrap().remove("taints").unwrap();
        definitions.replace("foreignclusters.portolan.dev", &PostParams::default(), &old).await.unwrap();
    });
    let (_, data) = doctor(&world, &[]);
    assert_found(
        &data,
        "hub",
        "webhooks",
        "Problem",
        &["policy/gone:8443 does not exist", "check.policy.example"],
    );
    assert_found(
        &data,
        "hub",
        "definitions",
        "Problem",
        &[
            "not installed: multiclusterjobs.portolan.dev",
            "foreignclusters.portolan.dev lacks spec.taints",
            "portolan crds",
        ],
    );

    // Credentials: another authority, a port where nothing listens, a token that has expired.
    world.kill_controller();
    let file: Value = serde_json::from_slice(&std::fs::read(world.file()).unwrap()).unwrap();
    let (ours, theirs) = (&file["clusters"][0]["cluster"], &file["clusters"][1]["cluster"]);
    let authority = "certificate-authority-data";
    edit_credential(&world, |kubeconfig| {
        kubeconfig["clusters"][0]["cluster"][authority] = ours[authority].clone()
    });
    let (_, data) = doctor(&world, &[]);
    assert_found(
        &data,
        "c2",
        "tls",
        "Problem",
        &["127.0.0.1:", "not signed by the authority", "portolan peer"],
    );
    assert_found(&data, "c2", "rights", "Unknown", &["api failed"]);
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    edit_credential(&world, |kubeconfig| {
        kubeconfig["clusters"][0]["cluster"][authority] = theirs[authority].clone();
        kubeconfig["clusters"][0]["cluster"]["server"] = format!("https://{free}").into();
    });
    let (_, data) = doctor(&world, &[]);
    assert_found(
        &data,
        "c2",
        "tcp",
        "Problem",
        &[&free.to_string(), "refuses", &format!("TCP port {}", free.port())],
    );
    edit_credential(&world, |kubeconfig| {
        kubeconfig["clusters"][0]["cluster"]["server"] = theirs["server"].clone();
        // {"sub":"system:serviceaccount:portolan:hub-1","exp":1700000000}
        let claims = "eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQ6cG9ydG9sYW46aHViLTEiLCJleHAiOjE3MDAwMDAwMDB9";
        kubeconfig["users"][0]["user"]["token"] = format!("e30.{claims}.c2ln").into();
    });
    let (_, data) = doctor(&world, &[]);
    assert_found(&data, "c2", "credential", "Problem", &["hub-1", "expired", "days ago", "portolan peer"]);
    assert_found(&data, "c2", "api", "Problem", &["does not accept the credential in Secret portolan/c2"]);

    // The Lease of a controller that was killed runs out.
    world.until(&["doctor"], &["no controller leads: Lease portolan/portolan-controller"]);
    let (code, told) = world.outcome(&["status", "-v"]);
    // A status that cannot be shown, for want of a kind, leaves the checks.
    assert!(
        code == 1 && told.contains("no controller leads") && told.contains("cannot list MultiClusterJobs"),
        "{told}"
    );
}

#[test]
fn both_sides_of_an_invitation_are_healthy_until_the_provider_lacks_a_right() {
    let mut world = World::start("doctor-invitation", 2);
    let program = std::process::Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["crds", "--roles", "-o", "json"])
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&program.stdout).unwrap();
    for object in list["items"].as_array().unwrap() {
        world.apply("c2", object);
    }
    // A namespace that is open to somebody else is none of this hub's.
    let mut other = namespace("market");
    other["metadata"]["labels"] = json!({"portolan.dev/placement": "allowed"});
    world.apply("c2", &other);
    world.control();
    world.control_of("c2");
    let line = world.run(&["invite", "--context", "c2", "-n", "shop", "--sharing", "50%"]);
    assert!(line.status.success(), "{}", text(&line.stderr));
    let joined = world.with_input("c1", &["peer", "-"], &text(&line.stdout));
    assert!(joined.status.success(), "{}", text(&joined.stderr));
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &workload("web", 1, "100m", &json!({"locations": ["c2"]})));
    world.until(&["get", "mcd", "-n", "shop"], &["1/1"]);

    let (code, data) = doctor(&world, &[]);
    assert_eq!(code, 0, "{data:#}");
    for check in ["condition", "last-seen", "credential", "certificate", "api", "rights"] {
        assert_found(&data, "c2", check, "Healthy", &[]);
    }
    assert_found(&data, "c2", "credential", "Healthy", &["the certificate of portolan:tenant:"]);
    assert_found(&data, "c2", "namespaces", "Healthy", &["1 namespace open: shop"]);

    world.until_in("c2", &["get", "clusters", "-o", "json"], |told| told.contains("PeeringEstablished"));
    let provider = |world: &World| {
        let output = world.run(&["doctor", "-o", "json", "--context", "c2"]);
        let data: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), data)
    };
    let (code, data) = provider(&world);
    assert_eq!(code, 0, "{data:#}");
    assert_found(&data, "c1", "condition", "Healthy", &["PeeringEstablished"]);
    assert_found(&data, "hub", "controller-rights", "Healthy", &[]);
    let of_consumer =
        data["checks"].as_array().unwrap().iter().filter(|line| line["cluster"] == "c1").count();
    assert_eq!(of_consumer, 1, "a consumer is not asked: {data:#}");

    world.with("c2", async |client| {
        let bindings: Api<ClusterRoleBinding> = Api::all(client);
        bindings.delete("portolan-provider", &Default::default()).await.unwrap();
    });
    let (code, data) = provider(&world);
    assert_eq!(code, 1, "{data:#}");
    assert_found(&data, "hub", "controller-rights", "Problem", &["signers.", "portolan upgrade"]);
}

#[test]
fn without_rights_checks_are_unknown_with_the_right_that_is_missing_and_mistakes_are_usage() {
    let world = World::start("doctor-rights", 2);
    world.portolan(&["peer", "--remote-context", "c2", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    let token = world.account("shop", "dev");
    let output = world.as_token(&token, &["doctor", "-o", "json"]);
    let data: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{data:#}");
    for (check, right) in [
        ("condition", "list foreignclusters.portolan.dev"),
        ("leader", "get leases.coordination.k8s.io in namespace portolan"),
        ("controller", "list pods in namespace portolan"),
        ("controller-rights", "get serviceaccounts in namespace portolan"),
        ("tenant-policy", "get validatingadmissionpolicies"),
        ("webhooks", "list validatingwebhookconfigurations"),
        ("api-services", "list apiservices"),
        ("definitions", "customresourcedefinitions"),
    ] {
        assert_found(&data, "hub", check, "Unknown", &[right]);
    }
    assert_found(
        &data,
        "hub",
        "caller-rights",
        "Warning",
        &["system:serviceaccount:shop:dev lacks", "create secrets in namespace portolan"],
    );
    assert!(!data.to_string().contains(&token));

    // Who may list members, and not read their credentials.
    let rbac = "rbac.authorization.k8s.io";
    let viewer = json!({
        "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": {"name": "viewer"},
        "rules": [{"apiGroups": ["portolan.dev"], "resources": ["foreignclusters"], "verbs": ["list"]}],
    });
    world.apply("c1", &viewer);
    world.apply(
        "c1",
        &json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": "viewer"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "viewer"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "shop", "name": "dev"}],
        }),
    );
    let output = world.as_token(&token, &["doctor", "-o", "json"]);
    let data: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_found(&data, "c2", "credential", "Unknown", &["get secrets in namespace portolan"]);
    assert_found(&data, "c2", "rights", "Unknown", &["credential failed"]);

    for mistake in
        [&["doctor", "nobody"][..], &["doctor", "--timeout", "soon"], &["doctor", "--member-context", "c2"]]
    {
        let (code, told) = world.outcome(mistake);
        assert_eq!(code, 2, "{mistake:?}: {told}");
    }
    let (code, told) = world.outcome(&["doctor", "c2"]);
    assert!(code == 1 && told.contains("no controller has led yet"), "{told}");
}

/// The files of an archive, each with its content.
fn unpacked(file: &str) -> Vec<(String, String)> {
    let mut archive = tar::Archive::new(GzDecoder::new(std::fs::File::open(file).unwrap()));
    let read = |entry: std::io::Result<tar::Entry<'_, GzDecoder<std::fs::File>>>| {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        (name, text)
    };
    archive.entries().unwrap().map(read).collect()
}

#[test]
fn a_bug_report_has_what_helps_and_none_of_the_secrets_that_are_everywhere() {
    let world = World::start("bug-report", 2);
    world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    let mut web = workload("web", 1, "100m", &json!({"locations": ["c2"]}));
    web["metadata"]["annotations"] = json!({"example.com/note": "planted-annotation"});
    web["spec"]["template"]["metadata"]["annotations"] = json!({"vault": "planted-template-annotation"});
    web["spec"]["template"]["spec"]["containers"][0] = json!({
        "name": "main", "image": "app:1", "command": ["sh", "-c", "login planted-command"], "args": ["--key", "planted-argument"],
        "env": [{"name": "KEY", "value": "planted-environment"}],
        "lifecycle": {"preStop": {"exec": {"command": ["planted-hook"]}}},
        "livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "X-Key", "value": "planted-header"}]}},
    });
    world.apply("c1", &web);
    let message = "refused: planted-environment, Authorization: Bearer planted-bearer, https://bob:planted-password@db, \
                   eyJhbGciOiJub25lIn0.eyJzdWIiOiJwbGFudGVkIn0.c2ln, -----BEGIN PRIVATE KEY-----\nplanted-key";
    let condition = json!([{
        "type": "Ready", "status": "False", "reason": "Failed", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
    }]);
    world.set_status("multiclusterdeployments", Some("shop"), "web", &json!({"conditions": condition}));
    world.set_status("foreignclusters", None, "c2", &json!({"conditions": condition}));
    world.apply("c1", &json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "web.1", "namespace": "shop"},
        "involvedObject": {"apiVersion": "portolan.dev/v1alpha1", "kind": "MultiClusterDeployment", "namespace": "shop", "name": "web"},
        "reason": "Refused", "type": "Warning", "message": "token=planted-event",
    }));
    world.apply(
        "c1",
        &json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"},
            "stringData": {"key": "planted-secret"},
        }),
    );
    world.apply(
        "c1",
        &json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "controller-1", "namespace": "portolan", "labels": {
                "app.kubernetes.io/name": "portolan", "app.kubernetes.io/component": "controller",
            }},
            "spec": {"containers": [{"name": "controller", "image": "portolan:1"}]},
        }),
    );
    world.until(&["logs", "controller", "-n", "portolan"], &["[hub/controller-1]", "portolan:1"]);

    let file = world.write_text("report.tar.gz", "");
    let (code, told) = world.outcome(&["bug-report", "-o", &file]);
    assert!(code == 2 && told.contains("does not exist"), "an existing file stays: {told}");
    std::fs::remove_file(&file).unwrap();
    let (code, told) = world.outcome(&["bug-report", "-o", &file]);
    assert_eq!(code, 0, "{told}");

    let files = unpacked(&file);
    let all: String = files.iter().map(|(name, text)| format!("{name}\n{text}\n")).collect();
    for word in ["planted", "eyJ", "BEGIN PRIVATE"] {
        assert!(!all.contains(word), "{word}: {}", all.lines().find(|line| line.contains(word)).unwrap());
    }
    for secret in secrets(&world) {
        assert!(!all.contains(&secret), "the token of somebody");
    }
    let has = |name: &str, words: &[&str]| {
        let (_, text) =
            files.iter().find(|(each, _)| each == &format!("portolan-bug-report/{name}")).unwrap();
        words.iter().for_each(|word| assert!(text.contains(word), "{name}: no {word:?} in {text}"));
    };
    has("versions.json", &[env!("CARGO_PKG_VERSION"), "v1."]);
    has("doctor.json", &["\"check\": \"tls\"", "no controller has led yet"]);
    has("objects/multiclusterdeployments.json", &["\"web\"", "app:1", "<redacted>", "refused: <redacted>"]);
    has("objects/foreignclusters.json", &["c2", "Failed"]);
    has("events.json", &["Refused", "token=<redacted>"]);
    has("logs/controller-1.log", &["portolan:1"]);
}

#[test]
fn a_consumer_and_a_provider_of_a_tenant_namespace_are_healthy_although_nothing_is_placed_there() {
    let mut world = World::start("doctor-tenants", 3);
    for cluster in ["c1", "c2", "c3"] {
        world.control_of(cluster);
    }
    let invite = |more: &[&str]| {
        let invited = world.run(&[&["invite", "--context", "c2", "--sharing", "50%"], more].concat());
        assert!(invited.status.success(), "{}", text(&invited.stderr));
        text(&invited.stdout)
    };
    for (consumer, namespaces) in [("c1", &["-n", "shop"][..]), ("c3", &[])] {
        let joined = world.with_input(consumer, &["peer", "-"], &invite(namespaces));
        assert!(joined.status.success(), "{}", text(&joined.stderr));
    }
    let shares =
        |told: &str| told.matches("\"sharing\": [").count() == 2 && told.contains("\"healthy\": true");
    world.until_in("c2", &["status", "-v", "-o", "json"], shares);
    let provider = text(&world.with_input("c2", &["status", "--verbose"], "").stdout);
    for words in ["role            consumer", "offered to it: ", "authentication  "] {
        assert!(provider.contains(words), "{words}: {provider}");
    }
    assert!(!provider.contains("spec.credentials"), "{provider}");
    assert!(provider.starts_with("0 members") && provider.contains("\n2 consumers, "), "{provider}");

    let healthy = |told: &str| told.contains("\"healthy\": true");
    world.until_in("c1", &["doctor", "-o", "json"], healthy);
    world.until_in("c3", &["doctor", "-o", "json"], healthy);
    let tenant = text(&world.with_input("c3", &["status", "--verbose"], "").stdout);
    for words in ["role            provider of a tenant namespace", "offered by it: ", "certificate     "] {
        assert!(tenant.contains(words), "{words}: {tenant}");
    }
    let member = text(&world.with_input("c1", &["status", "--verbose"], "").stdout);
    assert!(member.contains("role            member\n") && member.contains("offered by it: "), "{member}");
}
