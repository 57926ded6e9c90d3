//! The script and its questions, with real shells and pipes.

use super::*;
use std::process::{Command, Stdio};

const ID: &str = "0123abc";

fn hierarchies(folder: &Path) -> Hierarchies {
    Hierarchies {
        freezer: folder.join("freezer"),
        unified: folder.join("unified"),
        proc: PathBuf::from("/proc"),
    }
}

#[test]
fn only_the_cgroup_of_the_container_is_frozen() {
    let mounts = hierarchies(Path::new("/c"));
    for (asked, hierarchy, folder) in [
        ("freezer:/kubepods/pod1/0123abc", Hierarchy::Freezer, "/c/freezer/kubepods/pod1/0123abc"),
        (
            "unified:/kubepods.slice/p.slice/cri-containerd-0123abc.scope",
            Hierarchy::Unified,
            "/c/unified/kubepods.slice/p.slice/cri-containerd-0123abc.scope",
        ),
    ] {
        assert_eq!(mounts.folder(asked, ID).unwrap(), (hierarchy, PathBuf::from(folder)));
    }
    for asked in [
        "",
        "0123abc",
        "freezer:kubepods/0123abc",
        "freezer:/",
        "freezer:/0123abc",
        "freezer:/kubepods/other",
        "freezer:/kubepods/../../0123abc",
        "freezer:/kubepods/x0123abc",
        "memory:/kubepods/0123abc",
        "freezer:/kubepods/0123abc/..",
    ] {
        assert!(mounts.folder(asked, ID).is_err(), "{asked:?}");
    }
}

#[test]
fn the_script_asks_and_waits_for_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let files = RunFiles::new(&folder.path().join("run"), ID);
    let mut questions = files.prepare(true).unwrap().unwrap();
    let config = fs::read_to_string(files.criu_config()).unwrap();
    assert!(config.contains("action-script ") && config.contains("skip-in-flight"), "{config}");
    let script = |action: &str| {
        let mut command = Command::new("sh");
        command.arg(files.file("script")).env("CRTOOLS_SCRIPT_ACTION", action).stdin(Stdio::null());
        command
    };
    // In any other stage it has nothing to ask.
    assert!(script("post-restore").status().unwrap().success());
    assert_eq!(questions.question().unwrap(), None);
    for (answer, succeeds) in [("frozen\n", true), ("no\n", false)] {
        let mut child = script("pre-resume").spawn().unwrap();
        let mut asked = None;
        for _ in 0..2_000 {
            asked = questions.question().unwrap();
            if asked.is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        // This process is in some cgroup of its own: the script names the same one.
        let asked = asked.unwrap();
        assert!(asked.starts_with("freezer:/") || asked.starts_with("unified:/"), "{asked}");
        assert!(child.try_wait().unwrap().is_none(), "it waits");
        questions.answer.write_all(answer.as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().success(), succeeds);
    }
    files.remove();
    assert_eq!(fs::read_dir(folder.path().join("run")).unwrap().count(), 0);
}

#[test]
fn a_container_that_is_not_left_frozen_has_no_script() {
    let folder = tempfile::tempdir().unwrap();
    let files = RunFiles::new(folder.path(), ID);
    assert!(files.prepare(false).unwrap().is_none());
    assert!(!fs::read_to_string(files.criu_config()).unwrap().contains("action-script"));
}

#[test]
fn a_question_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut questions = RunFiles::new(folder.path(), ID).prepare(true).unwrap().unwrap();
    let mut ask = OpenOptions::new().write(true).open(folder.path().join("0123abc.ask")).unwrap();
    ask.write_all(&[b'x'; LONGEST + 1]).unwrap();
    assert!(matches!(questions.question(), Err(WrapperError::Cgroup { .. })));
}

#[test]
fn what_is_not_the_container_is_moved_away_before_it_is_frozen() {
    let folder = tempfile::tempdir().unwrap();
    moved_away_and_frozen(folder.path(), hierarchies(folder.path()));
}

#[test]
fn a_freezer_of_v1_below_the_folder_of_v2_is_one_of_v1() {
    let folder = tempfile::tempdir().unwrap();
    // As `/sys/fs/cgroup/freezer` where nothing but the controllers of v1 is mounted.
    let mounts = Hierarchies { unified: folder.path().to_owned(), ..hierarchies(folder.path()) };
    moved_away_and_frozen(folder.path(), mounts);
}

#[test]
fn in_v2_what_is_not_the_container_goes_to_the_cgroup_of_this_process() {
    let mounts = Hierarchies { proc: PathBuf::from("/proc"), ..hierarchies(Path::new("/c")) };
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
    let container = Path::new("/c/unified/kubepods/pod1/0123abc");
    let refuge = mounts.refuge(Hierarchy::Unified, container).unwrap();
    assert_eq!(refuge, Path::new("/c/unified").join(own).join("cgroup.procs"));
}

fn moved_away_and_frozen(folder: &Path, mounts: Hierarchies) {
    let pod = mounts.freezer.join("kubepods/pod1");
    let container = pod.join(ID);
    fs::create_dir_all(&container).unwrap();
    for path in [pod.join("freezer.state"), container.join("freezer.state"), pod.join("cgroup.procs")] {
        fs::write(path, "").unwrap();
    }
    // This process stands for CRIU, which has the node's mounts; the other one is gone already.
    let own = std::process::id().to_string();
    fs::write(container.join("cgroup.procs"), format!("{own}\n4194999\n")).unwrap();
    let mut questions = RunFiles::new(&folder.join("run"), ID).prepare(true).unwrap().unwrap();
    assert!(!questions.serve(&mounts).unwrap(), "nothing was asked");
    let mut ask = OpenOptions::new().write(true).open(folder.join("run/0123abc.ask")).unwrap();
    ask.write_all(b"freezer:/kubepods/pod1/0123abc\n").unwrap();
    assert!(questions.serve(&mounts).unwrap());
    let read = |path: PathBuf| fs::read_to_string(path).unwrap();
    assert_eq!(read(pod.join("cgroup.procs")), own);
    assert_eq!(
        (read(container.join("freezer.state")), read(pod.join("freezer.state"))),
        ("FROZEN".into(), String::new())
    );
    let mut answer = [0; 7];
    questions.answer.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"frozen\n");
    ask.write_all(b"freezer:/kubepods/pod1/other\n").unwrap();
    assert!(questions.serve(&mounts).is_err());
}
