//! Waiting for a condition with a deadline, and saying what was seen last when it never came.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// What one look at a condition found.
pub enum Seen<T> {
    /// The condition holds.
    Ready(T),
    /// Not yet; the text says what was seen instead.
    NotYet(String),
}

/// Looks every `pause` until the condition holds, for at most `limit`.
///
/// `what` names the condition in the error ("node c1-n1 is Ready"). An error of `look` ends the waiting at once: what
/// may pass by itself is a [`Seen::NotYet`].
pub async fn until<T>(
    what: &str,
    limit: Duration,
    pause: Duration,
    mut look: impl AsyncFnMut() -> Result<Seen<T>>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        let last = match look().await? {
            Seen::Ready(value) => return Ok(value),
            Seen::NotYet(last) => last,
        };
        if start.elapsed() >= limit {
            bail!("waited {:.1} s in vain until {what}; seen last: {last}", limit.as_secs_f64());
        }
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn says_what_was_seen_last() {
        let mut looks = 0;
        let error =
            until("it counts to a million", Duration::from_millis(5), Duration::from_millis(1), async || {
                looks += 1;
                Ok(Seen::<()>::NotYet(format!("{looks} looks")))
            })
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("it counts to a million") && error.contains(&format!("{looks} looks")),
            "{error}"
        );
    }

    #[tokio::test]
    async fn returns_the_value() {
        let mut left = 3;
        let value = until("it is over", Duration::from_secs(60), Duration::ZERO, async || {
            left -= 1;
            Ok(if left == 0 { Seen::Ready("done") } else { Seen::NotYet(left.to_string()) })
        })
        .await
        .unwrap();
        assert_eq!(value, "done");
    }
}
