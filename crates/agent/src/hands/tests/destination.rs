//! What a destination does.

use super::look::Node;
use super::{FakePods, Tree, UID, World, name, state};
use crate::hands::archives::{Stop, pack_part};
use crate::hands::bundles::Bundles;
use crate::hands::destination_files::{DestinationFiles, Filled};
use crate::hands::gate::Gate;
use crate::hands::mark;
use crate::hands::parts::Part;
use crate::hands::{DestinationNode, DestinationTickets, Expected, Settings};
use crate::session::{DestinationHands, HandsError, SessionInfo};
use portolan_core::migration::destination::Data;
use portolan_node::archive::{Kind, Limits, pack};
use portolan_node::store::{Mark, Presence};
use std::collections::BTreeSet;
use std::fs;
use std::future::pending;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// As if all parts had arrived. The images are none.
fn arrived(world: &World) -> DestinationFiles {
    let (settings, info) = (world.settings(), world.session(3));
    let files = DestinationFiles::new(&settings, &info).unwrap();
    mark::folder(&files.parts()).unwrap();
    let folder = world.path("sent");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("inventory.img"), "no image").unwrap();
    let pod = state(UID);
    for part in Part::all(&pod.containers, &pod.volumes) {
        let to = files.parts().join(part.name().unwrap().as_str());
        // One that is stopped fails.
        let stopped = Stop::default().flag();
        pack_part(&info.pod, &part, &folder, &to, &settings, stopped).unwrap_err();
        fs::remove_file(&to).unwrap();
        let stop = Stop::default();
        pack_part(&info.pod, &part, &folder, &to, &settings, stop.flag()).unwrap();
    }
    files.mark_complete().unwrap();
    files
}

async fn refused(world: &World, node: &Node) -> String {
    let refused = async {
        loop {
            if let Data::Refused(why) = node.look(&world.session(3)).await.unwrap().data {
                return why;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), refused).await.unwrap()
}

#[tokio::test]
async fn a_checkpoint_that_is_refused_never_appears_in_the_store() {
    let (world, node) = World::destination();
    let (info, files) = (world.session(3), arrived(&world));
    assert_eq!(node.look(&info).await.unwrap().data, Data::Complete);
    for _ in 0..2 {
        node.restore(&info).await.unwrap();
    }
    // Nothing is let through before the container's own configuration is there to compare with.
    sleep(Duration::from_millis(50)).await;
    assert_eq!(node.look(&info).await.unwrap().data, Data::Complete);
    assert_eq!(files.store.presence(&files.migration, &name("a")), Presence::None);
    world.bundle("a9", Some("a"), Some("m-1"));
    let why = refused(&world, &node).await;
    assert!(why.starts_with("the checkpoint of container a of pod shop/web-0 is refused: "), "{why}");
    for container in ["a", "b"] {
        assert_eq!(files.store.presence(&files.migration, &name(container)), Presence::None);
    }
    assert!(files.store.has(&files.migration, Mark::Frozen));
    // What was in the volume was of an earlier try.
    assert!(world.volume(UID).join("inventory.img").exists() && !world.volume(UID).join("count").exists());
    for _ in 0..2 {
        node.remove_checkpoint(&info).await.unwrap();
        let seen = node.look(&info).await.unwrap();
        assert_eq!((seen.data, seen.has_files), (Data::Incomplete, false));
    }
}

#[tokio::test]
async fn what_may_have_run_is_never_restored_or_deleted_and_stays_marked() {
    let (world, node) = World::destination();
    let (info, files) = (world.session(3), arrived(&world));
    world.taken("a", "a9");
    for _ in 0..2 {
        node.thaw(&info).await.unwrap();
    }
    for error in [
        node.restore(&info).await.unwrap_err(),
        node.delete_pod(&info).await.unwrap_err(),
        node.remove_checkpoint(&info).await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("may have run here"), "{error}");
    }
    files.store.begin(&files.migration, &name("c")).unwrap();
    for _ in 0..2 {
        node.remove_files(&info).await.unwrap();
        let seen = node.look(&info).await.unwrap();
        assert_eq!((seen.live, seen.has_files), (true, false));
        let left = fs::read_dir(files.store.folder(&files.migration)).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".live", ".pod"], "a container of it that dies is started afresh");
    }
    assert!(world.pods.calls().is_empty());
}

#[tokio::test]
async fn what_says_that_a_pod_is_live_goes_with_the_pod() {
    let (world, node) = World::destination();
    let (info, other) = (world.session(3), SessionInfo { migration: "m-2".to_owned(), ..world.session(4) });
    world.taken("a", "a9");
    node.thaw(&info).await.unwrap();
    let live = || world.store().has(&name("m-1"), Mark::Live);
    let (kubelet, away) = (world.path("kubelet"), world.path("away"));
    fs::remove_dir_all(kubelet.join("pods").join(UID)).unwrap();
    node.remove_files(&other).await.unwrap();
    assert!(live(), "its session may go on");
    fs::rename(&kubelet, &away).unwrap();
    node.remove_files(&info).await.unwrap();
    assert!(live(), "it is not known which pods there are");
    fs::rename(&away, &kubelet).unwrap();
    fs::create_dir_all(kubelet.join("pods").join(UID)).unwrap();
    node.remove_files(&other).await.unwrap();
    assert!(live(), "the pod is there");
    fs::remove_dir(kubelet.join("pods").join(UID)).unwrap();
    node.remove_files(&other).await.unwrap();
    assert!(!world.store().folder(&name("m-1")).exists());
}

#[tokio::test]
async fn at_the_start_only_what_belongs_to_sessions_and_live_pods_is_kept() {
    let (world, node) = World::destination();
    arrived(&world);
    world.taken("a", "a9");
    let kept = BTreeSet::from(["m-1".to_owned()]);
    for folder in ["work/destination/m-2/parts", "store/m-3/a/checkpoint", "store/m-4/a/used"] {
        fs::create_dir_all(world.path(folder)).unwrap();
    }
    world.store().mark(&name("m-4"), Mark::Live).unwrap();
    node.remove_ended(&kept).await.unwrap();
    for (folder, stays) in [
        ("work/destination/m-1", true),
        ("store/m-1/a", true),
        ("work/destination/m-2", false),
        ("store/m-3", false),
        ("store/m-4/a", false),
        // Nothing says of which pod it is.
        ("store/m-4", true),
    ] {
        assert_eq!(world.path(folder).exists(), stays, "{folder}");
    }
    node.remove_ended(&BTreeSet::new()).await.unwrap();
    assert!(!world.path("work/destination/m-1").exists() && !world.path("store/m-1").exists());
}

#[tokio::test]
async fn a_pod_that_is_deleted_dies_frozen_and_can_be_created_again() {
    let (world, node) = World::destination();
    let info = world.session(3);
    world.taken("a", "a9");
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    fs::write(world.pod_cgroup().join("a9/cgroup.procs"), format!("{}\n", child.id())).unwrap();
    world.restored("a9");
    node.delete_pod(&info).await.unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(world.store().has(&name("m-1"), Mark::Cancel));
    fs::write(world.pod_cgroup().join("a9/cgroup.procs"), "").unwrap();
    node.delete_pod(&info).await.unwrap();
    for _ in 0..2 {
        node.create_pod(&info).await.unwrap();
        assert!(!world.store().has(&name("m-1"), Mark::Cancel));
    }
    let (delete, create) = (format!("delete {UID}"), "create".to_owned());
    assert_eq!(world.pods.calls(), [delete.clone(), delete, create.clone(), create]);
    world.pods.set(None);
    node.delete_pod(&info).await.unwrap();
}

#[tokio::test]
async fn nothing_is_received_for_a_pod_that_is_not_there_or_from_nobody() {
    let (world, node) = World::destination();
    let info = world.session(3);
    assert_eq!(node.receive(&info).await.unwrap_err().to_string(), "nothing was announced");
    world.pods.set(None);
    let error = node.receive(&info).await.unwrap_err().to_string();
    assert_eq!(error, "pod shop/web-0: it does not exist at the destination");
}

#[tokio::test]
async fn volumes_are_filled_once_in_each_boot_of_the_node() {
    let (world, node) = World::destination();
    let (info, files) = (world.session(3), arrived(&world));
    node.restore(&info).await.unwrap();
    let written = world.volume(UID).join("written");
    fs::write(&written, "").unwrap();
    let again =
        |world: &World| DestinationNode::with_files(world.settings(), world.pods.clone(), Silent, Tree);
    again(&world).restore(&info).await.unwrap();
    assert!(written.exists(), "what is restored has its files open");
    files
        .mark_filled(&Filled {
            pod: UID.to_owned(),
            boot: "another".to_owned(),
            containers: Vec::new(),
            hostname: None,
        })
        .unwrap();
    again(&world).restore(&info).await.unwrap();
    assert!(!written.exists() && world.volume(UID).join("inventory.img").exists());
}

/// What lies behind the checkpoint that has arrived.
fn gate(world: &World, files: &DestinationFiles, settings: Settings) -> Gate {
    Gate {
        unpacked: Arc::default(),
        budget: Arc::default(),
        pod: world.session(3).pod,
        uid: UID.to_owned(),
        files: files.clone(),
        bundles: Arc::new(Bundles::new(&settings.bundles)),
        settings: Arc::new(settings),
    }
}

#[tokio::test]
async fn all_parts_of_a_session_share_one_budget() {
    let (world, _) = World::destination();
    let files = arrived(&world);
    let rootfs = fs::metadata(files.parts().join("rootfs.a")).unwrap().len();
    // Each container has one image of 8 bytes.
    let all = 2 * (8 + rootfs);
    for (session_bytes, expected) in [(all, None), (all - 1, Some("rootfs.b"))] {
        let settings = Settings { session_bytes, ..world.settings() };
        gate(&world, &files, settings).arrived(vec![name("a"), name("b")]).await.unwrap();
        let why = files.why_refused().unwrap();
        assert_eq!(why.is_some(), expected.is_some(), "{why:?}");
        let numbers = [all, all - 1].map(|bytes| bytes.to_string());
        for part in expected.into_iter().chain(["pod shop/web-0", numbers[0].as_str(), numbers[1].as_str()]) {
            assert!(why.as_ref().is_none_or(|why| why.contains(part)), "{why:?}");
        }
    }
}

#[tokio::test]
async fn what_a_container_changed_is_judged_before_it_is_anywhere() {
    let (world, _) = World::destination();
    let files = arrived(&world);
    let hostile = world.path("hostile");
    fs::create_dir(&hostile).unwrap();
    fs::write(hostile.join("su"), "").unwrap();
    fs::set_permissions(hostile.join("su"), fs::Permissions::from_mode(0o4755)).unwrap();
    let mut stream = Vec::new();
    let limits = Limits { allow_setid: true, ..Limits::default() };
    pack(Kind::RootfsDiff, &hostile, &mut stream, &limits).unwrap();
    fs::write(files.parts().join("rootfs.b"), stream).unwrap();
    gate(&world, &files, world.settings()).arrived(vec![name("a"), name("b")]).await.unwrap();
    let why = files.why_refused().unwrap().unwrap();
    assert!(why.contains("rootfs.b of pod shop/web-0") && why.contains("\"su\""), "{why}");
    assert!(!world.store().folder(&name("m-1")).join(".incoming/b/rootfs-diff.tar").exists());
}

/// A peer that never says what to expect.
struct Silent;

impl DestinationTickets for Silent {
    async fn expected(&self, session: &SessionInfo) -> Result<Expected, HandsError> {
        if session.migration == "m-1" {
            pending::<()>().await;
        }
        Err(HandsError::new("nothing was announced"))
    }
}

#[tokio::test]
async fn a_migration_that_waits_for_its_ticket_holds_up_no_other() {
    let (world, _) = World::destination();
    let node: DestinationNode<FakePods, Silent, Tree> =
        DestinationNode::with_files(world.settings(), world.pods.clone(), Silent, Tree);
    let (first, second) = (world.session(3), SessionInfo { migration: "m-2".to_owned(), ..world.session(4) });
    let others = async {
        // The first one has begun to wait.
        sleep(Duration::from_millis(50)).await;
        node.look(&second).await.unwrap();
        assert_eq!(node.receive(&second).await.unwrap_err().to_string(), "nothing was announced");
        node.restore(&second).await.ok();
        node.remove_files(&second).await.unwrap();
    };
    let both = async {
        tokio::select! {
            outcome = node.receive(&first) => panic!("{outcome:?}"),
            () = others => {}
        }
    };
    timeout(Duration::from_secs(30), both).await.unwrap();
}
