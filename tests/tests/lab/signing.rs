//! Tokens of service accounts that live as short as a test needs. The API server itself makes none of less than ten
//! minutes, so they are signed here with its key.

use anyhow::{Context, Result, ensure};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::Timestamp;
use portolan_lab::Cluster;
use rcgen::{KeyPair, SigningKey};
use serde_json::{Value, json};

/// The issuer that the lab's API servers are told, which is their audience too.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Half of a signature of P-256.
const HALF: usize = 32;

/// A token of a service account in namespace `portolan` that ends after so many seconds.
pub(super) async fn token(member: &Cluster, account: &str, seconds: i64) -> Result<String> {
    let uid = ["-n", "portolan", "get", "serviceaccount", account, "-o", "jsonpath={.metadata.uid}"];
    let uid = member.kubectl(&uid).await?;
    let now = Timestamp::now().as_second();
    let claims = json!({
        "iss": ISSUER, "aud": [ISSUER], "sub": format!("system:serviceaccount:portolan:{account}"),
        "iat": now, "nbf": now, "exp": now + seconds,
        "kubernetes.io": {"namespace": "portolan", "serviceaccount": {"name": account, "uid": uid}},
    });
    let key = member.control_plane().dir().join("etc/service-accounts.key");
    let key = KeyPair::from_pem(&std::fs::read_to_string(key)?).context("the key of service accounts")?;
    let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&json!({"alg": "ES256", "typ": "JWT"})), part(&claims));
    let signature = fixed(&key.sign(signed.as_bytes())?)?;
    Ok(format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature)))
}

/// A signature as tokens have it: both numbers with all their bytes. Certificates have them in DER: a sequence of two
/// integers, without leading zeros but for one that keeps them positive.
fn fixed(der: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(2 * HALF);
    let mut rest = der.get(2..).context("a signature in DER")?;
    for _ in 0..2 {
        let length = usize::from(*rest.get(1).context("the length of an integer")?);
        let number = rest.get(2..2 + length).context("an integer")?;
        let number = &number[number.len().saturating_sub(HALF)..];
        out.resize(out.len() + HALF - number.len(), 0);
        out.extend_from_slice(number);
        rest = &rest[2 + length..];
    }
    ensure!(rest.is_empty(), "more than two integers");
    Ok(out)
}

#[test]
fn a_signature_has_both_numbers_in_full() -> Result<()> {
    // One number needs a zero to stay positive, the other one is short.
    let der = [&[0x30, 0x26, 0x02, 0x21, 0x00][..], &[0xff; HALF], &[0x02, 0x01, 0x07]].concat();
    let expected = [&[0xff; HALF][..], &[0; HALF - 1], &[7]].concat();
    ensure!(fixed(&der)? == expected, "{:?}", fixed(&der)?);
    ensure!(fixed(&der[..20]).is_err(), "a part of it is no signature");
    Ok(())
}
