//! Tables as kubectl prints them, made to fit the terminal.

use crate::clean;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use std::io::IsTerminal;

/// A table with these headings.
pub(crate) fn table<S: AsRef<str>>(header: &[S]) -> Table {
    let mut table = Table::new();
    table
        .load_style(NOTHING)
        .set_header(header.iter().map(|text| text.as_ref().to_owned()).collect::<Vec<_>>());
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
    }
    table
}

/// The table as text without its headings.
pub(crate) fn body(table: &Table) -> String {
    text(table).split_once('\n').map(|(_, body)| body.to_owned()).unwrap_or_default()
}

/// The table as text: no space before the first column or behind the last.
pub(crate) fn text(table: &Table) -> String {
    let text = table
        .lines()
        .fold(String::new(), |text, line| text + line.strip_prefix(' ').unwrap_or(&line).trim_end() + "\n");
    clean::styled(&text)
}

/// The width of the terminal that standard output goes to; none if it goes elsewhere, where nothing is cut.
pub(crate) fn width() -> Option<u16> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size().map(|(terminal_size::Width(width), _)| width)
}
