//! Bodies of answers that end: read in bounded size and time.

use bytes::BytesMut;
use http::Response;
use http_body_util::BodyExt;
use kube::client::Body;
use std::time::Duration;
use tokio::time::Instant;

/// The longest answer that is read, unless it is a watch.
pub const BODY_LIMIT: usize = 64 << 20;

/// The longest event of a watch: several times what an API server stores in one object.
pub const LINE_LIMIT: usize = 8 << 20;

/// The longest text of a refusal that is read.
const REFUSAL_LIMIT: usize = 64 << 10;

/// Why an answer cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the answer breaks off: {0}")]
    Broken(String),
    #[error("the answer is longer than {} MiB", .0 >> 20)]
    TooLong(usize),
    #[error("nothing more of the answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the answer is not UTF-8 text")]
    NotText,
}

/// The whole text of an answer.
pub(crate) async fn text(response: Response<Body>, idle: Duration) -> Result<String, BodyError> {
    bounded(response, BODY_LIMIT, idle).await
}

/// The beginning of a refusal's text.
pub(crate) async fn refusal(response: Response<Body>, idle: Duration) -> String {
    match bounded(response, REFUSAL_LIMIT, idle).await {
        Ok(text) => text,
        Err(error) => error.to_string(),
    }
}

async fn bounded(response: Response<Body>, limit: usize, idle: Duration) -> Result<String, BodyError> {
    let mut chunks = Chunks(response.into_body());
    let mut all = Vec::new();
    while let Some(chunk) = chunks.next(Instant::now() + idle, idle).await? {
        if all.len() + chunk.len() > limit {
            return Err(BodyError::TooLong(limit));
        }
        all.extend_from_slice(&chunk);
    }
    String::from_utf8(all).map_err(|_| BodyError::NotText)
}

struct Chunks(Body);

impl Chunks {
    async fn next(&mut self, until: Instant, idle: Duration) -> Result<Option<bytes::Bytes>, BodyError> {
        loop {
            match tokio::time::timeout_at(until, self.0.frame()).await {
                Err(_) => return Err(BodyError::Silent(idle)),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(BodyError::Broken(error.to_string())),
                // Trailers say nothing here.
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// The lines of a watch.
pub(crate) struct Lines {
    chunks: Chunks,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
}

impl Lines {
    pub(crate) fn of(response: Response<Body>) -> Self {
        Self { chunks: Chunks(response.into_body()), buffer: BytesMut::new(), searched: 0 }
    }

    /// The next line that is not blank, within this time; nothing at the end. A last line that was cut off is left out.
    pub(crate) async fn next(&mut self, idle: Duration) -> Result<Option<String>, BodyError> {
        let until = Instant::now() + idle;
        let mut blank = 0;
        loop {
            // What is there already never waits by itself, and others have work too.
            tokio::task::consume_budget().await;
            if self.searched == 0 {
                let skipped = self.buffer.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                blank += self.buffer.split_to(skipped).len();
            }
            let rest = self.buffer.get(self.searched..).unwrap_or_default();
            if let Some(found) = rest.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(self.searched + found + 1);
                self.searched = 0;
                return String::from_utf8(line.to_vec()).map(Some).map_err(|_| BodyError::NotText);
            }
            self.searched = self.buffer.len();
            if self.searched.max(blank) > LINE_LIMIT {
                return Err(BodyError::TooLong(LINE_LIMIT));
            }
            match self.chunks.next(until, idle).await? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: Vec<u8>) -> Lines {
        Lines::of(Response::new(Body::from(text)))
    }

    #[tokio::test(start_paused = true)]
    async fn very_many_lines_cost_no_more_than_their_length() {
        let mut text = vec![b'\n'; 4_000_000];
        text.extend_from_slice(b"{\"a\": 1}\n \n\r\n{}\nhalf");
        let mut lines = lines(text);
        let idle = Duration::from_secs(1);
        assert_eq!(lines.next(idle).await.unwrap().as_deref(), Some("{\"a\": 1}\n"));
        assert_eq!(lines.next(idle).await.unwrap().as_deref(), Some("{}\n"));
        assert_eq!(lines.next(idle).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn blank_lines_without_end_are_given_up() {
        let mut lines = lines(vec![b'\n'; LINE_LIMIT + 1]);
        assert!(matches!(lines.next(Duration::from_secs(1)).await, Err(BodyError::TooLong(LINE_LIMIT))));
    }
}
