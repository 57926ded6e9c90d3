//! The invariant of patience: what an API server refuses is not asked for again and again without a pause.

use super::is_controller;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// So often may one thing be refused within [`WINDOW`].
const REFUSED_AT_MOST: usize = 30;

const WINDOW: SignedDuration = SignedDuration::from_secs(10);

/// Cluster, party, method and path.
type Request<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The requests of controllers, in the lines of a history, that were refused too often in too short a time.
pub(super) fn impatient(lines: &[String]) -> Vec<String> {
    let mut refused: BTreeMap<Request<'_>, Vec<Timestamp>> = BTreeMap::new();
    for (time, request) in lines.iter().filter_map(|line| refusal(line)) {
        refused.entry(request).or_default().push(time);
    }
    let mut problems = Vec::new();
    for ((cluster, party, method, path), times) in refused {
        let hot = times
            .windows(REFUSED_AT_MOST + 1)
            .find(|some| some[REFUSED_AT_MOST].duration_since(some[0]) <= WINDOW);
        if let Some(some) = hot {
            problems.push(format!(
                "{party} is refused {method} {path} in {cluster} again and again from {} on",
                some[0]
            ));
        }
    }
    problems
}

/// When which request of a controller was refused. What a fault answers is no refusal.
fn refusal(line: &str) -> Option<(Timestamp, Request<'_>)> {
    let words: Vec<&str> = line.split(' ').collect();
    let [time, cluster, party, _, method, path, "->", code] = words[..] else { return None };
    if !is_controller(party) || method == "GET" || !matches!(code, "400" | "403" | "405" | "422") {
        return None;
    }
    let path = path.split('?').next().unwrap_or(path);
    Some((time.parse().ok()?, (cluster, party, method, path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_refused_often_in_a_short_time_is_told() {
        let line = |tenths: i64, code: &str| {
            let time = Timestamp::from_millisecond(tenths * 100).unwrap();
            format!(
                "{time} m1 controller #{tenths} PATCH /apis/apps/v1/namespaces/shop/deployments/a?&x=y -> {code}"
            )
        };
        let history =
            |every: i64, code: &str| (0..40).map(|count| line(count * every, code)).collect::<Vec<_>>();
        let told = impatient(&history(1, "422"));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(
            told[0]
                .starts_with("controller is refused PATCH /apis/apps/v1/namespaces/shop/deployments/a in m1")
        );
        for patient in [history(1, "200"), history(1, "422 (injected)"), history(10, "422")] {
            assert_eq!(impatient(&patient), Vec::<String>::new());
        }
    }
}
