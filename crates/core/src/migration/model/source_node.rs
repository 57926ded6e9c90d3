//! The node at the source.

use super::{Count, Crash};
use crate::migration::source::{
    Checkpoint, Frozen, SourceAction, SourceDecision, SourceGoal, SourceRecord, SourceSeen, next,
};
use crate::migration::{SourceOrder, SourceReport, Write};
use jiff::Timestamp;

#[derive(Clone, Debug)]
pub(crate) struct SourceNode {
    pub(crate) disk: Option<SourceRecord>,
    pub(crate) inbox: Option<SourceOrder>,
    pub(crate) frozen: Frozen,
    pub(crate) gone: bool,
    pub(crate) terminating: bool,
    pub(crate) count: Count,
    /// Which start of the program there was when the pod was reserved.
    reserved_start: u32,
    pub(crate) checkpoint: Option<(Count, bool)>,
    pub(crate) checkpoint_fails: bool,
    pub(crate) sent: bool,
    /// Whether the commit was ever written.
    pub(crate) committed: bool,
    /// Whether its agent begins no session.
    pub(crate) refuses: bool,
    /// Whether the API server answers the node.
    pub(crate) api_is_away: bool,
    /// The node was booted, and its kubelet has not started the pod yet.
    booting: bool,
    /// The kubelet has started the pod afresh after the commit: it was not marked for deletion yet.
    pub(crate) afresh: bool,
    sessions: u64,
}

impl SourceNode {
    pub(crate) fn new() -> Self {
        Self {
            disk: None,
            inbox: None,
            frozen: Frozen::None,
            gone: false,
            terminating: false,
            count: (1, 0),
            reserved_start: 1,
            checkpoint: None,
            checkpoint_fails: false,
            sent: false,
            committed: false,
            refuses: false,
            api_is_away: false,
            booting: false,
            afresh: false,
            sessions: 0,
        }
    }

    pub(crate) fn runs(&self) -> bool {
        !self.gone && self.frozen != Frozen::All
    }

    fn seen(&self) -> SourceSeen {
        let checkpoint = match self.checkpoint {
            _ if self.checkpoint_fails => Checkpoint::Failed("no space".to_owned()),
            None => Checkpoint::None,
            Some((_, false)) => Checkpoint::Writing,
            Some((_, true)) => Checkpoint::Complete,
        };
        // A dump thaws the freezer of what it has seized.
        let dumped = self.frozen == Frozen::All && checkpoint == Checkpoint::Writing;
        SourceSeen {
            gone: self.gone,
            frozen: if dumped { Frozen::Partly } else { self.frozen },
            replaced: (self.count.0 != self.reserved_start).then(|| "a".to_owned()),
            terminating: self.terminating && !self.api_is_away,
            checkpoint,
            sent: self.sent,
            has_files: self.checkpoint.is_some(),
        }
    }

    pub(crate) fn crash(&mut self) {
        self.inbox = None;
        self.sent = false;
        self.end_dump();
    }

    /// The dump ends in the middle: nobody freezes again what it has thawed.
    fn end_dump(&mut self) {
        if matches!(self.checkpoint, Some((_, false))) {
            self.checkpoint = None;
            self.frozen = Frozen::None;
        }
    }

    /// The node loses its power and is booted. What is on its disk stays.
    pub(crate) fn reboot(&mut self) {
        self.crash();
        self.frozen = Frozen::None;
        self.booting |= !self.gone;
        self.gone = true;
    }

    /// The kubelet starts the pod afresh.
    fn start_afresh(&mut self) {
        self.gone = false;
        self.frozen = Frozen::None;
        self.count = (self.count.0 + 1, 0);
        self.afresh |= self.committed;
    }

    /// What the node itself does meanwhile.
    pub(crate) fn pass(&mut self) {
        if std::mem::take(&mut self.booting) && !self.terminating {
            self.start_afresh();
        }
        if self.terminating && self.frozen == Frozen::None {
            self.gone = true;
        }
        // A dump fails of which a container is gone or runs.
        let whole = self.frozen == Frozen::All;
        self.checkpoint = match self.checkpoint {
            Some((count, false)) => (whole && count == self.count).then_some((count, true)),
            complete => complete,
        };
    }

    /// A container dies and is started anew by the kubelet.
    pub(crate) fn replace(&mut self) {
        // Terminating pods are not started anew. Between the commit and the mark for deletion, which is one call unless the
        // API server is away, nothing else kills a frozen pod within its limit.
        if !self.gone && !self.terminating && (!self.committed || self.api_is_away) {
            self.start_afresh();
        }
    }

    /// One turn of the agent. The actions that need the other node are returned.
    pub(crate) fn turn(&mut self, crash: Crash, now: Timestamp) -> (Option<SourceReport>, bool) {
        self.sessions += 1;
        let order = self.inbox.clone();
        if let Some(order) = &order
            && self.refuses
            && self.disk.is_none()
            && (order.goal, order.session) == (SourceGoal::Reserved, None)
        {
            let (migration, reason) = (order.migration.clone(), "it has a volume of the node".to_owned());
            return (Some(SourceReport::Refused { migration, reason }), false);
        }
        let decision: SourceDecision =
            next(self.disk.as_ref(), order.as_ref(), &self.seen(), self.sessions, now);
        if crash == Crash::BeforeWrite {
            self.crash();
            return (None, false);
        }
        match decision.write {
            Write::Nothing => {}
            Write::Put(record) => {
                if self.disk.is_none() {
                    self.reserved_start = self.count.0;
                }
                self.committed |= record.stage.is_committed();
                self.disk = Some(record);
            }
            Write::Remove => self.disk = None,
        }
        let mut sends = false;
        for (index, action) in decision.actions.iter().enumerate() {
            if crash == Crash::InAction(index) {
                self.half(*action);
                self.crash();
                return (None, sends);
            }
            sends |= *action == SourceAction::Send;
            self.act(*action);
        }
        if crash == Crash::BeforeReport {
            self.crash();
            return (None, sends);
        }
        (decision.report, sends)
    }

    fn half(&mut self, action: SourceAction) {
        if !self.gone && matches!(action, SourceAction::Freeze | SourceAction::Thaw) {
            self.frozen = Frozen::Partly;
        }
    }

    fn act(&mut self, action: SourceAction) {
        match action {
            SourceAction::Freeze => self.frozen = Frozen::All,
            SourceAction::Thaw => {
                self.end_dump();
                self.frozen = Frozen::None;
            }
            SourceAction::WriteCheckpoint => {
                assert_eq!(self.frozen, Frozen::All);
                self.checkpoint = Some((self.count, false));
            }
            SourceAction::MarkForDeletion => self.terminating |= !self.api_is_away,
            SourceAction::Kill => {
                assert!(self.terminating, "a container that is killed now is started anew");
                self.gone = true;
            }
            SourceAction::RemoveFiles => self.checkpoint = None,
            SourceAction::Send => {}
        }
    }
}
