//! The task of one session.

mod turn;

use super::jobs::Jobs;
use super::journal::{Entry, Journal};
use super::side::Side;
use super::{SessionInfo, Settings};
use portolan_core::migration::{Order, Report};
use portolan_runtime::Clock;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep};

/// Why a source gives up that does not know how long its pod has stood still.
const RESTARTED: &str =
    "the agent at the source was restarted while the pod stood still, and does not know for how long";

/// What all sessions of an agent have in common.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) journal: Journal,
    pub(super) clock: Clock,
    pub(super) settings: Settings,
}

type Reply<S> = oneshot::Sender<Report<<S as Side>::Stage>>;

/// The latest report of a session; nothing once it is over.
pub(super) type Latest<S> = Arc<Mutex<Option<Report<<S as Side>::Stage>>>>;

/// An order, and where its answer goes.
pub(super) struct Message<S: Side> {
    pub(super) order: Order<S::Goal>,
    pub(super) reply: Reply<S>,
}

/// What follows after a turn.
enum Turn {
    /// The next turn.
    Again,
    /// The next turn, once something happens or this time has passed.
    After(Duration),
    /// Nothing: the session is over.
    Over,
}

/// A session, whose record stands in the journal.
pub(super) struct Session<S: Side> {
    side: Arc<S>,
    common: Common,
    info: SessionInfo,
    record: S::Record,
    /// The latest order that counts.
    order: Option<Order<S::Goal>>,
    /// Why the session has to give up whatever is ordered, unless it is committed.
    give_up: Option<String>,
    /// Whether the write of the commit failed, so that the disk may have it or not.
    commit_in_doubt: bool,
    /// What went wrong in the latest action, if it did.
    failed: Option<String>,
    /// When a long action may be started again.
    not_before: Option<Instant>,
    memory: S::Memory,
    jobs: Jobs<S::Action>,
    latest: Latest<S>,
}

impl<S: Side> Session<S> {
    /// A session whose first record has just been written.
    pub(super) fn begun(side: Arc<S>, common: Common, entry: Entry<S::Record>) -> Self {
        let fence = S::fence(&entry.record);
        let info = SessionInfo {
            pod: entry.pod,
            migration: fence.migration.clone(),
            session: fence.session,
            terms: S::terms(&entry.record),
            baseline: entry.baseline,
        };
        let latest = Arc::new(Mutex::new(Some(S::report(&entry.record))));
        Self {
            side,
            common,
            info,
            record: entry.record,
            order: None,
            give_up: None,
            commit_in_doubt: false,
            failed: None,
            not_before: None,
            memory: S::Memory::default(),
            jobs: Jobs::new(),
            latest,
        }
    }

    /// A session of the journal, after its agent has died.
    pub(super) fn resumed(side: Arc<S>, common: Common, entry: Entry<S::Record>) -> Self {
        Self { give_up: Some(RESTARTED.to_owned()), ..Self::begun(side, common, entry) }
    }

    pub(super) fn info(&self) -> &SessionInfo {
        &self.info
    }

    pub(super) fn latest(&self) -> Latest<S> {
        Arc::clone(&self.latest)
    }

    /// Runs until the session is over or nobody holds its mailbox any more.
    pub(super) async fn run(mut self, mut mailbox: mpsc::Receiver<Message<S>>) {
        let mut reply = None;
        loop {
            reply = match self.turn(reply.take()).await {
                Turn::Over => return,
                Turn::Again => mailbox.try_recv().ok().and_then(|message| self.take(message)),
                Turn::After(pause) => match self.wait(pause, &mut mailbox).await {
                    ControlFlow::Continue(reply) => reply,
                    ControlFlow::Break(()) => return,
                },
            };
        }
    }

    async fn wait(
        &mut self,
        pause: Duration,
        mailbox: &mut mpsc::Receiver<Message<S>>,
    ) -> ControlFlow<(), Option<Reply<S>>> {
        let left = S::time_left(&self.record, &self.common.clock).filter(|left| !left.is_zero());
        let pause = left.map_or(pause, |left| pause.min(left));
        tokio::select! {
            biased;
            Some((action, outcome)) = self.jobs.next() => {
                self.ended(action, outcome);
                ControlFlow::Continue(None)
            }
            message = mailbox.recv() => match message {
                Some(message) => ControlFlow::Continue(self.take(message)),
                None => ControlFlow::Break(()),
            },
            () = self.side.changed(&self.info) => ControlFlow::Continue(None),
            () = sleep(pause) => ControlFlow::Continue(None),
        }
    }

    /// Takes over an order that counts; the others are answered at once. Where the answer goes.
    fn take(&mut self, message: Message<S>) -> Option<Reply<S>> {
        let Message { order, reply } = message;
        let fence = S::fence(&self.record);
        let ours = order.migration == fence.migration
            && order.session.is_none_or(|session| session == fence.session);
        let counts = order.token > fence.token
            || (order.token == fence.token && (order.session.is_some() || S::is_abort(order.goal)));
        if ours && counts {
            self.order = Some(order);
            return Some(reply);
        }
        let report = if ours {
            None
        } else {
            let clock = &self.common.clock;
            S::next(Some(&self.record), Some(&order), &S::untouched(), self.info.session, clock).report
        };
        // Whoever asked may not wait any more.
        let _ = reply.send(report.unwrap_or_else(|| S::report(&self.record)));
        None
    }
}
