//! One field of a cron expression.

/// A field of an expression, and its values.
pub(super) struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    /// Names of values, from the least on.
    names: &'static [&'static str],
}

const fn field(name: &'static str, least: u32, most: u32, names: &'static [&'static str]) -> Field {
    Field { name, least, most, names }
}

/// Minute, hour, day of the month, month, day of the week.
pub(super) const FIELDS: [Field; 5] = [
    field("minute", 0, 59, &[]),
    field("hour", 0, 23, &[]),
    field("day of the month", 1, 31, &[]),
    field(
        "month",
        1,
        12,
        &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
    ),
    field("day of the week", 0, 7, &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]),
];

impl Field {
    /// The values that a field names, one bit each.
    pub(super) fn read(&self, text: &str) -> Result<u64, String> {
        text.split(',').try_fold(0, |values, part| Ok(values | self.read_part(part)?))
    }

    fn read_part(&self, part: &str) -> Result<u64, String> {
        let wrong =
            || format!("the {} cannot be {part:?}, but is from {} to {}", self.name, self.least, self.most);
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                (range, step.parse::<u32>().ok().filter(|step| *step > 0).ok_or_else(wrong)?)
            }
            None => (part, 1),
        };
        let (first, last) = match range.split_once('-') {
            _ if range == "*" || range == "?" => (self.least, self.most),
            Some((first, last)) => {
                (self.value(first).ok_or_else(wrong)?, self.value(last).ok_or_else(wrong)?)
            }
            None => {
                let first = self.value(range).ok_or_else(wrong)?;
                (first, if part.contains('/') { self.most } else { first })
            }
        };
        if first > last {
            return Err(wrong());
        }
        let values = (first..=last).filter(|value| (value - first).is_multiple_of(step));
        Ok(values.fold(0, |bits, value| bits | 1 << value))
    }

    fn value(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let value = match named {
            Some(position) => u32::try_from(position).ok()? + self.least,
            None => digits.then(|| text.parse().ok())??,
        };
        (self.least..=self.most).contains(&value).then_some(value)
    }
}
