//! Portolan: many Kubernetes clusters, worked as one.

mod cli;
mod commands;
mod connection;
mod failure;
mod human;
mod kind;
mod manifest;
mod output;
mod place;
mod progress;
mod signals;
mod style;
mod table;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    output::log(cli.verbose, matches!(cli.command, cli::Command::Demo(_)));
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}
