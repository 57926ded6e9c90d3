//! `portolan completion`

use crate::cli::{Cli, CompletionArgs};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;

pub(super) fn run(args: &CompletionArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "portolan", &mut script);
    output::data(&String::from_utf8_lossy(&script))
}
