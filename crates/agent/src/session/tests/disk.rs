//! A disk that fills, and dies in the middle of a write.

use super::fake::Fake;
use super::world::{Fate, Mode};
use crate::session::Disk;
use std::fs;
use std::io;
use std::path::Path;

impl Disk for Fake {
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut world = self.world.lock().unwrap();
        let fate = world.step(self.role, self.incarnation);
        let temporary = path.with_file_name(".session.tmp");
        match fate {
            Fate::Dead | Fate::Dies(Mode::Before) => return Err(io::ErrorKind::Interrupted.into()),
            Fate::Dies(Mode::Half) => {
                fs::write(&temporary, &bytes[..bytes.len() / 2])?;
                return Err(io::ErrorKind::Interrupted.into());
            }
            Fate::Done | Fate::Dies(Mode::After) => {}
        }
        if world.agent(self.role).disk_is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        fs::write(&temporary, bytes)?;
        fs::rename(&temporary, path)?;
        let text = String::from_utf8_lossy(bytes);
        let mut doubtful = false;
        if text.contains("\"role\":\"source\"") {
            world.committed =
                ["Releasing", "Released", "Deleted"].iter().any(|stage| text.contains(&format!("{stage:?}")));
            let committed = world.committed;
            let agent = world.agent(self.role);
            doubtful = committed && agent.doubtful_commit;
            agent.disk_is_full |= doubtful;
            world.check();
        }
        if doubtful || fate != Fate::Done { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let fate = self.world.lock().unwrap().step(self.role, self.incarnation);
        if matches!(fate, Fate::Done | Fate::Dies(Mode::After)) {
            fs::remove_file(path)?;
        }
        if fate == Fate::Done { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    }
}
