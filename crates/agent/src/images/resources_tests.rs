//! Limits of processes and their scores.

use super::build::{Built, Msg, allowed, config, healthy, numbers};
use super::{Allowed, Damage, Refusal, Rule, SpecError};
use serde_json::{Value, json};

/// The rule that is broken when the state of each process in turn is another one.
fn broken_in_each(change: impl Fn(&mut Msg), allowed: &Allowed) -> Option<Rule> {
    let rules = [1, 2].map(|pid| changed(pid, &change).broken_for(allowed));
    assert_eq!(rules, [rules[0]; 2]);
    rules[0]
}

fn changed(pid: u32, change: impl Fn(&mut Msg)) -> Built {
    let mut built = healthy();
    change(built.message(&format!("core-{pid}.img"), 0).inner(3));
    built
}

/// Replaces a limit.
fn limit(task: &mut Msg, number: usize, soft: u64, hard: u64) {
    task.inner(8).0[number].1 = numbers(&[(1, soft), (2, hard)]).into();
}

fn with_process(name: &str, value: Value) -> Allowed {
    let mut config = config();
    config["process"][name] = value;
    allowed(&config)
}

fn with_capability(name: &str) -> Value {
    let mut config = config();
    config["process"]["capabilities"]["bounding"].as_array_mut().unwrap().push(json!(name));
    config
}

#[test]
fn an_oom_score_below_the_specs_is_refused() {
    let of = |score: i64| move |task: &mut Msg| task.set(14, score.cast_unsigned());
    let plain = allowed(&config());
    assert_eq!(broken_in_each(of(0), &plain), None);
    assert_eq!(broken_in_each(of(-1), &plain), Some(Rule::OomScore));
    assert_eq!(broken_in_each(of(-1000), &plain), Some(Rule::OomScore));
    let burstable = with_process("oomScoreAdj", json!(999));
    assert_eq!(broken_in_each(of(998), &burstable), Some(Rule::OomScore));
    let raised = |built: &mut Built, score: u64| {
        for pid in [1, 2] {
            built.message(&format!("core-{pid}.img"), 0).inner(3).set(14, score);
        }
    };
    let mut built = healthy();
    raised(&mut built, 1000);
    assert_eq!(built.broken_for(&burstable), None, "a process may raise it");
    let guaranteed = with_process("oomScoreAdj", json!(-997));
    assert_eq!(broken_in_each(of(-997), &guaranteed), None);
    assert_eq!(broken_in_each(of(-998), &guaranteed), Some(Rule::OomScore));
    assert_eq!(broken_in_each(of(-1000), &allowed(&with_capability("CAP_SYS_RESOURCE"))), None);
}

#[test]
fn an_oom_score_is_there_and_of_32_bits() {
    let damage = |change: fn(&mut Msg)| match changed(2, change).check(&allowed(&config())) {
        Err(Refusal::Damaged { damage, .. }) => Some(damage),
        _ => None,
    };
    assert_eq!(damage(|task| task.remove(14)), Some(Damage::Missing { field: 14 }), "it would have CRIU's");
    let narrow = |task: &mut Msg| task.set(14, u64::from((-1000_i32).cast_unsigned()));
    assert_eq!(damage(narrow), Some(Damage::TooLarge { field: 14 }), "CRIU would read -1000");
}

#[test]
fn limits_of_priorities_need_a_capability() {
    for number in [13, 14] {
        for (soft, hard) in [(1, 1), (0, 1), (1, 0), (0, u64::MAX)] {
            let change = |task: &mut Msg| limit(task, number, soft, hard);
            assert_eq!(broken_in_each(change, &allowed(&config())), Some(Rule::ResourceLimits));
            assert_eq!(broken_in_each(change, &allowed(&with_capability("CAP_SYS_NICE"))), None);
        }
    }
}

#[test]
fn limits_are_at_most_those_of_the_spec() {
    let files = json!([{ "type": "RLIMIT_NOFILE", "soft": 1024, "hard": 5000 }]);
    let spec = with_process("rlimits", files.clone());
    let of = |soft, hard| move |task: &mut Msg| limit(task, 7, soft, hard);
    assert_eq!(broken_in_each(of(5000, 5000), &spec), None);
    for (soft, hard) in [(10, 5001), (5001, 5000), (10, u64::MAX)] {
        assert_eq!(broken_in_each(of(soft, hard), &spec), Some(Rule::ResourceLimits));
        assert_eq!(broken_in_each(of(soft, hard), &allowed(&config())), None, "the spec has no limit");
    }
    let mut privileged = with_capability("CAP_SYS_RESOURCE");
    privileged["process"]["rlimits"] = files;
    assert_eq!(broken_in_each(of(10, u64::MAX), &allowed(&privileged)), None);
    let priority = with_process("rlimits", json!([{ "type": "RLIMIT_RTPRIO", "soft": 0, "hard": 5 }]));
    assert_eq!(broken_in_each(|task| limit(task, 14, 5, 5), &priority), None);
    assert_eq!(broken_in_each(|task| limit(task, 14, 5, 6), &priority), Some(Rule::ResourceLimits));
}

#[test]
fn all_limits_are_there() {
    let fewer = |task: &mut Msg| drop(task.inner(8).0.pop());
    assert_eq!(broken_in_each(fewer, &allowed(&config())), Some(Rule::ResourceLimits));
    let result = changed(1, |task| task.remove(8)).check(&allowed(&config()));
    assert!(matches!(result, Err(Refusal::Damaged { damage: Damage::Missing { field: 8 }, .. })));
}

#[test]
fn limits_of_a_spec_have_names_and_numbers() {
    let read = |name: &str, value: Value| {
        let mut config = config();
        config["process"][name] = value;
        Allowed::from_oci(&config).unwrap_err()
    };
    let unknown = read("rlimits", json!([{ "type": "RLIMIT_NEW", "soft": 1, "hard": 1 }]));
    assert!(matches!(unknown, SpecError::Unknown { field: "process.rlimits", .. }));
    assert!(matches!(read("rlimits", json!([{ "type": "RLIMIT_CPU" }])), SpecError::Field { .. }));
    assert!(matches!(read("oomScoreAdj", json!("low")), SpecError::Field { .. }));
}
