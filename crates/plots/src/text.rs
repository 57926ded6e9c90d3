//! How wide a text is, at most, in the sans-serif fonts of common systems.
//!
//! A viewer of the SVG picks the font. The table has the greatest width of each character in Inter, Noto Sans and DejaVu
//! Sans, so that a text which fits here fits there.

/// How strong a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Weight {
    /// Labels.
    Regular,
    /// Titles.
    SemiBold,
}

const ELLIPSIS: char = '…';
/// The widths of ASCII from the space on, in hundredths of the size.
#[rustfmt::skip]
const ASCII: [u8; 95] = [
    32, 41, 47, 84, 65, 99, 78, 30, 40, 40, 56, 84, 32, 46, 32, 38, 64, 64, 64, 64, 65, 64, 64, 64, 64, 64, 34, 34, 84, 84,
    84, 54, 100, 69, 69, 74, 78, 64, 60, 78, 76, 34, 58, 68, 57, 91, 76, 79, 64, 79, 70, 65, 65, 75, 69, 99, 69, 68, 69, 40,
    38, 40, 84, 50, 50, 62, 64, 58, 64, 62, 38, 64, 64, 28, 28, 58, 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60,
    56, 64, 56, 64, 84,
];
/// The width of any other character.
const OTHER: u8 = 110;

/// The greatest width of a text.
pub(crate) fn width(text: &str, size: f64, weight: Weight) -> f64 {
    let hundredths: u32 = text.chars().map(|c| u32::from(character(c))).sum();
    let factor = match weight {
        Weight::Regular => 1.0,
        Weight::SemiBold => 1.1,
    };
    f64::from(hundredths) * size * factor / 100.0
}

fn character(c: char) -> u8 {
    let index = (c as usize).checked_sub(0x20);
    index.and_then(|index| ASCII.get(index)).copied().unwrap_or(OTHER)
}

/// The text, cut with an ellipsis if it is wider than `room`.
pub(crate) fn truncated(text: &str, size: f64, weight: Weight, room: f64) -> String {
    if width(text, size, weight) <= room {
        return text.to_owned();
    }
    let mut cut = String::new();
    for c in text.chars() {
        cut.push(c);
        cut.push(ELLIPSIS);
        let fits = width(&cut, size, weight) <= room;
        cut.pop();
        if !fits {
            cut.pop();
            break;
        }
    }
    format!("{}{ELLIPSIS}", cut.trim_end())
}

/// The text in at most `lines` lines, broken at spaces and after hyphens; what does not fit ends in an ellipsis.
pub(crate) fn wrapped(text: &str, size: f64, weight: Weight, room: f64, lines: usize) -> Vec<String> {
    let mut done: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let end = rest.find([' ', '-']).map_or(rest.len(), |at| at + 1);
        let (word, after) = rest.split_at(end);
        let longer = format!("{line}{word}");
        let fits = width(longer.trim_end(), size, weight) <= room;
        if !fits && !line.is_empty() && done.len() + 1 < lines {
            done.push(std::mem::take(&mut line));
            continue;
        }
        if !fits && done.len() + 1 >= lines {
            line.push_str(rest);
            break;
        }
        line = longer;
        rest = after;
    }
    if !line.is_empty() {
        done.push(line);
    }
    done.iter().map(|line| truncated(line.trim_end(), size, weight, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_to_its_room() {
        let name = "cluster-with-a-name-that-nobody-can-read-in-a-legend";
        let cut = truncated(name, 12.0, Weight::Regular, 120.0);
        assert!(cut.ends_with('…') && name.starts_with(cut.trim_end_matches('…')), "{cut}");
        assert!(width(&cut, 12.0, Weight::Regular) <= 120.0);
        assert_eq!(truncated("lille", 12.0, Weight::Regular, 120.0), "lille");
        assert_eq!(truncated("lille", 12.0, Weight::Regular, 0.0), "…");
    }

    #[test]
    fn a_text_is_wrapped_at_spaces_and_hyphens_and_then_cut() {
        let lines = |text, most| wrapped(text, 10.0, Weight::Regular, 60.0, most);
        assert_eq!(lines("one", 2), ["one"]);
        assert_eq!(lines("portolan nearest-first", 3), ["portolan", "nearest-", "first"]);
        assert_eq!(lines("portolan nearest first", 2), ["portolan", "nearest fi…"]);
        assert!(lines(" ", 2).is_empty());
        assert_eq!(lines("unbreakableandverylong", 2), ["unbreaka…"]);
    }
}
