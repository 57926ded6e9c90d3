//! Requests to API servers, counted on their way.

use super::Histogram;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use kube::client::Body;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tower::{Layer, Service};

/// The status codes that are told apart; others are told by their first digit, since a member may answer anything.
const CODES: [u16; 19] =
    [200, 201, 202, 204, 400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 429, 500, 502, 503, 504];

/// Requests to all clusters, each for as long as somebody has a client of it; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct RequestCounts(Arc<Mutex<BTreeMap<String, Weak<State>>>>);

/// Requests to one cluster; clones are the same.
#[derive(Clone, Debug, Default)]
pub struct CountedRequests(Arc<State>);

type State = Mutex<BTreeMap<&'static str, RequestCount>>;

/// Requests of one kind to one cluster.
#[derive(Clone, Debug, Default)]
pub struct RequestCount {
    /// How many had which answer.
    pub codes: BTreeMap<&'static str, u64>,
    /// How long it took until an answer began; those that open a watch have none.
    pub latency: Histogram,
}

impl RequestCounts {
    /// Where requests to a cluster are counted.
    #[must_use]
    pub fn of(&self, cluster: &str) -> CountedRequests {
        let mut all = self.lock();
        all.retain(|_, each| each.strong_count() > 0);
        if let Some(counted) = all.get(cluster).and_then(Weak::upgrade) {
            return CountedRequests(counted);
        }
        let counted = CountedRequests::default();
        all.insert(cluster.to_owned(), Arc::downgrade(&counted.0));
        counted
    }

    /// What was counted, by cluster and verb.
    #[must_use]
    pub fn all(&self) -> BTreeMap<String, BTreeMap<&'static str, RequestCount>> {
        let live: Vec<_> = self
            .lock()
            .iter()
            .filter_map(|(cluster, each)| Some((cluster.clone(), each.upgrade()?)))
            .collect();
        live.into_iter().map(|(cluster, each)| (cluster, CountedRequests(each).lock().clone())).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<State>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CountedRequests {
    /// Counts a request that begins now.
    #[must_use]
    pub fn begin<B>(&self, request: &Request<B>) -> RequestUnderWay {
        RequestUnderWay { requests: self.clone(), verb: verb(request), asked: Instant::now(), ended: false }
    }

    /// Counts a request that has had an answer, or none.
    fn count(&self, verb: &'static str, code: Option<u16>, took: Duration) {
        let mut state = self.lock();
        let count = state.entry(verb).or_default();
        *count.codes.entry(told(code)).or_insert(0) += 1;
        if verb != WATCH {
            count.latency.observe(took);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, RequestCount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const WATCH: &str = "WATCH";

/// What a request is called in numbers.
fn verb<B>(request: &Request<B>) -> &'static str {
    let mut parts = request.uri().query().unwrap_or_default().split('&');
    match *request.method() {
        Method::GET if parts.any(|part| matches!(part, "watch=true" | "watch=1")) => WATCH,
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "OTHER",
    }
}

fn told(code: Option<u16>) -> &'static str {
    const NAMES: [&str; CODES.len()] = [
        "200", "201", "202", "204", "400", "401", "403", "404", "405", "409", "410", "413", "415", "422",
        "429", "500", "502", "503", "504",
    ];
    let Some(code) = code else { return "none" };
    let known = CODES.iter().position(|each| *each == code).and_then(|at| NAMES.get(at));
    known.copied().unwrap_or(match code / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        5 => "5xx",
        _ => "other",
    })
}

impl<S> Layer<S> for CountedRequests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, requests: self.clone() }
    }
}

/// Sends requests on, and counts them.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    requests: CountedRequests,
}

impl<S, B> Service<Request<Body>> for Counted<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<S::Response, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let counted = self.requests.begin(&request);
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            counted.end(answer.as_ref().ok().map(|response| response.status().as_u16()));
            answer
        })
    }
}

/// A request that has no answer yet. Whoever sent it may give it up: then it has none.
#[derive(Debug)]
pub struct RequestUnderWay {
    requests: CountedRequests,
    verb: &'static str,
    asked: Instant,
    ended: bool,
}

impl RequestUnderWay {
    /// It has ended: with the status of its answer, if it has one.
    pub fn end(mut self, code: Option<u16>) {
        self.ended = true;
        self.requests.count(self.verb, code, self.asked.elapsed());
    }
}

impl Drop for RequestUnderWay {
    fn drop(&mut self) {
        if !self.ended {
            self.requests.count(self.verb, None, self.asked.elapsed());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::Client;
    use kube::client::ClientBuilder;
    use std::convert::Infallible;

    #[tokio::test(start_paused = true)]
    async fn requests_are_told_by_verb_and_answer_and_those_given_up_have_none() {
        let counts = RequestCounts::default();
        let service = tower::service_fn(|request: Request<Body>| async move {
            if request.uri().path() == "/hangs" {
                std::future::pending::<()>().await;
            }
            let code = if request.uri().path() == "/odd" { 418 } else { 200 };
            Ok::<_, Infallible>(Response::builder().status(code).body(Body::empty()).unwrap())
        });
        let client: Client = ClientBuilder::new(service, "d").with_layer(&counts.of("paris")).build();
        let send = |uri: &str| client.send(Request::get(uri).body(Body::empty()).unwrap());
        send("/a").await.unwrap();
        send("/odd").await.unwrap();
        send("/a?x=1&watch=true").await.unwrap();
        assert!(tokio::time::timeout(Duration::from_secs(1), send("/hangs")).await.is_err());
        tokio::task::yield_now().await;
        let all = counts.all();
        let of = |verb| all["paris"][verb].codes.clone().into_iter().collect::<Vec<_>>();
        assert_eq!(of("GET"), [("200", 1), ("4xx", 1), ("none", 1)]);
        assert_eq!(of("WATCH"), [("200", 1)]);
        assert_eq!(all["paris"]["GET"].latency.count(), 3);
        drop(client);
        tokio::task::yield_now().await;
        assert!(counts.all().is_empty(), "nobody has a client any more");
    }

    #[test]
    fn whatever_a_member_answers_makes_few_series() {
        let told: std::collections::BTreeSet<_> = (0..=u16::MAX).map(|code| told(Some(code))).collect();
        assert_eq!(told.len(), CODES.len() + 6);
    }
}
