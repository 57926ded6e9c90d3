//! The commands, one file each.

mod completion;
mod controller;
mod convert;
mod crds;
mod demo;
mod sandbox;

use crate::cli::{Cli, Command, SandboxCommand};
use crate::failure::Failure;

pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Controller(args) => controller::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Sandbox(SandboxCommand::Up(args)) => sandbox::up(&args),
        Command::Completion(args) => completion::run(&args),
    }
}
