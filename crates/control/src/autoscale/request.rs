//! Requests to the metrics APIs of a member.

use crate::fleet::escaped;
use jiff::Timestamp;
use kube::Client;
use portolan_core::capacity::milli;
use portolan_runtime::{CallError, call, chain, foreign_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// A group of APIs, as it tells which of its versions it would rather be asked in.
#[derive(Deserialize)]
struct Group {
    #[serde(rename = "preferredVersion")]
    preferred: Version,
}

#[derive(Deserialize)]
struct Version {
    #[serde(rename = "groupVersion")]
    group_version: String,
}

/// What is asked, as a path with its query.
pub(super) struct Path(String);

impl Path {
    pub(super) fn new(path: String) -> Self {
        Self(path)
    }

    /// With a parameter, unless it is empty.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            let mark = if self.0.contains('?') { '&' } else { '?' };
            self.0.push_str(&format!("{mark}{name}={}", escaped(value)));
        }
        self
    }
}

/// Asks for something; what is told instead is a text for people.
pub(super) async fn get<T: DeserializeOwned>(client: &Client, path: Path, what: &str) -> Result<T, String> {
    call(what.to_owned(), request(client, path)).await.map_err(|error| told(&error))
}

/// The path of the version in which a group would rather be asked.
pub(super) async fn served(client: &Client, group: &str) -> Result<String, String> {
    let path = Path::new(format!("/apis/{group}"));
    match call(format!("discover {group}"), request::<Group>(client, path)).await {
        Ok(found) => Ok(format!("/apis/{}", found.preferred.group_version)),
        Err(error) if error.is_not_found() => {
            Err(format!("the cluster does not serve {group}: install an adapter for it there"))
        }
        Err(error) => Err(told(&error)),
    }
}

async fn request<T: DeserializeOwned>(client: &Client, path: Path) -> Result<T, kube::Error> {
    let request = http::Request::get(path.0).body(Vec::new()).map_err(kube::Error::HttpError)?;
    client.request::<T>(request).await
}

/// An error with the member's own words in it.
pub(super) fn told(error: &CallError) -> String {
    foreign_text(&chain(error))
}

/// A list as Go writes it: one without entries may be null.
pub(super) fn listed<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// When something was measured. Go writes a time that nobody has set as null.
pub(super) fn measured_at(of: &str, timestamp: Option<Timestamp>) -> Result<Timestamp, String> {
    timestamp.ok_or_else(|| format!("{} has no timestamp", foreign_text(of)))
}

/// A quantity in thousandths. Nothing is used less than not at all: what is negative was measured wrongly.
pub(super) fn amount(text: &str) -> Result<u64, String> {
    let milli = milli(text).map_err(|error| foreign_text(&error.to_string()))?;
    u64::try_from(milli).map_err(|_| format!("a number is negative: {}", foreign_text(text)))
}

/// The numbers of the pods whose numbers can be read: the others count as not measured. If no pod is left, why.
pub(super) fn readable<T>(pods: impl Iterator<Item = Result<T, String>>) -> Result<Vec<T>, String> {
    let (mut found, mut problem) = (Vec::new(), None);
    for pod in pods {
        match pod {
            Ok(pod) => found.push(pod),
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    match problem {
        Some(error) if found.is_empty() => Err(error),
        Some(_) | None => Ok(found),
    }
}
