//! Freezing, thawing and killing at the source.

use super::{NoTickets, Tree, UID, World, state};
use crate::hands::source_files::SourceFiles;
use crate::hands::source_node::Baseline;
use crate::hands::{PodState, Pods, SourceNode};
use crate::session::{HandsError, SessionInfo, SourceHands};
use portolan_core::migration::source::Frozen;
use portolan_node::freezer::CgroupFiles;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::future::pending;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tokio::task::yield_now;
use tokio::time::sleep;

#[tokio::test]
async fn a_baseline_has_the_containers_and_not_the_sandbox() {
    let world = World::new();
    let info = world.info().await;
    let baseline = Baseline::of(&info).unwrap();
    assert_eq!(baseline.sandboxes, BTreeSet::from(["pause".to_owned()]));
    let containers = [("a", "a1"), ("b", "b1")].map(|(name, id)| (name.to_owned(), id.to_owned()));
    assert_eq!(baseline.containers, BTreeMap::from(containers));
    assert_eq!(world.path("cgroup").join(baseline.cgroup), world.pod_cgroup());
    assert_eq!(world.info().await.baseline, info.baseline);
}

#[tokio::test]
async fn a_container_that_is_not_known_is_an_error_that_names_it() {
    let world = World::new();
    fs::remove_dir_all(world.path("bundles/b1")).unwrap();
    let error = world.node().baseline(&world.session(7).pod).await.unwrap_err().to_string();
    assert!(error.contains("container b1 of pod shop/web-0"), "{error}");
    // A cgroup without processes is what is left of a container.
    fs::write(world.pod_cgroup().join("b1/cgroup.procs"), "").unwrap();
    assert!(!world.info().await.baseline.contains("b1"));
}

#[tokio::test]
async fn a_pod_is_gone_without_its_cgroup_but_not_without_all_cgroups() {
    let world = World::new();
    let info = world.info().await;
    assert!(!world.node().look(&info).await.unwrap().gone);
    fs::remove_dir_all(world.pod_cgroup()).unwrap();
    assert!(world.node().look(&info).await.unwrap().gone);
    world.node().kill(&info).await.unwrap();
    world.node().thaw(&info).await.unwrap();
    assert!(world.node().freeze(&info).await.unwrap_err().to_string().contains(UID));
    fs::remove_dir_all(world.path("cgroup")).unwrap();
    assert!(world.node().look(&info).await.unwrap_err().to_string().contains("mount the node's cgroups"));
}

#[tokio::test]
async fn a_pod_is_frozen_and_thawed_however_often() {
    let (world, node) = (World::new(), World::node);
    let info = world.info().await;
    for _ in 0..2 {
        assert_eq!(node(&world).look(&info).await.unwrap().frozen, Frozen::None);
        for _ in 0..2 {
            node(&world).freeze(&info).await.unwrap();
            assert_eq!(node(&world).look(&info).await.unwrap().frozen, Frozen::All);
        }
        assert_eq!(world.own_freezer("pause"), "THAWED");
        for _ in 0..2 {
            node(&world).thaw(&info).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_freeze_that_fails_thaws_only_before_the_checkpoint_is_begun() {
    for (begun, expected) in [(false, "THAWED"), (true, "FROZEN")] {
        let world = World::new();
        let info = world.info().await;
        if begun {
            SourceFiles::new(&world.settings(), &info).unwrap().begin(&[]).unwrap();
        }
        fs::remove_file(world.pod_cgroup().join("b1/freezer.state")).unwrap();
        let error = world.node().freeze(&info).await.unwrap_err().to_string();
        assert!(error.contains("pod shop/web-0 cannot be frozen"), "{error}");
        assert_eq!(world.own_freezer("a1"), expected, "begun: {begun}");
    }
}

#[tokio::test]
async fn a_look_names_what_was_replaced_and_whether_the_pod_is_deleted() {
    let world = World::new();
    let info = world.info().await;
    let look = world.node().look(&info).await.unwrap();
    assert_eq!((look.replaced, look.terminating, look.has_files), (None, false, false));
    world.container("a2", Some("a"), None, &[super::NOBODY + 3]);
    assert_eq!(world.node().look(&info).await.unwrap().replaced.as_deref(), Some("a"));
    fs::remove_dir_all(world.pod_cgroup().join("a2")).unwrap();
    fs::remove_dir_all(world.pod_cgroup().join("b1")).unwrap();
    assert_eq!(world.node().look(&info).await.unwrap().replaced.as_deref(), Some("b"));
    for pod in [None, Some(state("another")), Some(PodState { terminating: true, ..state(UID) })] {
        world.pods.set(pod);
        assert!(world.node().look(&info).await.unwrap().terminating);
    }
    world.node().mark_for_deletion(&info).await.unwrap();
    assert_eq!(world.pods.calls(), [format!("delete {UID}")]);
}

#[tokio::test]
async fn a_pod_is_killed_while_it_stands_still_and_then_released() {
    let world = World::new();
    let info = world.info().await;
    let mut children: Vec<_> = (0..2).map(|_| Command::new("sleep").arg("1000").spawn().unwrap()).collect();
    for (child, id) in children.iter().zip(["a1", "b1"]) {
        fs::write(world.pod_cgroup().join(id).join("cgroup.procs"), format!("{}\n", child.id())).unwrap();
    }
    fs::write(world.pod_cgroup().join("pause/cgroup.procs"), "").unwrap();
    world.node().freeze(&info).await.unwrap();
    world.node().kill(&info).await.unwrap();
    for child in &mut children {
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    }
    assert_eq!(world.node().look(&info).await.unwrap().frozen, Frozen::None);
    for id in ["a1", "b1"] {
        fs::write(world.pod_cgroup().join(id).join("cgroup.procs"), "").unwrap();
    }
    world.node().kill(&info).await.unwrap();
}

/// Cgroups of a kernel that hangs.
#[derive(Clone, Default)]
struct Stuck {
    reads: Arc<AtomicUsize>,
    released: Arc<AtomicBool>,
}

/// Ends what hangs, also when a test fails: the runtime waits for its threads.
struct Release(Arc<AtomicBool>);

impl Drop for Release {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl CgroupFiles for Stuck {
    fn exists(&self, path: &Path) -> bool {
        Tree.exists(path)
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        while !self.released.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
        Tree.read(path)
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        Tree.write(path, text)
    }

    fn pause(&self, _attempt: u32) {}
}

#[tokio::test]
async fn a_look_that_hangs_is_not_begun_again() {
    let world = World::new();
    let (info, files) = (world.info().await, Stuck::default());
    let node = SourceNode::with_files(world.settings(), world.pods.clone(), NoTickets, files.clone());
    let release = Release(Arc::clone(&files.released));
    let began = async {
        while files.reads.load(Ordering::SeqCst) == 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    // A session gives up a look that takes too long.
    tokio::select! {
        look = node.look(&info) => panic!("{look:?}"),
        () = began => {}
    }
    for _ in 0..20 {
        let error = node.look(&info).await.unwrap_err().to_string();
        assert!(error.contains("an earlier look at the pod has not ended yet"), "{error}");
    }
    assert_eq!(files.reads.load(Ordering::SeqCst), 1);
    drop(release);
    while node.look(&info).await.is_err() {
        yield_now().await;
    }
}

/// An API server that refuses connections, or that does not answer at all.
struct Away {
    hangs: bool,
}

impl Away {
    async fn answer<T>(&self) -> Result<T, HandsError> {
        if self.hangs {
            pending::<()>().await;
        }
        Err(HandsError::new("connection refused"))
    }
}

impl Pods for Away {
    async fn check(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        self.answer().await
    }

    async fn get(&self, _session: &SessionInfo) -> Result<Option<PodState>, HandsError> {
        self.answer().await
    }

    async fn create(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        self.answer().await
    }

    async fn mark_committed(&self, _session: &SessionInfo, _uid: &str) -> Result<(), HandsError> {
        self.answer().await
    }

    async fn delete(&self, _session: &SessionInfo, _uid: &str) -> Result<(), HandsError> {
        self.answer().await
    }
}

#[tokio::test]
async fn a_look_does_not_need_the_api_server() {
    let world = World::new();
    let info = world.info().await;
    world.node().freeze(&info).await.unwrap();
    for hangs in [false, true] {
        let node = SourceNode::with_files(world.settings(), Away { hangs }, NoTickets, Tree);
        let look = node.look(&info).await.unwrap();
        assert_eq!((look.frozen, look.terminating), (Frozen::All, false));
    }
}
