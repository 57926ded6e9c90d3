//! All sessions of one role.

use super::journal::Entry;
use super::run::{Common, Latest, Message, Session};
use super::side::Side;
use super::{HandsError, JournalError, Pod, SessionError, SessionInfo};
use portolan_core::migration::{Order, Report, Write};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tracing::warn;

/// How many orders may wait for a session: an order that is repeated while an action is taken says nothing new.
const MAILBOX: usize = 8;

/// How often an order is given to a session that ends before it answers.
const ATTEMPTS: usize = 3;

/// The sessions of one role. All of them end when it is dropped, and go on at the next start.
pub(super) struct Table<S: Side> {
    side: Arc<S>,
    common: Common,
    running: Running<S>,
    /// Held while a session is begun, so that a pod has only one.
    beginning: tokio::sync::Mutex<()>,
}

type Running<S> = Arc<Mutex<BTreeMap<Pod, Handle<S>>>>;

struct Handle<S: Side> {
    mailbox: mpsc::Sender<Message<S>>,
    task: AbortHandle,
    latest: Latest<S>,
}

impl<S: Side> Table<S> {
    pub(super) fn new(side: S, common: Common) -> Self {
        Self { side: Arc::new(side), common, running: Arc::default(), beginning: tokio::sync::Mutex::new(()) }
    }

    /// Lets a session of the journal go on.
    pub(super) fn resume(&self, entry: Entry<S::Record>) {
        self.start(Session::resumed(Arc::clone(&self.side), self.common.clone(), entry));
    }

    /// Removes what is left of all migrations but these. Not while a session can be begun.
    pub(super) async fn remove_ended(&self, kept: &BTreeSet<String>) {
        if let Err(error) = self.side.remove_ended(kept).await {
            warn!(role = %S::ROLE, %error, "what is left of sessions that are over is removed at the next start");
        }
    }

    /// Gives an order to the session of a pod, and begins one if that is ordered.
    pub(super) async fn order(
        &self,
        pod: &Pod,
        order: &Order<S::Goal>,
    ) -> Result<Report<S::Stage>, SessionError> {
        for _ in 0..ATTEMPTS {
            if let Some(mailbox) = self.mailbox(pod) {
                let (reply, answer) = oneshot::channel();
                let sent = mailbox.send(Message { order: order.clone(), reply }).await.is_ok();
                // A message that comes after the end of a session lies in its mailbox as long as somebody holds that.
                drop(mailbox);
                if sent && let Ok(report) = answer.await {
                    return Ok(report);
                }
                // It ended, and the next attempt finds what is left of it.
                forget(&self.running, pod);
            } else if let Some(report) = self.begin(pod, order).await? {
                return Ok(report);
            }
        }
        Err(SessionError::NoAnswer { pod: pod.clone(), role: S::ROLE, attempts: ATTEMPTS })
    }

    /// The latest report of the session of a pod.
    pub(super) fn report(&self, pod: &Pod) -> Option<Report<S::Stage>> {
        let latest = lock(&self.running).get(pod).map(|handle| Arc::clone(&handle.latest))?;
        latest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The pods that have a session.
    pub(super) fn pods(&self) -> Vec<Pod> {
        lock(&self.running).keys().cloned().collect()
    }

    fn mailbox(&self, pod: &Pod) -> Option<mpsc::Sender<Message<S>>> {
        lock(&self.running).get(pod).map(|handle| handle.mailbox.clone())
    }

    /// Begins a session if the order says so. Without a report, there is a session by now that is to be asked.
    async fn begin(
        &self,
        pod: &Pod,
        order: &Order<S::Goal>,
    ) -> Result<Option<Report<S::Stage>>, SessionError> {
        let _alone = self.beginning.lock().await;
        if self.mailbox(pod).is_some() {
            return Ok(None);
        }
        let tried = S::next(None, Some(order), &S::untouched(), 0, &self.common.clock);
        let begins = matches!(tried.write, Write::Put(_));
        let begun = async {
            let source = match self.common.journal.get(S::ROLE, pod).await {
                Ok(None) if begins => return self.begin_new(pod, order).await,
                Ok(None) => return Ok(tried.report),
                Ok(Some(entry)) => {
                    self.resume(entry);
                    return Ok(None);
                }
                Err(error) => Box::new(error),
            };
            Err(SessionError::Journal { pod: pod.clone(), role: S::ROLE, source })
        };
        match begun.await {
            Err(error) if begins && error.is_refusal() => {
                let (migration, reason) = (order.migration.clone(), error.to_string());
                Ok(Some(Report::Refused { migration, reason }))
            }
            begun => begun,
        }
    }

    /// Begins a session that the order says is to begin.
    async fn begin_new(
        &self,
        pod: &Pod,
        order: &Order<S::Goal>,
    ) -> Result<Option<Report<S::Stage>>, SessionError> {
        let journal = |source: JournalError| SessionError::Journal {
            pod: pod.clone(),
            role: S::ROLE,
            source: Box::new(source),
        };
        let Common { clock, settings, .. } = &self.common;
        let (count, limit) = (lock(&self.running).len(), settings.max_sessions);
        if count >= limit {
            return Err(SessionError::TooMany { pod: pod.clone(), role: S::ROLE, count, limit });
        }
        let now = u64::try_from(clock.now().as_millisecond()).unwrap_or(0);
        let session = self.common.journal.draw(now).await.map_err(journal)?;
        let look = |source| SessionError::Look { pod: pod.clone(), role: S::ROLE, session, source };
        let (migration, terms) = (order.migration.clone(), order.terms);
        let mut info = SessionInfo { pod: pod.clone(), migration, session, terms, baseline: String::new() };
        let memory = S::Memory::default();
        let looked = timeout(settings.look, async {
            self.side.check(&info).await?;
            info.baseline = self.side.baseline(pod).await?;
            self.side.look(&info, &memory).await
        });
        let late = |_| HandsError::new(format!("it took longer than {} ms", settings.look.as_millis()));
        let seen = looked.await.map_err(late).flatten().map_err(look)?;
        let decision = S::next(None, Some(order), &seen, session, clock);
        let Write::Put(record) = decision.write else { return Ok(decision.report) };
        let entry = Entry { pod: pod.clone(), baseline: info.baseline, record };
        self.common.journal.put(S::ROLE, entry.clone()).await.map_err(journal)?;
        self.start(Session::begun(Arc::clone(&self.side), self.common.clone(), entry));
        Ok(decision.report)
    }

    fn start(&self, session: Session<S>) {
        let (mailbox, receiver) = mpsc::channel(MAILBOX);
        let (pod, latest) = (session.info().pod.clone(), session.latest());
        let (running, own) = (Arc::clone(&self.running), pod.clone());
        let mut locked = lock(&self.running);
        let task = tokio::spawn(async move {
            session.run(receiver).await;
            forget(&running, &own);
        });
        locked.insert(pod, Handle { mailbox, task: task.abort_handle(), latest });
    }
}

impl<S: Side> Drop for Table<S> {
    fn drop(&mut self) {
        for handle in lock(&self.running).values() {
            handle.task.abort();
        }
    }
}

/// Removes a session that has ended.
fn forget<S: Side>(running: &Mutex<BTreeMap<Pod, Handle<S>>>, pod: &Pod) {
    let mut running = lock(running);
    if running.get(pod).is_some_and(|handle| handle.mailbox.is_closed()) {
        running.remove(pod);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
