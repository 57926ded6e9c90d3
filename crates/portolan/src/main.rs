//! Portolan: many Kubernetes clusters, worked as one.

mod cli;
mod commands;
mod failure;
mod output;
mod place;
mod signals;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    output::log(cli.verbose, matches!(cli.command, cli::Command::Demo(_)));
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
