//! The formats of strings that the API server checks.

/// Whether a text has a format; formats that nobody checks hold for every text.
pub(super) fn holds(format: &str, text: &str) -> bool {
    match format {
        "date-time" => text.parse::<jiff::Timestamp>().is_ok(),
        "date" => text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_go_duration(text),
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, length)| {
            let bits = match address.parse::<std::net::IpAddr>() {
                Ok(std::net::IpAddr::V4(_)) => 32,
                Ok(std::net::IpAddr::V6(_)) => 128,
                Err(_) => return false,
            };
            length.parse::<u8>().is_ok_and(|length| length <= bits)
        }),
        "uri" => text.parse::<http::Uri>().is_ok(),
        "byte" => serde_json::from_value::<k8s_openapi::ByteString>(text.into()).is_ok(),
        "uuid" => {
            let groups: Vec<&str> = text.split('-').collect();
            groups.iter().map(|group| group.len()).eq([8, 4, 4, 4, 12])
                && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()))
        }
        _ => true,
    }
}

/// `1h30m`, `100ms`, `2 days`: what Go's and go-openapi's durations read.
fn is_go_duration(text: &str) -> bool {
    let mut rest = text.trim().trim_start_matches(['-', '+']);
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if digits == 0 {
            return false;
        }
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let unit = &rest[..letters];
        let known = ["ns", "us", "µs", "ms", "s", "m", "h", "d", "w"];
        let long = ["second", "minute", "hour", "day", "week"];
        if !known.contains(&unit) && !long.iter().any(|long| unit.trim_end_matches('s') == *long) {
            return false;
        }
        rest = rest[letters..].trim_start();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::holds;

    #[test]
    fn formats_hold_or_do_not() {
        for (format, good, bad) in [
            ("date-time", "2026-01-01T00:00:00Z", "yesterday"),
            ("duration", "1h30m", "10 parsecs"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("ipv4", "10.0.0.1", "10.0.0"),
            ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
            ("byte", "aGk=", "???"),
        ] {
            assert!(holds(format, good), "{format} {good}");
            assert!(!holds(format, bad), "{format} {bad}");
        }
    }
}
