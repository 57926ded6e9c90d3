//! All controllers of a hub on one fleet.

use crate::autoscale::Autoscalers;
use crate::capacity::tell_of_room;
use crate::dependencies::DependencyGc;
use crate::driver::{AnyController, Context, Controllers, Driver};
use crate::fleet::{Connect, Hub, keep};
use crate::hub_kinds::{hub_kinds, warn_of_unlisted};
use crate::jobs::{self, Jobs};
use crate::monitor::Running;
use crate::placement::{self, Placement};
use crate::provision::Provision;
use crate::registrations::REGISTRATIONS;
use crate::reschedule::Rescheduling;
use crate::review::Reviews;
use crate::services::{self, Services};
use crate::settings::Settings;
use kube::Client;
use portolan_runtime::{Clock, Seed, Term};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Runs the fleet's membership and all controllers for the length of a term. Dropped, they stop at once.
///
/// It ends when the term is over, or when one of its parts fails: a leader that is not whole gives up the lease and ends,
/// so that another one, or the same process started again, does all of the work.
pub async fn run(hub: Client, connect: Arc<dyn Connect>, clock: Clock, seed: Seed, term: Term) {
    run_with(hub, connect, clock, seed, term, Settings::default()).await;
}

/// The same, with what the operator has set.
pub async fn run_with(
    hub: Client,
    connect: Arc<dyn Connect>,
    clock: Clock,
    seed: Seed,
    term: Term,
    settings: Settings,
) {
    let context = Context::new(Hub::identify(hub, seed).await, clock, seed, term, settings);
    let placement = Placement::new(&context);
    let services = Services::new(&context, &placement);
    let jobs = Jobs::new(&context);
    let rescheduling = Rescheduling::new(&context, &placement, &jobs);
    let provision = Provision::new(&context, Arc::clone(&connect), &placement, &jobs);
    let controllers: Controllers = vec![Driver::of(&placement), Driver::of(&services), Driver::of(&jobs)];
    let autoscalers_health = placement.shares().health().clone();
    let autoscalers = Autoscalers::new(&context, &placement).run(Arc::clone(&placement));
    let reviews = Reviews::new(
        &context,
        placement::Previews(placement),
        jobs::Previews(jobs),
        services::Previews(services),
    );
    let dependency_gc = DependencyGc::new(
        &context.fleet,
        &context.clock,
        seed.child("dependency_gc"),
        &context.term,
        {
            let controllers = controllers.clone();
            move |cluster, namespace, what| controllers.iter().any(|each| each.uses(cluster, namespace, what))
        },
        {
            let controllers = controllers.clone();
            move |owner| controllers.iter().for_each(|each| each.owner_changed(owner))
        },
    );
    let mut tasks = JoinSet::new();
    let kinds = hub_kinds(&context, &controllers, autoscalers_health);
    let shown = context.settings.monitor.show(Running {
        kinds: kinds.clone(),
        fence: context.fence.clone(),
        fleet: context.fleet.clone(),
        controllers: controllers.clone(),
        provisioners: provision.provisioners().clone(),
        connect: Arc::clone(&connect),
    });
    tasks.spawn(warn_of_unlisted(kinds));
    tasks.spawn(tell_of_room(context.fleet.ledger.clone(), {
        let (controllers, rescheduling) = (controllers.clone(), Arc::clone(&rescheduling));
        move |owner| {
            controllers.iter().for_each(|each| each.owner_changed(owner));
            rescheduling.room_appeared(owner);
        }
    }));
    tasks.spawn(rescheduling.run());
    context.sources.follow(&context.hub.client, seed.child("dependencies"), &mut tasks, {
        let controllers = controllers.clone();
        move |namespace, reference| {
            controllers.iter().for_each(|each| each.source_changed(namespace, reference));
        }
    });
    let (hub, fleet, clock) = (context.hub.clone(), context.fleet.clone(), context.clock.clone());
    tasks.spawn(keep(hub, fleet, REGISTRATIONS, connect, clock, seed.child("fleet"), {
        let (controllers, dependency_gc, fleet) =
            (controllers.clone(), dependency_gc.clone(), context.fleet.clone());
        let provision = Arc::clone(&provision);
        move |cluster, event| {
            fleet.initial_copies.notice(&fleet, cluster);
            controllers.iter().for_each(|each| each.member_changed(cluster, &event));
            dependency_gc.member_changed(cluster, &event);
            provision.member_changed(cluster, &event);
        }
    }));
    tasks.spawn(context.fleet.actuators());
    tasks.spawn(autoscalers);
    tasks.spawn(reviews.run());
    tasks.spawn(dependency_gc.run());
    tasks.spawn(provision.run());
    for controller in controllers {
        tasks.spawn(AnyController::run(controller));
    }
    tokio::select! {
        biased;
        () = context.term.until_over() => {}
        Some(ended) = tasks.join_next() => {
            let why = ended.map_or_else(|error| error.to_string(), |()| "it ended".to_owned());
            tracing::error!(why, "a controller failed: all are stopped");
        }
    }
    drop(shown);
    tasks.shutdown().await;
    context.fleet.dissolve();
}
