//! What goes to the terminal. Data goes to standard output; everything else to standard error.

use crate::failure::Failure;
use std::io::{ErrorKind, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// Turns on the log, on standard error. `quiet` is for commands that tell the user themselves what goes on.
pub(crate) fn log(verbose: u8, quiet: bool) {
    let level = match verbose {
        0 if quiet => "error,kube_client=off,kube_runtime=off",
        // What kube prints of an answer that it cannot read is the answer, which is a member's to choose.
        0 => "warn,kube_client=off,kube_runtime=error",
        1 => "info,kube_client=off,kube_runtime=error",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colour = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colour).with_writer(std::io::stderr).init();
}

/// Writes data to standard output. A reader that has heard enough is no failure.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::from),
    }
}
