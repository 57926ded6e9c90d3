//! What runs stays until something better is there.

use super::*;

#[test]
fn what_a_leaving_cluster_holds_goes_elsewhere_if_it_can_and_stays_if_not() {
    let taint = ClusterTaint { key: "leaving".into(), value: None, effect: TaintEffect::NoExecute };
    let leaving = |reserved: u32| {
        Candidate { reserved, ..cluster("a", 9) }.at(|site| site.taints = vec![taint.clone()])
    };
    let anywhere = by_policy(3, PlacementPolicy::WorstFit, 1);
    let moved = decide(&anywhere, &[leaving(3), cluster("b", 9)]).unwrap();
    assert_eq!(counts(&moved), [("b", 3)]);
    let partly = decide(&anywhere, &[leaving(3), cluster("b", 2)]).unwrap();
    assert_eq!((counts(&partly), partly.pending), (vec![("a", 1), ("b", 2)], 0), "nothing is lost");
    let affine = decide(&request(3, &["a"]), &[leaving(3), cluster("b", 9)]).unwrap();
    assert_eq!((counts(&affine), affine.pending), (vec![("a", 3)], 0), "it may be nowhere else");
    let fresh = decide(&request(3, &["a"]), &[leaving(0), cluster("b", 9)]).unwrap();
    assert_eq!((fresh.pending, fresh.refusals["a"].reason), (3, Reason::Evicted), "nothing new goes there");
    let mut bold = request(3, &["a"]);
    bold.placement.cluster_tolerations = vec![portolan_api::placement::ClusterToleration {
        operator: portolan_api::placement::TolerationOperator::Exists,
        ..Default::default()
    }];
    assert_eq!(counts(&decide(&bold, &[leaving(3)]).unwrap()), [("a", 3)], "unless it is tolerated");
}

/// A cluster whose copy runs so many replicas of a former template.
fn running(name: &str, cpus: i64, replicas: u32) -> Candidate {
    Candidate { reserved: replicas, running: replicas, ..cluster(name, cpus) }
}

#[test]
fn an_edit_that_cannot_be_satisfied_keeps_what_runs() {
    let too_large = decide(&request(2, &["a"]), &[running("a", 0, 2)]).unwrap();
    assert_eq!((counts(&too_large), too_large.pending, too_large.staying), (vec![("a", 2)], 0, 2));
    let kept = too_large.placed["a"].kept.unwrap();
    assert_eq!((kept.because, kept.as_they_are), (KeptBecause::NoRoom, true));
    assert_eq!(too_large.refusals["a"].reason, Reason::NoRoom);

    let mistyped = decide(&request(2, &["x"]), &[running("a", 9, 2)]).unwrap();
    assert_eq!((counts(&mistyped), mistyped.staying), (vec![("a", 2)], 2));
    let kept = mistyped.placed["a"].kept.unwrap();
    assert_eq!((kept.because, kept.as_they_are), (KeptBecause::NotWanted, false));
    assert_eq!(mistyped.refusals["x"].reason, Reason::ClusterNotFound);

    let full = decide(&request(2, &["b"]), &[running("a", 9, 2), cluster("b", 1)]).unwrap();
    assert_eq!((counts(&full), full.staying), (vec![("a", 1), ("b", 1)], 1), "what fits goes");

    let by_policy =
        decide(&by_policy(2, PlacementPolicy::WorstFit, 1), &[running("a", 0, 2), cluster("b", 0)]);
    assert_eq!(counts(&by_policy.unwrap()), [("a", 2)]);
    let fewer = decide(&request(1, &["x"]), &[running("a", 9, 2)]).unwrap();
    assert_eq!(counts(&fewer), [("a", 1)], "what was asked for less is not kept");
    let lowered = decide(&request(3, &["a", "x"]), &[running("a", 9, 5)]).unwrap();
    assert_eq!(
        (counts(&lowered), lowered.pending),
        (vec![("a", 3)], 3),
        "a location lends nothing to another"
    );
    let none = decide(&request(0, &["a"]), &[running("a", 0, 2)]).unwrap();
    assert_eq!(counts(&none), []);
}

#[test]
fn replicas_whose_room_is_gone_stay_until_another_cluster_takes_them() {
    let nodes_gone = [running("a", 0, 2), cluster("b", 9)];
    assert_eq!(counts(&decide(&request(2, &["a"]), &nodes_gone).unwrap()), [("a", 2)]);
    assert_eq!(counts(&decide(&substituting(2, &["a"]), &nodes_gone).unwrap()), [("b", 2)]);
    let nowhere = decide(&substituting(2, &["a"]), &nodes_gone[..1]).unwrap();
    assert!(nowhere.to_cloud, "a further cluster would help those that stay");
}

#[test]
fn a_cordoned_cluster_that_is_drained_is_left() {
    let taint = ClusterTaint { key: "leaving".into(), value: None, effect: TaintEffect::NoExecute };
    let closed = Some(Refusal { reason: Reason::Unschedulable, message: "cordoned".into() });
    let drained = Candidate { closed, ..running("a", 9, 2) }.at(|site| site.taints = vec![taint.clone()]);
    let anywhere = by_policy(2, PlacementPolicy::WorstFit, 1);
    assert_eq!(counts(&decide(&anywhere, &[drained.clone(), cluster("b", 9)]).unwrap()), [("b", 2)]);
    let alone = decide(&anywhere, &[drained]).unwrap();
    assert_eq!(alone.placed["a"].kept.map(|kept| kept.because), Some(KeptBecause::Evicted));
    let deleted = Candidate {
        closed: Some(Refusal { reason: Reason::Terminating, message: "it is being deleted".into() }),
        leaving: true,
        ..running("a", 9, 2)
    };
    assert_eq!(counts(&decide(&anywhere, &[deleted, cluster("b", 9)]).unwrap()), [("b", 2)]);
}

#[test]
fn a_taint_that_discourages_makes_a_cluster_the_last_choice() {
    let taint = ClusterTaint { key: "spot".into(), value: None, effect: TaintEffect::PreferNoSchedule };
    let spot = cluster("a", 90).at(|site| site.taints = vec![taint]);
    let anywhere = |locations| by_policy(2, PlacementPolicy::WorstFit, locations);
    assert_eq!(counts(&decide(&anywhere(1), &[spot.clone(), cluster("b", 4)]).unwrap()), [("b", 2)]);
    assert_eq!(counts(&decide(&anywhere(1), &[spot.clone(), cluster("b", 0)]).unwrap()), [("a", 2)]);
    let mut burst = PlacementRequest { bursting: true, ..request(3, &["b"]) };
    burst.replicas = 3;
    let bursting = decide(&burst, &[spot, cluster("b", 1), cluster("c", 2)]).unwrap();
    assert_eq!(counts(&bursting), [("b", 1), ("c", 2)]);
}

#[test]
fn a_cluster_that_refuses_is_chosen_only_if_no_other_one_is_left() {
    let refused = Some(Refusal { reason: Reason::NameTaken, message: "there is one".into() });
    let refusing = Candidate { refused, reserved: 2, ..cluster("a", 90) };
    let anywhere = by_policy(2, PlacementPolicy::WorstFit, 1);
    assert_eq!(counts(&decide(&anywhere, &[refusing.clone(), cluster("b", 4)]).unwrap()), [("b", 2)]);
    let alone = decide(&anywhere, std::slice::from_ref(&refusing)).unwrap();
    assert_eq!((counts(&alone), alone.pending), (vec![("a", 2)], 0), "it is tried again there");
    assert_eq!(
        counts(&decide(&request(2, &["a"]), &[refusing.clone(), cluster("b", 4)]).unwrap()),
        [("a", 2)]
    );
    let substituted = decide(&substituting(2, &["a"]), &[refusing.clone(), cluster("b", 4)]).unwrap();
    assert_eq!(counts(&substituted), [("b", 2)]);
    let updating = Candidate { running: 2, ..refusing };
    let kept = decide(&request(2, &["a"]), &[updating]).unwrap();
    assert_eq!(counts(&kept), [("a", 2)], "what runs there goes on");
}

proptest! {
    #[test]
    fn nothing_that_runs_is_given_up_while_replicas_have_no_place(request in wishes(), fleet in fleets()) {
        let decision = decide(&request, &fleet).unwrap();
        for candidate in &fleet {
            let placed = decision.placed.get(candidate.name()).map_or(0, |placed| placed.replicas);
            let per_location = request.mode == ReplicasMode::PerLocation && !request.may_overflow();
            let locations = candidate.stands_in_for.len() as u32 + 1;
            let most = if per_location { request.replicas * locations } else { u32::MAX };
            prop_assert!(
                decision.pending == 0 || placed >= candidate.running.min(most),
                "{}: {decision:?}",
                candidate.name()
            );
        }
    }
}
