//! Checkpoints that runc 1.3 and CRIU 4.2 made of containers in a pod, on a node with cgroup v1, with what containerd 2.3 had
//! written for them. Without their memory, and with the usual folders of a node in the place of those of the test's.
//!
//! `root` is a shell with the defaults of Kubernetes. `user` has all that `securityContext` can take away, two processes, a
//! thread, one that has ended, and open files of most types.

use super::build::{allowed, write};
use super::{Allowed, Refusal, Rule, Summary, check};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// What the kernel of that node did not have.
const ABSENT: [&str; 8] = [
    "/proc/asound",
    "/proc/kcore",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/sysrq-trigger",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
];

fn folder(container: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src/images/real").join(container)
}

fn config(container: &str) -> Value {
    serde_json::from_slice(&fs::read(folder(container).join("config.json")).unwrap()).unwrap()
}

fn of_node(config: &Value) -> Allowed {
    let mut allowed = allowed(config);
    allowed.without_absent_paths(|path| !ABSENT.contains(&path));
    allowed
}

fn checked(container: &str, config: &Value) -> Result<Summary, Refusal> {
    check(&folder(container).join("checkpoint"), &of_node(config))
}

fn broken(container: &str, config: &Value) -> Option<Rule> {
    checked(container, config).unwrap_err().rule()
}

#[test]
fn a_real_checkpoint_is_accepted() {
    let summary = checked("root", &config("root")).unwrap();
    assert_eq!((summary.processes, summary.threads, summary.mounts, summary.files), (1, 1, 33, 7));
    let summary = checked("user", &config("user")).unwrap();
    assert_eq!((summary.processes, summary.threads, summary.mounts, summary.files), (3, 4, 35, 31));
    assert_eq!(summary.archives.len(), 3);
    let cgroup = config("user")["linux"]["cgroupsPath"].as_str().unwrap().to_owned();
    let allowed = of_node(&config("user")).with_source_cgroup(&cgroup);
    assert!(check(&folder("user").join("checkpoint"), &allowed).is_ok());
}

#[test]
fn a_real_checkpoint_is_refused_without_a_capability() {
    let mut config = config("root");
    for (set, rule) in [("permitted", Rule::PermittedCapabilities), ("bounding", Rule::BoundingCapabilities)]
    {
        let names = config["process"]["capabilities"][set].as_array_mut().unwrap();
        names.retain(|name| name != "CAP_CHOWN");
        assert_eq!(broken("root", &config), Some(rule));
    }
}

#[test]
fn a_real_checkpoint_is_refused_if_it_may_gain_privileges() {
    let mut config = config("root");
    config["process"]["noNewPrivileges"] = json!(true);
    assert_eq!(broken("root", &config), Some(Rule::NoNewPrivileges));
}

#[test]
fn a_real_checkpoint_is_refused_without_a_mount() {
    for container in ["root", "user"] {
        let mut config = config(container);
        let mounts = config["mounts"].as_array_mut().unwrap();
        mounts.retain(|mount| mount["destination"] != "/etc/conf");
        assert_eq!(broken(container, &config), Some(Rule::Mount));
    }
}

#[test]
fn a_real_checkpoint_is_refused_by_a_stricter_spec() {
    let root = |change: fn(&mut Value)| {
        let mut config = config("root");
        change(&mut config);
        broken("root", &config)
    };
    let user = json!({ "uid": 1000, "gid": 1000 });
    let mut config_of_user = config("root");
    config_of_user["process"]["user"] = user;
    config_of_user["process"]["noNewPrivileges"] = json!(true);
    assert_eq!(broken("root", &config_of_user), Some(Rule::Uid));
    assert_eq!(root(|config| config["root"]["readonly"] = json!(true)), Some(Rule::MountOptions));
    assert_eq!(root(|config| config["linux"]["seccomp"] = json!({})), Some(Rule::SeccompMode));
    assert_eq!(root(|config| config["linux"]["maskedPaths"] = json!([])), Some(Rule::Mount));
    let also = |config: &mut Value| config["linux"]["maskedPaths"] = json!(["/proc/keys", "/proc/new"]);
    assert!(root(also).is_some(), "a path that is not masked");
}

#[test]
fn every_image_of_a_real_checkpoint_is_needed_or_harmless() {
    // What is left out is found missing, unless nothing in it gives rights.
    let images: BTreeMap<String, Vec<u8>> = fs::read_dir(folder("user").join("checkpoint"))
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
        })
        .collect();
    let allowed = of_node(&config("user"));
    let mut accepted = Vec::new();
    for name in images.keys() {
        let mut images = images.clone();
        images.remove(name);
        if check(write(&images).path(), &allowed).is_ok() {
            accepted.push(name.split_once(['-', '.']).unwrap().0);
        }
    }
    accepted.dedup();
    let harmless = [
        "descriptors",
        "fdinfo",
        "fs",
        "ipcns",
        "memfd",
        "mm",
        "pagemap",
        "pipes",
        "remap",
        "timens",
        "tmpfs",
        "utsns",
    ];
    assert_eq!(accepted, harmless);
}
