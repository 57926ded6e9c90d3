//! The hands on folders of a test, with a runc that only says what it was asked.

mod destination;
mod look;
mod processes;
mod source;
mod writing;

use super::{Expected, PodState, Pods, Route, Settings, SourceNode, SourceTickets};
use crate::hands::DestinationTickets;
use crate::session::{HandsError, Pod, SessionInfo, SourceHands};
use portolan_node::Name;
use portolan_node::freezer::CgroupFiles;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

pub(super) const UID: &str = "4f1c2a52-0f0e-4b7e-9c39-0d6b0f3d9d11";
/// No process of any node has such an ID.
const NOBODY: i32 = 5_000_001;

/// Cgroups of version 1 in plain files. A container stands still with its pod.
#[derive(Clone, Debug)]
pub(super) struct Tree;

impl CgroupFiles for Tree {
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        let text = fs::read_to_string(path)?;
        if path.file_name().is_some_and(|name| name != "freezer.state") {
            return Ok(text);
        }
        let above = path.parent().and_then(Path::parent).unwrap_or(path).join("freezer.state");
        let frozen = text == "FROZEN" || fs::read_to_string(above).is_ok_and(|state| state == "FROZEN");
        Ok(if frozen { "FROZEN\n".to_owned() } else { "THAWED\n".to_owned() })
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::metadata(path)?;
        fs::write(path, text)?;
        fs::write(path.with_file_name("freezer.self_freezing"), if text == "FROZEN" { "1" } else { "0" })
    }

    fn pause(&self, _attempt: u32) {}
}

#[derive(Clone, Default)]
pub(super) struct FakePods(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    pod: Option<PodState>,
    calls: Vec<String>,
    away: bool,
}

impl FakePods {
    pub(super) fn set(&self, state: Option<PodState>) {
        self.0.lock().unwrap().pod = state;
    }

    /// The API server does not answer any more.
    pub(super) fn go_away(&self) {
        self.0.lock().unwrap().away = true;
    }

    pub(super) fn calls(&self) -> Vec<String> {
        self.0.lock().unwrap().calls.clone()
    }
}

impl Pods for FakePods {
    async fn check(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        Ok(())
    }

    async fn get(&self, _session: &SessionInfo) -> Result<Option<PodState>, HandsError> {
        let known = self.0.lock().unwrap();
        if known.away { Err(HandsError::new("the API server is away")) } else { Ok(known.pod.clone()) }
    }

    async fn create(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        self.0.lock().unwrap().calls.push("create".to_owned());
        Ok(())
    }

    async fn mark_committed(&self, _session: &SessionInfo, uid: &str) -> Result<(), HandsError> {
        let mut known = self.0.lock().unwrap();
        known.calls.push(format!("mark {uid}"));
        known.pod.as_mut().unwrap().committed = true;
        Ok(())
    }

    async fn delete(&self, _session: &SessionInfo, uid: &str) -> Result<(), HandsError> {
        self.0.lock().unwrap().calls.push(format!("delete {uid}"));
        Ok(())
    }
}

/// Nobody was told anything.
pub(super) struct NoTickets;

impl SourceTickets for NoTickets {
    async fn route(&self, _session: &SessionInfo) -> Result<Route, HandsError> {
        Err(HandsError::new("no route was given"))
    }
}

impl DestinationTickets for NoTickets {
    async fn expected(&self, _session: &SessionInfo) -> Result<Expected, HandsError> {
        Err(HandsError::new("nothing was announced"))
    }
}

pub(super) fn name(text: &str) -> Name {
    Name::new("container", text).unwrap()
}

pub(super) fn state(uid: &str) -> PodState {
    PodState {
        uid: uid.to_owned(),
        terminating: false,
        failure: None,
        committed: false,
        hostname: Some("web-0".to_owned()),
        containers: vec![name("a"), name("b")],
        volumes: vec![name("data")],
    }
}

/// A node.
pub(super) struct World {
    folder: TempDir,
    pub(super) pods: FakePods,
}

impl World {
    /// A node with a pod of two containers and its sandbox.
    pub(super) fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap(), pods: FakePods::default() };
        world.pods.set(Some(state(UID)));
        world.cgroup(&world.pod_cgroup(), &[]);
        world.container("pause", None, None, &[NOBODY]);
        world.container("a1", Some("a"), None, &[NOBODY + 1]);
        world.container("b1", Some("b"), None, &[NOBODY + 2]);
        let volume = world.volume(UID);
        fs::create_dir_all(&volume).unwrap();
        fs::write(volume.join("count"), "7").unwrap();
        world.runc();
        world
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    pub(super) fn settings(&self) -> Settings {
        Settings {
            cgroups: self.path("cgroup"),
            proc: self.path("proc"),
            runc: self.path("runc"),
            runc_root: self.path("runc-root"),
            bundles: self.path("bundles"),
            wrapper: self.path("wrapper"),
            kubelet: self.path("kubelet"),
            store: self.path("store"),
            work: self.path("work"),
            stays_free: 0,
            fresh: Duration::ZERO,
            ..Settings::default()
        }
    }

    pub(super) fn node(&self) -> SourceNode<FakePods, NoTickets, Tree> {
        SourceNode::with_files(self.settings(), self.pods.clone(), NoTickets, Tree)
    }

    pub(super) async fn info(&self) -> SessionInfo {
        let mut info = self.session(7);
        info.baseline = self.node().baseline(&info.pod).await.unwrap();
        info
    }

    pub(super) fn session(&self, session: u64) -> SessionInfo {
        let terms = serde_json::json!({ "order": "Transactional", "timeout": "20s", "maxDowntime": "5s" });
        SessionInfo {
            pod: Pod::new("shop", "web-0", UID).unwrap(),
            migration: "m-1".to_owned(),
            session,
            terms: serde_json::from_value(terms).unwrap(),
            baseline: String::new(),
        }
    }

    pub(super) fn pod_cgroup(&self) -> PathBuf {
        self.path("cgroup/kubepods/burstable").join(format!("pod{UID}"))
    }

    pub(super) fn volume(&self, uid: &str) -> PathBuf {
        self.path("kubelet/pods").join(uid).join("volumes/kubernetes.io~empty-dir/data")
    }

    fn cgroup(&self, folder: &Path, processes: &[i32]) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("freezer.state"), "THAWED").unwrap();
        fs::write(folder.join("freezer.self_freezing"), "0").unwrap();
        let lines: String = processes.iter().map(|process| format!("{process}\n")).collect();
        fs::write(folder.join("cgroup.procs"), lines).unwrap();
    }

    /// A container with a cgroup and a bundle; without a name, it is the sandbox.
    pub(super) fn container(&self, id: &str, name: Option<&str>, restore: Option<&str>, processes: &[i32]) {
        self.cgroup(&self.pod_cgroup().join(id), processes);
        self.bundle(id, name, restore);
        let upper = self.path("upper").join(id);
        fs::create_dir_all(&upper).unwrap();
        fs::write(upper.join("changed"), id).unwrap();
        for process in processes {
            let folder = self.path("proc").join(process.to_string());
            fs::create_dir_all(&folder).unwrap();
            let upper = upper.display();
            let mounts =
                format!("9 1 0:5 / / rw - overlay overlay rw,lowerdir=/l,upperdir={upper},workdir=/w\n");
            fs::write(folder.join("mountinfo"), mounts).unwrap();
        }
    }

    pub(super) fn bundle(&self, id: &str, name: Option<&str>, restore: Option<&str>) {
        let kind = if name.is_some() { "container" } else { "sandbox" };
        self.bundle_of(UID, id, kind, name, restore);
    }

    /// A bundle of the pod with this UID.
    pub(super) fn bundle_of(
        &self,
        uid: &str,
        id: &str,
        kind: &str,
        name: Option<&str>,
        restore: Option<&str>,
    ) {
        let mut annotations = serde_json::json!({
            "io.kubernetes.cri.container-type": kind,
            "io.kubernetes.cri.sandbox-uid": uid,
        });
        if let Some(name) = name {
            annotations["io.kubernetes.cri.container-name"] = name.into();
        }
        if let Some(restore) = restore {
            annotations["portolan.dev/restore"] = restore.into();
        }
        let folder = self.path("bundles").join(id);
        fs::create_dir_all(&folder).unwrap();
        let config = serde_json::json!({
            "annotations": annotations,
            "process": { "user": { "uid": 0, "gid": 0 } },
            "linux": {},
        });
        fs::write(folder.join("config.json"), config.to_string()).unwrap();
    }

    pub(super) fn own_freezer(&self, id: &str) -> String {
        fs::read_to_string(self.pod_cgroup().join(id).join("freezer.state")).unwrap()
    }

    /// A runc that dumps only if both containers are being dumped at the same time.
    fn runc(&self) {
        let folder = self.folder.path().display();
        let script = format!(
            r#"#!/bin/sh
cd '{folder}' || exit 9
echo "$@" >> calls
while [ $# -gt 1 ]; do
    [ "$1" = --image-path ] && images=$2
    shift
done
work=$(dirname "$images")
[ -e "$work/../../intents/$(basename "$work")" ] || exit 7
[ "$PORTOLAN_DUMP" = "$work" ] || exit 8
touch "began.$1"
i=0
while [ ! -e began.a1 ] || [ ! -e began.b1 ]; do
    i=$((i + 1))
    [ $i -lt 1000 ] || exit 3
    sleep 0.01
done
[ -e hang ] && sleep 1000
[ -e "fail.$1" ] && {{ printf 'Error: \033[31mIn-flight\nconnection\n' >&2; exit 1; }}
echo "pages of $1" > "$images/pages-1.img"
"#
        );
        // Written by another process: one that this process starts meanwhile would keep the file open, and it could not be run.
        let mut shell = Command::new("sh")
            .args(["-c", "cat > \"$1\" && chmod 700 \"$1\"", "sh"])
            .arg(self.path("runc"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        assert!(shell.wait().unwrap().success());
    }
}
