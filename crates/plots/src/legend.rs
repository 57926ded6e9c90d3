//! Colours of series, and legends: entries in rows above the plot area, so that they never cover data.

use crate::palette::{Hue, Ink};
use crate::scene::{Anchor, Rect, Scene, Text};
use crate::text::{self, Weight};
use crate::{Mark, Panel, Plot};
use std::collections::{BTreeMap, BTreeSet};

const SIZE: f64 = 12.0;
const ROW: f64 = 19.0;
const LINE_SWATCH: f64 = 24.0;
const AREA_SWATCH: f64 = 13.0;
const SWATCH_GAP: f64 = 6.0;
const ENTRY_GAP: f64 = 18.0;
const LONGEST_NAME: f64 = 230.0;

/// The entries of a panel's legend, and where they stand.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Legend {
    entries: Vec<Entry>,
    /// The height of all rows.
    pub(crate) height: f64,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    name: String,
    mark: Mark,
    hue: Hue,
    x: f64,
    row: usize,
}

/// The colour of each series of each panel: its own, or that of its name, or the next that is free.
pub(crate) fn hues(plot: &Plot) -> Vec<Vec<Hue>> {
    let all = || plot.panels.iter().flat_map(|panel| &panel.series);
    let mut named: BTreeMap<&str, Hue> = BTreeMap::new();
    for series in all() {
        if let Some(hue) = series.colour {
            named.entry(&series.name).or_insert(hue.canonical());
        }
    }
    let mut used: BTreeSet<Hue> = named.values().copied().collect();
    let mut next = 0;
    for series in all() {
        named.entry(&series.name).or_insert_with(|| {
            while next < 24 && used.contains(&Hue::Nth(next)) {
                next += 1;
            }
            let hue = Hue::Nth(next).canonical();
            used.insert(hue);
            next += 1;
            hue
        });
    }
    let hue = |series: &crate::Series| {
        let of_name = || named.get(series.name.as_str()).copied().unwrap_or(Hue::Neutral);
        series.colour.map_or_else(of_name, Hue::canonical)
    };
    plot.panels.iter().map(|panel| panel.series.iter().map(hue).collect()).collect()
}

/// The width of the sample before a name.
fn swatch(mark: Mark) -> f64 {
    match mark {
        Mark::Line | Mark::Dashed | Mark::Step => LINE_SWATCH,
        Mark::StackedArea | Mark::StackedSteps | Mark::Bars => AREA_SWATCH,
    }
}

impl Legend {
    /// The legend of a panel in rows of this width. Series without a name are left out.
    pub(crate) fn new(panel: &Panel, hues: &[Hue], width: f64) -> Legend {
        let (mut x, mut row) = (0.0, 0);
        let mut entries = Vec::new();
        for (series, hue) in panel.series.iter().zip(hues).filter(|(series, _)| !series.name.is_empty()) {
            let name = text::truncated(&series.name, SIZE, Weight::Regular, LONGEST_NAME);
            let taken = swatch(series.mark) + SWATCH_GAP + text::width(&name, SIZE, Weight::Regular);
            if x > 0.0 && x + taken > width {
                (x, row) = (0.0, row + 1);
            }
            entries.push(Entry { name, mark: series.mark, hue: *hue, x, row });
            x += taken + ENTRY_GAP;
        }
        let height = if entries.is_empty() { 0.0 } else { (row + 1) as f64 * ROW };
        Legend { entries, height }
    }

    /// Draws the entries below and to the right of a point.
    pub(crate) fn draw(&self, scene: &mut Scene, left: f64, top: f64) {
        for entry in &self.entries {
            let (x, middle) = (left + entry.x, top + (entry.row as f64 + 0.5) * ROW);
            let ink = Ink::Series(entry.hue);
            let line = vec![(x, middle), (x + LINE_SWATCH, middle)];
            match entry.mark {
                Mark::Line | Mark::Step => scene.line(line, ink, 2.5, entry.hue.solid_dash()),
                Mark::Dashed => scene.line(line, ink, 2.5, entry.hue.broken_dash()),
                Mark::StackedArea | Mark::StackedSteps | Mark::Bars => {
                    scene.rect(
                        Rect { x, y: middle - AREA_SWATCH / 2.0, width: AREA_SWATCH, height: AREA_SWATCH },
                        ink,
                    );
                }
            }
            scene.text(Text {
                at: (x + swatch(entry.mark) + SWATCH_GAP, middle + SIZE * 0.36),
                text: entry.name.clone(),
                size: SIZE,
                weight: Weight::Regular,
                anchor: Anchor::Start,
                ink: Ink::Text,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Series};

    fn panel(series: impl IntoIterator<Item = Series>) -> Panel {
        Panel {
            title: None,
            x: Axis::number("x"),
            y: Axis::number("y"),
            series: series.into_iter().collect(),
        }
    }

    #[test]
    fn a_name_has_one_colour_in_all_panels_and_given_colours_are_not_given_twice() {
        let line = |name| Series::new(name, Mark::Line, Vec::new());
        let plot = Plot::new("p")
            .panel(panel([line("a"), line("b"), line("total").colour(Hue::Neutral)]))
            .panel(panel([line("c").colour(Hue::Nth(0)), line("b"), line("d")]));
        let expected =
            [vec![Hue::Nth(1), Hue::Nth(2), Hue::Neutral], vec![Hue::Nth(0), Hue::Nth(2), Hue::Nth(3)]];
        assert_eq!(hues(&plot), expected);
    }

    #[test]
    fn entries_wrap_and_stay_within_the_width() {
        let names =
            (0..20).map(|index| Series::new(format!("cluster-number-{index}"), Mark::Line, Vec::new()));
        let panel = panel(names);
        let legend = Legend::new(&panel, &[Hue::Neutral; 20], 400.0);
        assert!(legend.height > 5.0 * ROW, "{}", legend.height);
        for entry in &legend.entries {
            let end =
                entry.x + swatch(entry.mark) + SWATCH_GAP + text::width(&entry.name, SIZE, Weight::Regular);
            assert!(end <= 400.0, "{entry:?}");
        }
    }
}
