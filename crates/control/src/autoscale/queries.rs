//! Queries of autoscalers, which the Prometheus of the hub answers once for all clusters.

use super::hung::Hung;
use crate::fleet::ask_number;
use kube::Client;
use portolan_api::foreigncluster::PrometheusQuery;
use portolan_core::autoscale::Reading;
use portolan_runtime::Clock;

/// The hub among members: none of them has this name.
const HUB: &str = "";

/// What Prometheus answers to a query, unless it lately did not answer one.
pub(super) async fn answer(hung: &Hung, client: &Client, query: &PrometheusQuery, clock: &Clock) -> Reading {
    let asked = ask_number(client, query);
    match hung.ask(HUB, "the query to Prometheus", asked).await {
        Ok(value) => Reading::Value { value, at: clock.now() },
        Err(error) => Reading::Failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::hung::ANSWER_WITHIN;
    use super::*;
    use futures::future::{join_all, pending};
    use http::Response;
    use jiff::Timestamp;
    use kube::client::Body;
    use std::convert::Infallible;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn a_prometheus_that_hangs_costs_one_wait() {
        let silent = |_: http::Request<Body>| pending::<Result<Response<Body>, Infallible>>();
        let client = Client::new(tower::service_fn(silent), "default");
        let query = PrometheusQuery {
            namespace: "monitoring".into(),
            service: "prometheus".into(),
            port: 9090,
            query: "sum(rate(orders[1m]))".into(),
        };
        let (hung, clock, begun) =
            (Hung::default(), Clock::starting_at(Timestamp::UNIX_EPOCH), Instant::now());
        for _ in 0..3 {
            let all = (0..24).map(|_| answer(&hung, &client, &query, &clock));
            let answers = join_all(all).await;
            assert!(answers.iter().all(|each| matches!(each, Reading::Failed(_))), "{answers:?}");
        }
        assert_eq!(begun.elapsed(), ANSWER_WITHIN);
    }
}
