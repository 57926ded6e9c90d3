//! The commands, one file each.

mod accept_offer;
mod adopt;
mod bug_report;
mod cluster_config;
mod completion;
mod controller;
mod controllers;
mod convert;
mod cordon;
mod crds;
mod demo;
mod discover;
mod doctor;
mod events;
mod explain;
mod get;
mod install;
mod invite;
mod leader;
mod logs;
mod members;
mod peer;
mod peer_by_invitation;
mod plan;
mod review;
mod sandbox;
mod share;
mod simulate;
mod status;
mod uninstall;
mod unpeer;
mod version;

use crate::cli::{Cli, Command, SandboxCommand};
use crate::failure::Failure;
use std::process::ExitCode;

pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Controller(args) => controller::run(&args),
        Command::Discover(args) => discover::run(&args),
        Command::Peer(args) => match &args.invitation {
            Some(line) => peer_by_invitation::run(&args, line),
            None => peer::run(&args),
        },
        Command::Invite(args) => invite::run(&args),
        Command::Accept(args) => invite::accept(&args),
        Command::Generate(command) => invite::generate(&command),
        Command::Unpeer(args) => unpeer::run(&args),
        Command::Share(args) => share::run(&args),
        Command::AcceptOffer(args) => accept_offer::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Status(args) => return status::run(&args, cli.verbose > 0),
        Command::Doctor(args) => return doctor::run(&args),
        Command::BugReport(args) => bug_report::run(&args),
        Command::Plan(args) => return plan::run(&args),
        Command::Explain(args) => return explain::run(&args),
        Command::Logs(args) => logs::run(&args),
        Command::Events(args) => events::run(&args),
        Command::Cordon(args) => cordon::run(&args, true),
        Command::Uncordon(args) => cordon::run(&args, false),
        Command::Adopt(args) => adopt::run(&args),
        Command::Install(args) => install::run(&args),
        Command::Upgrade(args) => install::run_upgrade(&args),
        Command::Uninstall(args) => uninstall::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Sandbox(SandboxCommand::Up(args)) => sandbox::up(&args),
        Command::Completion(args) => completion::run(&args),
        Command::Version(args) => version::run(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
