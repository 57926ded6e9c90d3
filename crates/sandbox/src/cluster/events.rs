//! Events, as the controllers of a cluster write them.

use serde_json::{Value, json};

use super::text;
use crate::api::{Api, Writer};
use crate::error::ApiError;
use crate::store::{ObjectKey, at};

/// What happened to an object.
pub(super) struct Happening<'a> {
    pub(super) about: &'a Value,
    pub(super) warning: bool,
    pub(super) reason: &'a str,
    pub(super) message: &'a str,
    pub(super) component: &'a str,
}

/// Records an event; one that repeats is counted.
pub(super) fn record(api: &mut Api, happening: &Happening<'_>) -> Result<(), ApiError> {
    let Happening { about, warning, reason, message, component } = happening;
    let row = api.row("", "events")?;
    let namespace = match text(about, "/metadata/namespace") {
        "" => "default",
        namespace => namespace,
    };
    // One event a subject, reason and message: its name is made of them.
    let digest = fnv(&[text(about, "/metadata/uid"), reason, message]);
    let name = format!("{}.{digest:016x}", text(about, "/metadata/name"));
    let key = ObjectKey::new(namespace, &name);
    let time = api.time();
    if api.store.get(&row.table, &key).is_some() {
        api.modify(&row, &key, crate::verbs::Part::Main, component, |event| {
            let count = event["count"].as_i64().unwrap_or(1);
            event["count"] = json!(count + 1);
            event["lastTimestamp"] = time;
        })?;
        return Ok(());
    }
    let event = json!({
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": about.get("apiVersion"),
            "kind": about.get("kind"),
            "name": text(about, "/metadata/name"),
            "namespace": at(about, "/metadata/namespace"),
            "uid": text(about, "/metadata/uid"),
            "resourceVersion": text(about, "/metadata/resourceVersion"),
        },
        "reason": reason,
        "message": message,
        "type": if *warning { "Warning" } else { "Normal" },
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": "",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "eventTime": null,
        "count": 1,
    });
    match api.create(&row, namespace, event, &Writer::named(component)) {
        Ok(_) => Ok(()),
        // A namespace that goes away takes no more events.
        Err(error) if error.code == 403 || error.code == 404 => Ok(()),
        Err(error) => Err(error),
    }
}

/// A 64-bit FNV-1a hash, the same on every machine.
pub(super) fn fnv(parts: &[&str]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.bytes().chain(std::iter::once(0)));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
