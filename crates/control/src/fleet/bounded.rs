//! Answers of a member that end: none is read that is longer than any honest one.

use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::Client;
use kube::client::Body;
use portolan_runtime::BODY_LIMIT;
use portolan_runtime::metrics::CountedRequests;

/// The same client, which gives up an answer that is too long. A watch has no end, and is read line by line. Its requests are
/// counted.
pub(super) fn bounded(client: Client, requests: CountedRequests) -> Client {
    let namespace = client.default_namespace().to_owned();
    let send = tower::service_fn(move |request: Request<Body>| {
        let (client, counted) = (client.clone(), requests.begin(&request));
        async move {
            let limit = if is_watch(&request) { usize::MAX } else { BODY_LIMIT };
            let response: Result<Response<Body>, kube::Error> = client.send(request).await;
            counted.end(response.as_ref().ok().map(|response| response.status().as_u16()));
            let response = response?;
            Ok::<_, kube::Error>(response.map(|body| Limited::new(body, limit).map_err(told)))
        }
    });
    Client::new(send, namespace)
}

fn is_watch(request: &Request<Body>) -> bool {
    let mut parts = request.uri().query().unwrap_or_default().split('&');
    parts.any(|part| matches!(part, "watch=true" | "watch=1"))
}

fn told(error: tower::BoxError) -> tower::BoxError {
    if error.is::<LengthLimitError>() {
        format!("the answer is longer than {} MiB", BODY_LIMIT >> 20).into()
    } else {
        error
    }
}
