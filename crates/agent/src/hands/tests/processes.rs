//! Dumps of an agent that has died.

use super::{World, name};
use crate::hands::intent::{Intent, VARIABLE};
use crate::hands::mark;
use crate::hands::process::{Ending, Killable, Started};
use crate::hands::source_files::SourceFiles;
use crate::session::SourceHands;
use portolan_core::migration::source::Frozen;
use std::cell::Cell;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command};
use std::rc::Rc;
use std::time::Duration;
use tokio::time::Instant;

/// A process that is nobody's business unless it is the one that was written down.
struct Sleep(Child);

impl Sleep {
    fn new() -> Self {
        Self(Command::new("sleep").arg("1000").process_group(0).spawn().unwrap())
    }

    /// As if it dumped into this folder.
    fn dumping(work: &Path) -> Self {
        let mut command = Command::new("sleep");
        Self(command.arg("1000").env(VARIABLE, work).process_group(0).spawn().unwrap())
    }

    fn started(&self) -> Started {
        Started::of(self.0.id()).unwrap()
    }

    fn runs(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn a_thaw_ends_the_dump_of_a_dead_agent_and_nothing_else() {
    let world = World::new();
    let info = world.info().await;
    let files = SourceFiles::new(&world.settings(), &info).unwrap();
    files.begin(&[name("a"), name("b"), name("c")]).unwrap();
    let (mut own, mut later, mut before) = (Sleep::new(), Sleep::new(), Sleep::new());
    let another = |started: Started| Started { start: started.start + 1, ..started };
    let of_last_boot = |started: Started| Started { boot: "another".to_owned(), ..started };
    mark::write(&files.process(&name("a")), &own.started()).unwrap();
    mark::write(&files.process(&name("b")), &another(later.started())).unwrap();
    mark::write(&files.process(&name("c")), &of_last_boot(before.started())).unwrap();
    world.node().freeze(&info).await.unwrap();
    for _ in 0..2 {
        world.node().thaw(&info).await.unwrap();
        assert_eq!(world.own_freezer("a1"), "THAWED");
    }
    assert_eq!(own.0.wait().unwrap().signal(), Some(9));
    assert!(later.runs() && before.runs());
}

#[tokio::test]
async fn a_dump_whose_process_was_never_written_down_is_ended_and_leaves_nothing() {
    let world = World::new();
    let info = world.info().await;
    let files = SourceFiles::new(&world.settings(), &info).unwrap();
    files.begin(&[name("a"), name("b"), name("c")]).unwrap();
    let work = files.dump(&name("a"));
    let (mut own, mut other) = (Sleep::dumping(&work), Sleep::dumping(&work.join("x")));
    let intent = Intent::of(&work).unwrap();
    mark::write(&files.intent(&name("a")), &intent).unwrap();
    // The agent died before anything was started, or in another boot of the node.
    mark::write(&files.intent(&name("b")), &Intent { work: files.dump(&name("b")), ..intent.clone() })
        .unwrap();
    let of_last_boot = Intent { work: work.join("x"), boot: "another".to_owned() };
    mark::write(&files.intent(&name("c")), &of_last_boot).unwrap();
    assert_eq!(world.node().look(&info).await.unwrap().frozen, Frozen::Partly);
    world.node().freeze(&info).await.unwrap();
    for _ in 0..2 {
        world.node().thaw(&info).await.unwrap();
        assert_eq!(world.own_freezer("a1"), "THAWED");
        assert!(!world.node().look(&info).await.unwrap().has_files, "half of a checkpoint");
    }
    assert_eq!(own.0.wait().unwrap().signal(), Some(9));
    assert!(other.runs());
}

#[tokio::test]
async fn a_record_that_cannot_be_read_does_not_keep_the_pod_frozen() {
    let world = World::new();
    let info = world.info().await;
    let files = SourceFiles::new(&world.settings(), &info).unwrap();
    files.begin(&[name("a")]).unwrap();
    world.node().freeze(&info).await.unwrap();
    std::fs::write(files.process(&name("a")), "{").unwrap();
    let error = world.node().thaw(&info).await.unwrap_err().to_string();
    assert!(error.contains("processes/a"), "{error}");
    assert_eq!(world.own_freezer("a1"), "THAWED");
    world.node().remove_files(&info).await.unwrap();
    assert!(!world.node().look(&info).await.unwrap().has_files, "nor the files for ever");
}

#[test]
fn what_a_dump_has_started_ends_after_it() {
    // The shell leads the group and ends; its child goes on.
    let mut shell = Command::new("sh");
    shell.args(["-c", "sleep 1000 & read -r line"]).stdin(std::process::Stdio::piped()).process_group(0);
    let mut shell = shell.spawn().unwrap();
    let started = Started::of(shell.id()).unwrap();
    drop(shell.stdin.take());
    shell.wait().unwrap();
    assert_eq!(started.left().unwrap().len(), 1);
    for _ in 0..2 {
        Ending::new(vec![started.clone()]).finish().unwrap();
        assert!(started.left().unwrap().is_empty());
    }
}

/// A process that hangs in the kernel, and counts how often it was killed.
struct Hangs(Rc<Cell<u32>>);

impl Killable for Hangs {
    fn is_left(&self, kill: bool) -> io::Result<bool> {
        self.0.set(self.0.get() + u32::from(kill));
        Ok(true)
    }
}

#[test]
fn all_dumps_are_killed_before_any_is_waited_for_and_the_wait_is_short() {
    let kills: Vec<Rc<Cell<u32>>> = (0..3).map(|_| Rc::default()).collect();
    let begin = Instant::now();
    let mut ending = Ending::new(kills.iter().map(|kills| Hangs(Rc::clone(kills))).collect());
    assert!(kills.iter().all(|kills| kills.get() == 1), "{kills:?}");
    assert!(!ending.wait(Duration::from_millis(300)));
    let took = begin.elapsed();
    assert!((Duration::from_millis(300)..Duration::from_secs(2)).contains(&took), "{took:?}");
}

#[tokio::test]
async fn a_pod_whose_dump_still_runs_may_stand_still_whatever_its_freezers_say() {
    let world = World::new();
    let info = world.info().await;
    let files = SourceFiles::new(&world.settings(), &info).unwrap();
    files.begin(&[name("a")]).unwrap();
    let mut dump = Sleep::new();
    mark::write(&files.process(&name("a")), &dump.started()).unwrap();
    assert_eq!(world.node().look(&info).await.unwrap().frozen, Frozen::Partly);
    world.node().thaw(&info).await.unwrap();
    assert!(!dump.runs());
    assert_eq!(world.node().look(&info).await.unwrap().frozen, Frozen::None);
}
