use super::*;

#[tokio::test(start_paused = true)]
async fn a_copy_that_was_created_is_awaited_until_it_is_shown_or_much_time_has_passed() {
    let (memory, key, connected) = (Memory::default(), Key::cluster("job"), Instant::now());
    let awaits = |shows| memory.awaits("m1", connected, &key, shows);
    assert!(!awaits(false), "nothing was created");
    memory.may_have_created(&key, "m1");
    assert!(awaits(false) && !awaits(true), "the watch shows it");
    assert!(!awaits(false), "it existed, and was deleted");
    memory.may_have_created(&key, "m1");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        !memory.awaits("m1", Instant::now(), &key, false),
        "what a later connection has not listed does not exist"
    );
    assert!(awaits(false));
    tokio::time::sleep(CACHE_LAG_LIMIT).await;
    assert!(!awaits(false));
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_absent_until_one_is_created_or_shown_or_the_connection_is_another() {
    let (memory, key, connected) = (Memory::default(), Key::cluster("job"), Instant::now());
    let absent = || memory.was_absent("m1", connected, &key);
    assert!(!absent(), "nobody has asked");
    memory.set_absent(&key, "m1");
    assert!(absent() && !memory.awaits("m1", connected, &key, false) && absent());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!memory.was_absent("m1", Instant::now(), &key), "a later connection says nothing of it yet");
    memory.may_have_created(&key, "m1");
    assert!(!absent(), "one may exist");
    memory.set_absent(&key, "m1");
    memory.awaits("m1", connected, &key, true);
    assert!(!absent(), "one was shown");
}

#[tokio::test(start_paused = true)]
async fn a_later_decision_makes_earlier_ones_void_also_after_the_object_was_forgotten() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    let first = memory.begin(&key);
    assert!(memory.is_current(&key, first));
    let second = memory.begin(&key);
    assert!(!memory.is_current(&key, first) && memory.is_current(&key, second));
    memory.forget(&key);
    assert!(!memory.is_current(&key, second));
    memory.begin(&key);
    assert!(!memory.is_current(&key, first) && !memory.is_current(&key, second));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_holds_twice_as_long_each_time_and_a_failure_is_retried_soon() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    let refuse =
        || memory.refuse(&key, "m1", "t", FailureKind::RefusedByMember, (Reason::Refused, "no".into()));
    let left = || memory.failure(&key, "m1").unwrap().left();
    refuse();
    assert_eq!(left(), REFUSAL_HOLDS);
    assert_eq!(memory.fail(&key, "m1", "t", "timeout"), REFUSAL_HOLDS, "the refusal says more");
    tokio::time::sleep(REFUSAL_HOLDS).await;
    refuse();
    assert_eq!(left(), 2 * REFUSAL_HOLDS);
    (0..9).for_each(|_| refuse());
    assert_eq!(left(), REFUSAL_HOLDS_AT_MOST);
    let waits: Vec<Duration> = (0..12).map(|_| memory.fail(&key, "m2", "t", "timeout")).collect();
    assert_eq!((waits[0], waits[1], waits[11]), (RETRY_AFTER, 2 * RETRY_AFTER, RETRY_AT_MOST));
    assert!(memory.failure(&key, "m2").unwrap().keeps_away());
    memory.answered(&key, "m2");
    assert_eq!(memory.failure(&key, "m2"), None);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_is_over_is_in_doubt_until_a_dry_run_passes() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    let refuse =
        || memory.refuse(&key, "m1", "t", FailureKind::RefusedByMember, (Reason::Refused, "no".into()));
    let failure = || memory.failure(&key, "m1").unwrap();
    refuse();
    assert!(failure().keeps_away() && !failure().is_doubtful());
    tokio::time::sleep(REFUSAL_HOLDS).await;
    assert!(!failure().keeps_away() && failure().is_doubtful() && memory.refusals_end(&key).is_none());
    assert_eq!(memory.postpone(&key, "m1"), REFUSAL_HOLDS, "nobody answered");
    assert!(failure().keeps_away() && memory.refusals_end(&key) == Some(REFUSAL_HOLDS));
    tokio::time::sleep(REFUSAL_HOLDS).await;
    memory.set_promised(&key, "m1");
    assert!(!failure().keeps_away() && !failure().is_doubtful() && !failure().is_reported());
    // Refused all the same, each time, it is tried less and less often.
    for _ in 0..12 {
        refuse();
        tokio::time::sleep(failure().left()).await;
        memory.set_promised(&key, "m1");
    }
    refuse();
    assert_eq!(failure().left(), BROKEN_PROMISE_HOLDS_AT_MOST);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_fails_again_and_again_is_left_alone_for_longer_each_time() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    let failure = || memory.failure(&key, "m1").unwrap();
    for _ in 0..ERRORS_REPORTED {
        memory.fail(&key, "m1", "t", "500");
    }
    let mut kept_away = Vec::new();
    for _ in 0..4 {
        let left = memory.refusals_end(&key).unwrap();
        kept_away.push(left.as_secs());
        assert!(failure().keeps_away());
        tokio::time::sleep(left).await;
        assert!(failure().is_doubtful());
        memory.postpone(&key, "m1");
    }
    assert_eq!(kept_away, [120, 240, 480, 480]);
    tokio::time::sleep(ERRORS_KEEP_AWAY_AT_MOST).await;
    memory.set_promised(&key, "m1");
    memory.answered(&key, "m1");
    memory.fail(&key, "m1", "t", "500");
    assert!(failure().keeps_away(), "it is known to fail");
    memory.set_applied(&key, "m1", Applied::default());
    assert_eq!(memory.failure(&key, "m1"), None);
}

#[tokio::test(start_paused = true)]
async fn an_index_that_is_behind_is_known_to_be() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    let seen = |generation| CopyMeta { uid: "u".to_owned(), generation, ..CopyMeta::default() };
    assert!(!memory.is_outdated(&key, "m1", &seen(1)), "nothing was done");
    let at = Some(Instant::now());
    memory.set_applied(&key, "m1", Applied { generation: 2, at, ..Applied::default() });
    assert!(memory.is_outdated(&key, "m1", &seen(1)) && !memory.is_outdated(&key, "m1", &seen(2)));
    memory.set_deleted(&key, "m1", "u");
    assert!(memory.is_outdated(&key, "m1", &seen(2)));
    tokio::time::sleep(CACHE_LAG_GRACE).await;
    assert!(!memory.is_outdated(&key, "m1", &seen(2)), "the deletion was lost");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_former_template_does_not_delay_the_present_one() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    let refusal = (Reason::Refused, "no".to_owned());
    memory.refuse(&key, "m1", "t1", FailureKind::RefusedByMember, refusal.clone());
    let wait = memory.fail(&key, "m1", "t2", "timed out");
    assert!(wait < Duration::from_secs(5), "{wait:?}");
    memory.refuse(&key, "m1", "t2", FailureKind::RefusedByMember, refusal);
    memory.fail(&key, "m1", "t2", "timed out");
    let failure = memory.failure(&key, "m1").unwrap();
    assert_eq!(failure.reason, Reason::Refused, "a refusal of the same says more");
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_was_replaced_or_restored_is_not_waited_for_again() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    let seen = |uid: &str, generation| CopyMeta { uid: uid.to_owned(), generation, ..CopyMeta::default() };
    let applied = |generation, shown| {
        let at = Some(Instant::now());
        memory.set_applied(&key, "m1", Applied { generation, at, shown, ..Applied::default() });
    };
    applied(2, false);
    assert!(!memory.is_outdated(&key, "m1", &seen("first", 2)), "it is as it was applied");
    assert!(!memory.is_outdated(&key, "m1", &seen("second", 1)), "somebody replaced it by another one");
    applied(2, true);
    assert!(memory.is_outdated(&key, "m1", &seen("second", 1)), "that one was changed a moment ago");
    tokio::time::sleep(CACHE_LAG_LIMIT).await;
    assert!(
        !memory.is_outdated(&key, "m1", &seen("second", 1)),
        "its cluster was set back to an earlier state"
    );
}

#[test]
fn work_under_way_is_known_by_cluster_also_of_an_object_that_was_forgotten() {
    let (memory, key) = (Memory::default(), Key::cluster("app"));
    memory.start(&key, "m1");
    memory.start(&key, "m1");
    memory.forget(&key);
    memory.end(&key, "m1");
    assert!(memory.is_running(&key, "m1") && !memory.is_running(&key, "m2"));
    memory.end(&key, "m1");
    assert!(!memory.is_running(&key, "m1"));
}
