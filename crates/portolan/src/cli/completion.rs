//! The arguments of `portolan completion`.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "\
For this session, or for all if it stands in the file that the shell reads at its start:
  bash        source <(portolan completion bash)                    in ~/.bashrc
  zsh         source <(portolan completion zsh)                     in ~/.zshrc, after compinit
  fish        portolan completion fish | source                     in ~/.config/fish/config.fish
  powershell  portolan completion powershell | Out-String | Invoke-Expression       in $PROFILE

For `kubectl portolan`, in a directory of PATH:
  portolan completion kubectl > kubectl_complete-portolan && chmod +x kubectl_complete-portolan

Names of members, workloads and namespaces come from the hub, with the --kubeconfig, --context and
-n of the line. If the hub does not answer within a second, or you may not list them, there are
none.")]
pub(crate) struct CompletionArgs {
    /// The shell, or kubectl.
    #[arg(value_enum)]
    pub(crate) shell: CompletionFor,
}

/// What a completion script is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompletionFor {
    Bash,
    /// Commands and flags only.
    Elvish,
    Fish,
    /// The file kubectl_complete-portolan.
    Kubectl,
    Powershell,
    Zsh,
}
