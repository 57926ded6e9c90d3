//! Connections that have not shown certificate and ticket yet.
//!
//! Whoever reaches the address can open them, so there are few. None is waited for: a new one takes the place of the oldest one
//! of whoever has the most.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::AbortHandle;

/// The places for such connections.
pub(super) struct Waiting {
    most: usize,
    share: usize,
    places: Mutex<Places>,
}

#[derive(Default)]
struct Places {
    /// How many there ever were.
    count: u64,
    all: BTreeMap<u64, Waiter>,
}

struct Waiter {
    from: IpAddr,
    /// Nothing until it has begun.
    task: Option<AbortHandle>,
}

/// The place of one connection, until this is dropped.
pub(super) struct Place {
    waiting: Arc<Waiting>,
    number: u64,
}

impl Waiting {
    /// So many places, and so many of them for each address.
    pub(super) fn new(most: usize, share: usize) -> Self {
        Self { most: most.max(1), share: share.max(1), places: Mutex::default() }
    }

    /// Takes a place for a connection from this address.
    pub(super) fn enter(self: &Arc<Self>, from: IpAddr) -> Place {
        let from = network(from);
        let mut places = self.lock();
        let own = places.all.values().filter(|waiter| waiter.from == from).count();
        let gives_way = if own >= self.share {
            places.oldest(from)
        } else if places.all.len() >= self.most {
            places.greatest().and_then(|greatest| places.oldest(greatest))
        } else {
            None
        };
        let gone = gives_way.and_then(|number| places.all.remove(&number));
        let number = places.count;
        places.count += 1;
        places.all.insert(number, Waiter { from, task: None });
        drop(places);
        if let Some(task) = gone.and_then(|waiter| waiter.task) {
            task.abort();
        }
        Place { waiting: Arc::clone(self), number }
    }

    /// Says which task the connection has. One that has given up its place is left alone.
    pub(super) fn begun(&self, number: u64, task: AbortHandle) {
        if let Some(waiter) = self.lock().all.get_mut(&number) {
            waiter.task = Some(task);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn oldest(&self, from: IpAddr) -> Option<u64> {
        self.all.iter().find(|(_, waiter)| waiter.from == from).map(|(number, _)| *number)
    }

    /// The address that has the most places; of several, the one with the oldest.
    fn greatest(&self) -> Option<IpAddr> {
        let mut counts = BTreeMap::<IpAddr, (usize, Reverse<u64>)>::new();
        for (number, waiter) in &self.all {
            counts.entry(waiter.from).or_insert((0, Reverse(*number))).0 += 1;
        }
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(from, _)| from)
    }
}

impl Place {
    pub(super) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.waiting.lock().all.remove(&self.number);
    }
}

/// Whoever has one address of IPv6 mostly has all with its first 64 bits.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use tokio::task::JoinHandle;

    fn enter(waiting: &Arc<Waiting>, from: &str) -> JoinHandle<()> {
        let place = waiting.enter(from.parse().unwrap());
        let number = place.number();
        let task = tokio::spawn(async move {
            let _place = place;
            pending::<()>().await;
        });
        waiting.begun(number, task.abort_handle());
        task
    }

    async fn is_ended(task: JoinHandle<()>) -> bool {
        task.await.is_err_and(|error| error.is_cancelled())
    }

    #[tokio::test]
    async fn the_oldest_of_whoever_has_the_most_gives_way() {
        let waiting = Arc::new(Waiting::new(4, 3));
        let [first, second, third, other] =
            ["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"].map(|from| enter(&waiting, from));
        let new = enter(&waiting, "10.0.0.3");
        assert!(is_ended(first).await);
        let newer = enter(&waiting, "10.0.0.4");
        assert!(is_ended(second).await);
        for task in [third, other, new, newer] {
            assert!(!task.is_finished());
            task.abort();
            is_ended(task).await;
        }
        assert!(waiting.lock().all.is_empty(), "what has ended takes no place");
    }

    #[tokio::test]
    async fn nobody_has_more_than_a_share() {
        for addresses in [["10.0.0.1", "::ffff:10.0.0.1"], ["2001:db8::1", "2001:db8::2"]] {
            let waiting = Arc::new(Waiting::new(100, 2));
            let other = enter(&waiting, "10.0.0.9");
            let tasks: Vec<_> = (0..10).map(|round: usize| enter(&waiting, addresses[round % 2])).collect();
            assert_eq!(waiting.lock().all.len(), 3);
            for (round, task) in tasks.into_iter().enumerate() {
                if round < 8 {
                    assert!(is_ended(task).await, "{round}");
                }
            }
            assert!(!other.is_finished());
        }
    }

    #[tokio::test]
    async fn one_that_has_shown_what_it_has_is_left_alone() {
        let waiting = Arc::new(Waiting::new(1, 1));
        let place = waiting.enter("10.0.0.1".parse().unwrap());
        let task = tokio::spawn(pending::<()>());
        waiting.begun(place.number(), task.abort_handle());
        drop(place);
        let _new = enter(&waiting, "10.0.0.1");
        tokio::task::yield_now().await;
        assert!(!task.is_finished());
    }
}
