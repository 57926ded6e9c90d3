//! Leaving a restored container frozen before it has run.
//!
//! When everything is restored and nothing runs yet, CRIU calls a script. CRIU and the script are in the container's cgroup
//! themselves, so neither can freeze it: the script asks, over a pipe, and the wrapper, which is outside, moves the two away,
//! freezes the cgroup and answers. The script uses nothing but the shell itself: a command that it forked would be in that
//! cgroup as well.

use super::WrapperError;
use crate::freezer::{CgroupFiles, Kernel, PodFreezer};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

/// The pipes between the script of one container and the wrapper.
pub(super) struct Questions {
    ask: File,
    answer: File,
    text: Vec<u8>,
    id: String,
}

/// No path of a cgroup is longer.
const LONGEST: usize = 8192;

/// The files of one container in the folder of the wrapper.
pub(super) struct RunFiles {
    folder: PathBuf,
    id: String,
}

impl RunFiles {
    pub(super) fn new(folder: &Path, id: &str) -> Self {
        Self { folder: folder.to_owned(), id: id.to_owned() }
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.id))
    }

    /// Says that the container was restored, and with that started.
    pub(super) fn restored(&self) -> PathBuf {
        self.file("restored")
    }

    /// The configuration of CRIU. It stays as long as the container: a later checkpoint of it reads this file again.
    pub(super) fn criu_config(&self) -> PathBuf {
        self.file("criu.conf")
    }

    /// Removes all of them.
    pub(super) fn remove(&self) {
        for kind in ["restored", "criu.conf", "script", "ask", "answer"] {
            // What cannot be removed is a small file of a container that is gone.
            let _ = fs::remove_file(self.file(kind));
        }
    }

    /// Writes the configuration of CRIU; a container that is left frozen gets the script and the pipes as well.
    pub(super) fn prepare(&self, frozen: bool) -> Result<Option<Questions>, WrapperError> {
        fs::create_dir_all(&self.folder).map_err(|error| WrapperError::io("make", &self.folder, error))?;
        self.remove();
        let mut config = "tcp-close\nskip-in-flight\nnetwork-lock skip\n".to_owned();
        if frozen {
            let script = self.file("script");
            config.push_str(&format!("action-script {}\n", script.display()));
            write(&script, &script_text(&self.file("ask"), &self.file("answer")))?;
            let executable = fs::Permissions::from_mode(0o700);
            fs::set_permissions(&script, executable)
                .map_err(|error| WrapperError::io("make executable", &script, error))?;
        }
        write(&self.criu_config(), &config)?;
        if !frozen {
            return Ok(None);
        }
        let (ask, answer) = (pipe(&self.file("ask"))?, pipe(&self.file("answer"))?);
        Ok(Some(Questions { ask, answer, text: Vec::new(), id: self.id.clone() }))
    }
}

fn write(path: &Path, text: &str) -> Result<(), WrapperError> {
    fs::write(path, text).map_err(|error| WrapperError::io("write", path, error))
}

/// A named pipe that is open at both ends, so that neither opening nor reading it waits.
fn pipe(path: &Path) -> Result<File, WrapperError> {
    let mode = nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR;
    nix::unistd::mkfifo(path, mode).map_err(|errno| WrapperError::io("make", path, errno))?;
    let flags = nix::fcntl::OFlag::O_NONBLOCK.bits();
    let file = OpenOptions::new().read(true).write(true).custom_flags(flags).open(path);
    file.map_err(|error| WrapperError::io("open", path, error))
}

fn script_text(ask: &Path, answer: &Path) -> String {
    format!(
        r#"#!/bin/sh
# Asks portolan-runc to freeze this container. Nothing is forked: it would be in the cgroup that is to be frozen.
[ "$CRTOOLS_SCRIPT_ACTION" = pre-resume ] || exit 0
cg=
while IFS=: read -r number controllers path; do
    case ",$controllers," in
        *,freezer,*) cg="freezer:$path" ;;
        ,,) [ -n "$cg" ] || cg="unified:$path" ;;
    esac
done < /proc/self/cgroup
echo "$cg" > '{}'
read -r answer < '{}'
[ "$answer" = frozen ]
"#,
        ask.display(),
        answer.display()
    )
}

impl Questions {
    /// Answers the script if it has asked. Whether it has.
    pub(super) fn serve(&mut self, mounts: &Hierarchies) -> Result<bool, WrapperError> {
        let Some(asked) = self.question()? else { return Ok(false) };
        let (hierarchy, folder) = mounts.folder(&asked, &self.id)?;
        mounts.move_away(hierarchy, &folder)?;
        let parent = folder.parent().unwrap_or(&folder).to_owned();
        PodFreezer::open(&parent, &[&self.id_in(&folder)])?.hold()?;
        self.answer
            .write_all(b"frozen\n")
            .map_err(|error| WrapperError::io("answer", "the script", error))?;
        Ok(true)
    }

    fn id_in(&self, folder: &Path) -> String {
        folder.file_name().map_or_else(|| self.id.clone(), |name| name.to_string_lossy().into_owned())
    }

    fn question(&mut self) -> Result<Option<String>, WrapperError> {
        let mut buffer = [0; 512];
        loop {
            match self.ask.read(&mut buffer) {
                Ok(read) => self.text.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(WrapperError::io("read the question of", "the script", error)),
            }
            if self.text.len() > LONGEST {
                return Err(self.wrong(&String::from_utf8_lossy(&self.text)));
            }
        }
        let Some(end) = self.text.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line = String::from_utf8_lossy(&self.text[..end]).into_owned();
        self.text.drain(..=end);
        Ok(Some(line))
    }

    fn wrong(&self, asked: &str) -> WrapperError {
        WrapperError::Cgroup { asked: asked.chars().take(256).collect(), id: self.id.clone() }
    }
}

/// Which hierarchy of cgroups the freezer of a container is in. The paths do not say: where only cgroup v1 is mounted, the
/// freezer lies below the folder that the one hierarchy of cgroup v2 would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hierarchy {
    /// The freezer of cgroup v1.
    Freezer,
    /// The one of cgroup v2.
    Unified,
}

/// Where the hierarchies of cgroups are mounted, and who this process is in them.
pub(super) struct Hierarchies {
    pub(super) freezer: PathBuf,
    pub(super) unified: PathBuf,
    pub(super) proc: PathBuf,
}

impl Hierarchies {
    /// The folder of the cgroup that is asked about, which must be the container's.
    pub(super) fn folder(&self, asked: &str, id: &str) -> Result<(Hierarchy, PathBuf), WrapperError> {
        let wrong = || WrapperError::Cgroup { asked: asked.chars().take(256).collect(), id: id.to_owned() };
        let (hierarchy, root, path) = match asked.split_once(':') {
            Some(("freezer", path)) => (Hierarchy::Freezer, &self.freezer, path),
            Some(("unified", path)) => (Hierarchy::Unified, &self.unified, path),
            _ => return Err(wrong()),
        };
        let path = Path::new(path.strip_prefix('/').ok_or_else(wrong)?);
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        // Its own name, or systemd's of it: `cri-containerd-ID.scope`.
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(wrong)?;
        let own =
            name == id || name.strip_suffix(".scope").is_some_and(|name| name.ends_with(&format!("-{id}")));
        if !plain || !own || path.components().count() < 2 {
            return Err(wrong());
        }
        Ok((hierarchy, root.join(path)))
    }

    /// Moves what is not the container out of its cgroup: the processes that have the node's mounts.
    fn move_away(&self, hierarchy: Hierarchy, folder: &Path) -> Result<(), WrapperError> {
        let mine = self.mounts_of("self");
        let target = self.refuge(hierarchy, folder)?;
        let list = folder.join("cgroup.procs");
        let processes = fs::read_to_string(&list).map_err(|error| WrapperError::io("read", &list, error))?;
        for process in processes.lines() {
            let process = process.trim();
            if mine.is_some() && self.mounts_of(process) == mine {
                match Kernel.write(&target, process) {
                    // It has ended meanwhile.
                    Err(error) if error.raw_os_error() == Some(nix::errno::Errno::ESRCH as i32) => {}
                    moved => moved.map_err(|error| WrapperError::io("move a process to", &target, error))?,
                }
            }
        }
        Ok(())
    }

    fn mounts_of(&self, process: &str) -> Option<PathBuf> {
        fs::read_link(self.proc.join(process).join("ns/mnt")).ok()
    }

    /// Where they go: in cgroup v1 to the pod's own cgroup; in v2, where that takes no processes, to the one of this process.
    fn refuge(&self, hierarchy: Hierarchy, folder: &Path) -> Result<PathBuf, WrapperError> {
        if hierarchy == Hierarchy::Freezer {
            return Ok(folder.parent().unwrap_or(folder).join("cgroup.procs"));
        }
        let path = self.proc.join("self/cgroup");
        let text = fs::read_to_string(&path).map_err(|error| WrapperError::io("read", &path, error))?;
        let own = text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("");
        Ok(self.unified.join(own).join("cgroup.procs"))
    }
}

#[cfg(test)]
#[path = "freeze_tests.rs"]
mod tests;
