//! Waiting for a checkpoint, and restoring from it.

use super::freeze::{Hierarchies, RunFiles};
use super::links;
use super::{Bundle, Create, Invocation, Look, Refused, Request, Settings, WrapperError, look};
use crate::archive::{Kind, Limits, unpack};
use crate::store::{Mark, Presence, Store, Taken};
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;

/// What became of a container that was to be restored.
#[derive(Debug)]
pub(super) enum Waited {
    /// Its checkpoint is taken.
    Taken(Taken),
    /// Its pod is live: it is made afresh.
    Fresh,
}

/// Waits until the store says what is to be done.
pub(super) fn wait(request: &Request, store: &Store, settings: &Settings) -> Result<Waited, WrapperError> {
    for _ in 0..settings.looks() {
        let presence = store.presence(&request.migration, &request.container);
        // Looked up after the checkpoint: it is said before one appears.
        let owner = if presence == Presence::None { None } else { store.owner(&request.migration)? };
        let live = store.has(&request.migration, Mark::Live);
        let cancelled = store.has(&request.migration, Mark::Cancel);
        match look(request, presence, owner.as_deref(), live, cancelled)? {
            Look::Fresh => return Ok(Waited::Fresh),
            Look::Wait => thread::sleep(settings.pause),
            // Another call may have been faster: then the next look says so.
            Look::Take => {
                if let Some(taken) = store.claim(&request.migration, &request.container, &request.pod)? {
                    return Ok(Waited::Taken(taken));
                }
            }
        }
    }
    let Request { migration, container, .. } = request.clone();
    Err(Refused::Late { migration, container, seconds: settings.wait.as_secs() }.into())
}

/// Restores a container from a checkpoint that was taken.
pub(super) fn restore(
    invocation: &Invocation,
    create: &Create,
    mut bundle: Bundle,
    taken: &Taken,
    frozen: bool,
    settings: &Settings,
) -> Result<(), WrapperError> {
    let id = super::id::id(&create.id)?;
    let files = RunFiles::new(&settings.run, &id);
    if let Some(diff) = &taken.rootfs_diff {
        apply(diff, &bundle.rootfs())?;
    }
    links::check(&bundle, &taken.paths()?)?;
    let mut questions = files.prepare(frozen)?;
    bundle.set_criu_config(&files.criu_config())?;
    let words = invocation.restore(create, taken.images.as_os_str(), taken.work.as_os_str());
    let mut child = Command::new(&settings.runc)
        .args(words)
        .spawn()
        .map_err(|error| WrapperError::io("start", &settings.runc, error))?;
    let hierarchies = Hierarchies {
        freezer: settings.freezer.clone(),
        unified: settings.unified.clone(),
        proc: "/proc".into(),
    };
    let mut asked = false;
    for _ in 0..settings.looks() {
        if let Some(questions) = &mut questions {
            match questions.serve(&hierarchies) {
                Ok(served) => asked |= served,
                Err(error) => {
                    kill(&mut child);
                    return Err(error);
                }
            }
        }
        let ended = child.try_wait().map_err(|error| WrapperError::io("wait for", &settings.runc, error))?;
        match ended {
            None => thread::sleep(settings.pause),
            Some(status) if status.success() && frozen && !asked => {
                // It runs already, and must not: whatever became of it, it is to end.
                let mut words = invocation.global.clone();
                words.extend(["delete".into(), "--force".into(), create.id.clone()]);
                let _ = Command::new(&settings.runc).args(words).status();
                return Err(WrapperError::NotHeld { id });
            }
            Some(status) if status.success() => {
                let restored = files.restored();
                return fs::write(&restored, "").map_err(|error| WrapperError::io("write", restored, error));
            }
            Some(status) => {
                return Err(WrapperError::Restore { status: status.to_string(), work: taken.work.clone() });
            }
        }
    }
    kill(&mut child);
    Err(WrapperError::Hangs { seconds: settings.wait.as_secs(), work: taken.work.clone() })
}

fn kill(child: &mut Child) {
    // It may have ended by itself meanwhile, which is as well.
    let _ = child.kill();
    let _ = child.wait();
}

/// Lays what the container had changed over its root file system.
fn apply(diff: &Path, rootfs: &Path) -> Result<(), WrapperError> {
    let io = |error| WrapperError::io("read", diff, error);
    let file = File::open(diff).map_err(io)?;
    // Its sum was checked when it arrived.
    unpack(Kind::RootfsDiff, io::BufReader::new(file), rootfs, &Limits::default(), None)?;
    Ok(())
}
