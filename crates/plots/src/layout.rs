//! Where the parts of a figure stand on the canvas.

use crate::data::{self, Geometry};
use crate::legend::{self, Legend};
use crate::palette::Hue;
use crate::scene::Rect;
use crate::text::{self, Weight};
use crate::ticks::{self, Steps, Tick};
use crate::{Axis, Panel, Plot, Scale};

/// The width of each figure.
pub(crate) const WIDTH: f64 = 860.0;
/// The free space at the left and at the right of titles.
pub(crate) const MARGIN: f64 = 20.0;
/// The size of the labels of axes and ticks.
pub(crate) const LABEL: f64 = 12.0;
/// The size of the title of the figure.
pub(crate) const TITLE: f64 = 18.0;
/// The size of the subtitle.
pub(crate) const SUBTITLE: f64 = 13.0;
/// The distance of lines of text, as a multiple of their size.
pub(crate) const LINE: f64 = 1.35;

const RIGHT: f64 = 42.0;
const PANEL_TITLE: f64 = 24.0;
const Y_LABEL: f64 = 36.0;
const TICK_LABEL: f64 = 20.0;
const X_LABEL: f64 = 20.0;
const PANEL_GAP: f64 = 22.0;

/// The parts of a figure.
pub(crate) struct Layout {
    pub(crate) title: Vec<String>,
    pub(crate) subtitle: Vec<String>,
    pub(crate) panels: Vec<PanelLayout>,
    pub(crate) height: f64,
}

/// The parts of a panel, from the top: title, legend, label of the vertical axis, plot area, ticks, label.
pub(crate) struct PanelLayout {
    pub(crate) hues: Vec<Hue>,
    pub(crate) geometries: Vec<Geometry>,
    pub(crate) top: f64,
    pub(crate) legend: Legend,
    pub(crate) legend_top: f64,
    pub(crate) area: Rect,
    /// Absent if there is nothing to draw.
    pub(crate) view: Option<View>,
    pub(crate) x_label: f64,
}

/// The ranges of a panel, their ticks, and the names of categories in lines.
pub(crate) struct View {
    pub(crate) x: (f64, f64),
    pub(crate) y: (f64, f64),
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) y_ticks: Vec<Tick>,
    pub(crate) categories: Vec<Vec<String>>,
}

impl Layout {
    /// The layout of a figure.
    pub(crate) fn new(plot: &Plot) -> Layout {
        let room = WIDTH - 2.0 * MARGIN;
        let title = text::wrapped(&plot.title, TITLE, Weight::SemiBold, room, 2);
        let subtitle = plot.subtitle.as_deref().unwrap_or_default();
        let subtitle = text::wrapped(subtitle, SUBTITLE, Weight::Regular, room, 3);
        let tall = if plot.panels.len() > 1 { 210.0 } else { 300.0 };
        let all: Vec<Vec<Geometry>> = plot.panels.iter().map(data::geometries).collect();
        let y_axes: Vec<_> = plot.panels.iter().zip(&all).map(|(panel, all)| y_axis(&panel.y, all)).collect();
        let widest = y_axes
            .iter()
            .flat_map(|(_, ticks)| ticks)
            .map(|tick| text::width(&tick.label, LABEL, Weight::Regular))
            .fold(30.0, f64::max);
        let left = (MARGIN + widest + 8.0).ceil();
        let width = WIDTH - left - RIGHT;

        let mut y = MARGIN + title.len() as f64 * TITLE * LINE + subtitle.len() as f64 * SUBTITLE * LINE;
        let mut panels = Vec::with_capacity(plot.panels.len());
        let parts = plot.panels.iter().zip(all).zip(y_axes).zip(legend::hues(plot));
        for (((panel, geometries), (y_range, y_ticks)), hues) in parts {
            let gap = if panels.is_empty() { 8.0 } else { PANEL_GAP + 8.0 };
            let top = (y + gap).round();
            let legend_top = top + if panel.title.is_some() { PANEL_TITLE } else { 0.0 };
            let legend = Legend::new(panel, &hues, WIDTH - 2.0 * MARGIN);
            let area_top = legend_top + legend.height + Y_LABEL;
            let area = Rect { x: left, y: area_top, width, height: tall };
            let view = data::x_range(panel).map(|x| {
                let x_ticks = x_ticks(panel, x, width);
                View { x, y: y_range, x_ticks, y_ticks, categories: categories(panel, width) }
            });
            let lines =
                view.as_ref().and_then(|view| view.categories.iter().map(Vec::len).max()).unwrap_or(1);
            let x_label =
                area.bottom() + TICK_LABEL + (lines.max(1) - 1) as f64 * LABEL * LINE + X_LABEL - 3.0;
            y = x_label;
            panels.push(PanelLayout { hues, geometries, top, legend, legend_top, area, view, x_label });
        }
        Layout { title, subtitle, panels, height: (y + MARGIN).ceil() }
    }
}

fn steps(axis: &Axis) -> Steps {
    match axis.scale {
        Scale::Number | Scale::Categories(_) => Steps::Decimal,
        Scale::Minutes => Steps::Minutes,
    }
}

fn y_axis(axis: &Axis, geometries: &[Geometry]) -> ((f64, f64), Vec<Tick>) {
    const MOST: usize = 5;
    let (first, last) = data::fixed(axis).unwrap_or_else(|| {
        let (first, last) = data::y_extent(geometries);
        ticks::widened(first, last, MOST, steps(axis))
    });
    ((first, last), ticks::ticks(first, last, MOST, steps(axis)))
}

/// As many ticks as have room for their labels.
fn x_ticks(panel: &Panel, (first, last): (f64, f64), width: f64) -> Vec<Tick> {
    if matches!(panel.x.scale, Scale::Categories(_)) {
        return Vec::new();
    }
    let fits = |ticks: &Vec<Tick>| {
        let widths = ticks.iter().map(|tick| text::width(&tick.label, LABEL, Weight::Regular) + 16.0);
        widths.fold(0.0, f64::max) * ticks.len() as f64 <= width
    };
    let choices = (1..=12).rev().map(|most| ticks::ticks(first, last, most, steps(&panel.x)));
    choices.into_iter().find(fits).unwrap_or_default()
}

/// The names of categories, each in lines as wide as its slot. Where slots are too narrow for text, only every n-th
/// category has its name.
fn categories(panel: &Panel, width: f64) -> Vec<Vec<String>> {
    const NARROWEST: f64 = 40.0;
    let Scale::Categories(names) = &panel.x.scale else { return Vec::new() };
    let slot = width / names.len().max(1) as f64;
    let every = (NARROWEST / slot).ceil().max(1.0) as usize;
    let room = slot * every as f64 - 6.0;
    let lines = |(index, name): (usize, &String)| match index % every {
        0 => text::wrapped(name, LABEL, Weight::Regular, room, 2),
        _ => Vec::new(),
    };
    names.iter().enumerate().map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mark, Series};

    #[test]
    fn legends_plot_areas_and_labels_do_not_overlap() {
        for count in [0, 1, 5, 20] {
            let series = (0..count)
                .map(|n| Series::new(format!("cluster-{n}"), Mark::Line, vec![(0.0, 1.0), (9.0, 2.0)]));
            let panel =
                Panel { series: series.collect(), ..Panel::new(Axis::minutes("t"), Axis::number("y")) };
            let plot = Plot::new("p").panel(panel.clone().title("one")).panel(panel);
            let layout = Layout::new(&plot);
            let mut above = 0.0;
            for panel in &layout.panels {
                assert!(panel.top >= above);
                assert!(panel.legend_top >= panel.top);
                assert!(panel.legend_top + panel.legend.height <= panel.area.y - LABEL);
                assert!(panel.x_label > panel.area.bottom() + LABEL);
                above = panel.x_label;
            }
            assert!(layout.height > above);
        }
    }

    #[test]
    fn many_categories_share_the_width() {
        let names = |count: usize| Axis::categories("c", (0..count).map(|n| format!("category-{n}")));
        let named = |count: usize| {
            let lines = categories(&Panel::new(names(count), Axis::number("y")), 700.0);
            (lines.len(), lines.iter().filter(|lines| !lines.is_empty()).count())
        };
        assert_eq!(named(4), (4, 4));
        assert_eq!(named(35), (35, 18));
    }
}
