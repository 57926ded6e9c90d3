//! Lines that other versions of the program have made.

use super::*;
use portolan_api::PROGRAM_VERSION;

/// The version that is so many major and minor versions after this one.
fn later(major: u64, minor: u64) -> String {
    let own: Vec<u64> = PROGRAM_VERSION.split('.').take(2).map(|part| part.parse().unwrap()).collect();
    format!("{}.{}.0", own[0] + major, own[1] + minor)
}

async fn secrets_of_invitations(stage: &Stage) -> usize {
    let api: Api<Secret> = Api::namespaced(stage.consumer.client("user"), "portolan");
    let params = ListParams::default().labels("portolan.dev/invitation");
    api.list_metadata(&params).await.unwrap().items.len()
}

#[tokio::test(start_paused = true)]
async fn a_line_of_a_version_that_is_too_far_is_refused_and_can_still_be_used() {
    let mut stage = Stage::new().await;
    let line = stage.invite(|_| ()).await;
    assert_eq!(line.program.as_deref(), Some(PROGRAM_VERSION));
    for theirs in [later(0, 2), later(1, 0)] {
        let mut far = line.clone();
        far.program = Some(theirs.clone());
        let refused = stage.redeem(&far).await.unwrap_err();
        assert!(matches!(refused, TenancyError::Skew { .. }), "{refused}");
        let told = refused.to_string();
        for word in ["paris", &theirs, PROGRAM_VERSION, "one minor version at most"] {
            assert!(told.contains(word), "{word}: {told}");
        }
    }
    assert_eq!(secrets_of_invitations(&stage).await, 0, "nothing is made");
    assert_eq!(stage.phase(&line).await, InvitationPhase::Pending);
    let mut near = line.clone();
    near.program = Some(later(0, 1));
    stage.redeem(&near).await.unwrap();
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}

#[tokio::test(start_paused = true)]
async fn a_line_that_says_no_version_is_used() {
    let mut stage = Stage::new().await;
    let mut line = stage.invite(|_| ()).await;
    line.program = None;
    let line = InvitationLine::decode(&line.encode()).unwrap();
    stage.redeem(&line).await.unwrap();
    pass(20).await;
    assert!(stage.holds(&stage.consumer, "paris", ConditionType::Ready).await);
}
