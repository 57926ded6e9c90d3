//! What differs between two runs of the script, and whether that is known.

use super::divergences::Divergence;
use super::run::Answers;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// One place where two answers differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// `scenario/step`.
    pub step: String,
    /// A pointer into the answer, such as `/body/metadata/name`.
    pub at: String,
    /// What the real API server answers there.
    pub real: Option<Value>,
    /// What the sandbox answers there.
    pub sandbox: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show =
            |value: &Option<Value>| value.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        write!(
            f,
            "{} at {}\n    real:    {}\n    sandbox: {}",
            self.step,
            self.at,
            show(&self.real),
            show(&self.sandbox)
        )
    }
}

/// What a comparison found.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Steps that answered the same.
    pub same: usize,
    /// Differences that are in the list.
    pub known: usize,
    /// Differences that are not.
    pub unknown: Vec<Difference>,
    /// Entries of the list that nothing answers to any more.
    pub gone: Vec<String>,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} calls answered the same, {} known differences, {} others",
            self.same,
            self.known,
            self.unknown.len()
        )?;
        self.unknown.iter().try_for_each(|difference| writeln!(f, "{difference}"))?;
        self.gone.iter().try_for_each(|gone| writeln!(f, "no longer so: {gone}"))
    }
}

/// Holds the sandbox's answers against those of a real API server.
#[must_use]
pub fn compare(real: &Answers, sandbox: &Answers, divergences: &[Divergence]) -> Verdict {
    let mut verdict = Verdict::default();
    let mut used = BTreeSet::new();
    let steps: BTreeSet<&String> = real.keys().chain(sandbox.keys()).collect();
    for step in steps {
        let mut found = Vec::new();
        let pick = |answers: &Answers| answers.get(step).map(|answer| answer.0.clone());
        differences(step, "", pick(real).as_ref(), pick(sandbox).as_ref(), &mut found);
        verdict.same += usize::from(found.is_empty());
        for difference in found {
            let matching: Vec<_> = places(divergences).filter(|place| place.covers(&difference)).collect();
            if matching.is_empty() {
                verdict.unknown.push(difference);
            } else {
                verdict.known += 1;
                used.extend(matching);
            }
        }
    }
    verdict.gone = places(divergences)
        .filter(|place| !used.contains(place))
        .map(|place| format!("{}: {} at {:?}", place.what, place.step, place.at))
        .collect();
    verdict
}

/// One place of the list.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Place<'a> {
    what: &'a str,
    step: &'a str,
    at: &'a str,
}

fn places(divergences: &[Divergence]) -> impl Iterator<Item = Place<'_>> {
    divergences.iter().flat_map(|each| {
        let steps = each.places.iter();
        steps.flat_map(|(step, pointers)| pointers.iter().map(|at| Place { what: &each.what, step, at }))
    })
}

impl Place<'_> {
    fn covers(&self, difference: &Difference) -> bool {
        let step = match self.step.strip_suffix('*') {
            Some(beginning) => difference.step.starts_with(beginning),
            None => difference.step == self.step,
        };
        let mut parts = difference.at.split('/');
        step && self
            .at
            .split('/')
            .all(|wanted| parts.next().is_some_and(|part| wanted == "*" || wanted == part))
    }
}

fn differences(
    step: &str,
    at: &str,
    real: Option<&Value>,
    sandbox: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    if real == sandbox {
        return;
    }
    match (real, sandbox) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                differences(step, &at, left.get(key), right.get(key), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                differences(step, &format!("{at}/{index}"), left.get(index), right.get(index), found);
            }
        }
        _ => found.push(Difference {
            step: step.to_owned(),
            at: at.to_owned(),
            real: real.cloned(),
            sandbox: sandbox.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::divergences::Outlook;
    use super::super::run::Answer;
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    fn answers(body: Value) -> Answers {
        Answers::from([("s/one".to_owned(), Answer(body))])
    }

    fn listed(step: &str) -> Vec<Divergence> {
        vec![Divergence {
            what: "b".to_owned(),
            why: String::new(),
            outlook: Outlook::Meant,
            places: BTreeMap::from([(step.to_owned(), vec!["/items/*/b".to_owned()])]),
        }]
    }

    #[test]
    fn a_listed_difference_is_known_and_others_are_not() {
        let real = answers(json!({"a": 1, "items": [{"b": 1}]}));
        let verdict = compare(&real, &answers(json!({"a": 2, "items": [{"b": {"c": 1}}]})), &listed("s/*"));
        assert_eq!((verdict.known, verdict.unknown.len(), verdict.gone.len()), (1, 1, 0));
        assert_eq!(verdict.unknown[0].at, "/a");
    }

    #[test]
    fn a_listed_difference_that_is_gone_is_told() {
        let same = answers(json!({"a": 1}));
        let verdict = compare(&same, &same, &listed("s/one"));
        assert_eq!(
            (verdict.same, verdict.gone.as_slice()),
            (1, &["b: s/one at \"/items/*/b\"".to_owned()][..])
        );
    }

    #[test]
    fn a_step_that_only_one_answered_differs() {
        let verdict = compare(&answers(json!(1)), &Answers::new(), &[]);
        assert_eq!(verdict.unknown.len(), 1);
    }
}
