//! The OCI runtime for pods that are restored; everything else it hands to runc.

use portolan_node::wrapper::{Settings, main as run};
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().skip(1).collect();
    run(&words, &Settings::default())
}
