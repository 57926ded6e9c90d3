//! The commands, one file each.

mod completion;
mod controller;
mod convert;
mod crds;
mod demo;

use crate::cli::{Cli, Command};
use crate::failure::Failure;

pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        Command::Demo(args) => demo::run(&args),
        Command::Controller(args) => controller::run(&args),
        Command::Crds(args) => crds::run(&args),
        Command::Convert(args) => convert::run(&args),
        Command::Completion(args) => completion::run(&args),
    }
}
