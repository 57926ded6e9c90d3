//! The node at the destination.

use super::{Count, Crash};
use crate::migration::destination::{
    Data, DestinationAction, DestinationDecision, DestinationGoal, DestinationRecord, DestinationSeen,
    DestinationStage, Target, next,
};
use crate::migration::{DestinationOrder, DestinationReport, Write};
use jiff::Timestamp;

#[derive(Clone, Debug)]
pub(crate) struct DestinationNode {
    pub(crate) disk: Option<DestinationRecord>,
    pub(crate) inbox: Option<DestinationOrder>,
    pub(crate) target: Target,
    pub(crate) count: Count,
    /// What has arrived, and whether it is what was sent.
    pub(crate) data: Option<(Count, bool)>,
    pub(crate) restore_fails: bool,
    /// Whether its agent begins no session.
    pub(crate) refuses: bool,
    live: bool,
    /// Whether the API server says that the migration is committed: only then the pod gets traffic.
    pub(crate) committed: bool,
    sessions: u64,
}

impl DestinationNode {
    pub(crate) fn new() -> Self {
        Self {
            disk: None,
            inbox: None,
            target: Target::None,
            count: (0, 0),
            data: None,
            restore_fails: false,
            refuses: false,
            live: false,
            committed: false,
            sessions: 0,
        }
    }

    pub(crate) fn runs(&self) -> bool {
        self.target == Target::Running
    }

    pub(crate) fn crash(&mut self) {
        self.inbox = None;
    }

    /// Takes the checkpoint if it is waited for. Whether all of it is there now.
    pub(crate) fn take(&mut self, count: Count) -> bool {
        let open = self.disk.as_ref().is_some_and(|record| record.stage == DestinationStage::Receiving);
        if open && self.data.is_none() {
            self.data = Some((count, true));
        }
        self.data.is_some_and(|(_, right)| right)
    }

    /// What the node itself does meanwhile.
    pub(crate) fn pass(&mut self) {
        self.target = match (&self.target, self.data) {
            (Target::Changing, _) => Target::Waiting,
            (Target::Restoring, _) if self.restore_fails => Target::Failed("no such file".to_owned()),
            (Target::Restoring, Some((count, true))) => {
                self.count = count;
                Target::Frozen
            }
            (Target::Restoring, _) => Target::Failed("no checkpoint".to_owned()),
            (target, _) => target.clone(),
        };
    }

    /// The pod dies while it waits or stands still.
    pub(crate) fn die(&mut self) {
        // What dies once it is live is started afresh, as a pod that never moved.
        if !self.live && matches!(self.target, Target::Frozen | Target::Restoring) {
            self.target = Target::Waiting;
        }
    }

    /// The kubelet does not let a container wait any longer.
    pub(crate) fn give_up_waiting(&mut self) {
        if self.target == Target::Waiting {
            self.target = Target::Failed("context deadline exceeded".to_owned());
        }
    }

    fn seen(&self) -> DestinationSeen {
        let data = match self.data {
            None => Data::Incomplete,
            Some((_, true)) => Data::Complete,
            Some((_, false)) => Data::Refused("its sum is wrong".to_owned()),
        };
        let committed = self.committed || self.target == Target::None;
        DestinationSeen {
            target: self.target.clone(),
            data,
            live: self.live,
            committed,
            has_files: self.data.is_some(),
        }
    }

    /// One turn of the agent.
    pub(crate) fn turn(&mut self, crash: Crash, now: Timestamp) -> Option<DestinationReport> {
        self.sessions += 1;
        let order = self.inbox.clone();
        if let Some(order) = &order
            && self.refuses
            && self.disk.is_none()
            && (order.goal, order.session) == (DestinationGoal::Prepared, None)
        {
            let (migration, reason) = (order.migration.clone(), "it has no room".to_owned());
            return Some(DestinationReport::Refused { migration, reason });
        }
        let decision: DestinationDecision =
            next(self.disk.as_ref(), order.as_ref(), &self.seen(), self.sessions, now);
        if crash == Crash::BeforeWrite {
            self.crash();
            return None;
        }
        match decision.write {
            Write::Nothing => {}
            Write::Put(record) => self.disk = Some(record),
            Write::Remove => self.disk = None,
        }
        for (index, action) in decision.actions.iter().enumerate() {
            if crash == Crash::InAction(index) {
                self.live |= *action == DestinationAction::Thaw;
                self.crash();
                return None;
            }
            self.act(*action);
        }
        if crash == Crash::BeforeReport {
            self.crash();
            return None;
        }
        decision.report
    }

    fn act(&mut self, action: DestinationAction) {
        match action {
            DestinationAction::CreatePod => self.target = Target::Changing,
            DestinationAction::Receive => {}
            DestinationAction::RemoveCheckpoint | DestinationAction::RemoveFiles => self.data = None,
            DestinationAction::Restore => self.target = Target::Restoring,
            DestinationAction::Thaw => {
                self.live = true;
                self.target = Target::Running;
            }
            DestinationAction::MarkCommitted => {
                assert!(self.runs(), "a pod that does not run gets traffic");
                self.committed = true;
            }
            DestinationAction::DeletePod => {
                assert_ne!(self.target, Target::Running, "a pod that runs is not discarded");
                self.target = Target::None;
                self.live = false;
            }
        }
    }
}
