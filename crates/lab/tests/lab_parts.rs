//! The parts of a cluster are made, or found in the cache, and are what they should be.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic, in its helpers too")]

use std::path::Path;
use std::process::Command;

use portolan_image::{Linkage, linkage};
use portolan_lab::parts::{self, DEFAULT_KUBERNETES, Parts};

/// The version of Kubernetes to look at, for a run over several of them.
fn kubernetes() -> String {
    std::env::var("PORTOLAN_LAB_KUBERNETES").unwrap_or_else(|_| DEFAULT_KUBERNETES.to_owned())
}

fn ensure() -> Parts {
    if let Err(missing) = parts::preconditions() {
        let list: String = missing.iter().map(|one| format!("\n  - {one}")).collect();
        panic!("the lab cannot run here:{list}");
    }
    Parts::ensure(&kubernetes(), &mut |step| eprintln!("{step}")).unwrap_or_else(|error| panic!("{error}"))
}

/// What a program prints about its version.
fn version(program: &Path, words: &[&str]) -> String {
    let output = Command::new(program).args(words).output().unwrap();
    assert!(output.status.success(), "{}: {output:?}", program.display());
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

#[test]
fn every_program_is_static_and_of_its_pinned_version() {
    let parts = ensure();
    assert_eq!(parts.kubernetes, kubernetes());
    let kubectl = format!("Client Version: v{}", parts.kubernetes);
    let kubernetes = format!("Kubernetes v{}", parts.kubernetes);
    let programs: [(&str, &[&str], &str); 11] = [
        ("kube-apiserver", &["--version"], &kubernetes),
        ("kube-controller-manager", &["--version"], &kubernetes),
        ("kube-scheduler", &["--version"], &kubernetes),
        ("kubelet", &["--version"], &kubernetes),
        ("kube-proxy", &["--version"], &kubernetes),
        ("kubectl", &["version", "--client"], &kubectl),
        ("containerd", &["--version"], "v2.3.7"),
        ("containerd-shim-runc-v2", &["-v"], "v2.3.7"),
        ("ctr", &["--version"], "v2.3.7"),
        ("coredns", &["-version"], "CoreDNS-1.15.0"),
        ("kwok", &["--version"], "0.8.0"),
    ];
    for (name, words, expected) in programs {
        let program = parts.bin.join(name);
        assert_eq!(linkage(&program).unwrap(), Linkage::Static, "{name}");
        let printed = version(&program, words);
        assert!(printed.contains(expected), "{name} prints {printed:?}, not {expected}");
    }
    assert_eq!(std::fs::read_dir(&parts.bin).unwrap().count(), programs.len());
}

#[test]
fn parts_on_demand_are_static_and_have_the_definitions_that_are_needed() {
    let report = &mut |step| eprintln!("{step}");
    let cluster_api = parts::ClusterApiParts::ensure(report).unwrap();
    for program in [&cluster_api.program, &parts::metrics_server(report).unwrap()] {
        assert_eq!(linkage(program).unwrap(), Linkage::Static, "{}", program.display());
    }
    let definitions = std::fs::read(&cluster_api.definitions).unwrap();
    let definitions: serde_json::Value = serde_json::from_slice(&definitions).unwrap();
    let items = definitions["items"].as_array().unwrap();
    let kinds: Vec<&str> = items.iter().map(|item| item["spec"]["names"]["kind"].as_str().unwrap()).collect();
    for kind in ["Cluster", "ClusterClass", "MachineDeployment", "MachineSet", "Machine", "ExtensionConfig"] {
        assert!(kinds.contains(&kind), "{kind} is not among {kinds:?}");
    }
    assert!(items.iter().all(|item| item["spec"]["versions"].as_array().unwrap().len() == 1));
}

#[test]
fn coredns_has_the_plugins_of_a_cluster() {
    let printed = version(&ensure().bin.join("coredns"), &["-plugins"]);
    for plugin in ["cache", "errors", "forward", "health", "kubernetes", "log", "loop", "ready", "reload"] {
        assert!(printed.lines().any(|line| line == plugin), "{plugin} is not in {printed}");
    }
}

#[test]
fn node_root_has_what_a_node_runs_and_says_which_versions() {
    let root = ensure().root;
    for path in [
        "usr/sbin/runc",
        "usr/sbin/criu",
        "usr/bin/etcd",
        "usr/lib/cni/bridge",
        "usr/lib/cni/host-local",
        "usr/lib/cni/portmap",
        "usr/lib/cni/tuning",
        "usr/sbin/nft",
        "usr/sbin/iptables",
        "usr/sbin/conntrack",
        "usr/sbin/ip",
        "usr/sbin/ethtool",
        "usr/bin/mount",
        "usr/bin/busybox",
    ] {
        assert!(root.join(path).symlink_metadata().is_ok(), "{path} is missing in {}", root.display());
    }
    let packages = parts::packages(&root).unwrap();
    let criu: u32 = packages["criu"].split('.').next().unwrap().parse().unwrap();
    assert!(criu >= 4, "{}", packages["criu"]);
    let printed = version(Path::new("/usr/sbin/chroot"), &[root.to_str().unwrap(), "criu", "--version"]);
    assert!(
        packages["criu"].starts_with(printed.trim_start_matches("Version: ").lines().next().unwrap()),
        "{printed}"
    );
}

#[test]
fn images_hold_the_static_programs() {
    let images = ensure().images;
    for (file, name) in [
        ("pause.tar", parts::PAUSE_IMAGE),
        ("busybox.tar", parts::BUSYBOX_IMAGE),
        ("coredns.tar", parts::COREDNS_IMAGE),
    ] {
        let tar = std::fs::File::open(images.join(file)).unwrap();
        let mut archive = tar::Archive::new(tar);
        let index = archive
            .entries()
            .unwrap()
            .map(Result::unwrap)
            .find(|entry| entry.path().unwrap() == Path::new("index.json"));
        let index: serde_json::Value = serde_json::from_reader(index.unwrap()).unwrap();
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], name);
    }
    assert_eq!(std::fs::read_dir(&images).unwrap().count(), 3);
}
