//! Text that comes from somewhere else: bounded and harmless before it is logged, stored or shown.

use std::fmt::Write;

/// The longest foreign text that is kept, in characters.
pub const FOREIGN_TEXT_LIMIT: usize = 512;

/// Cleans a text that another program wrote: one line of at most [`FOREIGN_TEXT_LIMIT`] characters, none of which moves
/// a cursor, changes a colour, sets a clipboard or reverses the direction of what follows.
///
/// Line breaks and tabs become blanks, other control characters are escaped, and what is cut off is counted.
#[must_use]
pub fn foreign_text(text: &str) -> String {
    bounded_text(text, FOREIGN_TEXT_LIMIT)
}

/// The same as [`foreign_text`] with another limit.
#[must_use]
pub fn bounded_text(text: &str, limit: usize) -> String {
    let mut clean = String::with_capacity(text.len().min(limit));
    let mut rest = text.chars();
    for character in rest.by_ref().take(limit) {
        match character {
            '\n' | '\r' | '\t' => clean.push(' '),
            character if is_harmful(character) => {
                // Writing into a String cannot fail.
                let _ = write!(clean, "\\u{{{:x}}}", u32::from(character));
            }
            character => clean.push(character),
        }
    }
    let cut = rest.count();
    if cut > 0 {
        let _ = write!(clean, "… ({cut} more characters)");
    }
    clean
}

/// Whether a terminal would do something else than show the character.
fn is_harmful(character: char) -> bool {
    let reverses =
        matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(character, '\u{2028}' | '\u{2029}');
    character.is_control() || reverses || breaks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_text_is_one_short_harmless_line() {
        assert_eq!(foreign_text("no room: 3 of 5 (§ ü 🚢)"), "no room: 3 of 5 (§ ü 🚢)");
        assert_eq!(foreign_text("a\nb\tc\r"), "a b c ");
        assert_eq!(foreign_text("\x1b]52;c;eA==\x07"), "\\u{1b}]52;c;eA==\\u{7}");
        assert_eq!(foreign_text("a\u{202e}b\u{9b}c"), "a\\u{202e}b\\u{9b}c");
        let long = foreign_text(&"x".repeat(1 << 20));
        assert!(long.ends_with("… (1048064 more characters)"), "{}", &long[500..]);
    }
}
