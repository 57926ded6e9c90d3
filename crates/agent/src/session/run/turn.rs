//! One turn of a session: look, decide, write, act, answer.

use super::{Common, Reply, Session, Turn};
use crate::session::JournalError;
use crate::session::jobs::Outcome;
use crate::session::journal::Entry;
use crate::session::side::{Side, SideDecision};
use portolan_core::migration::{Decision, Report, Write};
use std::sync::{Arc, PoisonError};
use tokio::time::{Instant, timeout};
use tracing::warn;

impl<S: Side> Session<S> {
    /// One turn: look, decide, write, act, answer.
    pub(super) async fn turn(&mut self, reply: Option<Reply<S>>) -> Turn {
        let settings = self.common.settings;
        let Some(decision) = self.decide().await else {
            self.answer(reply);
            return Turn::After(settings.retry);
        };
        let mut wrote = false;
        match decision.write {
            Write::Nothing => {}
            Write::Put(record) => {
                if let Err(error) = self.put(record).await {
                    warn!(pod = %self.info.pod, session = self.info.session, %error, "nothing is done");
                    self.answer(reply);
                    return Turn::After(settings.retry);
                }
                wrote = true;
            }
            Write::Remove => return self.remove(reply).await,
        }
        let mut over = self.jobs.running();
        over.retain(|action| !S::may_run(&self.record, *action));
        self.stop(&over).await;
        let acted = self.act(&decision.actions).await;
        self.answer(reply);
        match (acted, wrote) {
            (false, _) => Turn::After(settings.retry),
            (true, true) => Turn::Again,
            (true, false) if S::is_brief(&self.record) => Turn::After(settings.brief_poll),
            (true, false) => Turn::After(settings.poll),
        }
    }

    async fn decide(&mut self) -> Option<SideDecision<S>> {
        if let Some(why) = &self.give_up {
            if let Some(record) = S::undo(&self.record, why) {
                // A look may take its time, and the pod stands still.
                let actions = S::thaw().into_iter().collect();
                return Some(Decision { write: Write::Put(record), actions, report: None });
            }
            self.give_up = None;
        }
        let Common { clock, settings, .. } = &self.common;
        let patience =
            S::time_left(&self.record, clock).map_or(settings.look, |left| left.min(settings.look));
        let (record, order, session) = (Some(&self.record), self.order.as_ref(), self.info.session);
        let error = match timeout(patience, self.side.look(&self.info, &self.memory)).await {
            Ok(Ok(seen)) => return Some(S::next(record, order, &seen, session, clock)),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it took longer than {} ms", patience.as_millis()),
        };
        warn!(pod = %self.info.pod, session, %error, "the pod cannot be looked at");
        let decision = S::next(record, order, &S::unseen(&self.record)?, session, clock);
        let gives_up = match &decision.write {
            Write::Nothing => S::is_undoing(&self.record),
            Write::Put(record) => S::is_undoing(record),
            Write::Remove => false,
        };
        gives_up.then_some(decision)
    }

    /// Writes the next record. If that fails, the record stays as it was, and only a pod that is given up is thawed.
    async fn put(&mut self, mut record: S::Record) -> Result<(), JournalError> {
        if S::failure(&mut self.record).is_none()
            && let Some(failure) = S::failure(&mut record)
            && let Some(error) = &self.failed
            && !failure.contains(error.as_str())
        {
            *failure = format!("{failure}; the latest action failed: {error}");
        }
        if S::is_committed(&record) && !S::is_committed(&self.record) {
            self.commit_in_doubt = true;
        }
        let entry = Entry {
            pod: self.info.pod.clone(),
            baseline: self.info.baseline.clone(),
            record: record.clone(),
        };
        let written = self.common.journal.put(S::ROLE, entry).await;
        match &written {
            Ok(()) => {
                self.record = record;
                self.commit_in_doubt = false;
            }
            Err(error) if S::is_undoing(&record) => {
                self.give_up.get_or_insert_with(|| format!("the journal could not be written: {error}"));
                if let (Some(thaw), false) = (S::thaw(), self.commit_in_doubt) {
                    let running = self.jobs.running();
                    self.stop(&running).await;
                    self.act(&[thaw]).await;
                }
            }
            Err(_) => {}
        }
        written
    }

    async fn remove(&mut self, reply: Option<Reply<S>>) -> Turn {
        if let Err(error) = self.common.journal.remove(S::ROLE, &self.info.pod).await {
            warn!(pod = %self.info.pod, session = self.info.session, %error, "the session is not forgotten");
            self.answer(reply);
            return Turn::After(self.common.settings.retry);
        }
        let running = self.jobs.running();
        self.stop(&running).await;
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if let Some(reply) = reply {
            let migration = self.info.migration.clone();
            let session = self.order.as_ref().and_then(|order| order.session);
            let _ = reply.send(Report::NoRecord { migration, session });
        }
        Turn::Over
    }

    /// Takes all actions. Whether none fails: one that fails does not keep the others from being tried.
    async fn act(&mut self, actions: &[S::Action]) -> bool {
        let mut failed = None;
        for action in actions {
            let action = *action;
            if S::is_long(action) {
                self.start(action);
                continue;
            }
            if let Err(error) = self.side.act(action, &self.info).await {
                let session = self.info.session;
                warn!(pod = %self.info.pod, session, ?action, %error, "an action failed and is done again");
                failed.get_or_insert(error.to_string());
            } else if failed.is_none() {
                self.failed = None;
            }
        }
        let all = failed.is_none();
        self.failed = failed.or(self.failed.take());
        all
    }

    /// Starts a long action, unless it runs or has just failed.
    fn start(&mut self, action: S::Action) {
        let waits = self.not_before.is_some_and(|time| Instant::now() < time);
        if waits || self.jobs.runs(action) {
            return;
        }
        S::started(&mut self.memory, action);
        let (side, info) = (Arc::clone(&self.side), self.info.clone());
        self.jobs.start(action, async move { side.act(action, &info).await });
    }

    async fn stop(&mut self, which: &[S::Action]) {
        for (action, outcome) in self.jobs.stop(which).await {
            self.ended(action, outcome);
        }
    }

    pub(super) fn ended(&mut self, action: S::Action, outcome: Outcome) {
        match &outcome {
            Some(Err(error)) => {
                warn!(pod = %self.info.pod, session = self.info.session, ?action, %error, "a long action failed");
                self.not_before = Some(Instant::now() + self.common.settings.retry);
                self.failed = Some(error.to_string());
            }
            Some(Ok(())) => self.failed = None,
            None => {}
        }
        S::ended(&mut self.memory, action, outcome);
    }

    /// Answers with the record that stands on the disk.
    fn answer(&self, reply: Option<Reply<S>>) {
        let report = S::report(&self.record);
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(report.clone());
        if let Some(reply) = reply {
            let _ = reply.send(report);
        }
    }
}
