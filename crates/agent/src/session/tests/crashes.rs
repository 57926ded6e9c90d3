//! An agent dies in each step of a migration, before it, in the middle of it and after it.

use super::play::Play;
use super::world::Mode;
use crate::session::Role;
use portolan_core::migration::Outcome;

const ORDERS: [&str; 2] = ["Transactional", "DeleteFirst"];

/// How many writes and actions there are in a migration in which nothing fails.
async fn steps(order: &str, role: Role) -> usize {
    let mut play = Play::new(order).await;
    assert_eq!(play.settle().await, Outcome::Succeeded);
    let steps = play.world.lock().unwrap().agent(role).steps;
    assert!(steps > 10, "{steps} steps at the {role}");
    steps
}

/// Every crash of one agent. The outcomes are returned.
async fn crash_at_every_step(role: Role, again: Option<usize>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut died = 0;
    for order in ORDERS {
        let steps = steps(order, role).await;
        for at in 1..=steps {
            for mode in [Mode::Before, Mode::Half, Mode::After] {
                let mut play = Play::new(order).await;
                {
                    let mut world = play.world.lock().unwrap();
                    let agent = world.agent(role);
                    agent.crash = Some((at, mode));
                    agent.again = again;
                }
                outcomes.push(play.settle().await);
                let incarnation = play.world.lock().unwrap().agent(role).incarnation;
                // At its end each agent is restarted once.
                died += usize::from(incarnation > 1);
            }
        }
    }
    // How often an action is repeated depends on how fast the disk is, so that the last steps may not come.
    assert!(died * 10 >= outcomes.len() * 9, "{died} of {} died", outcomes.len());
    outcomes
}

#[tokio::test(start_paused = true)]
async fn the_source_may_die_at_every_step() {
    let outcomes = crash_at_every_step(Role::Source, None).await;
    assert!(outcomes.contains(&Outcome::Succeeded) && outcomes.contains(&Outcome::Failed), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn the_source_may_die_once_more_while_it_goes_on() {
    for again in 1..=4 {
        crash_at_every_step(Role::Source, Some(again)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_destination_may_die_at_every_step() {
    let outcomes = crash_at_every_step(Role::Destination, None).await;
    assert!(outcomes.contains(&Outcome::Succeeded), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn the_destination_may_die_once_more_while_it_goes_on() {
    for again in 1..=4 {
        crash_at_every_step(Role::Destination, Some(again)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn both_may_die_at_every_step_of_the_source() {
    for order in ORDERS {
        for at in 1..=steps(order, Role::Source).await {
            let mut play = Play::new(order).await;
            for role in [Role::Source, Role::Destination] {
                play.world.lock().unwrap().agent(role).crash = Some((at, Mode::After));
            }
            play.settle().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_migration_may_be_aborted_at_any_time() {
    for order in ORDERS {
        let mut outcomes = Vec::new();
        for rounds in 0..40 {
            let mut play = Play::new(order).await;
            for _ in 0..rounds {
                play.round().await;
            }
            play.facts.abort_requested = true;
            outcomes.push(play.settle().await);
        }
        assert_eq!(outcomes.first(), Some(&Outcome::Aborted));
        assert_eq!(outcomes.last(), Some(&Outcome::Succeeded));
    }
}
