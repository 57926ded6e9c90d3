//! Sends the requests of a case, and says what was wrong with the answers.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::client::Body;
use portolan_sandbox::{ClusterConfig, NodeConfig, World, WorldConfig};
use serde_json::Value;

use super::case::{Call, Case};

/// What panicked since it was last looked at.
static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// How much of a watch is read, on virtual time.
const WATCHED: Duration = Duration::from_secs(2);
/// What the controllers get to see of it, on virtual time.
const AFTER: Duration = Duration::from_secs(90);

/// What became of a case.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What must not be.
    pub(crate) wrong: Vec<String>,
    /// How the requests were answered, in outline: what is new in these is worth keeping.
    pub(crate) seen: BTreeSet<String>,
}

/// Notes panics in whatever task they happen.
pub(crate) fn listen_for_panics() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.lock().unwrap_or_else(PoisonError::into_inner).push(info.to_string());
        before(info);
    }));
}

fn panics() -> Vec<String> {
    std::mem::take(&mut PANICS.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Sends a case to a fresh cluster, on virtual time.
pub(crate) fn check(case: &Case) -> Outcome {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let sent = std::panic::catch_unwind(|| runtime.block_on(send_all(case)));
    let mut outcome = sent.unwrap_or_default();
    outcome.wrong.extend(panics().into_iter().map(|told| format!("panic: {told}")));
    outcome
}

async fn send_all(case: &Case) -> Outcome {
    let world =
        World::new(WorldConfig { start: "2026-01-01T00:00:00Z".parse().unwrap(), ..WorldConfig::default() });
    let cluster = world.add_cluster(ClusterConfig::named("c1").nodes(2, NodeConfig::new("4", "16Gi")));
    let client = cluster.client("fuzz");
    let mut outcome = Outcome::default();
    for call in &case.calls {
        let Some(request) = call.request() else { continue };
        let response = match client.send(request.map(Body::from)).await {
            Ok(response) => response,
            Err(error) => {
                outcome.wrong.push(format!("no answer: {error}\n{call}"));
                continue;
            }
        };
        let code = response.status().as_u16();
        let mut body = response.into_body();
        let mut read = Vec::new();
        // A watch goes on; all else ends by itself.
        let _ = tokio::time::timeout(WATCHED, async {
            while let Some(Ok(frame)) = body.frame().await {
                read.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
            }
        })
        .await;
        if let Err(why) = proper(call, code, &read) {
            outcome.wrong.push(format!("{why}\n{call}  answered {code} {}", String::from_utf8_lossy(&read)));
        }
        outcome.seen.insert(outline(call, code, &read));
    }
    tokio::time::sleep(AFTER).await;
    outcome.wrong.extend(world.check().iter().map(|found| format!("the store shows {found:?}")));
    if let Err(why) = alive(&cluster.client("after")).await {
        outcome.wrong.push(why);
    }
    outcome
}

/// A refusal is a Status with the code of the answer; what is not there may be told in words. Nothing fails inside.
fn proper(call: &Call, code: u16, body: &[u8]) -> Result<(), String> {
    if !matches!(code, 200..=299 | 400..=499 | 500 | 504) {
        return Err(format!("{code} is no code of an API server"));
    }
    if code < 400 || call.method == b"HEAD" || code == 404 && body == b"404 page not found\n" {
        return Ok(());
    }
    let status: Value = serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))?;
    if status["kind"] != "Status" || status["code"] != u64::from(code) || status["status"] != "Failure" {
        return Err("no Status".to_owned());
    }
    if status["reason"] == "InternalError" {
        return Err("something failed inside".to_owned());
    }
    Ok(())
}

/// The cluster still does its work.
async fn alive(client: &kube::Client) -> Result<(), String> {
    let body = r#"{"metadata":{"name":"after-all"}}"#;
    let made = http::Request::post("/api/v1/namespaces").body(body.as_bytes().to_vec()).unwrap();
    // Somebody may have made it before.
    let _ = client.request::<Value>(made).await;
    let path = "/api/v1/namespaces/after-all/serviceaccounts/default";
    for _ in 0..100 {
        let asked = http::Request::get(path).body(Vec::new()).unwrap();
        if client.request::<Value>(asked).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Err("the controllers have stopped".to_owned())
}

/// An answer without names and numbers: two requests with the same outline tell the same.
fn outline(call: &Call, code: u16, body: &[u8]) -> String {
    let path = call.target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let path = String::from_utf8_lossy(path);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let kind: Vec<&str> = match parts.as_slice() {
        ["api", version, "namespaces", _, rest @ ..] => {
            [*version, "ns"].into_iter().chain(rest.iter().copied()).collect()
        }
        ["apis", group, version, "namespaces", _, rest @ ..] => {
            [*group, *version, "ns"].into_iter().chain(rest.iter().copied()).collect()
        }
        other => other.to_vec(),
    };
    let kind: Vec<&str> = kind
        .into_iter()
        .filter(|part| part.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'.'))
        .collect();
    let told = serde_json::from_slice::<Value>(body).unwrap_or_default();
    let message = told["message"].as_str().unwrap_or_default();
    let mut words = String::new();
    let mut quoted = false;
    for letter in message.chars().take(200) {
        quoted ^= letter == '"';
        if !quoted && !letter.is_ascii_digit() && letter != '"' {
            words.push(letter);
        }
    }
    format!("{} {} {code} {words}", String::from_utf8_lossy(&call.method), kind.join("/"))
}
