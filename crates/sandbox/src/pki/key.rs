//! Keys from the seed.

use std::sync::{Arc, LazyLock};

use portolan_runtime::Seed;
use rand::Rng;
use rcgen::KeyPair;
use rustls::crypto::CryptoProvider;

/// What precedes the 32 bytes of an Ed25519 key in PKCS #8.
const ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::ring::default_provider()));

/// The cryptography that all servers use.
pub(crate) fn crypto() -> Arc<CryptoProvider> {
    PROVIDER.clone()
}

/// The key that a seed stands for.
pub(crate) fn key_pair(seed: &Seed) -> Result<KeyPair, rcgen::Error> {
    let mut secret = [0_u8; 32];
    seed.rng().fill_bytes(&mut secret);
    KeyPair::try_from([ED25519.as_slice(), secret.as_slice()].concat())
}
