//! Requests to an API server that end in bounded time.

use crate::text::{FOREIGN_TEXT_LIMIT, bounded_text, foreign_text};
use std::time::Duration;

/// How long a request may take: longer than any healthy API server needs, shorter than a user waits.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// How an API server begins to say that an applied object has a field that the schema of the kind does not have, or an
/// entry of a list twice: an internal error (500) to it.
const NOT_OF_THE_SCHEMA: &str = "failed to create typed patch object";

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The API server refused, or could not be reached.
    #[error("cannot {what}: {}", told(source))]
    Refused {
        /// What was tried.
        what: String,
        /// Why not.
        #[source]
        source: Box<kube::Error>,
    },
    /// There was no answer. Whether the request took effect is not known.
    #[error("cannot {what}: no answer within {} s", limit.as_secs())]
    Silent {
        /// What was tried.
        what: String,
        /// How long an answer was waited for.
        limit: Duration,
    },
    /// It was not tried: the API server has too much to do already, or has not answered several times in a row.
    #[error("did not {what}: the API server has too much to do, or does not answer")]
    Busy {
        /// What was to be done.
        what: String,
    },
    /// It was not tried: this process may not be the leader any more.
    #[error("did not {what}: the term of {holder} (epoch {epoch}) has ended, somebody else may lead now")]
    NotLeading {
        /// What was to be done.
        what: String,
        /// The leader that was.
        holder: String,
        /// The number of its term.
        epoch: i64,
    },
}

/// What an API server says, without what only programs read: one short line, since a member may say anything.
pub(crate) fn told(error: &kube::Error) -> String {
    let said = match error {
        kube::Error::Api(status) => match (status.message.as_str(), status.reason.as_str()) {
            ("", "") => format!("HTTP status {}", status.code),
            ("", reason) => format!("{reason} ({})", status.code),
            (message, _) => format!("{} ({})", foreign_text(message), status.code),
        },
        other => other.to_string(),
    };
    bounded_text(&said, 2 * FOREIGN_TEXT_LIMIT)
}

impl CallError {
    /// The HTTP status of the refusal, if the API server gave one.
    #[must_use]
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Refused { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Silent { .. } | Self::Busy { .. } | Self::NotLeading { .. } => None,
        }
    }

    /// Whether somebody else wrote the object in the meantime, or it exists already.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether it was not tried, since the API server has too much to do.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Busy { .. })
    }

    /// Whether the object is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.code() == Some(404)
    }

    /// Whether the API server understood and will refuse the same request again.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.is_invalid() || matches!(self.code(), Some(403 | 405 | 415))
    }

    /// Whether the API server refuses the object itself, whoever sends it: it breaks a rule of its kind.
    #[must_use]
    pub fn is_invalid(&self) -> bool {
        let Self::Refused { source, .. } = self else { return false };
        let kube::Error::Api(status) = source.as_ref() else { return false };
        matches!(status.code, 400 | 422) || status.code == 500 && status.message.contains(NOT_OF_THE_SCHEMA)
    }
}

/// Makes a request, and gives up after [`REQUEST_LIMIT`].
///
/// # Errors
/// What was tried, and why it did not work.
pub async fn call<T>(
    what: impl Into<String>,
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(REQUEST_LIMIT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(CallError::Refused { what: what.into(), source: Box::new(source) }),
        Err(_) => Err(CallError::Silent { what: what.into(), limit: REQUEST_LIMIT }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain;
    use kube::core::Status;

    #[test]
    fn what_an_api_server_says_is_told_once_and_without_its_wrapping() {
        let status = Status::failure("pods is forbidden", "Forbidden").with_code(403).boxed();
        let source = Box::new(kube::Error::Api(status));
        let error = CallError::Refused { what: "list pods".to_owned(), source };
        assert_eq!(error.to_string(), "cannot list pods: pods is forbidden (403)");
        assert_eq!(chain(&error), error.to_string());
    }

    #[test]
    fn an_object_that_does_not_fit_the_schema_of_its_kind_is_refused_for_good_and_other_internal_errors_are_not()
     {
        let refused = |code, message: &str| {
            let status = Status::failure(message, "InternalError").with_code(code).boxed();
            let source = Box::new(kube::Error::Api(status));
            CallError::Refused { what: "apply Job shop/sum".to_owned(), source }
        };
        let untyped = refused(
            500,
            "failed to create typed patch object (shop/sum; batch/v1, Kind=Job): .spec.foo: field not declared in schema",
        );
        assert!(untyped.is_invalid() && untyped.is_final());
        for error in [
            refused(500, "etcdserver: request timed out"),
            refused(503, "try again"),
            refused(409, "conflict"),
        ] {
            assert!(!error.is_invalid() && !error.is_final(), "{error}");
        }
        let forbidden = refused(403, "jobs is forbidden");
        assert!(!forbidden.is_invalid() && forbidden.is_final());
    }

    #[test]
    fn what_an_api_server_says_is_one_short_harmless_line() {
        let message = format!("no\n\x1b]52;c;eA==\x07{}", "x".repeat(1 << 20));
        let status = Status::failure(&message, "Forbidden").with_code(403).boxed();
        let told = told(&kube::Error::Api(status));
        assert!(told.starts_with("no \\u{1b}]52;c;eA==\\u{7}xxx") && told.ends_with(" (403)"), "{told}");
        assert!(told.chars().count() < 600 && !told.chars().any(char::is_control));
    }
}
