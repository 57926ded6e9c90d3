//! The only source of randomness below the binary.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use sha2::{Digest, Sha256};

/// A seed from which named, independent streams of randomness are drawn.
///
/// Streams are named, not counted, so that adding a consumer does not change what the others draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seed([u8; 32]);

impl Seed {
    /// The seed a user names by a number.
    #[must_use]
    pub fn new(number: u64) -> Self {
        Self(Sha256::digest(number.to_le_bytes()).into())
    }

    /// The seed of the part called `label`.
    #[must_use]
    pub fn child(&self, label: &str) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(label.as_bytes()).finalize().into())
    }

    /// A generator that draws from this seed, always the same numbers.
    #[must_use]
    pub fn rng(&self) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_chacha::rand_core::Rng;

    #[test]
    fn same_name_same_stream_other_name_other_stream() {
        let seed = Seed::new(7);
        let draw = |seed: Seed| seed.rng().next_u64();
        assert_eq!(draw(seed.child("queue")), draw(Seed::new(7).child("queue")));
        assert_ne!(draw(seed.child("queue")), draw(seed.child("leases")));
        assert_ne!(draw(seed.child("queue")), draw(Seed::new(8).child("queue")));
    }
}
