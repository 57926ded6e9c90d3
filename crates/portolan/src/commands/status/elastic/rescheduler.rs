//! A rescheduler: the moves under way, those that ended, and the workloads that stay away.

use super::tree::Branch;
use super::{ago, list, number, text, workload};
use jiff::Timestamp;
use serde_json::Value;

/// How many moves that ended are shown, the newest first.
const ENDED: usize = 5;

/// What it does, in one line.
pub(super) fn summary(object: &Value, now: Timestamp) -> String {
    let (spec, status) = (&object["spec"], &object["status"]);
    let staying = list(status, "staying").len();
    let mut line =
        format!("{} moving, {} moved, {staying} staying", number(status, "moving"), number(status, "moved"));
    match ago(status, "lastRunTime", now) {
        Some(time) => line.push_str(&format!(", last run {time} ago")),
        None => line.push_str(", not run yet"),
    }
    for (field, word) in [("paused", "paused"), ("dryRun", "dry run")] {
        if spec[field] == true {
            line.push_str(&format!(", {word}"));
        }
    }
    line
}

/// The moves, and why the rest stays.
pub(super) fn branches(object: &Value, now: Timestamp) -> Vec<Branch> {
    let status = &object["status"];
    let (ended, moving): (Vec<&Value>, Vec<&Value>) =
        list(status, "moves").iter().partition(|each| is_over(each));
    let moving = moving.into_iter().map(|each| moved(each, now)).collect();
    let ended = ended.into_iter().take(ENDED).map(|each| moved(each, now)).collect();
    let staying = list(status, "staying").iter().map(|each| stays(each, now)).collect();
    let lists =
        [("moves under way", moving), ("last moves that ended", ended), ("workloads that stay", staying)];
    lists.into_iter().filter_map(|(title, lines)| Branch::list(title.to_owned(), lines)).collect()
}

fn is_over(each: &Value) -> bool {
    matches!(text(each, "phase"), Some("Done" | "Failed"))
}

fn moved(each: &Value, now: Timestamp) -> String {
    let field = |name: &str| text(each, name).unwrap_or_default();
    let when = if is_over(each) {
        ago(each, "finishedAt", now).map(|time| format!(" {time} ago"))
    } else {
        ago(each, "startedAt", now).map(|time| format!(" for {time}"))
    };
    let message = text(each, "message").map(str::to_owned).unwrap_or_else(|| {
        format!("{} replicas from {} to {}", number(each, "replicas"), field("from"), field("to"))
    });
    format!("{}  {}{}: {message}", named(each), field("phase"), when.unwrap_or_default())
}

fn stays(each: &Value, now: Timestamp) -> String {
    let field = |name: &str| text(each, name).unwrap_or_default();
    let since = ago(each, "since", now).map(|time| format!(" for {time}")).unwrap_or_default();
    let message = text(each, "message").map(|message| format!(": {message}")).unwrap_or_default();
    format!("{}  on {}{since}, {}{message}", named(each), field("cluster"), field("reason"))
}

fn named(each: &Value) -> String {
    let field = |name: &str| text(each, name).unwrap_or_default();
    workload(field("kind"), field("namespace"), field("name"))
}

#[cfg(test)]
mod tests {
    use crate::commands::status::elastic::description;
    use crate::kind::Kind;
    use serde_json::{Value, json};

    fn with(name: &str, more: Value) -> Value {
        let mut object = json!({"kind": "MultiClusterDeployment", "namespace": "shop", "name": name});
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        object
    }

    #[test]
    fn a_rescheduler_is_described_with_its_moves_and_with_what_stays() {
        let ended = (1..=6).map(|number| {
            let finished = "2026-01-01T00:30:00Z";
            let (phase, message) = if number == 1 { ("Failed", "not ready") } else { ("Done", "home") };
            with(&format!("w{number}"), json!({"phase": phase, "finishedAt": finished, "message": message}))
        });
        let surging = json!({
            "phase": "Surging", "startedAt": "2026-01-01T00:57:00Z", "replicas": 3, "from": "cloud1", "to": "paris",
        });
        let moves: Vec<Value> = std::iter::once(with("web", surging)).chain(ended).collect();
        let no_room = json!({
            "cluster": "cloud1", "since": "2026-01-01T00:10:00Z", "reason": "NoRoom", "message": "1 more fit",
        });
        let object = json!({
            "metadata": {"name": "home", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"dryRun": true},
            "status": {
                "moving": 1, "moved": 5, "lastRunTime": "2026-01-01T00:59:48Z", "moves": moves,
                "staying": [with("db", no_room)],
                "conditions": [{"type": "Ready", "status": "True", "reason": "Active", "message": "at work"}],
            },
        });
        let text = description(Kind::Rescheduler, &object, "2026-01-01T01:00:00Z".parse().unwrap());
        let headline =
            "multiclusterrescheduler home  1 moving, 5 moved, 1 staying, last run 12s ago, dry run, 60m old";
        assert!(text.contains('✓') && text.contains(headline), "{text}");
        let tree = [
            "├─ moves under way",
            "│  └─ mcd/web in shop  Surging for 3m: 3 replicas from cloud1 to paris",
            "├─ last moves that ended",
            "│  ├─ mcd/w1 in shop  Failed 30m ago: not ready",
            "│  ├─ mcd/w2 in shop  Done 30m ago: home",
        ];
        assert!(text.contains(&tree.join("\n")), "{text}");
        assert!(!text.contains("w6"), "only the last ones: {text}");
        let stays = "└─ workloads that stay\n   └─ mcd/db in shop  on cloud1 for 50m, NoRoom: 1 more fit\n";
        assert!(text.contains(stays), "{text}");
    }
}
