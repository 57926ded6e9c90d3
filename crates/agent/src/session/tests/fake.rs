//! Hands that record what is done, and die in the middle of it.

use super::world::{Fate, Mode, Shared, World};
use crate::session::{DestinationHands, HandsError, Pod, Role, SessionInfo, SourceHands, SourceLook};
use portolan_core::migration::destination::{Data, DestinationSeen, Target};
use portolan_core::migration::source::Frozen;
use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use tokio::time::sleep;

/// What one incarnation of an agent does to the pod.
#[derive(Clone, Debug)]
pub(super) struct Fake {
    pub(super) world: Shared,
    pub(super) role: Role,
    pub(super) incarnation: u32,
}

impl Fake {
    /// Does an action, or half of it if the agent dies there.
    async fn act(
        &self,
        name: &'static str,
        whole: fn(&mut World),
        half: fn(&mut World),
    ) -> Result<(), HandsError> {
        let fate = {
            let mut world = self.world.lock().unwrap();
            let fate = world.step(self.role, self.incarnation);
            match fate {
                Fate::Done | Fate::Dies(Mode::After) => {
                    world.actions.push(name);
                    whole(&mut world);
                }
                Fate::Dies(Mode::Half) => half(&mut world),
                Fate::Dies(Mode::Before) | Fate::Dead => {}
            }
            world.check();
            fate
        };
        if fate != Fate::Done {
            pending::<()>().await;
        }
        Ok(())
    }

    async fn live(&self) {
        let dead = self.world.lock().unwrap().is_dead(self.role, self.incarnation);
        if dead {
            pending::<()>().await;
        }
    }
}

/// Says that nothing is dumped any more, however the dump ends.
struct Dump(Shared);

impl Drop for Dump {
    fn drop(&mut self) {
        self.0.lock().unwrap().dumping = false;
    }
}

impl SourceHands for Fake {
    async fn check(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let refusal = self.world.lock().unwrap().refusal;
        refusal.map_or(Ok(()), |why| Err(HandsError::refusal(why)))
    }

    async fn baseline(&self, _pod: &Pod) -> Result<String, HandsError> {
        self.live().await;
        Ok("container a".to_owned())
    }

    async fn look(&self, session: &SessionInfo) -> Result<SourceLook, HandsError> {
        self.live().await;
        let takes = self.world.lock().unwrap().look_takes;
        sleep(takes).await;
        let world = self.world.lock().unwrap();
        if world.look_fails {
            return Err(HandsError::new("the kernel does not answer"));
        }
        assert_eq!(session.baseline, "container a");
        Ok(SourceLook {
            gone: world.gone,
            // A dump thaws the freezer of what it has seized.
            frozen: if world.dumping && world.frozen == Frozen::All { Frozen::Partly } else { world.frozen },
            replaced: None,
            terminating: world.terminating && !world.api_is_away,
            checkpoint: world.checkpoint.is_some(),
            has_files: world.checkpoint.is_some(),
        })
    }

    async fn freeze(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        if self.world.lock().unwrap().freeze_fails {
            return Err(HandsError::new("the kernel does not freeze it"));
        }
        self.act("freeze", |world| world.frozen = Frozen::All, |world| world.frozen = Frozen::Partly).await
    }

    async fn write_checkpoint(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let begin = |world: &mut World| {
            world.dumping = true;
            world.checkpoint = None;
            if world.frozen != Frozen::All {
                world.violate("a pod that runs is written down");
            }
        };
        let _dump = Dump(self.world.clone());
        self.act("write_checkpoint", begin, |_| {}).await?;
        let takes = self.world.lock().unwrap().dump_takes;
        sleep(takes).await;
        self.act("written", |world| world.checkpoint = Some(world.life), |_| {}).await
    }

    async fn send(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let takes = self.world.lock().unwrap().send_takes;
        sleep(takes).await;
        let send = |world: &mut World| {
            // A pod that is restored takes no other checkpoint.
            if world.receiving && world.data.is_none() && world.target == Target::Waiting {
                world.data = world.checkpoint;
                world.arrived.notify_one();
            }
        };
        self.act("send", send, |_| {}).await?;
        let arrived = self.world.lock().unwrap().data.is_some();
        if arrived { Ok(()) } else { Err(HandsError::new("the destination does not answer")) }
    }

    async fn mark_for_deletion(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        if self.world.lock().unwrap().api_is_away {
            return Err(HandsError::new("the API server does not answer"));
        }
        self.act("mark_for_deletion", |world| world.terminating = true, |_| {}).await
    }

    async fn kill(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let kill = |world: &mut World| {
            world.gone = true;
            if !world.terminating || !world.committed {
                world.violate("a pod is killed that is not released");
            }
        };
        self.act("kill", kill, |_| {}).await
    }

    async fn thaw(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        fn thaw(world: &mut World, left: Frozen) {
            world.life += u64::from(world.frozen != Frozen::None);
            world.frozen = left;
            if world.dumping {
                world.violate("a pod is thawed while it is written down");
            }
        }
        self.act("thaw", |world| thaw(world, Frozen::None), |world| thaw(world, Frozen::Partly)).await
    }

    async fn remove_files(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        self.act("remove_files", |world| world.checkpoint = None, |_| {}).await
    }

    async fn remove_ended(&self, kept: &BTreeSet<String>) -> Result<(), HandsError> {
        self.world.lock().unwrap().kept.push(("source", kept.iter().cloned().collect()));
        Ok(())
    }
}

impl DestinationHands for Fake {
    async fn check(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        Ok(())
    }

    async fn look(&self, _session: &SessionInfo) -> Result<DestinationSeen, HandsError> {
        self.live().await;
        let world = self.world.lock().unwrap();
        let data = if world.data.is_some() { Data::Complete } else { Data::Incomplete };
        let has_files = world.data.is_some();
        let committed = world.marked || world.target == Target::None;
        Ok(DestinationSeen { target: world.target.clone(), data, live: world.live, committed, has_files })
    }

    async fn changed(&self, _session: &SessionInfo) {
        let arrived = Arc::clone(&self.world.lock().unwrap().arrived);
        arrived.notified().await;
    }

    async fn create_pod(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let create = |world: &mut World| {
            if world.target == Target::None {
                world.target = Target::Waiting;
            }
        };
        self.act("create_pod", create, |_| {}).await
    }

    async fn receive(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        self.act("receive", |world| world.receiving = true, |_| {}).await
    }

    async fn remove_checkpoint(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        self.act("remove_checkpoint", |world| world.data = None, |_| {}).await
    }

    async fn restore(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let restore = |world: &mut World| {
            if let (Target::Waiting, Some(life)) = (&world.target, world.data) {
                world.target = Target::Frozen;
                world.restored_life = life;
            }
        };
        self.act("restore", restore, |_| {}).await
    }

    async fn thaw(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let run = |world: &mut World| {
            world.live = true;
            world.target = Target::Running;
        };
        self.act("run", run, |world| world.live = true).await
    }

    async fn mark_committed(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let mark = |world: &mut World| {
            world.marked = true;
            if world.target != Target::Running {
                world.violate("a pod that does not run gets traffic");
            }
        };
        self.act("mark_committed", mark, |_| {}).await
    }

    async fn delete_pod(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        let delete = |world: &mut World| {
            if world.target == Target::Running {
                world.violate("a pod that runs is discarded");
            }
            world.target = Target::None;
            world.live = false;
        };
        self.act("delete_pod", delete, |_| {}).await
    }

    async fn remove_files(&self, _session: &SessionInfo) -> Result<(), HandsError> {
        self.act("remove_files", |world| world.data = None, |_| {}).await
    }

    async fn remove_ended(&self, kept: &BTreeSet<String>) -> Result<(), HandsError> {
        self.world.lock().unwrap().kept.push(("destination", kept.iter().cloned().collect()));
        Ok(())
    }
}
