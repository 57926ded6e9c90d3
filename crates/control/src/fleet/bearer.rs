//! A bearer token that can be replaced while connections are open.

use http::header::{AUTHORIZATION, HeaderValue};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// The longest token that is sent, in bytes. Tokens of service accounts have about one thousand.
const LONGEST_TOKEN: usize = 16 << 10;

/// Why a token is not used. The token itself is never part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// There is nothing to send.
    #[error("the token is empty")]
    Empty,
    /// No API server makes such a token.
    #[error("the token has {0} bytes, and at most {LONGEST_TOKEN} are sent")]
    TooLong(usize),
    /// A header cannot hold it.
    #[error("the token has characters that no HTTP header can hold, such as a line break")]
    NotAHeader,
}

/// Whether a token can be sent in a header.
///
/// # Errors
/// Why not.
pub fn check_token(token: &str) -> Result<(), TokenError> {
    header(token).map(|_| ())
}

/// Puts a token on every request.
#[derive(Clone, Debug)]
pub struct Bearer(Arc<RwLock<HeaderValue>>);

impl Bearer {
    /// Begins with this token.
    pub(super) fn new(token: &str) -> Result<Self, TokenError> {
        Ok(Self(Arc::new(RwLock::new(header(token)?))))
    }

    /// The same client, with the token on its requests.
    #[must_use]
    pub fn put_on(&self, client: kube::Client) -> kube::Client {
        let namespace = client.default_namespace().to_owned();
        let send = tower::service_fn(move |request| {
            let client = client.clone();
            async move { client.send(request).await }
        });
        kube::Client::new(self.layer(send), namespace)
    }

    /// Goes on with this token.
    pub(super) fn set(&self, token: &str) -> Result<(), TokenError> {
        let value = header(token)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
        Ok(())
    }
}

fn header(token: &str) -> Result<HeaderValue, TokenError> {
    if token.trim().is_empty() {
        return Err(TokenError::Empty);
    }
    if token.len() > LONGEST_TOKEN {
        return Err(TokenError::TooLong(token.len()));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| TokenError::NotAHeader)?;
    value.set_sensitive(true);
    Ok(value)
}

impl<S> Layer<S> for Bearer {
    type Service = Authorised<S>;

    fn layer(&self, inner: S) -> Authorised<S> {
        Authorised { inner, bearer: self.clone() }
    }
}

/// A service whose requests carry the token.
#[derive(Clone, Debug)]
pub struct Authorised<S> {
    inner: S,
    bearer: Bearer,
}

impl<S, B> Service<http::Request<B>> for Authorised<S>
where
    S: Service<http::Request<B>>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: http::Request<B>) -> S::Future {
        let value = self.bearer.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        request.headers_mut().insert(AUTHORIZATION, value);
        self.inner.call(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_no_header_takes_is_refused_without_being_quoted() {
        let long = "x".repeat(LONGEST_TOKEN + 1);
        let refused = [("", TokenError::Empty), ("a\nb", TokenError::NotAHeader), (" ", TokenError::Empty)];
        for (token, error) in refused {
            assert_eq!(check_token(token), Err(error));
        }
        assert_eq!(check_token(&long), Err(TokenError::TooLong(long.len())));
        assert_eq!(check_token("eyJhbGciOiJSUzI1NiJ9.e30.c2ln"), Ok(()));
        assert!(!format!("{:?}", Bearer::new("SECRET").unwrap()).contains("SECRET"));
    }
}
