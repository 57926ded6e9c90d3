//! Text in columns, as kubectl prints it.

use std::fmt;

/// Rows of text under a head.
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new<const COLUMNS: usize>(head: [&str; COLUMNS]) -> Self {
        Table(vec![head.iter().map(|cell| (*cell).to_owned()).collect()])
    }

    pub(crate) fn row<const COLUMNS: usize>(&mut self, cells: [String; COLUMNS]) {
        self.0.push(cells.to_vec());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            self.0.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
        for row in &self.0 {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            writeln!(f, "{}", cells.collect::<Vec<_>>().join("   ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["A", "B"]);
        table.row(["long".into(), "x".into()]);
        table.row(["".into(), "yy".into()]);
        assert_eq!(table.to_string(), "A      B\nlong   x\n       yy\n");
    }
}
