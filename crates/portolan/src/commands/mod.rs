//! The commands, one file each.

mod completion;
mod controller;
mod convert;
mod crds;
mod demo;
mod explain;
mod get;
mod peer;
mod plan;
mod review;
mod sandbox;
mod status;
mod unpeer;

use crate::cli::{Cli, Command, SandboxCommand};
use crate::failure::Failure;
use std::process::ExitCode;

pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    let done = match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Controller(args) => controller::run(&args),
        Command::Peer(args) => peer::run(&args),
        Command::Unpeer(args) => unpeer::run(&args),
        Command::Get(args) => get::run(&args),
        Command::Status(args) => return status::run(&args),
        Command::Plan(args) => return plan::run(&args),
        Command::Explain(args) => return explain::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Sandbox(SandboxCommand::Up(args)) => sandbox::up(&args),
        Command::Completion(args) => completion::run(&args),
    };
    done.map(|()| ExitCode::SUCCESS)
}
