//! What a developer runs: `cargo xtask --help` lists it.

mod bench;
mod circles;
mod deny;
mod docs;
mod faults;
mod fuzz;
mod generate;
mod lab;
mod platforms;
mod reasons;
mod reasons_page;
mod reference;
mod release;
mod scenario_page;
mod steps;
mod structure;
mod table;
mod test;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "What a developer of Portolan runs.")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Runs all checks and all tests, as CI does.
    Test(test::TestArgs),
    /// Writes the generated files (deploy/crds, the reference pages), or checks that they are current.
    Generate(generate::GenerateArgs),
    /// Runs seeded fault schedules on all cores, and says how to replay those that fail.
    Faults(faults::FaultsArgs),
    /// Measures how fast and how large things are, in a release build.
    Bench(bench::BenchArgs),
    /// Sends requests that nobody should send to the sandbox, for a while.
    Fuzz(fuzz::FuzzArgs),
    /// Builds Portolan's image and writes it as an archive for container runtimes.
    Image(release::image::ImageArgs),
    /// Builds everything of a release: archives of the program, the image, checksums, SBOMs and the manifest for Krew.
    Dist(release::dist::DistArgs),
    /// Checks that the program compiles for macOS and Windows.
    Platforms(platforms::PlatformsArgs),
    /// Checks that the files of one folder do not import each other in circles.
    Circles,
    /// Checks that links in the documentation resolve and that the commands in it exist.
    Docs,
    /// Real Kubernetes clusters on this machine, for tests and for trying things out.
    #[command(subcommand)]
    Lab(lab::Command),
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    match arguments.task {
        Task::Test(args) => test::run(&args)?,
        Task::Generate(args) => generate::run(&args)?,
        Task::Faults(args) => faults::run(&args)?,
        Task::Bench(args) => bench::run(&args)?,
        Task::Fuzz(args) => fuzz::run(&args)?,
        Task::Image(args) => release::image::run(&args)?,
        Task::Dist(args) => release::dist::run(&args)?,
        Task::Platforms(args) => platforms::run(&args)?,
        Task::Circles => circles::run()?,
        Task::Docs => docs::run()?,
        Task::Lab(command) => return tokio::runtime::Runtime::new()?.block_on(lab::run(command)),
    }
    Ok(ExitCode::SUCCESS)
}
