//! Amounts of resources for people.

/// An amount in thousandths, in the unit that people use for the resource: `3.5` CPUs, `512Mi` or `16Gi` of memory.
#[must_use]
pub fn amount(name: &str, thousandths: i64) -> String {
    const MIB: f64 = 1024.0 * 1024.0;
    let whole = thousandths as f64 / 1000.0;
    let (number, unit) = match name {
        "memory" | "ephemeral-storage" if whole.abs() >= 1024.0 * MIB => (whole / (1024.0 * MIB), "Gi"),
        "memory" | "ephemeral-storage" if whole != 0.0 => (whole / MIB, "Mi"),
        _ => (whole, ""),
    };
    let text = format!("{number:.1}");
    format!("{}{unit}", text.strip_suffix(".0").unwrap_or(&text))
}

#[cfg(test)]
mod tests {
    use super::amount;

    #[test]
    fn amounts_are_short() {
        let gib = 1024 * 1024 * 1024 * 1000;
        assert_eq!(["3.5", "8"], [amount("cpu", 3500), amount("cpu", 8000)]);
        assert_eq!(["0", "512Mi", "16Gi"], [0, gib / 2, 16 * gib].map(|each| amount("memory", each)));
    }
}
