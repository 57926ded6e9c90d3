//! A bearer token that can be replaced while connections are open.

use http::header::{AUTHORIZATION, HeaderValue, InvalidHeaderValue};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// Puts a token on every request.
#[derive(Clone, Debug)]
pub(super) struct Bearer(Arc<RwLock<HeaderValue>>);

impl Bearer {
    /// Begins with this token.
    pub(super) fn new(token: &str) -> Result<Self, InvalidHeaderValue> {
        Ok(Self(Arc::new(RwLock::new(header(token)?))))
    }

    /// Goes on with this token.
    pub(super) fn set(&self, token: &str) -> Result<(), InvalidHeaderValue> {
        let value = header(token)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
        Ok(())
    }
}

fn header(token: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))?;
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
pub(super) struct Authorised<S> {
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
