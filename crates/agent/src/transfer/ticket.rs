//! The right to send one session.

use portolan_node::Name;
use std::fmt;
use std::hint::black_box;

/// Random bytes that entitle to one session: whoever orders the migration draws them, once for every session, and tells both
/// agents. A receiver takes them as long as it admits the session.
#[derive(Clone)]
pub struct Ticket([u8; 32]);

impl Ticket {
    /// From random bytes.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Compares in a time that does not depend on how much is the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        let differing =
            self.0.iter().zip(&other.0).fold(0_u8, |all, (one, other)| black_box(all | (one ^ other)));
        black_box(differing) == 0
    }

    pub(super) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticket(..)")
    }
}

/// What a session is called.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    /// The migration that it belongs to.
    pub migration: Name,
    /// Which session of the migration.
    pub session: Name,
}

impl fmt::Display for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "session {} of migration {}", self.session, self.migration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_the_same_only_in_every_byte() {
        let ticket = Ticket::new([7; 32]);
        assert!(ticket.is(&Ticket::new([7; 32])));
        for byte in 0..32 {
            let mut other = [7; 32];
            other[byte] ^= 0x80;
            assert!(!ticket.is(&Ticket::new(other)));
        }
        assert_eq!(format!("{ticket:?}"), "Ticket(..)");
    }
}
