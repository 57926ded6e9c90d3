//! The freezer on cgroups that behave as the kernel's do.

use super::fake::Fake;
use super::{FreezerError, Held, Interface, PodFreezer};
use std::path::Path;

const POD: &str = "/sys/fs/cgroup/freezer/kubepods/burstable/pod1";
const BOTH: [Interface; 2] = [Interface::V1, Interface::V2];

fn pod(interface: Interface) -> (Fake, PodFreezer<Fake>) {
    let fake = Fake::new(interface, Path::new(POD), &["a", "b", "pause"]).slow(3);
    let freezer = PodFreezer::with_files(Path::new(POD), &["a", "b"], fake.clone()).unwrap();
    (fake, freezer)
}

#[test]
fn all_containers_stop_and_start_at_one_instant() {
    for interface in BOTH {
        let (fake, freezer) = pod(interface);
        freezer.freeze().unwrap();
        assert_eq!((freezer.held().unwrap(), fake.running()), (Held::All, vec![false, false, true]));
        freezer.thaw().unwrap();
        assert_eq!((freezer.held().unwrap(), fake.running()), (Held::None, vec![true, true, true]));
        for running in fake.history() {
            assert_eq!(running[0], running[1], "one container ran without the other: {:?}", fake.history());
        }
    }
}

#[test]
fn the_pods_own_cgroup_is_never_left_frozen() {
    for interface in BOTH {
        let (fake, freezer) = pod(interface);
        freezer.freeze().unwrap();
        assert!(!fake.pod_is_frozen());
        freezer.thaw().unwrap();
        assert!(!fake.pod_is_frozen());
    }
}

#[test]
fn after_a_crash_at_any_write_both_can_be_repeated() {
    for interface in BOTH {
        for begins_held in [false, true] {
            for writes in 0..6 {
                for thaws in [false, true] {
                    let (fake, freezer) = pod(interface);
                    if begins_held {
                        freezer.freeze().unwrap();
                    }
                    fake.crash_after(writes);
                    let _ = if thaws { freezer.thaw() } else { freezer.freeze() };
                    fake.crash_after(u32::MAX);
                    freezer.freeze().unwrap();
                    assert_eq!(freezer.held().unwrap(), Held::All);
                    fake.crash_after(writes);
                    let _ = if thaws { freezer.thaw() } else { freezer.freeze() };
                    fake.crash_after(u32::MAX);
                    freezer.thaw().unwrap();
                    assert_eq!(freezer.held().unwrap(), Held::None);
                    assert_eq!(fake.running(), [true, true, true]);
                }
            }
        }
    }
}

#[test]
fn half_frozen_is_neither_held_nor_running() {
    for interface in BOTH {
        for writes in 1..4 {
            let (fake, freezer) = pod(interface);
            fake.crash_after(writes);
            let _ = freezer.try_freeze();
            assert_eq!(freezer.held().unwrap(), Held::Partly, "{interface:?} after {writes}");
        }
    }
}

#[test]
fn a_pod_that_does_not_come_to_a_standstill_runs_on() {
    let fake = Fake::new(Interface::V1, Path::new(POD), &["a", "b"]).slow(u32::MAX);
    let freezer = PodFreezer::with_files(Path::new(POD), &["a", "b"], fake.clone()).unwrap();
    let error = freezer.freeze().unwrap_err();
    assert!(matches!(error, FreezerError::NotFrozen { asked: 2_000, .. }), "{error}");
    assert_eq!(fake.running(), [true, true]);
}

#[test]
fn a_container_that_is_gone_is_an_error_for_the_freeze_and_none_for_the_thaw() {
    let fake = Fake::new(Interface::V1, Path::new(POD), &["a"]);
    let freezer = PodFreezer::with_files(Path::new(POD), &["a", "b"], fake.clone()).unwrap();
    assert!(matches!(freezer.freeze(), Err(FreezerError::NoContainer { .. })));
    assert_eq!(fake.running(), [true]);
    freezer.thaw().unwrap();
}

#[test]
fn names_do_not_lead_out_of_the_pod() {
    let fake = Fake::new(Interface::V1, Path::new(POD), &[]);
    for name in ["", ".", "..", "../x", "a/b", "a\0b", "\u{e4}"] {
        let opened = PodFreezer::with_files(Path::new(POD), &[name], fake.clone());
        assert!(matches!(opened, Err(FreezerError::Name { .. })), "{name:?}");
    }
    let nowhere = PodFreezer::with_files(Path::new("/nowhere"), &["a"], fake);
    assert!(matches!(nowhere, Err(FreezerError::NoFreezer { .. })));
}
