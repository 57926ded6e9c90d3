//! When the coordinator gives up before the commit, and why.

use super::destination::DestinationStage;
use super::sides::Sides;
use super::source::SourceStage;
use super::{Abort, AbortCause, Answer, Facts, Record, Report, Step};
use jiff::Timestamp;

/// Why a migration whose source is not known to be released has to be given up, if it has to.
pub(super) fn reason_to_give_up(
    record: &Record,
    facts: &Facts,
    sides: &Sides<'_>,
    now: Timestamp,
) -> Option<(AbortCause, String)> {
    if facts.abort_requested {
        return Some((AbortCause::Requested, "spec.abort is true".to_owned()));
    }
    if let Some(why) = source_failed(record, facts, sides) {
        return Some((AbortCause::SourceFailed, why));
    }
    if let Some(why) = destination_failed(record, facts, sides) {
        return Some((AbortCause::DestinationFailed, why));
    }
    if is_over(record, now) {
        let limit = record.terms.timeout.0.as_millis();
        let message = format!("the migration was not over within limits.timeout, which is {limit} ms");
        return Some((AbortCause::Timeout, message));
    }
    let stood_still = now.duration_since(record.entered_at(Step::Freeze)?);
    let limit = record.terms.max_downtime.0;
    (stood_still.unsigned_abs() >= limit).then(|| {
        let message = format!(
            "the pod stood still for {} ms, and may for {} ms before the commit",
            stood_still.as_millis(),
            limit.as_millis()
        );
        (AbortCause::DowntimeExceeded, message)
    })
}

fn source_failed(record: &Record, facts: &Facts, sides: &Sides<'_>) -> Option<String> {
    if let Some(source) = sides.source
        && source.stage >= SourceStage::Aborting
    {
        return Some(source.failure.clone().unwrap_or_else(|| "the source gave up".to_owned()));
    }
    gone("source", &record.migration, record.source_session, &facts.source)
}

fn destination_failed(record: &Record, facts: &Facts, sides: &Sides<'_>) -> Option<String> {
    if let Some(destination) = sides.destination
        && destination.stage >= DestinationStage::Discarding
    {
        return Some(destination.failure.clone().unwrap_or_else(|| "the destination gave up".to_owned()));
    }
    if record.step == Step::Reserve {
        return None;
    }
    gone("destination", &record.migration, record.destination_session, &facts.destination)
}

/// Why a side is of no use to the migration, whatever its pod does.
fn gone<Stage>(side: &str, migration: &str, session: Option<u64>, answer: &Answer<Stage>) -> Option<String> {
    match answer {
        Answer::ConfirmedLost => Some(format!("the node at the {side} is lost")),
        Answer::Report(Report::Busy { migration: of, with }) if of == migration && session.is_none() => {
            Some(format!("the pod at the {side} takes part in the LiveMigration with UID {with}"))
        }
        Answer::Report(Report::Refused { migration: of, reason }) if of == migration && session.is_none() => {
            Some(format!("the {side} refuses: {reason}"))
        }
        Answer::Report(Report::NoRecord { migration: of, session: asked }) => {
            let ours = of == migration && session.is_some() && *asked == session;
            ours.then(|| format!("the agent at the {side} does not know the migration any more"))
        }
        Answer::Silent | Answer::Report(_) => None,
    }
}

/// Gives up. The token goes up first, so that no order from before counts any more where this one arrives.
pub(super) fn give_up(record: &mut Record, cause: AbortCause, message: String, now: Timestamp) {
    record.token = record.token.saturating_add(1);
    record.abort = Some(Abort { at: now, cause, message });
    record.enter(Step::ThawSource, now);
}

/// Whether the time of the whole migration is over.
pub(super) fn is_over(record: &Record, now: Timestamp) -> bool {
    record
        .entered
        .first()
        .is_some_and(|begun| now.duration_since(begun.at).unsigned_abs() >= record.terms.timeout.0)
}
