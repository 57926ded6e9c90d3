//! What the checks have found, in order, for people and for programs.

use crate::clean;
use crate::style::{BOLD, DIM, GREEN, RED, RESET, YELLOW};
use portolan_core::doctor::{Check, Evidence, Finding, Verdict, judge};
use portolan_runtime::{CallError, Clock, chain, foreign_text};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// One check that was made.
#[derive(Clone, Debug)]
struct Line {
    cluster: String,
    check: Check,
    target: String,
    finding: Finding,
}

/// Where the findings of one cluster are noted. Checks that are cut short leave what they have found.
#[derive(Clone)]
pub(super) struct Sheet {
    lines: Arc<Mutex<Vec<Line>>>,
    cluster: String,
    clock: Clock,
}

impl Sheet {
    /// An empty one.
    pub(super) fn new(cluster: &str, clock: Clock) -> Self {
        Self { lines: Arc::default(), cluster: cluster.to_owned(), clock }
    }

    /// The same, for another cluster.
    pub(super) fn of(&self, cluster: &str) -> Self {
        Self { cluster: cluster.to_owned(), ..self.clone() }
    }

    /// The clock of this machine.
    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Notes the verdict on a piece of evidence; `target` is the address, the object or nothing.
    pub(super) fn add(&self, check: Check, target: &str, evidence: &Evidence) {
        let Finding { verdict, message, advice } = judge(evidence, self.clock.now());
        let (message, advice) = (clean::line(&message), clean::line(&advice));
        let finding = Finding { verdict, message, advice };
        let line = Line { cluster: self.cluster.clone(), check, target: clean::line(target), finding };
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Makes checks that may take so long; if they take longer, that is noted as a check that was not finished.
    pub(super) async fn within<T>(
        &self,
        limit: Duration,
        check: Check,
        checks: impl Future<Output = T>,
    ) -> Option<T> {
        let done = tokio::time::timeout(limit, Box::pin(checks)).await.ok();
        if done.is_none() {
            self.add(check, "", &Evidence::TimedOut { limit });
        }
        done
    }

    /// All that was noted, of all clusters.
    pub(super) fn report(&self) -> Report {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let hub = self.cluster.clone();
        // Checks are made at the same time, and are shown in one order.
        lines.sort_by(|a, b| {
            (a.cluster != hub, &a.cluster, a.check).cmp(&(b.cluster != hub, &b.cluster, b.check))
        });
        Report { hub, lines }
    }
}

/// Why something could not be asked for.
pub(super) fn unasked(error: &CallError, right: &str) -> Evidence {
    match error.code() {
        Some(403) => Evidence::NotAllowed { right: right.to_owned() },
        _ => Evidence::NotAsked { why: foreign_text(&chain(error)), advice: String::new() },
    }
}

/// What was found in the hub and its members.
pub(in crate::commands) struct Report {
    hub: String,
    lines: Vec<Line>,
}

impl Report {
    /// Whether something does not work.
    pub(in crate::commands) fn has_problem(&self) -> bool {
        self.count(Verdict::Problem) > 0
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.lines.iter().filter(|line| line.finding.verdict == verdict).count()
    }

    /// What a check of a member has found, or of the hub if none is named.
    pub(in crate::commands) fn messages(&self, cluster: Option<&str>, check: Check) -> Vec<String> {
        let of = |line: &&Line| line.check == check && line.cluster == cluster.unwrap_or(&self.hub);
        self.lines.iter().filter(of).map(|line| line.finding.message.clone()).collect()
    }

    /// For programs.
    pub(in crate::commands) fn data(&self) -> Value {
        let line = |line: &Line| {
            let Finding { verdict, message, advice } = &line.finding;
            json!({
                "cluster": line.cluster, "check": line.check.as_str(), "target": line.target,
                "verdict": verdict.as_str(), "message": message, "advice": advice,
            })
        };
        json!({
            "healthy": !self.has_problem(),
            "problems": self.count(Verdict::Problem),
            "warnings": self.count(Verdict::Warning),
            "unknown": self.count(Verdict::Unknown),
            "checks": self.lines.iter().map(line).collect::<Vec<_>>(),
        })
    }

    /// For people.
    pub(in crate::commands) fn text(&self) -> String {
        let width = self.lines.iter().map(|line| line.check.as_str().len()).max().unwrap_or(0);
        let (mut text, mut cluster) = (String::new(), None);
        for line in &self.lines {
            if cluster != Some(&line.cluster) {
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}{BOLD}{}{RESET}\n", line.cluster));
                cluster = Some(&line.cluster);
            }
            let Finding { verdict, message, advice } = &line.finding;
            text.push_str(&format!("  {} {:width$}  {message}\n", mark(*verdict), line.check.as_str()));
            if !advice.is_empty() {
                text.push_str(&format!("    {:width$}  {DIM}→ {advice}{RESET}\n", ""));
            }
        }
        let of = |verdict: Verdict, word: &str| match self.count(verdict) {
            0 => None,
            1 => Some(format!("1 {word}")),
            many if word == "unknown" => Some(format!("{many} {word}")),
            many => Some(format!("{many} {word}s")),
        };
        let found = [
            of(Verdict::Problem, "problem"),
            of(Verdict::Warning, "warning"),
            of(Verdict::Unknown, "unknown"),
        ];
        let found: Vec<String> = found.into_iter().flatten().collect();
        let found = if found.is_empty() { "all healthy".to_owned() } else { found.join(", ") };
        text.push_str(&format!("\n{} checks: {found}\n", self.lines.len()));
        text
    }
}

fn mark(verdict: Verdict) -> String {
    let (colour, character) = match verdict {
        Verdict::Healthy => (GREEN, '✓'),
        Verdict::Unknown => (DIM, '?'),
        Verdict::Warning => (YELLOW, '!'),
        Verdict::Problem => (RED, '✗'),
    };
    format!("{colour}{character}{RESET}")
}
