//! The binary as a user meets it.

#![allow(clippy::unwrap_used)]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn portolan(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(arguments)
        .env_remove("KUBECONFIG")
        .env("HOME", "/nonexistent")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn seed(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/fixtures/seeds").join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn crds_are_printed_as_yaml_and_json() {
    let served = portolan_api::hub_crds().unwrap().len();
    let yaml = portolan(&["crds"], "");
    assert!(yaml.status.success());
    let count = text(&yaml.stdout).lines().filter(|line| *line == "kind: CustomResourceDefinition").count();
    assert_eq!(count, served);
    let json = portolan(&["crds", "-o", "json"], "");
    let list: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), served);
}

#[test]
fn kinds_that_nothing_serves_are_printed_on_request_only() {
    let served = text(&portolan(&["crds"], "").stdout);
    let all = text(&portolan(&["crds", "--experimental"], "").stdout);
    for kind in portolan_api::EXPERIMENTAL_KINDS {
        let line = format!("    kind: {kind}\n");
        assert!(!served.contains(&line) && all.contains(&line), "{kind}");
    }
    let converted = portolan(&["convert", "-f", &seed("liqo-namespaceoffloading.yaml")], "");
    assert!(converted.status.success());
    let warning = text(&converted.stderr);
    assert!(warning.contains("no controller serves NamespaceOffloading yet"), "{warning}");
}

#[test]
fn seeds_are_converted_from_files_and_from_standard_input() {
    let two =
        portolan(&["convert", "-f", &seed("mck8s-listing-1.yaml"), "-f", &seed("mck8s-listing-3.yaml")], "");
    assert!(two.status.success(), "{}", text(&two.stderr));
    assert_eq!(text(&two.stdout).matches("apiVersion: portolan.dev/v1alpha1").count(), 2);
    let listing = std::fs::read_to_string(seed("mck8s-listing-2.yaml")).unwrap();
    let json = portolan(&["convert", "-f", "-", "-o", "json"], &listing);
    let object: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let object = object.get("items").map_or(object.clone(), |items| items[0].clone());
    assert_eq!(object["spec"]["locations"], serde_json::json!(["cluster2", "cluster5"]));
}

#[test]
fn what_cannot_be_carried_over_is_named() {
    let output = portolan(&["convert", "-f", &seed("mck8s-listing-5.yaml")], "");
    assert!(output.status.success());
    let warnings = text(&output.stderr);
    assert!(warnings.contains("credentials") && warnings.contains("Secret"), "{warnings}");
    assert!(!text(&output.stdout).contains("xxxxxxxxxxx"), "a credential travelled");
}

#[test]
fn wrong_input_says_where_and_exits_2() {
    let unknown = portolan(&["convert", "-f", "-"], "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n");
    assert_eq!(unknown.status.code(), Some(2));
    assert!(unknown.stdout.is_empty());
    let message = text(&unknown.stderr);
    assert!(message.contains("standard input: document 1, line"), "{message}");
    let missing = portolan(&["convert", "-f", "/no/such/file"], "");
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("cannot read /no/such/file"));
    assert_eq!(portolan(&["nonsense"], "").status.code(), Some(2));
}

/// A manifest of one of Portolan's kinds.
fn manifest(kind: &str, name: &str) -> String {
    format!("apiVersion: portolan.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n")
}

#[test]
fn manifests_without_a_placement_are_named_and_are_no_failure() {
    let all = [
        ("MultiClusterHorizontalPodAutoscaler", "mchpa/web"),
        ("CloudProvisioner", "cp/web"),
        ("MultiClusterRescheduler", "mcr/web"),
    ];
    let documents: Vec<String> = all.iter().map(|(kind, _)| manifest(kind, "web")).collect();
    // No cluster is asked: there is none.
    let planned = portolan(&["plan", "-f", "-"], &documents.join("---\n"));
    let told = text(&planned.stderr);
    assert_eq!(planned.status.code(), Some(0), "{told}");
    assert!(planned.stdout.is_empty());
    for (kind, object) in all {
        let named = told.lines().find(|line| line.starts_with(&format!("{kind} web is not planned")));
        assert!(named.is_some_and(|line| line.contains(&format!("`portolan status {object}`"))), "{told}");
    }
    let other = "apiVersion: example.com/v1\nkind: CloudProvisioner\nmetadata: {name: web}\n";
    for nothing in [other, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n"] {
        let refused = portolan(&["plan", "-f", "-"], nothing);
        assert_eq!(refused.status.code(), Some(2));
        let told = text(&refused.stderr);
        assert!(told.contains("can be planned") && !told.contains("portolan status"), "{told}");
    }
    let mistyped = format!("{}---\n{}", documents[0], manifest("CloudProvisoner", "web"));
    let wrong = portolan(&["plan", "-f", "-"], &mistyped);
    assert_eq!(wrong.status.code(), Some(2), "{}", text(&wrong.stderr));
}

#[test]
fn commands_on_placements_say_which_command_shows_the_other_kinds() {
    for object in ["mchpa/web", "cp/burst", "mcr/home"] {
        for command in ["explain", "logs"] {
            let refused = portolan(&[command, object], "");
            assert_eq!(refused.status.code(), Some(2), "{command} {object}");
            let (told, kind) = (text(&refused.stderr), object.split('/').next().unwrap());
            assert!(told.contains(&format!("`portolan status {kind}/")), "{command}: {told}");
            assert!(told.contains("mcd/NAME"), "{command}: {told}");
        }
    }
    let elsewhere = portolan(&["events", "cp/burst", "--cluster", "paris"], "");
    assert_eq!(elsewhere.status.code(), Some(2));
    assert!(text(&elsewhere.stderr).contains("cp/burst is in the hub only"), "{}", text(&elsewhere.stderr));
}

#[test]
fn a_controller_without_a_cluster_says_what_would_help() {
    let output = portolan(&["controller"], "");
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("no cluster to work with") && message.contains("--kubeconfig"), "{message}");
    let wrong = portolan(&["controller", "--kubeconfig", "/no/such/file"], "");
    assert!(text(&wrong.stderr).contains("cannot use kubeconfig /no/such/file"));
}

#[test]
fn completion_scripts_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        let output = portolan(&["completion", shell], "");
        assert!(output.status.success() && text(&output.stdout).contains("portolan"), "{shell}");
    }
}

#[test]
fn a_sandbox_serves_clusters_until_it_is_stopped() {
    let folder = std::env::temp_dir().join(format!("portolan-cli-test-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("kubeconfig");
    let mut sandbox = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["sandbox", "up", "--clusters", "2", "--nodes", "1", "--kubeconfig", file.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(sandbox.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line.trim_end(), format!("export KUBECONFIG={}", file.display()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let nodes = runtime.block_on(async {
        let kubeconfig = kube::config::Kubeconfig::read_from(&file).unwrap();
        let options = kube::config::KubeConfigOptions { context: Some("c2".into()), ..Default::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        let api: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(config.try_into().unwrap());
        api.list(&Default::default()).await.unwrap().items.len()
    });
    sandbox.kill().unwrap();
    sandbox.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(nodes, 1);
    let wrong = portolan(&["sandbox", "up", "--cpu", "many"], "");
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("--cpu: \"many\" is not a quantity"), "{}", text(&wrong.stderr));
}

#[test]
fn clusters_of_the_sandbox_have_the_names_that_are_given() {
    let mut sandbox = Command::new(env!("CARGO_BIN_EXE_portolan"))
        .args(["sandbox", "up", "--names", "hub,paris", "--nodes", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(sandbox.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let file = line.trim_end().strip_prefix("export KUBECONFIG=").unwrap();
    let kubeconfig = kube::config::Kubeconfig::read_from(file).unwrap();
    sandbox.kill().unwrap();
    sandbox.wait().unwrap();
    let _ = std::fs::remove_dir_all(Path::new(file).parent().unwrap());
    let names: Vec<_> = kubeconfig.contexts.into_iter().map(|each| each.name).collect();
    assert_eq!(names, ["hub", "paris"]);
    for (names, words) in [("hub,hub", "hub is given twice"), ("Hub", "cannot be the name of a cluster")] {
        let wrong = portolan(&["sandbox", "up", "--names", names], "");
        assert_eq!(wrong.status.code(), Some(2));
        assert!(text(&wrong.stderr).contains(words), "{}", text(&wrong.stderr));
    }
}

#[test]
fn a_demo_that_cannot_be_done_in_time_says_so_before_it_begins() {
    let output = portolan(&["demo", "--seconds", "20"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("give --seconds 60"), "{}", text(&output.stderr));
}

#[test]
fn the_demo_comes_true() {
    let output = portolan(&["demo"], "");
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    assert!(told.contains("All of it came true"));
    assert!(!told.contains('\u{1b}'), "colour without a terminal");
}
