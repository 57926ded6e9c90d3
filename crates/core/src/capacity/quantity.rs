//! Reading quantities exactly.
//!
//! The published library for this overflows on large exponents, refuses `1e3` and gives no whole number for `500m`;
//! capacity is counted on every decision, so it is read here: exactly, in thousandths, rounded up as Kubernetes does.

/// Text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a quantity such as 2, 0.5, 500m, 1Gi or 1e3")]
pub struct NotAQuantity {
    /// What was read.
    pub text: String,
}

/// The quantity in thousandths, rounded up; beyond what an `i64` holds it saturates.
///
/// # Errors
/// The text is not a quantity.
pub fn milli(text: &str) -> Result<i64, NotAQuantity> {
    exact(text).ok_or_else(|| NotAQuantity { text: text.to_owned() })
}

fn exact(text: &str) -> Option<i64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return None;
    }
    let (ten, two) = scale(suffix)?;
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    // Thousandths: three more powers of ten; each digit behind the point takes one away.
    let exponent = ten.saturating_add(3).saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
    let magnitude = scaled(digits, exponent, two);
    Some(if negative { magnitude.saturating_neg() } else { magnitude })
}

/// The powers of ten and of two that a suffix stands for.
fn scale(suffix: &str) -> Option<(i32, u32)> {
    let scale = match suffix {
        "n" => (-9, 0),
        "u" => (-6, 0),
        "m" => (-3, 0),
        "" => (0, 0),
        "k" => (3, 0),
        "M" => (6, 0),
        "G" => (9, 0),
        "T" => (12, 0),
        "P" => (15, 0),
        "E" => (18, 0),
        "Ki" => (0, 10),
        "Mi" => (0, 20),
        "Gi" => (0, 30),
        "Ti" => (0, 40),
        "Pi" => (0, 50),
        "Ei" => (0, 60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            let limit = if exponent.starts_with('-') { i32::MIN / 2 } else { i32::MAX / 2 };
            (valid.then(|| exponent.parse().unwrap_or(limit))?, 0)
        }
    };
    Some(scale)
}

/// `digits` times ten to the `exponent` times two to the `two`, rounded up, saturating.
fn scaled(digits: &str, exponent: i32, two: u32) -> i64 {
    if digits.is_empty() {
        return 0;
    }
    let power = |exponent: u32| 10i128.checked_pow(exponent);
    let Some(value) =
        digits.parse::<i128>().ok().and_then(|value| value.checked_mul(1i128.checked_shl(two)?))
    else {
        return i64::MAX;
    };
    let result = match u32::try_from(exponent) {
        Ok(up) => power(up).and_then(|factor| value.checked_mul(factor)),
        // What is divided by more than fits in the integer is the smallest amount there is.
        Err(_) => Some(power(exponent.unsigned_abs()).map_or(1, |divisor| (value + divisor - 1) / divisor)),
    };
    result.and_then(|value| i64::try_from(value).ok()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_of_a_quantity() {
        let cases = [
            ("1", 1000),
            ("0.5", 500),
            (".5", 500),
            ("5.", 5000),
            ("500m", 500),
            ("1100m", 1100),
            ("1Gi", 1_073_741_824_000),
            ("1.5Ki", 1_536_000),
            ("1G", 1_000_000_000_000),
            ("1e3", 1_000_000),
            ("1E-1", 100),
            ("-2", -2000),
            ("+2", 2000),
            ("0", 0),
            ("1n", 1),
            ("1u", 1),
            ("16Ei", i64::MAX),
            ("1e999999999999", i64::MAX),
            ("1e-999999999999", 1),
            ("99999999999999999999999999999999999999999999999", i64::MAX),
        ];
        for (text, expected) in cases {
            assert_eq!(milli(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_quantity() {
        for text in ["", "-", ".", "a lot", "1.2.3", "1 Gi", "1gi", "1e", "1e+", "m", "0x10", "١"] {
            assert_eq!(milli(text).unwrap_err().text, text);
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".*") {
            let _ = milli(&text);
        }

        #[test]
        fn whole_millis_are_exact(value in -1_000_000_000i64..1_000_000_000) {
            prop_assert_eq!(milli(&format!("{value}m")), Ok(value));
        }
    }
}
