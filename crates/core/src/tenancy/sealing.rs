//! Handing a token to a consumer by an object that others can read as well: sealed, so that nobody opens it but the consumer
//! whose key was accepted.
//!
//! The consumer names an X25519 key in a statement, which is a certificate request that is signed by the key of its real one
//! and asks for nobody's certificate. The sender agrees on a secret with that key, and encrypts by what follows from it
//! (HKDF-SHA256, ChaCha20-Poly1305). Nothing here takes randomness: the key of the consumer follows from the private key
//! that it keeps anyway, and that of the sender from the token, which is as hard to guess as any key.

use super::request::{CertificateRequest, RequestError};
use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use sha2::{Digest, Sha256};
use std::fmt;
use x25519_dalek::{PublicKey, SharedSecret, StaticSecret};

/// What the common name of a statement begins with. No tenant is called that.
const STATEMENT: &str = "portolan:seal-to:";

/// What each key is made for, so that no key is used for two things.
const OF_CONSUMER: &[u8] = b"portolan v1: the key by which a consumer opens a token\0";
const OF_SENDER: &[u8] = b"portolan v1: the key by which a token is sealed\0";
const OF_TOKEN: &[u8] = b"portolan v1: the encryption of a token\0";

/// The length of a key of X25519.
const KEY: usize = 32;

/// The longest text that is opened: tokens of service accounts have a kilobyte or two.
const LONGEST: usize = 32 << 10;

/// Why a token is not sealed or not opened. No part of it is quoted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The statement is no certificate request.
    #[error("the statement about the key cannot be read: {0}")]
    Unreadable(#[from] RequestError),
    /// It is signed by another key than that which was accepted.
    #[error("the statement about the key is signed by another key than the request for the certificate")]
    OtherKey,
    /// It names no key, or is about another invitation.
    #[error("the statement names no key to which a token of this invitation can be sealed")]
    NoKey,
    /// A key with which no secret can be agreed on, or a cipher that fails.
    #[error("the token cannot be encrypted for that key")]
    Cipher,
    /// It was sealed for another key or invitation, or was changed.
    #[error("the token is not sealed for this consumer and this invitation, or was changed")]
    NotOurs,
}

/// The key to which a token is sealed: public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealingKey([u8; KEY]);

impl SealingKey {
    /// The common name by which a statement names the key; its organization is the name of the invitation.
    #[must_use]
    pub fn common_name(&self) -> String {
        format!("{STATEMENT}{}", BASE64_URL_SAFE_NO_PAD.encode(self.0))
    }

    /// The key that a statement in PEM names, if it is about this invitation and signed by the key with this digest.
    ///
    /// # Errors
    /// It is no such statement.
    pub fn stated(statement: &[u8], invitation: &str, key_digest: &str) -> Result<Self, SealError> {
        let read = CertificateRequest::read(statement)?;
        if read.key_digest != key_digest {
            return Err(SealError::OtherKey);
        }
        let [name] = read.common_names.as_slice() else { return Err(SealError::NoKey) };
        let text = name.strip_prefix(STATEMENT).ok_or(SealError::NoKey)?;
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| SealError::NoKey)?;
        let key: [u8; KEY] = bytes.try_into().map_err(|_| SealError::NoKey)?;
        if read.has_more || read.organizations != [invitation] {
            return Err(SealError::NoKey);
        }
        Ok(Self(key))
    }

    /// Seals a token of an invitation: who has the private key opens it, and nobody else.
    ///
    /// # Errors
    /// No secret can be agreed on with this key.
    pub fn seal(&self, invitation: &str, token: &str) -> Result<String, SealError> {
        let own = Sha256::new().chain_update(OF_SENDER).chain_update(self.0).chain_update(token);
        let own = StaticSecret::from(<[u8; KEY]>::from(own.finalize()));
        let sender = PublicKey::from(&own);
        let shared = own.diffie_hellman(&PublicKey::from(self.0));
        let (cipher, nonce) = cipher(&shared, &sender, self)?;
        let mut text = token.as_bytes().to_vec();
        let about = Aad::from(invitation.as_bytes());
        cipher.seal_in_place_append_tag(nonce, about, &mut text).map_err(|_| SealError::Cipher)?;
        Ok(BASE64_STANDARD.encode([sender.as_bytes().as_slice(), &text].concat()))
    }
}

/// The key by which a consumer opens what was sealed for it.
pub struct OpeningKey(StaticSecret);

impl fmt::Debug for OpeningKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("OpeningKey")
    }
}

impl OpeningKey {
    /// The key that follows from the private key of a consumer's request: the same one in every run.
    #[must_use]
    pub fn of(private_key: &[u8]) -> Self {
        let digest = Sha256::new().chain_update(OF_CONSUMER).chain_update(private_key).finalize();
        Self(StaticSecret::from(<[u8; KEY]>::from(digest)))
    }

    /// What others seal to.
    #[must_use]
    pub fn public(&self) -> SealingKey {
        SealingKey(PublicKey::from(&self.0).to_bytes())
    }

    /// Opens a token of an invitation. Who has sealed it is not known: the caller looks whose token it is.
    ///
    /// # Errors
    /// It was not sealed for this key and this invitation.
    pub fn open(&self, invitation: &str, sealed: &str) -> Result<String, SealError> {
        if sealed.len() > LONGEST {
            return Err(SealError::NotOurs);
        }
        let bytes = BASE64_STANDARD.decode(sealed).map_err(|_| SealError::NotOurs)?;
        let (sender, text) = bytes.split_first_chunk::<KEY>().ok_or(SealError::NotOurs)?;
        let sender = PublicKey::from(*sender);
        let shared = self.0.diffie_hellman(&sender);
        let (cipher, nonce) = cipher(&shared, &sender, &self.public()).map_err(|_| SealError::NotOurs)?;
        let mut text = text.to_vec();
        let about = Aad::from(invitation.as_bytes());
        let opened = cipher.open_in_place(nonce, about, &mut text).map_err(|_| SealError::NotOurs)?;
        String::from_utf8(opened.to_vec()).map_err(|_| SealError::NotOurs)
    }
}

/// The cipher for one token. Its key follows from that of the sender, which is of this token only, and so its nonce may be
/// the same each time.
fn cipher(
    shared: &SharedSecret,
    sender: &PublicKey,
    receiver: &SealingKey,
) -> Result<(LessSafeKey, Nonce), SealError> {
    // A key of low order makes a secret that everybody knows.
    if !shared.was_contributory() {
        return Err(SealError::Cipher);
    }
    let about = [OF_TOKEN, sender.as_bytes(), &receiver.0];
    let extracted = Salt::new(HKDF_SHA256, &[]).extract(shared.as_bytes());
    let expanded = extracted.expand(&about, &CHACHA20_POLY1305).map_err(|_| SealError::Cipher)?;
    let nonce = Nonce::assume_unique_for_key([0; NONCE_LEN]);
    Ok((LessSafeKey::new(UnboundKey::from(expanded)), nonce))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    const ID: &str = "abcdefgh23";

    fn statement(key: &KeyPair, name: &str, about: &str) -> String {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, about);
        params.distinguished_name.push(DnType::CommonName, name);
        params.serialize_request(key).unwrap().pem().unwrap()
    }

    fn digest(key: &KeyPair) -> String {
        CertificateRequest::read(statement(key, "x", "x").as_bytes()).unwrap().key_digest
    }

    #[test]
    fn a_token_is_opened_by_the_key_that_the_consumer_has_stated_and_by_no_other() {
        let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let opening = OpeningKey::of(&own.serialize_der());
        let text = statement(&own, &opening.public().common_name(), ID);
        let stated = SealingKey::stated(text.as_bytes(), ID, &digest(&own)).unwrap();
        assert_eq!(stated, opening.public());
        let sealed = stated.seal(ID, "head.claims.signature").unwrap();
        assert_eq!(opening.open(ID, &sealed).unwrap(), "head.claims.signature");
        assert_eq!(sealed, stated.seal(ID, "head.claims.signature").unwrap(), "a second run says the same");
        assert!(!sealed.contains("claims"));
        // An interrupted consumer reads its key again.
        let again = KeyPair::from_pem(&own.serialize_pem()).unwrap();
        assert!(OpeningKey::of(&again.serialize_der()).open(ID, &sealed).is_ok());
        let thief = OpeningKey::of(&other.serialize_der());
        assert_eq!(thief.open(ID, &sealed), Err(SealError::NotOurs));
        assert_eq!(opening.open("zzzzzzzz22", &sealed), Err(SealError::NotOurs));
    }

    #[test]
    fn a_statement_of_another_key_about_another_invitation_or_without_a_key_is_refused() {
        let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
        let name = OpeningKey::of(b"key").public().common_name();
        assert!(name.len() <= 64, "a common name has 64 characters at most: {}", name.len());
        let read = |text: String| SealingKey::stated(text.as_bytes(), ID, &digest(&own));
        assert!(read(statement(&own, &name, ID)).is_ok());
        assert_eq!(read(statement(&other, &name, ID)), Err(SealError::OtherKey));
        assert_eq!(read(statement(&own, &name, "zzzzzzzz22")), Err(SealError::NoKey));
        for wrong in ["portolan:tenant:x", "portolan:seal-to:", "portolan:seal-to:AAAA", "portolan:seal-to:*"]
        {
            assert_eq!(read(statement(&own, wrong, ID)), Err(SealError::NoKey), "{wrong}");
        }
        assert!(matches!(read("nonsense".to_owned()), Err(SealError::Unreadable(_))));
    }

    #[test]
    fn nothing_is_sealed_to_a_key_with_which_everybody_knows_the_secret() {
        let mut one = [0; KEY];
        one[0] = 1;
        for low in [[0; KEY], one] {
            assert_eq!(SealingKey(low).seal(ID, "token"), Err(SealError::Cipher));
            let sealed = BASE64_STANDARD.encode([&low[..], &[0; 32]].concat());
            assert_eq!(OpeningKey::of(b"key").open(ID, &sealed), Err(SealError::NotOurs));
        }
    }

    proptest! {
        #[test]
        fn what_is_sealed_is_opened_and_a_changed_byte_is_noticed(
            key in proptest::collection::vec(any::<u8>(), 32), token in "[a-zA-Z0-9._-]{1,2000}", at in any::<usize>(),
            by in 1_u8..255,
        ) {
            let opening = OpeningKey::of(&key);
            let sealed = opening.public().seal(ID, &token).unwrap();
            prop_assert_eq!(opening.open(ID, &sealed), Ok(token));
            let mut bytes = BASE64_STANDARD.decode(&sealed).unwrap();
            let at = at % bytes.len();
            // The highest bit of a key of X25519 means nothing by itself, and is authenticated all the same.
            bytes[at] ^= by;
            prop_assert_eq!(opening.open(ID, &BASE64_STANDARD.encode(bytes)), Err(SealError::NotOurs));
        }

        #[test]
        fn no_text_is_a_panic(text in ".{0,300}") {
            let _ = OpeningKey::of(b"key").open(ID, &text);
        }
    }
}
