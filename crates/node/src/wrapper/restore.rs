//! Waiting for a checkpoint, and restoring from it.

use super::end::Begun;
use super::freeze::{Hierarchies, Questions, RunFiles};
use super::links;
use super::{Bundle, Create, Invocation, Look, Refused, Request, Settings, WrapperError, look};
use crate::archive::{Kind, Limits, unpack};
use crate::store::{Mark, Presence, Store, Taken};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
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

/// Waits until the store says what is to be done, for as long as the agent says that it works on the migration.
pub(super) fn wait(request: &Request, store: &Store, settings: &Settings) -> Result<Waited, WrapperError> {
    let (mut left, mut beats) = (settings.looks(), None);
    while left > 0 {
        left -= 1;
        let presence = store.presence(&request.migration, &request.container);
        // Looked up after the checkpoint: it is said before one appears.
        let owner = if presence == Presence::None { None } else { store.owner(&request.migration)? };
        let live = store.has(&request.migration, Mark::Live);
        let cancelled = store.has(&request.migration, Mark::Cancel);
        match look(request, presence, owner.as_deref(), live, cancelled)? {
            Look::Fresh => return Ok(Waited::Fresh),
            Look::Wait => {
                let now = store.beats(&request.migration);
                if now != beats {
                    (left, beats) = (settings.looks(), now);
                }
                thread::sleep(settings.pause);
            }
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
    let questions = files.prepare(frozen)?;
    bundle.set_criu_config(&files.criu_config())?;
    let hierarchies = Hierarchies {
        freezer: settings.freezer.clone(),
        unified: settings.unified.clone(),
        proc: "/proc".into(),
    };
    let begun = Begun::new(invocation, create, settings, &bundle, &hierarchies, &id);
    let words = invocation.restore(create, taken.images.as_os_str(), taken.work.as_os_str());
    // A group of its own: runc starts CRIU, and CRIU its script.
    let spawned = Command::new(&settings.runc).args(words).process_group(0).spawn();
    let mut child = spawned.map_err(|error| WrapperError::io("start", &settings.runc, error))?;
    let restored = until_restored(&mut child, questions, &hierarchies, taken, settings);
    let outcome = match restored {
        // It runs already, and must not: whatever became of it, it is to end.
        Ok(asked) if frozen && !asked => Err(WrapperError::NotHeld { id }),
        Ok(_) => {
            let restored = files.restored();
            fs::write(&restored, "").map_err(|error| WrapperError::io("write", restored, error))
        }
        Err(error) => Err(error),
    };
    if outcome.is_err() {
        begun.end(&mut child);
    }
    outcome
}

/// Waits until runc has restored the container, and freezes it when CRIU asks for that. Whether it has asked.
fn until_restored(
    runc: &mut Child,
    mut questions: Option<Questions>,
    hierarchies: &Hierarchies,
    taken: &Taken,
    settings: &Settings,
) -> Result<bool, WrapperError> {
    let mut asked = false;
    for _ in 0..settings.looks() {
        if let Some(questions) = &mut questions {
            asked |= questions.serve(hierarchies)?;
        }
        let ended = runc.try_wait().map_err(|error| WrapperError::io("wait for", &settings.runc, error))?;
        match ended {
            None => thread::sleep(settings.pause),
            Some(status) if status.success() => return Ok(asked),
            Some(status) => {
                return Err(WrapperError::Restore { status: status.to_string(), work: taken.work.clone() });
            }
        }
    }
    Err(WrapperError::Hangs { seconds: settings.wait.as_secs(), work: taken.work.clone() })
}

/// Lays what the container had changed over its root file system.
fn apply(diff: &Path, rootfs: &Path) -> Result<(), WrapperError> {
    let io = |error| WrapperError::io("read", diff, error);
    let file = File::open(diff).map_err(io)?;
    // Its sum was checked when it arrived.
    unpack(Kind::RootfsDiff, io::BufReader::new(file), rootfs, &Limits::default(), None)?;
    Ok(())
}
