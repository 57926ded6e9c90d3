//! A member that answers whatever it likes: rules that stand between a cluster and those who ask it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::Value;

use super::requests::RequestFilter;

/// How long a hostile cluster takes for an answer, and for each piece of one without end: so that others get on.
pub(super) const PACE: Duration = Duration::from_millis(1);

/// Changes one object of an answer.
pub type ObjectEdit = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// What a hostile cluster answers.
#[derive(Clone)]
pub enum HostileAnswer {
    /// This, and nothing happens.
    Reply {
        /// The HTTP status.
        status: u16,
        /// Headers, such as `Location`.
        headers: Vec<(String, String)>,
        /// Any bytes.
        body: Bytes,
    },
    /// A beginning and then the same text again and again, until so many bytes were sent; then nothing, for ever.
    Endless {
        /// What comes first.
        head: String,
        /// What is repeated.
        chunk: String,
        /// How many bytes are sent at most.
        limit: usize,
    },
    /// These lines, and then the connection stays open.
    Lines(Vec<String>),
    /// Nothing, for ever, and nothing happens.
    Hang,
    /// What the honest cluster answers, so much later.
    Late(Duration),
    /// What the honest cluster answers, with each object of it (of a list, of a watch, or the one) changed.
    Edit(ObjectEdit),
}

impl fmt::Debug for HostileAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reply { .. } => "Reply",
            Self::Endless { .. } => "Endless",
            Self::Lines(_) => "Lines",
            Self::Hang => "Hang",
            Self::Late(_) => "Late",
            Self::Edit(_) => "Edit",
        })
    }
}

impl HostileAnswer {
    /// A body of that status.
    #[must_use]
    pub fn body(status: u16, body: impl Into<Bytes>) -> Self {
        Self::Reply { status, headers: Vec::new(), body: body.into() }
    }

    /// A refusal of that status, with this text as its message.
    #[must_use]
    pub fn refusal(status: u16, message: &str) -> Self {
        let told = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "reason": "Forbidden", "code": status, "message": message,
        });
        Self::body(status, told.to_string())
    }

    /// The way to another address.
    #[must_use]
    pub fn redirect(location: &str) -> Self {
        let headers = vec![("location".to_owned(), location.to_owned())];
        Self::Reply { status: 307, headers, body: Bytes::new() }
    }

    /// Changes each object of the honest answer.
    pub fn edit(change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::Edit(Arc::new(change))
    }
}

/// What is answered to the requests that a filter matches.
#[derive(Clone, Debug)]
pub struct HostileRule {
    pub(super) requests: RequestFilter,
    pub(super) answer: HostileAnswer,
}

impl HostileRule {
    /// Answers these requests so.
    #[must_use]
    pub fn new(requests: RequestFilter, answer: HostileAnswer) -> Self {
        Self { requests, answer }
    }
}

pub(super) type Chunks = BoxStream<'static, io::Result<Bytes>>;

/// A body without end, at a pace at which others can still do something.
pub(super) fn endless(head: String, chunk: String, limit: usize) -> Chunks {
    let chunk = Bytes::from(chunk);
    let times = limit.checked_div(chunk.len()).unwrap_or(0);
    let rest = stream::repeat(chunk).take(times).then(|chunk| async {
        tokio::time::sleep(PACE).await;
        Ok(chunk)
    });
    stream::iter([Ok(Bytes::from(head))]).chain(rest).chain(stream::pending()).boxed()
}

/// Lines of a watch that stays open.
pub(super) fn lines(lines: Vec<String>) -> Chunks {
    let lines = lines.into_iter().map(|line| Ok(Bytes::from(format!("{line}\n"))));
    stream::iter(lines).chain(stream::pending()).boxed()
}

/// Changes each object of an answer; what is not JSON stays as it is.
pub(super) fn edit_answer(body: &Bytes, edit: &ObjectEdit) -> Bytes {
    let Ok(mut value) = serde_json::from_slice::<Value>(body) else { return body.clone() };
    match value.get_mut("items").and_then(Value::as_array_mut) {
        Some(items) => items.iter_mut().for_each(|item| edit(item)),
        None => edit(&mut value),
    }
    value.to_string().into()
}

/// Changes the object of each event of a watch.
pub(super) fn edit_events(chunk: &Bytes, edit: &ObjectEdit) -> Bytes {
    let mut out = Vec::with_capacity(chunk.len());
    for line in chunk.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<Value>(line) {
            Ok(mut event) => {
                if event["type"] != "BOOKMARK" {
                    edit(&mut event["object"]);
                }
                out.extend(event.to_string().into_bytes());
            }
            Err(_) => out.extend(line),
        }
        out.push(b'\n');
    }
    out.into()
}
