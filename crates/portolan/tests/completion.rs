//! Completion as shells ask for it, against clusters on loopback.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::json;
use std::net::TcpListener;
use std::process::{Command, Output, Stdio};
use support::{World, job, namespace, text, workload};

/// What the program answers to this line, whose last word is being written: one candidate in a line.
fn asked(line: &str, kubeconfig: &str) -> Output {
    let words = line.split(' ').filter(|word| !word.is_empty());
    let last = if line.ends_with(' ') { Some("") } else { None };
    Command::new(env!("CARGO_BIN_EXE_portolan"))
        .env("PORTOLAN_COMPLETE", "fish")
        .env("KUBECONFIG", kubeconfig)
        .arg("--")
        .args(words.chain(last))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// The candidates, of a completion that is quiet and succeeds.
fn offered(line: &str, kubeconfig: &str) -> Vec<String> {
    let output = asked(line, kubeconfig);
    assert!(output.status.success(), "{line}");
    assert_eq!(text(&output.stderr), "", "{line}");
    let value = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    text(&output.stdout).lines().map(value).collect()
}

/// Members c2 and rome, and workloads in two namespaces; no controller is needed.
fn fleet(name: &str) -> World {
    let world = World::start(name, 3);
    world.portolan(&["peer", "--remote-context", "c2", "-n", "shop", "--timeout", "0s"]);
    world.portolan(&["peer", "--remote-context", "c3", "--name", "rome", "--timeout", "0s"]);
    world.apply("c1", &namespace("shop"));
    world.apply("c1", &namespace("bank"));
    world.apply("c2", &namespace("only-there"));
    world.apply("c1", &workload("web", 1, "100m", &json!({"locations": ["c2"]})));
    world.apply("c1", &workload("worker", 1, "100m", &json!({"locations": ["c2"]})));
    world.apply("c1", &job("nightly", 1, "100m", &json!({"locations": ["c2"]})));
    let mut ledger = workload("ledger", 1, "100m", &json!({"locations": ["c2"]}));
    ledger["metadata"]["namespace"] = "bank".into();
    world.apply("c1", &ledger);
    world
}

#[test]
fn names_come_from_the_cluster_that_the_line_names() {
    let world = fleet("complete");
    let file = world.file();
    let on_hub = |line: &str| offered(&line.replacen("portolan", "portolan --context c1", 1), file);

    assert_eq!(on_hub("portolan cordon "), ["c2", "rome"]);
    assert_eq!(on_hub("portolan cordon c2 "), ["rome"], "each once");
    assert_eq!(on_hub("portolan unpeer r"), ["rome"]);
    assert_eq!(on_hub("portolan logs mcd/web --cluster "), ["c2", "rome"]);
    assert_eq!(on_hub("portolan get clusters "), ["c2", "rome"]);
    assert_eq!(on_hub("portolan status fc/"), ["fc/c2", "fc/rome"]);
    assert_eq!(on_hub("portolan doctor --member-context r"), ["rome="]);
    assert_eq!(on_hub("portolan doctor --member-context rome=c"), ["rome=c1", "rome=c2", "rome=c3"]);

    assert_eq!(on_hub("portolan status -n shop mcd/w"), ["mcd/web", "mcd/worker"]);
    assert_eq!(on_hub("portolan -n bank get mcd "), ["ledger"]);
    assert_eq!(on_hub("portolan get --namespace=shop mcd web "), ["worker"]);
    assert_eq!(on_hub("portolan get mcd -A l"), ["ledger"]);
    assert_eq!(on_hub("portolan explain -n shop mcj "), ["nightly"]);
    assert_eq!(on_hub("portolan get mcd "), Vec::<String>::new(), "the namespace of the context has none");
    assert_eq!(
        on_hub("portolan get mcd -n "),
        ["bank", "default", "kube-node-lease", "kube-public", "kube-system", "portolan", "shop"]
    );
    assert_eq!(on_hub("portolan -n sh"), ["shop"]);

    assert_eq!(offered("portolan get mcd --context ", file), ["c1", "c2", "c3"]);
    assert_eq!(offered("portolan --context=", file), ["--context=c1", "--context=c2", "--context=c3"]);
    assert_eq!(offered("portolan peer --remote-context c2 -n onl", file), ["only-there"]);
    assert_eq!(offered("portolan get clusters --context c2 ", file), Vec::<String>::new(), "c2 is no hub");
    let elsewhere = format!("portolan cordon --kubeconfig {file} --context c1 ro");
    assert_eq!(offered(&elsewhere, "/nowhere"), ["rome"]);
}

#[test]
fn what_cannot_be_asked_for_has_no_names() {
    let world = fleet("complete-refused");
    let token = world.account("shop", "nobody");
    let config = |server: &str, token: &str| {
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}},
                {"name": "evil $(id)", "context": {"cluster": "x", "user": "x"}},
                {"name": "evil\u{1b}[2J", "context": {"cluster": "x", "user": "x"}}],
            "clusters": [{"name": "x", "cluster": {"server": server}}],
            "users": [{"name": "x", "user": {"token": token}}],
        })
    };
    // Accepts connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = world.write("silent", &config(&format!("http://{}", silent.local_addr().unwrap()), "t"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let closed = world.write("closed", &config(&format!("http://{closed}"), "t"));
    let broken = world.write_text("broken", "{{ not yaml");
    let mut refused: serde_json::Value =
        serde_json::from_slice(&std::fs::read(world.file()).unwrap()).unwrap();
    refused["users"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .for_each(|user| user["user"] = json!({"token": token}));
    refused["current-context"] = "c1".into();
    let refused = world.write("refused", &refused);
    for file in [&silent, &closed, &broken, &refused, &"/does/not/exist".to_owned()] {
        for line in [
            "portolan cordon ",
            "portolan get mcd ",
            "portolan get mcd -n ",
            "portolan get --context nope mcd ",
        ] {
            assert_eq!(offered(line, file), Vec::<String>::new(), "{file} {line}");
        }
        assert_eq!(offered("portolan unc", file), ["uncordon"]);
    }
    assert_eq!(
        offered("portolan get --context ", &silent),
        ["x"],
        "no shell would take the others as a name"
    );
    assert_eq!(offered("portolan get --context ", &broken), Vec::<String>::new());
}

#[test]
fn kubectl_is_answered_by_the_file_that_it_looks_for() {
    let world = fleet("complete-kubectl");
    let script =
        Command::new(env!("CARGO_BIN_EXE_portolan")).args(["completion", "kubectl"]).output().unwrap();
    let path = world.write_text("kubectl_complete-portolan", &text(&script.stdout));
    let output = Command::new("sh")
        .args([&path, "get", "mcd", "-n", "shop", "--context", "c1", "we"])
        .env("KUBECONFIG", world.file())
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "web\n:4\n");
    #[cfg(unix)]
    {
        let link = format!("{path}.d");
        std::fs::create_dir(&link).unwrap();
        let link = format!("{link}/kubectl_complete-portolan");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_portolan"), &link).unwrap();
        let output = Command::new(link).args(["cord"]).output().unwrap();
        let told = text(&output.stdout);
        assert!(told.starts_with("cordon\t") && told.ends_with("\n:4\n"), "{told}");
    }
}

/// Whether a shell is installed here; if not, what the program answers is tested elsewhere, and the shell is not. CI has all.
fn has(shell: &str) -> bool {
    let found =
        Command::new(shell).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        assert!(
            !is_ci,
            "{shell} is not installed: CI may not skip its completion script; `./dev test` installs it"
        );
        eprintln!("SKIPPED: {shell} is not installed: its completion script is not run");
    }
    found
}

/// Runs a script of a shell with the program on its PATH.
fn in_shell(world: &World, shell: &[&str], script: &str) -> String {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_portolan")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([folder].into_iter().chain(std::env::split_paths(&path))).unwrap();
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .arg(script)
        .env("PATH", path)
        .env("KUBECONFIG", world.file())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(text(&output.stderr), "", "{script}");
    text(&output.stdout)
}

#[test]
fn bash_completes() {
    if !has("bash") {
        return;
    }
    let world = fleet("complete-bash");
    let line = |line: &str, breaks: &str| {
        let script = format!(
            "source <(portolan completion bash); COMP_WORDBREAKS=$'{breaks}'; COMP_LINE='{line}'; \
             COMP_POINT=${{#COMP_LINE}}; _portolan; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        in_shell(&world, &["bash", "--norc", "-c"], &script)
    };
    assert_eq!(line("portolan get --context c1 -n shop mcd w", " "), "web\nworker\n");
    assert_eq!(line("portolan cordon --context=c1 ro", " =:"), "rome\n");
    assert_eq!(line("portolan cordon --context=c", " =:"), "c1\nc2\nc3\n", "bash keeps what is before the =");
    assert_eq!(line("portolan cordon --context=c", " "), "--context=c1\n--context=c2\n--context=c3\n");
    let registered = in_shell(
        &world,
        &["bash", "--norc", "-c"],
        "source <(portolan completion bash); complete -p kubectl-portolan",
    );
    assert_eq!(registered, "complete -F _portolan kubectl-portolan\n");
}

#[test]
fn fish_completes() {
    if !has("fish") {
        return;
    }
    let world = fleet("complete-fish");
    let line = |line: &str| {
        let script = format!("portolan completion fish | source; complete --do-complete '{line}'");
        in_shell(&world, &["fish", "--no-config", "-c"], &script)
    };
    assert_eq!(line("portolan get --context c1 -n shop mcd w"), "web\nworker\n");
    assert_eq!(line("portolan cordon --context c1 c2 "), "rome\n");
    assert!(line("portolan unc").starts_with("uncordon\tMark members"), "{}", line("portolan unc"));
}

#[test]
fn zsh_completes() {
    if !has("zsh") {
        return;
    }
    let world = fleet("complete-zsh");
    // The widgets of zsh need a terminal; what they are given can be seen without one.
    let line = |words: &str, prefix: &str| {
        let script = format!(
            "compdef() {{ }}; _describe() {{ shift 3; print -l -- \"$1\" ${{(P)1}} }}; \
             source <(portolan completion zsh); words=({words} '{prefix}'); CURRENT=$#words; PREFIX='{prefix}'; _portolan"
        );
        in_shell(&world, &["zsh", "-f", "-c"], &script)
    };
    assert_eq!(line("portolan get --context c1 -n shop mcd", "w"), "closed\nweb\nworker\n");
    assert_eq!(line("portolan cordon --context c1", ""), "closed\nc2\nrome\n");
    assert_eq!(line("portolan doctor --context c1 --member-context", "r"), "open\nrome=\n");
    assert!(
        line("portolan", "unc").starts_with("closed\nuncordon:Mark members"),
        "{}",
        line("portolan", "unc")
    );
}
