//! What processes and threads may be and do.

use super::build::{At, Built, CAPABILITIES, Msg, allowed, config, healthy, numbers, program};
use super::image::Magic;
use super::{Allowed, Refusal, Rule, SpecError};
use serde_json::{Value, json};

/// A checkpoint in which the credentials of each thread in turn have another value, and the rule that it breaks.
fn broken_in_each(change: impl Fn(&mut Msg), allowed: &Allowed) -> Option<Rule> {
    let rules = [1, 2, 3].map(|tid| {
        let mut built = healthy();
        change(built.credentials(tid));
        built.broken_for(allowed)
    });
    assert_eq!(rules, [rules[0]; 3], "a rule holds for some threads only");
    rules[0]
}

fn without_capabilities() -> Value {
    let mut config = config();
    config["process"]["capabilities"] = json!({});
    config
}

/// A healthy checkpoint of a container that has this user and no capability.
fn of_user(uid: u64) -> Built {
    let mut built = healthy();
    for tid in [1, 2, 3] {
        let credentials = built.credentials(tid);
        for field in [10, 11, 12] {
            credentials.remove(field);
        }
        for field in 1..=8 {
            credentials.set(field, uid);
        }
    }
    built
}

#[test]
fn capabilities_of_the_checkpoint_are_not_those_of_a_pod_that_drops_all() {
    // What restored processes kept before (containerd, 2026).
    assert_eq!(healthy().broken_for(&allowed(&without_capabilities())), Some(Rule::BoundingCapabilities));
    assert_eq!(of_user(0).broken_for(&allowed(&without_capabilities())), None);
    assert_eq!(of_user(0).broken(), None, "fewer are fine");
}

#[test]
fn an_extra_capability_is_refused_in_every_set() {
    let sys_admin = CAPABILITIES | (1 << 21);
    for (field, rule) in [
        (12, Rule::BoundingCapabilities),
        (10, Rule::PermittedCapabilities),
        (11, Rule::EffectiveCapabilities),
    ] {
        let change = |credentials: &mut Msg| credentials.set(field, sys_admin);
        assert_eq!(broken_in_each(change, &allowed(&config())), Some(rule));
        let unknown = |credentials: &mut Msg| {
            credentials.set(field, 0);
            credentials.0.push((field, (1_u64 << 31).into()));
        };
        assert_eq!(broken_in_each(unknown, &allowed(&config())), Some(rule), "one that has no name yet");
    }
}

#[test]
fn ambient_and_inheritable_capabilities_are_refused() {
    for (field, rule) in [(19, Rule::AmbientCapabilities), (9, Rule::InheritableCapabilities)] {
        let change = |credentials: &mut Msg| credentials.set(field, 1);
        assert_eq!(broken_in_each(change, &allowed(&config())), Some(rule));
    }
}

#[test]
fn a_user_without_privileges_has_no_permitted_capabilities() {
    let mut config = config();
    config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    let allowed = allowed(&config);
    let mut built = of_user(1000);
    for tid in [1, 2, 3] {
        built.credentials(tid).remove(14);
    }
    assert_eq!(built.broken_for(&allowed), None);
    built.credentials(3).set(10, 1);
    assert_eq!(built.broken_for(&allowed), Some(Rule::PermittedCapabilities));
}

#[test]
fn users_and_groups_change_with_capabilities_only() {
    let without = allowed(&without_capabilities());
    for field in 1..=8 {
        let mut built = of_user(0);
        built.credentials(3).set(field, 33);
        let rule = if field % 2 == 1 { Rule::Uid } else { Rule::Gid };
        assert_eq!(built.broken_for(&without), Some(rule), "field {field}");
        assert_eq!(built.broken(), None, "the default spec has CAP_SETUID and CAP_SETGID");
    }
    let mut built = of_user(0);
    built.credentials(2).set(14, 998);
    assert_eq!(built.broken_for(&without), Some(Rule::Groups));
    assert_eq!(built.broken(), None);
    // CAP_SETUID in the bounding set alone does not help who is not root and cannot gain it.
    let mut config = config();
    config["process"]["user"] = json!({ "uid": 1000, "gid": 1000 });
    assert_eq!(of_user(0).broken_for(&allowed(&config)), Some(Rule::Uid));
}

#[test]
fn a_missing_no_new_privs_is_refused() {
    let config = config();
    assert_eq!(
        broken_in_each(|credentials| credentials.remove(18), &allowed(&config)),
        Some(Rule::NoNewPrivileges)
    );
    assert_eq!(
        broken_in_each(|credentials| credentials.set(18, 0), &allowed(&config)),
        Some(Rule::NoNewPrivileges)
    );
}

#[test]
fn secure_bits_and_labels_are_kept() {
    let allowed = allowed(&config());
    let broken = |change: fn(&mut Msg)| broken_in_each(change, &allowed);
    assert_eq!(broken(|credentials| credentials.set(13, 4)), Some(Rule::SecureBits));
    assert_eq!(broken(|credentials| credentials.set(13, 16)), None);
    assert_eq!(broken(|credentials| credentials.remove(15)), Some(Rule::LsmProfile), "unconfined");
    assert_eq!(broken(|credentials| credentials.set(15, "docker-default")), Some(Rule::LsmProfile));
    assert_eq!(broken(|credentials| credentials.set(16, "other")), Some(Rule::LsmProfile));
    assert_eq!(broken(|credentials| credentials.set(17, "policy")), Some(Rule::LsmProfile));
    let mut built = healthy();
    built.message("inventory.img", 0).set(6, 1);
    assert_eq!(built.broken(), Some(Rule::LsmProfile), "the label is one of SELinux");
}

#[test]
fn a_profile_that_the_spec_does_not_name_is_refused() {
    let mut config = config();
    config["process"].as_object_mut().unwrap().remove("apparmorProfile");
    assert_eq!(healthy().broken_for(&allowed(&config)), Some(Rule::LsmProfile));
    config["process"]["selinuxLabel"] = json!("system_u:system_r:container_t:s0:c1,c2");
    let mut built = healthy();
    built.message("inventory.img", 0).set(6, 1);
    for tid in [1, 2, 3] {
        built.credentials(tid).set(15, "system_u:system_r:container_t:s0:c1,c2");
    }
    assert_eq!(built.broken_for(&allowed(&config)), None);
    built.credentials(3).set(15, "system_u:system_r:spc_t:s0");
    assert_eq!(built.broken_for(&allowed(&config)), Some(Rule::LsmProfile));
}

/// The rule that is broken when the seccomp state of each thread in turn is another one.
fn filtered(change: fn(&mut Msg)) -> Option<Rule> {
    let rules = [1, 2, 3].map(|tid| {
        let mut built = healthy();
        change(built.message(&format!("core-{tid}.img"), 0).inner(5));
        built.broken()
    });
    assert_eq!(rules, [rules[0]; 3]);
    rules[0]
}

#[test]
fn a_dropped_seccomp_filter_is_refused() {
    assert_eq!(filtered(|thread| thread.remove(11)), Some(Rule::SeccompMode));
    assert_eq!(filtered(|thread| thread.set(11, 0)), Some(Rule::SeccompMode));
    assert_eq!(filtered(|thread| thread.remove(12)), Some(Rule::SeccompFilter));
    assert_eq!(filtered(|thread| thread.set(12, 0)), Some(Rule::SeccompFilter), "a filter that allows all");
    assert_eq!(filtered(|thread| thread.set(12, 2)), Some(Rule::SeccompFilter), "a filter that is not there");
    let mut built = healthy();
    built.images.remove("seccomp.img");
    assert_eq!(built.broken(), Some(Rule::SeccompFilter));
    let mut built = healthy();
    built.message("core-1.img", 0).inner(3).set(11, 0);
    assert_eq!(built.broken(), Some(Rule::SeccompMode), "the old field of the process wins in CRIU");
    let mut config = config();
    config["linux"].as_object_mut().unwrap().remove("seccomp");
    let mut built = healthy();
    built.message("core-1.img", 0).inner(5).remove(11);
    assert_eq!(built.broken_for(&allowed(&config)), None, "the spec wants none");
}

/// Threads of process 1 that have their filters from the leader, as CRIU writes them if all have the same.
fn synchronized() -> Built {
    let mut built = healthy();
    let filter = |previous: Option<u64>| {
        let filter = Msg::default().with(1, &program(0x0005_0001)[..]).with(3, 1);
        previous.map_or(filter.clone(), |previous| filter.with(2, previous))
    };
    for previous in [None, Some(2)] {
        built.message("seccomp.img", 0).0.push((1, filter(previous).into()));
    }
    built.message("core-1.img", 0).inner(5).set(12, 3);
    let thread = built.message("core-3.img", 0).inner(5);
    thread.remove(11);
    thread.remove(12);
    built
}

#[test]
fn a_filter_for_all_threads_is_the_only_one_of_the_process() {
    let allowed_programs = allowed(&config()).with_seccomp_programs(vec![program(0x0005_0001)]);
    assert_eq!(synchronized().broken(), None);
    assert_eq!(synchronized().broken_for(&allowed_programs), None);
    let mut built = synchronized();
    built.message("core-3.img", 0).inner(5).set(11, 2);
    assert_eq!(built.broken(), Some(Rule::SeccompFilter), "a mode of the thread's own");
    // With either, the kernel would set no filter for any thread, and CRIU would not notice.
    let mut built = synchronized();
    built.message("core-3.img", 0).inner(5).set(11, 2);
    built.message("core-3.img", 0).inner(5).set(12, 1);
    assert_eq!(built.broken(), Some(Rule::SeccompFilter), "a filter of the thread's own");
    let mut built = synchronized();
    built.message("core-3.img", 0).inner(5).set(11, 2);
    built.message("core-3.img", 0).inner(5).set(12, 3);
    assert_eq!(built.broken(), Some(Rule::SeccompFilter), "the leader's filters once more");
    let mut built = synchronized();
    built.message("core-1.img", 0).inner(5).set(12, 1);
    assert_eq!(built.broken(), Some(Rule::SeccompMode), "the leader's filters are its own");
    let mut built = synchronized();
    built.message("core-1.img", 0).inner(5).set(12, 1);
    built.message("core-3.img", 0).inner(5).set(11, 2);
    built.message("core-3.img", 0).inner(5).set(12, 3);
    assert_eq!(built.broken(), Some(Rule::SeccompFilter), "filters for all that are not the leader's");
    let mut built = synchronized();
    let filters = &mut built.message("seccomp.img", 0).0;
    filters[2].1 = Msg::default().with(1, &program(0x0005_0001)[..]).into();
    assert_eq!(built.broken(), Some(Rule::SeccompFilter), "for all after one of its own");
}

#[test]
fn programs_of_seccomp_are_whole_and_end() {
    let with = |filter: Msg| {
        let mut built = healthy();
        built.message("seccomp.img", 0).set(1, filter.clone());
        built.message("seccomp.img", 0).0.push((1, filter.into()));
        built.broken()
    };
    let errno = program(0x0005_0001);
    let errno = errno.as_slice();
    assert_eq!(with(Msg::default().with(1, errno)), None);
    assert_eq!(with(Msg::default().with(1, errno).with(2, 1)), Some(Rule::SeccompFilter), "a circle");
    assert_eq!(with(Msg::default().with(1, errno).with(3, 8)), Some(Rule::SeccompFilter), "a listener");
    assert_eq!(with(Msg::default().with(1, &errno[1..])), Some(Rule::SeccompFilter), "half an instruction");
    assert_eq!(with(Msg::default().with(1, "")), Some(Rule::SeccompFilter), "no instruction");
}

/// The rule that is broken when all threads have a filter of these instructions: code, jumps, constant.
fn filtered_by(instructions: &[(u16, [u8; 2], u32)]) -> Option<Rule> {
    let bytes = instructions.iter().flat_map(|(code, jumps, constant)| {
        [&code.to_le_bytes()[..], jumps, &constant.to_le_bytes()].concat()
    });
    let filter = Msg::default().with(1, &bytes.collect::<Vec<_>>()[..]);
    let mut built = healthy();
    built.message("seccomp.img", 0).set(1, filter.clone());
    built.message("seccomp.img", 0).0.push((1, filter.into()));
    built.broken()
}

const ALLOW: (u16, [u8; 2], u32) = (6, [0; 2], 0x7fff_0000);
const KILL: (u16, [u8; 2], u32) = (6, [0; 2], 0x8000_0000);
const LOAD: (u16, [u8; 2], u32) = (0x20, [0; 2], 0);

#[test]
fn a_restricting_return_is_one_that_can_be_reached() {
    let refused = Some(Rule::SeccompFilter);
    let jump = |offset| (0x05, [0; 2], offset);
    let equal = |if_true, if_false| (0x15, [if_true, if_false], 59);
    assert_eq!(filtered_by(&[ALLOW, KILL]), refused);
    assert_eq!(filtered_by(&[jump(1), KILL, ALLOW]), refused, "over it");
    assert_eq!(filtered_by(&[jump(1), ALLOW, KILL]), None, "to it");
    assert_eq!(filtered_by(&[LOAD, equal(1, 1), KILL, ALLOW]), refused, "over it in both cases");
    assert_eq!(filtered_by(&[LOAD, equal(0, 1), KILL, ALLOW]), None);
    assert_eq!(filtered_by(&[LOAD, equal(1, 0), KILL, ALLOW]), None);
    assert_eq!(filtered_by(&[ALLOW, jump(0), KILL]), refused, "from what is not reached");
}

#[test]
fn programs_of_seccomp_do_not_leave_themselves() {
    let refused = Some(Rule::SeccompFilter);
    assert_eq!(filtered_by(&[LOAD, KILL]), None);
    assert_eq!(filtered_by(&[(0x15, [0, 1], 59), KILL, LOAD]), refused, "no return at the end");
    for jump in [(0x05, [0; 2], 1), (0x05, [0; 2], u32::MAX), (0x15, [1, 0], 59), (0x35, [0, 255], 59)] {
        assert_eq!(filtered_by(&[jump, KILL]), refused, "{jump:?} leads out");
        assert_eq!(filtered_by(&[KILL, jump, KILL]), refused, "{jump:?} leads out and is not reached");
    }
}

#[test]
fn programs_that_are_given_are_compared() {
    let with = |action| allowed(&config()).with_seccomp_programs(vec![program(action)]);
    assert_eq!(healthy().broken_for(&with(0x0005_0001)), None);
    assert_eq!(healthy().broken_for(&with(0x0005_0026)), Some(Rule::SeccompFilter));
}

#[test]
fn priorities_need_a_capability() {
    assert_eq!(filtered(|thread| thread.set(4, 1)), Some(Rule::Scheduling), "SCHED_FIFO");
    assert_eq!(filtered(|thread| thread.set(3, 1)), Some(Rule::Scheduling), "nice -1");
    assert_eq!(filtered(|thread| thread.set(3, 2)), None, "nice 1");
}

#[test]
fn a_thread_without_credentials_is_refused_unless_the_process_has_ended() {
    for (name, inner) in [("core-1.img", 5), ("core-3.img", 5)] {
        let mut built = healthy();
        built.message(name, 0).remove(inner);
        assert!(matches!(built.check(&allowed(&config())), Err(Refusal::Damaged { .. })));
        let mut built = healthy();
        built.message(name, 0).inner(inner).remove(10);
        assert!(matches!(built.check(&allowed(&config())), Err(Refusal::Damaged { .. })));
    }
    let mut zombie = healthy();
    zombie.images.remove("ids-2.img");
    let core = zombie.message("core-2.img", 0);
    core.remove(5);
    core.inner(3).set(1, 6);
    core.inner(3).remove(9);
    assert_eq!(zombie.broken(), None);
}

#[test]
fn a_refusal_names_image_process_rule_both_values_and_help() {
    let mut built = healthy();
    built.credentials(3).set(12, CAPABILITIES | (1 << 21));
    let text = built.check(&allowed(&config())).unwrap_err().to_string();
    let parts = [
        "core-3.img",
        "process 3",
        "bounding capabilities",
        "CAP_SYS_ADMIN",
        "spec allows CAP_CHOWN",
        "securityContext",
    ];
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    let mut built = healthy();
    built.add("mountpoints-13.img", Magic::Mountpoints, At("/x\u{1b}[31m").mount(40, 20, 16, 0));
    let text = built.check(&allowed(&config())).unwrap_err().to_string();
    assert!(!text.contains('\u{1b}'), "a control character of the checkpoint is in {text:?}");
}

#[test]
fn a_spec_that_is_not_understood_is_an_error() {
    assert!(matches!(Allowed::from_oci(&json!({})), Err(SpecError::Field { field: "process" })));
    let mut unknown = config();
    unknown["process"]["capabilities"]["bounding"] = json!(["CAP_NEW"]);
    assert!(matches!(Allowed::from_oci(&unknown), Err(SpecError::Unknown { .. })));
    let mut wrong = config();
    wrong["process"]["noNewPrivileges"] = json!("yes");
    assert!(matches!(Allowed::from_oci(&wrong), Err(SpecError::Field { .. })));
    assert_eq!(numbers(&[(1, 300)]).encode(), [8, 0xac, 2], "the encoder of these tests");
}
