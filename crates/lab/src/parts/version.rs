//! Version numbers as Go, Kubernetes and Debian write them.

use std::fmt;
use std::str::FromStr;

use super::{DEFAULT_KUBERNETES, PartsError};

/// A released version of Kubernetes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// 1.
    pub major: u32,
    /// The release.
    pub minor: u32,
    /// The patch release.
    pub patch: u32,
}

impl FromStr for KubernetesVersion {
    type Err = PartsError;

    fn from_str(text: &str) -> Result<Self, PartsError> {
        let bad = || PartsError::NotAVersion { version: text.to_owned(), example: DEFAULT_KUBERNETES };
        let numbers: Vec<&str> = text.strip_prefix('v').unwrap_or(text).split('.').collect();
        let [major, minor, patch] = numbers[..] else { return Err(bad()) };
        let number = |text: &str| {
            let plain = text == "0" || !text.starts_with('0');
            text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()).flatten().filter(|_| plain)
        };
        match (number(major), number(minor), number(patch)) {
            (Some(major), Some(minor), Some(patch)) => Ok(Self { major, minor, patch }),
            _ => Err(bad()),
        }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The numbers at the beginning of a version, for comparing: `go1.26.8` and `1:4.2.1-1` begin with 1.26.8 and 4.2.1.
pub(super) fn leading_numbers(version: &str) -> Vec<u32> {
    let version = version.strip_prefix("go").unwrap_or(version);
    let version = version.split_once(':').map_or(version, |(_epoch, rest)| rest);
    let mut numbers = Vec::new();
    for piece in version.split('.') {
        let digits: String = piece.chars().take_while(char::is_ascii_digit).collect();
        let Ok(number) = digits.parse() else { break };
        numbers.push(number);
        if digits.len() < piece.len() {
            break;
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubernetes_versions_parse_and_print() {
        for (text, printed) in [("1.36.3", "1.36.3"), ("v1.35.0", "1.35.0"), ("1.34.10", "1.34.10")] {
            assert_eq!(text.parse::<KubernetesVersion>().unwrap().to_string(), printed);
        }
        for text in [
            "",
            "1.36",
            "1.36.3.1",
            "1.36.x",
            "1.+6.3",
            "1.36.03",
            "1.36.3-rc.0",
            "../1.2",
            "1.99999999999.0",
        ] {
            let error = text.parse::<KubernetesVersion>().unwrap_err().to_string();
            assert!(error.contains("MAJOR.MINOR.PATCH"), "{text}: {error}");
        }
    }

    #[test]
    fn kubernetes_versions_are_ordered_as_numbers() {
        let version = |text: &str| text.parse::<KubernetesVersion>().unwrap();
        assert!(version("1.36.10") > version("1.36.9"));
        assert!(version("1.9.0") < version("1.10.0"));
    }

    #[test]
    fn numbers_of_go_and_debian() {
        assert_eq!(leading_numbers("go1.26.8"), [1, 26, 8]);
        assert_eq!(leading_numbers("go1.27rc1"), [1, 27]);
        assert_eq!(leading_numbers("4.2.1-1"), [4, 2, 1]);
        assert_eq!(leading_numbers("1:1.38.0-3+b1"), [1, 38, 0]);
        assert_eq!(leading_numbers("1.3.6+ds1-1"), [1, 3, 6]);
        assert_eq!(leading_numbers("devel"), [0_u32; 0]);
        assert!(leading_numbers("4.2.1-1") >= vec![4]);
        assert!(leading_numbers("3.17.1-2") < vec![4]);
    }
}
