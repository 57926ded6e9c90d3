//! The binary as kubectl runs it.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The link that Krew makes, in a folder of its own.
fn plugin() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubectl-portolan");
    symlink(env!("CARGO_BIN_EXE_portolan"), &path).unwrap();
    (folder, path)
}

fn run(program: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("KUBECONFIG").env("HOME", "/nonexistent").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn help_of_the_plugin_says_how_kubectl_runs_it() {
    let (_folder, plugin) = plugin();
    let help = text(&run(&plugin, &["--help"]).stdout);
    assert!(help.contains("Usage: kubectl portolan "), "{help}");
    let help = text(&run(&plugin, &["sandbox", "up", "--help"]).stdout);
    assert!(help.contains("Usage: kubectl portolan sandbox up "), "{help}");
    let wrong = run(&plugin, &["get", "--nonsense"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(text(&wrong.stderr).contains("Usage: kubectl portolan get "), "{}", text(&wrong.stderr));
    let own = text(&run(Path::new(env!("CARGO_BIN_EXE_portolan")), &["--help"]).stdout);
    assert!(own.contains("Usage: portolan ") && !own.contains("kubectl portolan"), "{own}");
}

#[test]
fn the_plugin_does_what_the_program_does() {
    let (_folder, plugin) = plugin();
    let own = Path::new(env!("CARGO_BIN_EXE_portolan"));
    for arguments in [&["crds"][..], &["--version"], &["version", "--client"], &["completion", "bash"]] {
        let (one, other) = (run(&plugin, arguments), run(own, arguments));
        assert!(one.status.success(), "{arguments:?}: {}", text(&one.stderr));
        // A script of completion names the program that wrote it.
        let (one, other) = (text(&one.stdout), text(&other.stdout));
        let one = one.replace(&plugin.display().to_string(), &own.display().to_string());
        assert_eq!(one, other, "{arguments:?}");
    }
    let without_cluster = run(&plugin, &["-n", "shop", "get", "mcd"]);
    assert_eq!(without_cluster.status.code(), Some(2));
    assert!(
        text(&without_cluster.stderr).contains("no cluster to work with"),
        "{}",
        text(&without_cluster.stderr)
    );
}
