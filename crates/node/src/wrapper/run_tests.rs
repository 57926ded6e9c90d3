//! The whole runtime, with a shell script in the place of runc.

use super::*;
use crate::Name;
use crate::store::{Paths, Presence};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use tempfile::TempDir;

struct Node {
    folder: TempDir,
    settings: Settings,
    store: Store,
    migration: Name,
    container: Name,
}

impl Node {
    /// A node whose runc does what this script says; `$out` is a file for what it has to tell.
    fn new(runc: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let script = format!("#!/bin/sh\nout='{}'\n{runc}\n", path("out").display());
        fs::write(path("runc"), script).unwrap();
        fs::set_permissions(path("runc"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(path("bundle/rootfs")).unwrap();
        let settings = Settings {
            runc: path("runc"),
            store: path("store"),
            run: path("run"),
            freezer: path("freezer"),
            unified: path("unified"),
            wait: Duration::from_millis(400),
            pause: Duration::from_millis(1),
        };
        let store = Store::new(&settings.store);
        let migration = Name::new("migration", "move-1").unwrap();
        let container = Name::new("container", "a").unwrap();
        let node = Self { folder, settings, store, migration, container };
        node.config(r#"{"portolan.dev/restore":"move-1","io.kubernetes.cri.container-name":"a","io.kubernetes.cri.container-type":"container","io.kubernetes.cri.sandbox-uid":"uid-1"}"#);
        node
    }

    fn config(&self, annotations: &str) {
        let config = format!(r#"{{"annotations":{annotations},"root":{{"path":"rootfs"}}}}"#);
        fs::write(self.folder.path().join("bundle/config.json"), config).unwrap();
    }

    fn checkpoint(&self) {
        self.checkpoint_with(&Paths::default());
    }

    fn checkpoint_with(&self, paths: &Paths) {
        let incoming = self.store.begin(&self.migration, &self.container).unwrap();
        fs::write(incoming.images().join("core-1.img"), "memory").unwrap();
        incoming.write_paths(paths).unwrap();
        self.store.assign(&self.migration, &Name::new("pod", "uid-1").unwrap()).unwrap();
        incoming.finish().unwrap();
    }

    fn call(&self, text: &str) -> Result<bool, String> {
        let text = text.replace("BUNDLE", self.folder.path().join("bundle").to_str().unwrap());
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        let invocation = Invocation::parse(&words).map_err(|error| error.to_string())?;
        match act(&invocation, &self.settings) {
            Ok(Done::Exec) => Ok(true),
            Ok(Done::Complete) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }

    fn out(&self) -> String {
        fs::read_to_string(self.folder.path().join("out")).unwrap_or_default()
    }
}

const CREATE: &str = "--log LOG create --bundle BUNDLE --pid-file P abc";
const PLAIN: Result<bool, String> = Ok(true);
const DONE: Result<bool, String> = Ok(false);

#[test]
fn a_container_is_restored_once_and_its_start_does_nothing() {
    let node = Node::new("echo \"$@\" >> \"$out\"");
    node.checkpoint();
    assert_eq!(node.call("start abc"), PLAIN, "not restored, so it is not ours");
    assert_eq!(node.call(CREATE), DONE);
    let out = node.out();
    assert!(out.contains("--log LOG restore --detach --no-subreaper") && out.contains("/a/used"), "{out}");
    let config = fs::read_to_string(node.folder.path().join("bundle/config.json")).unwrap();
    assert!(config.contains("org.criu.config"), "{config}");
    assert_eq!(node.call("start abc"), DONE);
    assert_eq!(node.call("delete --force abc"), PLAIN);
    assert_eq!(node.call("start abc"), PLAIN);
    assert_eq!(fs::read_dir(&node.settings.run).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn a_pod_that_only_carries_the_annotation_gets_no_checkpoint() {
    let node = Node::new("echo \"$@\" >> \"$out\"");
    node.checkpoint();
    node.config(r#"{"portolan.dev/restore":"move-1","io.kubernetes.cri.container-name":"a","io.kubernetes.cri.container-type":"container","io.kubernetes.cri.sandbox-uid":"uid-2"}"#);
    let error = node.call(CREATE).unwrap_err();
    assert!(error.contains("is for the pod with UID uid-1") && error.contains("UID uid-2"), "{error}");
    assert_eq!(node.store.presence(&node.migration, &node.container), Presence::Ready);
    assert_eq!(node.out(), "");
}

#[test]
fn what_is_not_restored_is_handed_over_as_it_came() {
    let node = Node::new("exit 1");
    for annotations in
        ["{}", "null", r#"{"portolan.dev/restore":"move-1","io.kubernetes.cri.container-type":"sandbox"}"#]
    {
        node.config(annotations);
        assert_eq!(node.call(CREATE), PLAIN);
    }
    for call in ["state abc", "kill abc 9", "exec --process P abc", "--version"] {
        assert_eq!(node.call(call), PLAIN);
    }
    assert!(!node.settings.run.exists() && !node.settings.store.exists());
}

#[test]
fn before_the_commit_nothing_is_started_plainly() {
    let node = Node::new("exit 1");
    assert!(node.call(CREATE).unwrap_err().contains("has not come, and"));
    node.checkpoint();
    assert!(node.call(CREATE).unwrap_err().contains("runc restore ended with"));
    assert!(node.call(CREATE).unwrap_err().contains("was used"), "the kubelet tries again at once");
    assert_eq!(node.store.presence(&node.migration, &node.container), Presence::Used);
}

#[test]
fn after_the_commit_one_that_died_is_started_afresh() {
    let node = Node::new("exit 0");
    node.checkpoint();
    assert_eq!(node.call(CREATE), DONE);
    node.store.mark(&node.migration, Mark::Live).unwrap();
    assert_eq!(node.call(&CREATE.replace("abc", "def")), PLAIN);
    assert_eq!(node.call("start def"), PLAIN);
}

#[test]
fn one_that_waits_can_be_cancelled() {
    let mut node = Node::new("exit 0");
    node.settings.wait = Duration::from_secs(60);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| node.call(CREATE));
        std::thread::sleep(Duration::from_millis(20));
        node.store.mark(&node.migration, Mark::Cancel).unwrap();
        assert!(waits.join().unwrap().unwrap_err().contains("given up"));
    });
    assert_eq!(node.out(), "");
}

#[test]
fn one_that_waits_goes_on_when_its_checkpoint_comes() {
    let mut node = Node::new("exit 0");
    node.settings.wait = Duration::from_secs(60);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| node.call(CREATE));
        std::thread::sleep(Duration::from_millis(20));
        node.checkpoint();
        assert_eq!(waits.join().unwrap(), DONE);
    });
}

#[test]
fn one_that_waits_does_so_as_long_as_the_agent_works_on_it() {
    let mut node = Node::new("exit 0");
    node.settings.wait = Duration::from_millis(1_500);
    // All of them take longer than it waits without a word.
    let beats = 15;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| node.call(CREATE));
        for _ in 0..beats {
            node.store.beat(&node.migration).unwrap();
            std::thread::sleep(node.settings.wait / 10);
        }
        node.checkpoint();
        assert_eq!(waits.join().unwrap(), DONE);
    });
    assert_eq!(node.store.beats(&node.migration), Some(beats));
}

#[test]
fn a_link_in_the_root_is_not_followed_by_criu() {
    let node = Node::new("echo \"$@\" >> \"$out\"");
    let link = node.folder.path().join("bundle/rootfs/log");
    std::os::unix::fs::symlink("/proc/self/fd/1000", link).unwrap();
    node.checkpoint_with(&Paths { exact: ["/log/etc/shadow".to_owned()].into(), ..Paths::default() });
    let error = node.call(CREATE).unwrap_err();
    assert!(error.contains("/log/etc/shadow") && error.contains("leads through a link"), "{error}");
    assert_eq!(node.out(), "", "runc is not called");
}

#[test]
fn a_restore_that_hangs_is_killed() {
    let node = Node::new("echo $$ > \"$out\"; exec sleep 1000");
    node.checkpoint();
    assert!(node.call(CREATE).unwrap_err().contains("was killed"));
    let process = node.out().trim().to_owned();
    assert!(!process.is_empty() && !Path::new("/proc").join(process).exists());
}

#[test]
fn what_a_restore_that_hangs_has_begun_ends_with_it() {
    // Its child stands for CRIU, whose script waits for an answer.
    let node = Node::new(
        "case \"$*\" in *' restore '*) sleep 1000 & echo $! > \"$out\"; wait ;; *) echo \"$@\" > \"$out.then\" ;; esac",
    );
    let config = r#"{"annotations":{"portolan.dev/restore":"move-1","io.kubernetes.cri.container-name":"a","io.kubernetes.cri.container-type":"container","io.kubernetes.cri.sandbox-uid":"uid-1"},"linux":{"cgroupsPath":"/kubepods/pod1/abc"},"root":{"path":"rootfs"}}"#;
    fs::write(node.folder.path().join("bundle/config.json"), config).unwrap();
    // What it had restored so far, in a cgroup that may be frozen already.
    let cgroup = node.settings.freezer.join("kubepods/pod1/abc");
    fs::create_dir_all(&cgroup).unwrap();
    let mut half = process::Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(cgroup.join("cgroup.procs"), format!("{}\n", half.id())).unwrap();
    fs::write(cgroup.join("freezer.state"), "FROZEN").unwrap();
    node.checkpoint();
    assert!(node.call(CREATE).unwrap_err().contains("was killed"));
    assert_eq!(half.wait().unwrap().signal(), Some(9));
    assert_eq!(fs::read_to_string(cgroup.join("freezer.state")).unwrap(), "THAWED");
    let criu = Path::new("/proc").join(node.out().trim()).join("stat");
    // Killed, even if nobody has asked yet how it ended.
    let ended = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
    assert!(!node.out().is_empty() && fs::read_to_string(criu).map_or(true, ended));
    let then = fs::read_to_string(node.folder.path().join("out.then")).unwrap();
    assert!(then.ends_with("delete --force abc\n"), "{then}");
}

#[test]
fn a_container_that_is_to_stay_frozen_and_is_not_is_an_error() {
    let node = Node::new("echo \"$@\" >> \"$out\"; exit 0");
    node.checkpoint();
    node.store.mark(&node.migration, Mark::Frozen).unwrap();
    let error = node.call(CREATE).unwrap_err();
    assert!(error.contains("was not left frozen"), "{error}");
    assert!(node.out().contains("delete --force abc"), "it runs, and must not: {}", node.out());
    assert_eq!(node.call("start abc"), PLAIN);
}

#[test]
fn an_id_that_is_a_path_uses_no_checkpoint() {
    let node = Node::new("exit 0");
    node.checkpoint();
    for id in ["../abc", ".", ".."] {
        assert!(node.call(&CREATE.replace("abc", id)).unwrap_err().contains("ID of a container"), "{id}");
    }
    assert_eq!(node.store.presence(&node.migration, &node.container), Presence::Ready);
}

#[test]
fn an_error_is_told_where_the_shim_looks_for_it() {
    let node = Node::new("exit 1");
    let log = node.folder.path().join("log.json");
    let text = format!("--log {} --log-format json create --bundle /nowhere abc", log.display());
    let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
    let _ = main(&words, &node.settings);
    let _ =
        main(&[OsString::from("--log"), log.clone().into(), "--new".into(), "create".into()], &node.settings);
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    assert!(lines.iter().all(|line| line["level"] == "error" && line["msg"].is_string()), "{lines:?}");
}
