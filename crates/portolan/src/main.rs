//! Portolan: runs many Kubernetes clusters as one.

mod clean;
mod cli;
mod commands;
mod complete;
mod connection;
mod endpoints;
mod failure;
mod handshake;
mod human;
mod kind;
mod manifest;
mod output;
mod place;
mod progress;
mod signals;
mod style;
mod table;

use std::process::ExitCode;

/// Most of the time goes into JSON, and most of that into allocations. Its settings are in `.cargo/config.toml`.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if let Some(code) = complete::answer() {
        return code;
    }
    let cli = cli::parse(std::env::args_os().collect());
    let log = match cli.command {
        cli::Command::Demo(_) | cli::Command::Simulate(_) => output::Log::Quiet,
        cli::Command::Controller(_) => output::Log::Daemon,
        _ => output::Log::Command,
    };
    let format = match &cli.command {
        cli::Command::Controller(args) => args.log_format,
        _ => cli::LogFormat::Text,
    };
    output::log(cli.verbose, log, format);
    match commands::run(cli) {
        Ok(code) => code,
        Err(failure) => failure.report(format),
    }
}
