//! What stands in the journal, and what does not belong there.

use super::node::{Node, clock, order, pod};
use super::orders::refused;
use super::world::World;
use crate::session::journal::Entry;
use crate::session::{Disk, Journal, JournalError, LocalDisk, Pod, Role};
use portolan_core::migration::Report;
use portolan_core::migration::source::{SourceGoal, SourceStage};
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::yield_now;

#[tokio::test(start_paused = true)]
async fn a_file_that_is_not_understood_is_named_and_the_others_go_on() {
    let world = World::shared();
    let mut node = Node::start(&world, Role::Source, &clock()).await;
    let begin = order(None, 1, SourceGoal::Reserved);
    node.sessions().order_source(&pod(), &begin).await.unwrap();
    let folder = node.folder.path().to_owned();
    let good = fs::read_to_string(folder.join(format!("source.{}.json", pod().uid()))).unwrap();
    let bad = [
        ("destination.half.json", good[..good.len() / 2].to_owned()),
        ("source.copy.json", good.clone()),
        ("source.empty.json", String::new()),
        ("source.large.json", " ".repeat(70_000)),
        ("source.new.json", good.replace("\"version\":1", "\"version\":2")),
        ("source.stage.json", good.replace("Reserved", "Frozen")),
        ("readme.txt", "hello".to_owned()),
    ];
    for (name, text) in &bad {
        fs::write(folder.join(name), text).unwrap();
    }
    fs::create_dir(folder.join("source.folder.json")).unwrap();
    let broken = node.restart().await;
    assert_eq!(broken.len(), bad.len() + 1);
    for (name, _) in &bad {
        let named: Vec<_> = broken.iter().filter(|error| error.to_string().contains(name)).collect();
        assert_eq!(named.len(), 1, "{name}: {broken:?}");
        assert!(folder.join(name).exists(), "it is left as it is");
    }
    assert!(
        broken.iter().any(|error| matches!(error, JournalError::Version { version: 2, supported: 1, .. }))
    );
    assert_eq!(node.sessions().pods(), [(Role::Source, pod())]);
    let report = node.sessions().order_source(&pod(), &begin).await.unwrap();
    assert!(matches!(report, Report::Progress(progress) if progress.stage == SourceStage::Reserved));

    // Nothing is begun over a file that may say that its pod never runs again.
    let half = Pod::new("shop", "web-9", "empty").unwrap();
    let reason = refused(node.sessions().order_source(&half, &begin).await);
    assert!(reason.contains("web-9") && reason.contains("source.empty.json"), "{reason}");
    // Nor is it said that nothing is left of it.
    let abort = order(None, 2, SourceGoal::Aborted);
    assert!(node.sessions().order_source(&half, &abort).await.is_err());
    let other = Pod::new("shop", "web-9", pod().uid()).unwrap();
    let reason = refused(node.sessions().order_source(&other, &begin).await);
    assert!(reason.contains("not shop/web-9"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn at_its_start_an_agent_removes_what_is_left_of_others_than_its_sessions() {
    let world = World::shared();
    let mut node = Node::start(&world, Role::Source, &clock()).await;
    let begin = order(None, 1, SourceGoal::Reserved);
    node.sessions().order_source(&pod(), &begin).await.unwrap();
    node.restart().await;
    let none = Vec::<String>::new;
    let expected = [
        ("source", none()),
        ("destination", none()),
        ("source", vec!["m".to_owned()]),
        ("destination", none()),
    ];
    assert_eq!(world.lock().unwrap().kept, expected);
    // Whatever that file is about may need its checkpoint.
    fs::write(node.folder.path().join("source.half.json"), "{").unwrap();
    assert_eq!(node.restart().await.len(), 1);
    assert_eq!(world.lock().unwrap().kept, expected);
}

#[tokio::test(start_paused = true)]
async fn a_counter_that_is_not_understood_draws_no_number() {
    let world = World::shared();
    let node = Node::start(&world, Role::Source, &clock()).await;
    let counter = node.folder.path().join("sessions.json");
    fs::write(&counter, "{}").unwrap();
    let begin = order(None, 1, SourceGoal::Reserved);
    let reason = refused(node.sessions().order_source(&pod(), &begin).await);
    assert!(reason.contains("sessions.json"), "{reason}");
    fs::remove_file(&counter).unwrap();
    node.sessions().order_source(&pod(), &begin).await.unwrap();
}

/// A disk that hangs until nobody holds the other end, and counts its writes.
#[derive(Debug)]
struct Hanging {
    hangs: Mutex<Receiver<()>>,
    writes: AtomicUsize,
}

impl Disk for Hanging {
    fn replace(&self, _path: &Path, _bytes: &[u8]) -> io::Result<()> {
        self.writes.fetch_add(1, Ordering::SeqCst);
        self.hangs.lock().unwrap().recv().ok();
        Ok(())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_write_that_hangs_is_an_error_and_takes_one_thread() {
    let folder = tempfile::tempdir().unwrap();
    let (release, hangs) = channel();
    let disk = Arc::new(Hanging { hangs: Mutex::new(hangs), writes: AtomicUsize::new(0) });
    let journal = Journal::with_disk(folder.path(), Arc::<Hanging>::clone(&disk));
    let journal = journal.with_patience(Duration::from_millis(50));
    let entry = || Entry { pod: pod(), baseline: String::new(), record: "record".to_owned() };
    let late = journal.put(Role::Source, entry()).await.unwrap_err().to_string();
    assert!(late.contains("source.") && late.contains("has not ended within 50 ms"), "{late}");
    for _ in 0..20 {
        let busy = journal.put(Role::Source, entry()).await.unwrap_err().to_string();
        assert!(busy.contains("an earlier access to the file has not ended yet"), "{busy}");
        // Nor is the file removed meanwhile.
        assert!(journal.remove(Role::Source, &pod()).await.is_err());
    }
    assert_eq!(disk.writes.load(Ordering::SeqCst), 1);
    journal.remove(Role::Destination, &pod()).await.unwrap();
    drop(release);
    while journal.put(Role::Source, entry()).await.is_err() {
        yield_now().await;
    }
}

#[test]
fn the_disk_of_the_machine_replaces_files_as_a_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source.1.json");
    LocalDisk.remove(&path).unwrap();
    for text in ["a longer text", "short"] {
        LocalDisk.replace(&path, text.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing temporary is left");
    }
    LocalDisk.remove(&path).unwrap();
    LocalDisk.remove(&path).unwrap();
    assert!(!path.exists());
    assert!(LocalDisk.replace(&folder.path().join("none/source.1.json"), b"text").is_err());
    // What cannot be replaced leaves nothing behind.
    fs::create_dir(&path).unwrap();
    assert!(LocalDisk.replace(&path, b"text").is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
