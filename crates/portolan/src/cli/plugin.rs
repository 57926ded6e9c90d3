//! The program as a plugin of kubectl.

use super::Cli;
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory, FromArgMatches};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// kubectl runs a program with this name as `kubectl portolan`.
const PLUGIN: &str = "kubectl-portolan";

/// How users call the plugin.
const CALL: &str = "kubectl portolan";

/// Reads the command line; ends the process if it is wrong or asks for help.
pub(crate) fn parse(arguments: Vec<OsString>) -> Cli {
    let mut command = command(arguments.first().map(OsString::as_os_str));
    let matches = command
        .try_get_matches_from_mut(super::as_kubectl_does(arguments))
        .unwrap_or_else(|error| error.exit());
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// The command as it is called: by its own name, or by kubectl.
fn command(program: Option<&OsStr>) -> Command {
    let command = Cli::command();
    let is_plugin = program.is_some_and(|path| Path::new(path).file_stem() == Some(PLUGIN.as_ref()));
    if is_plugin { called(command.bin_name(CALL)) } else { command }
}

/// The command with the plugin's name in its texts.
fn called(mut command: Command) -> Command {
    let named = |text: Option<&StyledStr>| text.map(|text| rename(&text.to_string()));
    if let Some(text) = named(command.get_about()) {
        command = command.about(text);
    }
    if let Some(text) = named(command.get_long_about()) {
        command = command.long_about(text);
    }
    if let Some(text) = named(command.get_after_help()) {
        command = command.after_help(text);
    }
    command.mut_args(argument).mut_subcommands(called)
}

fn argument(mut argument: Arg) -> Arg {
    if let Some(text) = argument.get_help().map(|text| rename(&text.to_string())) {
        argument = argument.help(text);
    }
    if let Some(text) = argument.get_long_help().map(|text| rename(&text.to_string())) {
        argument = argument.long_help(text);
    }
    argument
}

fn rename(text: &str) -> String {
    text.replace("`portolan ", &format!("`{CALL} "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_plugin_makes_a_plugin() {
        let name = |path: &str| command(Some(OsStr::new(path))).get_bin_name().map(str::to_owned);
        assert_eq!(name("/opt/krew/kubectl-portolan").as_deref(), Some(CALL));
        assert_eq!(name("kubectl-portolan.exe").as_deref(), Some(CALL));
        assert_eq!(name("/usr/bin/portolan"), None);
        assert_eq!(name("/opt/kubectl-portolan/portolan"), None);
    }

    #[test]
    fn the_plugin_is_a_sound_command_line_that_speaks_of_itself() {
        let mut plugin = command(Some(OsStr::new(PLUGIN)));
        plugin.clone().debug_assert();
        let help = plugin.render_long_help().to_string();
        assert!(
            help.contains("Usage: kubectl portolan ") && help.contains("`kubectl portolan demo`"),
            "{help}"
        );
        assert!(!help.contains("`portolan "), "{help}");
    }
}
