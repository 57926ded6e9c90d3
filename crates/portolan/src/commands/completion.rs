//! `portolan completion`

use crate::cli::{Cli, CompletionArgs, CompletionFor};
use crate::complete::{Shell, program};
use crate::failure::Failure;
use crate::output;
use clap::CommandFactory;

pub(super) fn run(args: &CompletionArgs) -> Result<(), Failure> {
    let shell = match args.shell {
        CompletionFor::Bash => Shell::Bash,
        CompletionFor::Fish => Shell::Fish,
        CompletionFor::Kubectl => Shell::Kubectl,
        CompletionFor::Powershell => Shell::Powershell,
        CompletionFor::Zsh => Shell::Zsh,
        CompletionFor::Elvish => return output::data(&elvish()),
    };
    output::data(&shell.script(&program()))
}

/// The commands and flags, for a shell that cannot ask for names.
fn elvish() -> String {
    let mut script = Vec::new();
    clap_complete::generate(clap_complete::Shell::Elvish, &mut Cli::command(), "portolan", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
