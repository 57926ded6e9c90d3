//! Answers of an API server that end: none is read that is longer than any honest one.

use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use portolan_runtime::BODY_LIMIT;
use portolan_runtime::metrics::CountedRequests;

/// The same client, which gives up an answer that is too long. A watch has no end, nor has the log of a container: whoever
/// asks for one reads it line by line.
#[must_use]
pub fn bounded_client(client: Client) -> Client {
    // These requests are not those of the controller: nobody reads how many there were.
    bounded(client, CountedRequests::default())
}

/// The same client with bounded answers, whose requests are counted.
pub(super) fn bounded(client: Client, requests: CountedRequests) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = tower::service_fn(move |request: Request<Body>| {
        let (client, counted) = (client.clone(), requests.begin(&request));
        async move {
            let limit = if is_stream(&request) { usize::MAX } else { BODY_LIMIT };
            let response: Result<Response<Body>, kube::Error> = client.send(request).await;
            counted.end(response.as_ref().ok().map(|response| response.status().as_u16()));
            let response = response?;
            Ok::<_, kube::Error>(response.map(|body| Limited::new(body, limit).map_err(told)))
        }
    });
    Client::new(send, namespace)
}

/// Whether the answer comes bit by bit, and nobody collects it.
fn is_stream(request: &Request<Body>) -> bool {
    let path = request.uri().path();
    let is_log = path.starts_with("/api/v1/namespaces/") && path.contains("/pods/") && path.ends_with("/log");
    let mut parts = request.uri().query().unwrap_or_default().split('&');
    is_log || parts.any(|part| matches!(part, "watch=true" | "watch=1"))
}

fn told(error: tower::BoxError) -> tower::BoxError {
    if error.is::<LengthLimitError>() {
        format!("the answer is longer than {} MiB", BODY_LIMIT >> 20).into()
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_and_logs_are_streams_and_nothing_else_is() {
        let asked = |path: &str| Request::get(path).body(Body::empty()).unwrap();
        for stream in [
            "/api/v1/pods?limit=1&watch=true",
            "/api/v1/namespaces/shop/pods/web-1/log?follow=true",
            "/api/v1/namespaces/shop/pods/web-1/log",
        ] {
            assert!(is_stream(&asked(stream)), "{stream}");
        }
        for whole in ["/version", "/api/v1/namespaces/shop/configmaps/log", "/api/v1/pods?watch=false"] {
            assert!(!is_stream(&asked(whole)), "{whole}");
        }
    }
}
