//! What the status of a rescheduler says: pure, from its plan.

use super::Rescheduler;
use jiff::Timestamp;
use portolan_api::conditions::{self, ConditionType, Finding};
use portolan_api::{MultiClusterReschedulerStatus, Reason};
use portolan_core::reschedule::Plan;
use std::time::Duration;

/// The new status.
pub(super) fn status(
    rescheduler: &Rescheduler,
    plan: &Plan,
    now: Timestamp,
) -> MultiClusterReschedulerStatus {
    let generation = rescheduler.object.metadata.generation;
    let mut status = rescheduler.object.status.clone().unwrap_or_default();
    plan.write(&mut status);
    status.observed_generation = generation;
    let (moving, staying) = (plan.record.moves.len(), plan.staying.len());
    let told = format!("workloads being moved: {moving}; workloads that stay away: {staying}");
    let (progresses, reason) = if moving > 0 {
        (true, Reason::Moving)
    } else if rescheduler.settings.paused {
        (false, Reason::ReschedulerPaused)
    } else if staying == 0 {
        (false, Reason::AllAtHome)
    } else if rescheduler.settings.dry_run {
        (false, Reason::DryRun)
    } else {
        (false, Reason::WorkloadsAway)
    };
    for finding in [
        Finding::new(ConditionType::Ready, true, Reason::Active, told.clone()),
        Finding::new(ConditionType::Progressing, progresses, reason, told),
    ] {
        conditions::set(&mut status.conditions, finding, generation, now);
    }
    status
}

/// Whether a status is to be written: it says more than that workloads were looked at again, and more than other numbers
/// in the messages of those that stay, which change with every pod; or it was last written an interval ago.
pub(super) fn is_news(
    old: Option<&MultiClusterReschedulerStatus>,
    new: &MultiClusterReschedulerStatus,
    interval: Duration,
) -> bool {
    let Some(old) = old else { return true };
    let (Some(last), Some(now)) = (&old.last_run_time, &new.last_run_time) else { return true };
    let since = Duration::try_from(now.0.duration_since(last.0)).unwrap_or_default();
    let timeless = |status: &MultiClusterReschedulerStatus| {
        let mut status = MultiClusterReschedulerStatus { last_run_time: None, ..status.clone() };
        status.staying.iter_mut().for_each(|each| each.message = None);
        status
    };
    since >= interval || timeless(old) != timeless(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use portolan_api::multiclusterrescheduler::Staying;

    #[test]
    fn a_look_without_news_is_written_once_in_an_interval() {
        let looked_at = |second: i64| MultiClusterReschedulerStatus {
            last_run_time: Some(Time(Timestamp::from_second(second).unwrap())),
            ..MultiClusterReschedulerStatus::default()
        };
        let interval = Duration::from_secs(30);
        assert!(is_news(None, &looked_at(0), interval));
        assert!(!is_news(Some(&looked_at(0)), &looked_at(29), interval));
        assert!(is_news(Some(&looked_at(0)), &looked_at(30), interval));
        let moved = MultiClusterReschedulerStatus { moved: 1, ..looked_at(1) };
        assert!(is_news(Some(&looked_at(0)), &moved, interval));
        let stays = |second, reason: &str, message: &str| {
            let (reason, message) = (reason.to_owned(), Some(message.to_owned()));
            let staying = Staying { reason, message, ..Staying::default() };
            MultiClusterReschedulerStatus { staying: vec![staying], ..looked_at(second) }
        };
        let old = stays(0, "NoRoom", "1 more fit");
        assert!(!is_news(Some(&old), &stays(1, "NoRoom", "2 more fit"), interval), "a number in a message");
        assert!(is_news(Some(&old), &stays(30, "NoRoom", "2 more fit"), interval));
        assert!(is_news(Some(&old), &stays(1, "HomeBusy", "busy"), interval));
    }
}
