//! Traffic as a Prometheus in the member knows it.
//!
//! It is asked through the member's API server, by the proxy of its Service: the hub needs the right to that one proxy, and
//! never `nodes/proxy`. The query answers one series for each application, with the labels `namespace` and `workload`.

use super::MemberEvent;
use super::query::escaped;
use super::traffic::{Traffic, TrafficReport};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use portolan_api::foreigncluster::PrometheusQuery;
use portolan_core::capacity::milli;
use portolan_runtime::{CallError, Change, Clock, Key, call, chain, foreign_text};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often Prometheus is asked.
const ASK_EVERY: Duration = Duration::from_secs(15);

/// Prometheus gives up the query of a number sooner than who asks for it: a slow query is not taken for a Prometheus that
/// hangs.
const NUMBER_WITHIN: &str = "&timeout=4s";

/// Asks for ever, and tells where traffic has changed. What cannot be asked grows old and then counts as not told.
pub(super) async fn ask(
    client: Client,
    query: PrometheusQuery,
    traffic: Traffic,
    on_event: impl Fn(MemberEvent),
    clock: Clock,
) {
    loop {
        match ask_once(&client, &query, clock.now()).await {
            Ok(told) => {
                let news = traffic.take(Change::Listed(told));
                news.into_iter().for_each(|namespace| on_event(MemberEvent::Traffic(namespace)));
            }
            Err(error) => {
                let error = told(&error);
                tracing::warn!(error, now = %clock.now(), "Prometheus does not tell the traffic of a member");
            }
        }
        tokio::time::sleep(ASK_EVERY).await;
    }
}

/// Why Prometheus did not tell.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error("the Prometheus that is named makes no address: {0}")]
    Address(#[source] http::Error),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error("Prometheus answers {said:?}; {field} must give an instant vector")]
    NotAVector { said: String, field: &'static str },
    #[error("Prometheus answers no number")]
    NoNumber,
    #[error("Prometheus answers {said:?} for a series of external.query: each must be a number from 0 on")]
    NotANumber { said: String },
}

#[derive(Deserialize)]
struct Answer {
    status: String,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    result_type: String,
    #[serde(default)]
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    metric: BTreeMap<String, String>,
    /// The time in seconds, and the number as a text.
    value: Option<(f64, String)>,
}

/// The member's own words are in it.
fn told(error: &AskError) -> String {
    foreign_text(&chain(error))
}

async fn ask_once(
    client: &Client,
    query: &PrometheusQuery,
    now: Timestamp,
) -> Result<BTreeMap<Key, TrafficReport>, AskError> {
    let series = vector(client, query, "", "spec.traffic.prometheus.query").await?;
    Ok(series.into_iter().filter_map(|series| read(&series, now)).collect())
}

/// The sum of all series that a query gives, in thousandths; otherwise what is told instead.
///
/// # Errors
/// A text for people.
pub(crate) async fn ask_number(client: &Client, query: &PrometheusQuery) -> Result<u64, String> {
    let series =
        vector(client, query, NUMBER_WITHIN, "external.query").await.map_err(|error| told(&error))?;
    let mut sum: Option<u64> = None;
    for each in &series {
        let said = each.value.as_ref().map(|(_, text)| text.as_str()).unwrap_or_default();
        // The sum of the others is not the sum: it would be less than the load.
        let number = decimal(said).ok_or_else(|| told(&AskError::NotANumber { said: said.to_owned() }))?;
        sum = Some(sum.unwrap_or(0).saturating_add(number));
    }
    sum.ok_or_else(|| told(&AskError::NoNumber))
}

/// What a query gives; `field` is where users find it.
async fn vector(
    client: &Client,
    query: &PrometheusQuery,
    parameters: &str,
    field: &'static str,
) -> Result<Vec<Series>, AskError> {
    let request =
        http::Request::get(address(query) + parameters).body(Vec::new()).map_err(AskError::Address)?;
    let what = format!("ask Prometheus {}/{}", query.namespace, query.service);
    let answer: Answer = call(what, client.request(request)).await?;
    match answer.data {
        Some(data) if answer.status == "success" && data.result_type == "vector" => Ok(data.result),
        data => {
            let kind = data.map(|data| data.result_type).unwrap_or_default();
            Err(AskError::NotAVector { said: answer.error.unwrap_or(kind), field })
        }
    }
}

/// A series without the two labels, or without a number, says nothing about an application.
fn read(series: &Series, now: Timestamp) -> Option<(Key, TrafficReport)> {
    let key = Key::new(series.metric.get("namespace")?, series.metric.get("workload")?);
    let requests = decimal(&series.value.as_ref()?.1)?;
    Some((key.clone(), TrafficReport::by_query(key.name, requests, now)))
}

/// Prometheus writes numbers as Go does, with as many digits as they have; thousandths are enough.
fn decimal(text: &str) -> Option<u64> {
    let short = match text.split_once('.') {
        Some((whole, rest)) if !rest.contains(['e', 'E']) => {
            format!("{whole}.{}", rest.chars().take(3).collect::<String>())
        }
        _ => text.to_owned(),
    };
    u64::try_from(milli(&short).ok()?).ok()
}

fn address(query: &PrometheusQuery) -> String {
    let asked = escaped(&query.query);
    format!(
        "/api/v1/namespaces/{}/services/{}:{}/proxy/api/v1/query?query={asked}",
        query.namespace, query.service, query.port
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::client::Body;
    use serde_json::json;
    use std::sync::{Arc, Mutex};

    fn query() -> PrometheusQuery {
        PrometheusQuery {
            namespace: "monitoring".into(),
            service: "prometheus".into(),
            port: 9090,
            query: "sum by (namespace, workload) (rate(r[1m]))".into(),
        }
    }

    /// A cluster that answers every request so; and what was asked of it.
    fn answering(answer: serde_json::Value) -> (Client, Arc<Mutex<Vec<String>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            log.lock().unwrap().push(request.uri().to_string());
            let body = Body::from(answer.to_string().into_bytes());
            let mut response = http::Response::new(body);
            if answer["code"] == 403 {
                *response.status_mut() = http::StatusCode::FORBIDDEN;
            }
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        (Client::new(service, "default"), asked)
    }

    #[tokio::test]
    async fn applications_are_read_by_namespace_and_workload() {
        let series = |workload: &str, number: &str| json!({"metric": {"namespace": "shop", "workload": workload}, "value": [1.5, number]});
        let result =
            json!([series("web", "12.345678"), series("odd", "NaN"), {"metric": {}, "value": [1, "3"]}]);
        let (client, asked) =
            answering(json!({"status": "success", "data": {"resultType": "vector", "result": result}}));
        let told = ask_once(&client, &query(), Timestamp::UNIX_EPOCH).await.unwrap();
        let traffic = Traffic::default();
        traffic.take(Change::Listed(told));
        let of =
            |workload: &str| traffic.of(&Key::new("shop", workload), &BTreeMap::new(), Timestamp::UNIX_EPOCH);
        assert_eq!((of("web"), of("odd"), of("other")), (Some(12_345), None, None));
        let asked = asked.lock().unwrap()[0].clone();
        let path =
            "/api/v1/namespaces/monitoring/services/prometheus:9090/proxy/api/v1/query?query=sum%20by%20%28";
        assert!(asked.contains(path), "{asked}");
    }

    #[tokio::test]
    async fn the_series_of_a_number_are_added_and_none_is_no_zero() {
        let series = |number: &str| json!({"metric": {}, "value": [1.5, number]});
        const NOT_A_NUMBER: &str =
            "Prometheus answers \"NaN\" for a series of external.query: each must be a number from 0 on";
        for (result, expected) in [
            (json!([series("1.5"), series("2")]), Ok(3_500)),
            (json!([]), Err("Prometheus answers no number")),
            (json!([series("NaN"), series("5")]), Err(NOT_A_NUMBER)),
        ] {
            let (client, _) =
                answering(json!({"status": "success", "data": {"resultType": "vector", "result": result}}));
            assert_eq!(ask_number(&client, &query()).await, expected.map_err(str::to_owned));
        }
        for absurd in ["+Inf", "-Inf", "-3", ""] {
            let result = json!([series(absurd), series("5")]);
            let (client, _) =
                answering(json!({"status": "success", "data": {"resultType": "vector", "result": result}}));
            assert!(ask_number(&client, &query()).await.is_err(), "{absurd:?}");
        }
    }

    #[tokio::test]
    async fn what_is_no_vector_is_refused_with_what_would_help() {
        let (client, _) = answering(json!({"status": "error", "error": "parse error"}));
        let error = ask_once(&client, &query(), Timestamp::UNIX_EPOCH).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "Prometheus answers \"parse error\"; spec.traffic.prometheus.query must give an instant vector"
        );
    }

    #[tokio::test]
    async fn what_a_member_says_instead_is_told_in_short_and_on_one_line() {
        let long = format!("no \u{1b}]52;c;x\u{7}\nforged line\n{}", "N".repeat(1 << 20));
        let refusal = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "reason": "Forbidden",
            "code": 403, "message": long,
        });
        for answer in [json!({"status": "error", "error": long}), refusal] {
            let (client, _) = answering(answer);
            let error = told(&ask_once(&client, &query(), Timestamp::UNIX_EPOCH).await.unwrap_err());
            assert!(!error.contains(char::is_control) && error.len() < 2048, "{} bytes", error.len());
        }
    }
}
