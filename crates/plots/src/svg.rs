//! Writes a scene as SVG.
//!
//! Colours are classes in one style sheet, with other values for dark pages. They are written out rather than as CSS
//! variables, because viewers outside browsers do not know variables.

use crate::palette::{Hue, Ink, Rgb, Theme};
use crate::scene::{Anchor, Point, Scene, Shape, Text};
use crate::text::Weight;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The SVG of a scene.
pub(crate) fn write(scene: &Scene) -> String {
    let (width, height) = (number(scene.width), number(scene.height));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"system-ui, sans-serif\">\n\
         <title>{}</title>\n<desc>{}</desc>\n{}",
        escaped(&scene.title),
        escaped(&scene.description),
        style(scene),
    );
    for shape in &scene.shapes {
        match shape {
            Shape::Polygon { points, ink } => {
                line(&mut out, format_args!("<path class=\"{}f\" d=\"{}Z\"/>", class(*ink), path(points)));
            }
            Shape::Polyline { points, ink, width, dash } => {
                let dashes: Vec<String> = dash.iter().map(|length| number(*length)).collect();
                let dashes = if dash.is_empty() {
                    String::new()
                } else {
                    format!(" stroke-dasharray=\"{}\"", dashes.join(" "))
                };
                let (class, width, path) = (class(*ink), number(*width), path(points));
                line(
                    &mut out,
                    format_args!("<path class=\"{class}l\" stroke-width=\"{width}\"{dashes} d=\"{path}\"/>"),
                );
            }
            Shape::Text(text) => write_text(&mut out, text),
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Writing to a string does not fail.
fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let written = writeln!(out, "{text}");
    debug_assert!(written.is_ok());
}

fn write_text(out: &mut String, text: &Text) {
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let weight = match text.weight {
        Weight::Regular => "",
        Weight::SemiBold => " font-weight=\"600\"",
    };
    let (x, y, size) = (number(text.at.0), number(text.at.1), number(text.size));
    let (class, content) = (class(text.ink), escaped(&text.text));
    line(
        out,
        format_args!(
            "<text class=\"{class}f\" x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{weight}{anchor}>{content}</text>"
        ),
    );
}

/// The rules of all colours in use: light ones, then dark ones.
fn style(scene: &Scene) -> String {
    let inks: BTreeSet<(Ink, bool)> = scene
        .shapes
        .iter()
        .map(|shape| match shape {
            Shape::Polygon { ink, .. } | Shape::Text(Text { ink, .. }) => (*ink, true),
            Shape::Polyline { ink, .. } => (*ink, false),
        })
        .collect();
    let rules = |theme| -> String {
        let rule = |(ink, filled): &(Ink, bool)| {
            let Rgb(red, green, blue) = ink.on(theme);
            let (suffix, property) = if *filled { ("f", "fill") } else { ("l", "stroke") };
            format!(".{}{suffix}{{{property}:#{red:02x}{green:02x}{blue:02x}}}\n", class(*ink))
        };
        inks.iter().map(rule).collect()
    };
    format!(
        "<style>\npath[stroke-width]{{fill:none;stroke-linejoin:round}}\n{}\
         @media (prefers-color-scheme:dark){{\n{}}}\n</style>\n",
        rules(Theme::Light),
        rules(Theme::Dark)
    )
}

/// The class of a role, with a prefix that pages do not use: the file may be put into a page as it is.
fn class(ink: Ink) -> String {
    match ink {
        Ink::Background => "plot-page-".to_owned(),
        Ink::Text => "plot-text-".to_owned(),
        Ink::Muted => "plot-muted-".to_owned(),
        Ink::Grid => "plot-grid-".to_owned(),
        Ink::Axis => "plot-axis-".to_owned(),
        Ink::Series(Hue::Neutral) => "plot-total-".to_owned(),
        Ink::Series(Hue::Nth(index)) => format!("plot-{index}-"),
    }
}

fn path(points: &[Point]) -> String {
    let mut out = String::new();
    for (index, (x, y)) in points.iter().enumerate() {
        out.push(if index == 0 { 'M' } else { 'L' });
        out.push_str(&number(*x));
        out.push(' ');
        out.push_str(&number(*y));
    }
    out
}

/// A number with at most two decimals.
fn number(value: f64) -> String {
    let hundredths = (value * 100.0).round() as i64;
    let sign = if hundredths < 0 { "-" } else { "" };
    let (whole, rest) = (hundredths.unsigned_abs() / 100, hundredths.unsigned_abs() % 100);
    match rest {
        0 => format!("{sign}{whole}"),
        rest if rest % 10 == 0 => format!("{sign}{whole}.{}", rest / 10),
        rest => format!("{sign}{whole}.{rest:02}"),
    }
}

/// Text that is safe in XML; characters that XML cannot hold become U+FFFD.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                out.push('\u{fffd}');
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_two_decimals() {
        let cases =
            [(0.0, "0"), (-0.001, "0"), (1.5, "1.5"), (-12.35, "-12.35"), (0.05, "0.05"), (860.0, "860")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn markup_and_control_characters_are_escaped() {
        assert_eq!(escaped("a<b & \"c\" 'd'>\u{1}"), "a&lt;b &amp; &quot;c&quot; &#39;d&#39;&gt;\u{fffd}");
    }
}
