//! Writing checkpoints.

use super::{World, name};
use crate::hands::mark;
use crate::hands::overlay;
use crate::hands::process::Started;
use crate::hands::source_files::SourceFiles;
use crate::session::SourceHands;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tokio::time::{sleep, timeout};

const PARTS: [&str; 5] = ["images.a", "rootfs.a", "images.b", "rootfs.b", "volume.data"];

#[tokio::test]
async fn both_containers_are_dumped_at_the_same_time_and_the_mark_names_the_session() {
    let world = World::new();
    let info = world.info().await;
    world.node().freeze(&info).await.unwrap();
    for times in 1..=2 {
        world.node().write_checkpoint(&info).await.unwrap();
        let files = SourceFiles::new(&world.settings(), &info).unwrap();
        let complete = files.complete().unwrap().unwrap();
        assert_eq!((complete.session, complete.parts), (7, PARTS.map(str::to_owned).to_vec()));
        for part in PARTS {
            assert!(fs::metadata(files.part(&name(part))).unwrap().len() > 0, "{part}");
        }
        let calls = fs::read_to_string(world.path("calls")).unwrap();
        assert_eq!(calls.lines().count(), 2 * times);
        let images = files.images(&name("a"));
        let expected = format!(
            "--root {} checkpoint --leave-running --image-path {} --work-path {} a1",
            world.path("runc-root").display(),
            images.display(),
            files.dump(&name("a")).display()
        );
        assert!(calls.lines().any(|call| call == expected), "{calls}");
    }
    let look = world.node().look(&info).await.unwrap();
    assert!(look.checkpoint && look.has_files);
    // It is not the checkpoint of another session.
    let other = crate::session::SessionInfo { session: 8, ..info.clone() };
    let look = world.node().look(&other).await.unwrap();
    assert!(!look.checkpoint && look.has_files);
    let error = world.node().send(&info).await.unwrap_err().to_string();
    assert_eq!(error, "no route was given");
    for _ in 0..2 {
        world.node().remove_files(&info).await.unwrap();
        assert!(!world.node().look(&info).await.unwrap().has_files);
    }
    assert!(world.node().send(&info).await.unwrap_err().to_string().contains("no complete checkpoint"));
}

#[tokio::test]
async fn at_the_start_the_checkpoints_of_sessions_that_are_over_are_removed() {
    let world = World::new();
    let info = world.info().await;
    world.node().freeze(&info).await.unwrap();
    world.node().write_checkpoint(&info).await.unwrap();
    world.node().remove_ended(&BTreeSet::from([info.migration.clone()])).await.unwrap();
    assert!(world.node().look(&info).await.unwrap().checkpoint);
    world.node().remove_ended(&BTreeSet::new()).await.unwrap();
    assert!(!world.node().look(&info).await.unwrap().has_files);
}

#[tokio::test]
async fn a_dump_that_fails_leaves_no_mark_and_says_what_failed() {
    let world = World::new();
    let info = world.info().await;
    fs::write(world.path("fail.a1"), "").unwrap();
    let error = world.node().write_checkpoint(&info).await.unwrap_err().to_string();
    for part in [
        "container a of pod shop/web-0",
        "checkpoint a1",
        "exit status: 1",
        "In-flight connection",
        "dump.log",
    ] {
        assert!(error.contains(part), "{part} in {error}");
    }
    assert!(!error.contains(char::is_control), "{error:?}");
    let files = SourceFiles::new(&world.settings(), &info).unwrap();
    assert!(files.part(&name("images.b")).exists(), "the other one was dumped");
    assert!(!world.node().look(&info).await.unwrap().checkpoint);
    fs::remove_file(world.path("fail.a1")).unwrap();
    world.node().write_checkpoint(&info).await.unwrap();
    assert!(world.node().look(&info).await.unwrap().checkpoint);
    // What is complete is replaced, and is not taken for the result of a try that fails.
    fs::write(world.path("fail.b1"), "").unwrap();
    world.node().write_checkpoint(&info).await.unwrap_err();
    assert!(!world.node().look(&info).await.unwrap().checkpoint);
}

#[tokio::test]
async fn dumps_end_with_their_future() {
    let world = World::new();
    let info = world.info().await;
    fs::write(world.path("hang"), "").unwrap();
    let (node, files) = (world.node(), SourceFiles::new(&world.settings(), &info).unwrap());
    let record = files.process(&name("a"));
    let writing = async {
        tokio::select! {
            outcome = node.write_checkpoint(&info) => panic!("{outcome:?}"),
            () = written(&record) => {}
        }
    };
    timeout(Duration::from_secs(30), writing).await.unwrap();
    let started: Started = mark::read(&record).unwrap().unwrap();
    let gone = async {
        while !started.left().unwrap().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), gone).await.unwrap();
    node.thaw(&info).await.unwrap();
}

async fn written(path: &Path) {
    while !path.exists() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_dump_has_a_deadline() {
    let world = World::new();
    let info = world.info().await;
    fs::write(world.path("hang"), "").unwrap();
    let settings = crate::hands::Settings { dump: Duration::from_millis(300), ..world.settings() };
    let node =
        crate::hands::SourceNode::with_files(settings, world.pods.clone(), super::NoTickets, super::Tree);
    let error = node.write_checkpoint(&info).await.unwrap_err().to_string();
    assert!(error.contains("was ended after"), "{error}");
    assert!(!node.look(&info).await.unwrap().checkpoint);
}

#[test]
fn the_upper_folder_is_that_of_the_last_root() {
    let mounts = "1 0 0:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
        2 1 0:2 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/a:/b,upperdir=/x\\040y/fs,workdir=/w\n\
        3 2 0:3 / /data rw - overlay overlay rw,upperdir=/other\n";
    assert_eq!(overlay::upper(mounts).as_deref(), Some(Path::new("/x y/fs")));
    for text in ["", "1 0 0:1 / / rw - ext4 /dev/sda1 rw", "garbage", "2 1 0:2 / / rw - overlay overlay rw"] {
        assert_eq!(overlay::upper(text), None, "{text}");
    }
}
