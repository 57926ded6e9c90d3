//! What goes to the terminal. Data goes to standard output; everything else to standard error.

use crate::clean;
use crate::cli::{LogFormat, PeerFormat};
use crate::failure::Failure;
use portolan_api::convert::{to_json, to_yaml};
use serde_json::{Value, json};
use std::io::{ErrorKind, IsTerminal, Write};
use tracing_subscriber::EnvFilter;

/// How much is logged without -v.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Log {
    /// What a daemon did: one line per event that its operator wants to know of.
    Daemon,
    /// Warnings of a command.
    Command,
    /// Nothing but errors: the command shows everything itself.
    Quiet,
}

/// Turns on the log, on standard error. What kube prints of an answer that it cannot read is the answer, which is a
/// member's to choose: it is for -vv only. Every failure of a command is reported with its object anyway.
pub(crate) fn log(verbose: u8, log: Log, format: LogFormat) {
    let level = match (verbose, log) {
        (0, Log::Daemon) | (1, _) => "info,kube_client=off,kube_runtime=error",
        (0, Log::Command) => "warn,kube_client=off,kube_runtime=error",
        (0, Log::Quiet) => "error,kube_client=off,kube_runtime=off",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colour = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if format.is_json() {
        log.with_ansi(false).json().flatten_event(true).init();
    } else {
        log.with_ansi(colour).init();
    }
}

/// Writes data to standard output. A reader that has heard enough is no failure.
pub(crate) fn data(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.map_err(Failure::from),
    }
}

/// Writes objects as JSON: one object, or a List if there are several or `list` asks for one.
pub(crate) fn json(objects: &[Value], list: bool) -> Result<(), Failure> {
    let value = match objects {
        [one] if !list => one.clone(),
        all => json!({"apiVersion": "v1", "kind": "List", "items": all}),
    };
    let text = serde_json::to_string_pretty(&value).map_err(Failure::other)?;
    data(&(clean::json(&text) + "\n"))
}

/// Writes objects as YAML documents. JSON is YAML too: it takes the place of what would have to be shown raw.
pub(crate) fn yaml(objects: &[Value]) -> Result<(), Failure> {
    let text = to_yaml(objects).map_err(Failure::other)?;
    if !clean::is_harmful(&text) {
        return data(&text);
    }
    let mut text = String::new();
    for object in objects {
        let document = serde_json::to_string_pretty(object).map_err(Failure::other)?;
        text.push_str(&format!("---\n{}\n", clean::json(&document)));
    }
    data(&text)
}

/// Prints objects in a form that was asked for.
pub(crate) fn objects(format: Option<PeerFormat>, objects: &[Value]) -> Result<(), Failure> {
    match format {
        None => Ok(()),
        Some(PeerFormat::Yaml) => data(&to_yaml(objects).map_err(Failure::other)?),
        Some(PeerFormat::Json) => data(&to_json(objects).map_err(Failure::other)?),
        Some(PeerFormat::Name) => {
            let name = |object: &Value| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let group = text(&object["apiVersion"]);
                let group = group.split_once('/').map(|(group, _)| format!(".{group}")).unwrap_or_default();
                format!(
                    "{}{group}/{}\n",
                    text(&object["kind"]).to_lowercase(),
                    text(&object["metadata"]["name"])
                )
            };
            data(&objects.iter().map(name).collect::<String>())
        }
    }
}
