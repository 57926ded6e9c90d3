//! Quantities in thousandths, which is all that scheduling needs.

/// The quantity in thousandths, rounded up. None if it is not one.
pub(crate) fn parse(text: &str) -> Option<i128> {
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (negative, number) = match number.as_bytes().first()? {
        b'-' => (true, &number[1..]),
        b'+' => (false, &number[1..]),
        _ => (false, number),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() > 18 || fraction.len() > 15 {
        return None;
    }
    let digits: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let (numerator, denominator): (i128, i128) = match suffix {
        "" => (1000, 1),
        "n" => (1, 1_000_000),
        "u" => (1, 1000),
        "m" => (1, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        "Pi" => (1000 << 50, 1),
        "Ei" => (1000 << 60, 1),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let factor = 10_i128.checked_pow(power.unsigned_abs())?;
            if power >= 0 { (1000_i128.checked_mul(factor)?, 1) } else { (1000, factor) }
        }
    };
    let numerator = digits.checked_mul(numerator)?;
    let denominator = denominator.checked_mul(scale)?;
    let value = numerator.div_euclid(denominator) + i128::from(numerator.rem_euclid(denominator) != 0);
    Some(if negative { -value } else { value })
}

/// An amount in thousandths, as a quantity of a resource is written.
pub(crate) fn show(resource: &str, thousandths: i128) -> String {
    if thousandths % 1000 != 0 {
        return format!("{thousandths}m");
    }
    let mut amount = thousandths / 1000;
    let mut suffix = "";
    if resource.ends_with("memory") || resource.ends_with("storage") {
        for unit in ["Ki", "Mi", "Gi", "Ti", "Pi"] {
            if amount == 0 || amount % 1024 != 0 {
                break;
            }
            (amount, suffix) = (amount / 1024, unit);
        }
    }
    format!("{amount}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::{parse, show};

    #[test]
    fn quantities_are_read() {
        assert_eq!(parse("1"), Some(1000));
        assert_eq!(parse("250m"), Some(250));
        assert_eq!(parse("1.5"), Some(1500));
        assert_eq!(parse("16Gi"), Some((16 << 30) * 1000));
        assert_eq!(parse("1e3"), Some(1_000_000));
        assert_eq!(parse("100n"), Some(1));
        assert_eq!(show("cpu", 1500), "1500m");
        assert_eq!(show("limits.memory", (16 << 30) * 1000), "16Gi");
        for bad in ["", "x", "1.2.3", "1Zi", "-", "1e", "9999999999999999999999"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
