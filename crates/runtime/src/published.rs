//! A value that several tasks follow.
//!
//! The channel of tokio for this wakes its receivers in an order that it draws from the system's randomness. Here they are woken
//! in the order in which they began to wait, so that the same seed gives the same history.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A value that several tasks follow; clones are the same.
#[derive(Debug, Default)]
pub struct Published<T>(Arc<Shared<T>>);

#[derive(Debug, Default)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State<T> {
    value: T,
    /// How often it was changed.
    version: u64,
}

/// How far a task has followed a value. One that has not begun is told of the value that there is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Followed(Option<u64>);

impl<T> Clone for Published<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone + PartialEq> Published<T> {
    /// The value.
    #[must_use]
    pub fn get(&self) -> T {
        self.lock().value.clone()
    }

    /// Publishes another value; the same one is no news.
    pub fn set(&self, value: T) {
        let mut state = self.lock();
        if state.value == value {
            return;
        }
        state.value = value;
        state.version += 1;
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// Waits for a value that the task has not seen. Given up, it is as if nobody had waited.
    pub async fn next(&self, followed: &mut Followed) -> T {
        loop {
            // Before the look: a change that comes between is not missed.
            let changed = self.0.changed.notified();
            let (version, value) = {
                let state = self.lock();
                (state.version, state.value.clone())
            };
            if followed.0 != Some(version) {
                followed.0 = Some(version);
                return value;
            }
            changed.await;
        }
    }

    /// Waits until the value is this one.
    pub async fn until(&self, wanted: T) {
        let mut followed = Followed::default();
        while self.next(&mut followed).await != wanted {}
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_wait_are_woken_in_the_order_in_which_they_came() {
        // Random orders of twenty are the same once in a very long time.
        let (value, order) = (Published::<bool>::default(), Arc::new(Mutex::new(Vec::new())));
        let follow = |number: usize| {
            let (value, order) = (value.clone(), Arc::clone(&order));
            tokio::spawn(async move {
                value.until(true).await;
                order.lock().unwrap().push(number);
            })
        };
        let tasks: Vec<_> = (0..20).map(follow).collect();
        tokio::task::yield_now().await;
        value.set(true);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test(start_paused = true)]
    async fn each_value_is_told_once_and_the_last_one_is_not_missed() {
        let (value, mut followed) = (Published::<u8>::default(), Followed::default());
        assert_eq!(value.next(&mut followed).await, 0, "the first one is news");
        value.set(0);
        let none = tokio::time::timeout(std::time::Duration::from_secs(1), value.next(&mut followed)).await;
        assert!(none.is_err(), "the same one is not");
        value.set(1);
        value.set(2);
        assert_eq!((value.next(&mut followed).await, value.get()), (2, 2));
    }
}
