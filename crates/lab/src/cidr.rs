//! IPv4 ranges: as little as the lab needs.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

/// A range of IPv4 addresses such as `10.65.0.0/16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Cidr {
    base: u32,
    prefix: u8,
}

impl Cidr {
    /// The range of `2^(32-prefix)` addresses that starts at `base`.
    pub fn new(base: Ipv4Addr, prefix: u8) -> Result<Self> {
        ensure!(prefix <= 32, "{base}/{prefix}: a prefix is at most 32 bits");
        let range = Cidr { base: base.to_bits(), prefix };
        ensure!(
            range.base & !range.mask() == 0,
            "{base}/{prefix} has host bits set; did you mean {}/{prefix}?",
            Ipv4Addr::from_bits(range.base & range.mask())
        );
        Ok(range)
    }

    /// The length of the prefix in bits.
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// The `index`-th address, the first being the network's own.
    pub fn address(&self, index: u32) -> Result<Ipv4Addr> {
        ensure!(
            u64::from(index) < self.size(),
            "{self} has no address number {index}: it holds {}",
            self.size()
        );
        Ok(Ipv4Addr::from_bits(self.base + index))
    }

    /// The `index`-th subnet of `prefix` bits.
    pub fn subnet(&self, prefix: u8, index: u32) -> Result<Self> {
        ensure!((self.prefix..=32).contains(&prefix), "{self} cannot be divided into subnets of /{prefix}");
        let count = 1u64 << (prefix - self.prefix);
        ensure!(
            u64::from(index) < count,
            "{self} has only {count} subnets of /{prefix}, number {index} is asked for"
        );
        let size = 1u64 << (32 - prefix);
        Ok(Cidr { base: self.base + (u64::from(index) * size) as u32, prefix })
    }

    /// Whether the two ranges share an address.
    pub fn overlaps(&self, other: &Cidr) -> bool {
        let mask = self.mask() & other.mask();
        self.base & mask == other.base & mask
    }

    fn size(&self) -> u64 {
        1u64 << (32 - self.prefix)
    }

    fn mask(&self) -> u32 {
        u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from_bits(self.base), self.prefix)
    }
}

impl FromStr for Cidr {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let Some((base, prefix)) = text.split_once('/') else {
            bail!("{text:?} is not a range: write it like 10.65.0.0/16");
        };
        let base = base.parse().with_context(|| format!("{text:?}: {base:?} is not an IPv4 address"))?;
        let prefix =
            prefix.parse().with_context(|| format!("{text:?}: {prefix:?} is not a prefix length"))?;
        Cidr::new(base, prefix)
    }
}

impl TryFrom<String> for Cidr {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        text.parse()
    }
}

impl From<Cidr> for String {
    fn from(range: Cidr) -> String {
        range.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> Cidr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_and_subnets() {
        assert_eq!(cidr("10.1.0.0/16").address(10).unwrap().to_string(), "10.1.0.10");
        assert_eq!(cidr("10.1.0.0/16").subnet(24, 255).unwrap(), cidr("10.1.255.0/24"));
        assert_eq!(cidr("0.0.0.0/0").subnet(1, 1).unwrap(), cidr("128.0.0.0/1"));
        let error = cidr("10.1.0.0/24").subnet(26, 4).unwrap_err().to_string();
        assert!(error.contains("only 4 subnets"), "{error}");
        assert!(cidr("10.0.0.0/31").address(2).is_err());
    }

    #[test]
    fn overlap_is_symmetric_containment() {
        let wide = cidr("10.0.0.0/8");
        assert!(wide.overlaps(&cidr("10.9.0.0/16")) && cidr("10.9.0.0/16").overlaps(&wide));
        assert!(!cidr("10.8.0.0/16").overlaps(&cidr("10.9.0.0/16")));
        assert!(cidr("0.0.0.0/0").overlaps(&cidr("192.168.1.1/32")));
    }

    #[test]
    fn bad_text_is_refused_with_a_hint() {
        for (text, hint) in [
            ("10.0.0.0", "write it like"),
            ("10.0.0.1/8", "did you mean 10.0.0.0/8"),
            ("10.0.0.0/33", "at most 32"),
        ] {
            let error = text.parse::<Cidr>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
