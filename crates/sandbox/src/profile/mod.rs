//! How pods behave on simulated nodes: by rules over images and labels, and by their own annotations.

mod curve;
mod duration;
mod pattern;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::store::at;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use curve::{Curve, CurveError};
pub use pattern::Pattern;

/// What simulated nodes know of the pods that will run on them.
///
/// For each field, the first rule that fits the pod and says something about it decides; an annotation of the pod
/// decides before any rule (`sandbox.portolan.dev/start-up: 2s`), and the cluster's own times if no rule does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Profile {
    /// Looked at in this order.
    pub rules: Vec<Rule>,
}

/// What is so for some pods.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Rule {
    /// The image of the first container, `*` standing for anything; any, if not said.
    pub image: Option<Pattern>,
    /// Labels that the pod has, `*` in their values standing for anything.
    pub labels: BTreeMap<String, Pattern>,
    /// What is so.
    pub behaviour: Behaviour,
}

/// The life of a pod, and what it uses; what is not said is left to others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Behaviour {
    /// How long a node takes to fetch the image, the first time.
    #[serde(with = "duration")]
    pub image_pull: Option<Duration>,
    /// How long from there until the containers run.
    #[serde(with = "duration")]
    pub start_up: Option<Duration>,
    /// How long from there until they are ready.
    #[serde(with = "duration")]
    pub readiness: Option<Duration>,
    /// How long they run.
    #[serde(with = "duration")]
    pub run_time: Option<Duration>,
    /// How long they take to stop, at most the grace period.
    #[serde(with = "duration")]
    pub shut_down: Option<Duration>,
    /// How they end: the first pod of an owner to end with the first code, and so on; the last code stays.
    pub exit_codes: Option<Vec<i32>>,
    /// Processor time, without any traffic, over the pod's age.
    pub cpu: Option<Curve>,
    /// Memory, without any traffic, over the pod's age.
    pub memory: Option<Curve>,
    /// Bytes a second over the network, without any traffic, over the pod's age.
    pub network: Option<Curve>,
    /// Processor time that one request a second costs.
    pub cpu_per_request: Option<Curve>,
    /// Memory that one request a second holds.
    pub memory_per_request: Option<Curve>,
    /// Bytes over the network for each request and its answer.
    pub network_per_request: Option<Curve>,
    /// How long a request is worked on when there is no other, on average.
    #[serde(with = "duration")]
    pub service_time: Option<Duration>,
    /// How many requests a second one pod can answer; more are errors.
    pub requests_per_second: Option<u32>,
}

impl Profile {
    /// What is so for a pod, annotations first.
    pub(crate) fn of(&self, pod: &Value) -> Behaviour {
        let mut out = from_annotations(pod);
        for rule in self.rules.iter().filter(|rule| rule.fits(pod)) {
            out.fill_from(&rule.behaviour);
        }
        out
    }
}

impl Rule {
    fn fits(&self, pod: &Value) -> bool {
        let image = at(pod, "/spec/containers/0/image").and_then(Value::as_str).unwrap_or_default();
        let labels = at(pod, "/metadata/labels");
        self.image.as_ref().is_none_or(|pattern| pattern.fits(image))
            && self.labels.iter().all(|(key, pattern)| {
                let value = labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
                value.is_some_and(|value| pattern.fits(value))
            })
    }
}

impl Behaviour {
    fn fill_from(&mut self, other: &Self) {
        fn fill<T: Clone>(mine: &mut Option<T>, theirs: &Option<T>) {
            if mine.is_none() {
                mine.clone_from(theirs);
            }
        }
        fill(&mut self.image_pull, &other.image_pull);
        fill(&mut self.start_up, &other.start_up);
        fill(&mut self.readiness, &other.readiness);
        fill(&mut self.run_time, &other.run_time);
        fill(&mut self.shut_down, &other.shut_down);
        fill(&mut self.exit_codes, &other.exit_codes);
        fill(&mut self.cpu, &other.cpu);
        fill(&mut self.memory, &other.memory);
        fill(&mut self.network, &other.network);
        fill(&mut self.cpu_per_request, &other.cpu_per_request);
        fill(&mut self.memory_per_request, &other.memory_per_request);
        fill(&mut self.network_per_request, &other.network_per_request);
        fill(&mut self.service_time, &other.service_time);
        fill(&mut self.requests_per_second, &other.requests_per_second);
    }
}

/// What a pod says of itself; what cannot be read is not said.
fn from_annotations(pod: &Value) -> Behaviour {
    let Some(annotations) = at(pod, "/metadata/annotations").and_then(Value::as_object) else {
        return Behaviour::default();
    };
    let text = |name: &str| annotations.get(&format!("sandbox.portolan.dev/{name}")).and_then(Value::as_str);
    let time = |name: &str| text(name).and_then(duration::parse);
    let curve = |name: &str| text(name).and_then(|text| text.parse().ok());
    Behaviour {
        image_pull: time("image-pull"),
        start_up: time("start-up"),
        readiness: time("readiness"),
        run_time: time("run-time"),
        shut_down: time("shut-down"),
        exit_codes: text("exit-code")
            .and_then(|codes| codes.split(',').map(|code| code.trim().parse().ok()).collect()),
        cpu: curve("cpu"),
        memory: curve("memory"),
        network: curve("network"),
        cpu_per_request: curve("cpu-per-request"),
        memory_per_request: curve("memory-per-request"),
        network_per_request: curve("network-per-request"),
        service_time: time("service-time"),
        requests_per_second: text("requests-per-second").and_then(|text| text.parse().ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn profile() -> Profile {
        let written = json!({"rules": [
            {"image": "shop/*", "labels": {"tier": "b*"}, "behaviour": {"startUp": "5s", "cpu": "0s=10m,10s=110m"}},
            {"image": "shop/*", "behaviour": {"startUp": "1s", "readiness": "2s", "exitCodes": [1, 0]}},
        ]});
        serde_json::from_value(written).unwrap()
    }

    #[test]
    fn the_first_rule_that_says_something_decides_and_annotations_before_it() {
        let mut pod = json!({
            "metadata": {"labels": {"tier": "back"}},
            "spec": {"containers": [{"image": "shop/cart:1"}]},
        });
        let found = profile().of(&pod);
        assert_eq!(found.start_up, Some(Duration::from_secs(5)));
        assert_eq!(found.readiness, Some(Duration::from_secs(2)));
        assert_eq!(found.exit_codes, Some(vec![1, 0]));
        assert_eq!(found.cpu.unwrap().at(Duration::from_secs(5)), 60);
        pod["metadata"]["annotations"] = json!({"sandbox.portolan.dev/start-up": "9s"});
        assert_eq!(profile().of(&pod).start_up, Some(Duration::from_secs(9)));
        pod["spec"]["containers"][0]["image"] = json!("other:1");
        assert_eq!(profile().of(&pod).readiness, None);
    }

    #[test]
    fn a_profile_with_a_mistake_is_refused_with_the_reason() {
        for (behaviour, reason) in [
            (json!({"startup": "1s"}), "unknown field `startup`"),
            (json!({"startUp": "soon"}), "\"soon\" is not a duration"),
            (json!({"cpu": "much"}), "\"much\" is not a quantity"),
            (json!({"cpu": "5s=1,2s=3"}), "later"),
        ] {
            let written = json!({"rules": [{"behaviour": behaviour}]});
            let error = serde_json::from_value::<Profile>(written).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn a_profile_is_written_as_it_is_read() {
        let written = serde_json::to_value(profile()).unwrap();
        assert_eq!(serde_json::from_value::<Profile>(written).unwrap(), profile());
    }
}
