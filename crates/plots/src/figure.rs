//! Draws a whole figure: titles, axes, grid, legends and series.

use crate::layout::{LABEL, LINE, Layout, MARGIN, PanelLayout, SUBTITLE, TITLE, View, WIDTH};
use crate::marks::{self, Projection};
use crate::palette::Ink;
use crate::scene::{Anchor, Point, Rect, Scene, Text};
use crate::text::{self, Weight};
use crate::{Panel, Plot};

const PANEL_TITLE: f64 = 14.0;

/// The scene of a figure.
pub(crate) fn draw(plot: &Plot) -> Scene {
    let layout = Layout::new(plot);
    let mut scene = Scene {
        width: WIDTH,
        height: layout.height,
        title: plot.title.clone(),
        description: description(plot),
        shapes: Vec::new(),
    };
    scene.rect(Rect { x: 0.0, y: 0.0, width: WIDTH, height: layout.height }, Ink::Background);
    let mut y = MARGIN;
    for line in &layout.title {
        y += TITLE * LINE;
        put(&mut scene, line, (MARGIN, y - TITLE * 0.45), TITLE, Weight::SemiBold, Anchor::Start, Ink::Text);
    }
    for line in &layout.subtitle {
        y += SUBTITLE * LINE;
        let at = (MARGIN, y - SUBTITLE * 0.4);
        put(&mut scene, line, at, SUBTITLE, Weight::Regular, Anchor::Start, Ink::Muted);
    }
    for (panel, place) in plot.panels.iter().zip(&layout.panels) {
        draw_panel(&mut scene, panel, place);
    }
    scene
}

fn draw_panel(scene: &mut Scene, panel: &Panel, layout: &PanelLayout) {
    let area = layout.area;
    let room = WIDTH - 2.0 * MARGIN;
    if let Some(title) = &panel.title {
        let title = text::truncated(title, PANEL_TITLE, Weight::SemiBold, room);
        let at = (MARGIN, layout.top + 15.0);
        put(scene, &title, at, PANEL_TITLE, Weight::SemiBold, Anchor::Start, Ink::Text);
    }
    layout.legend.draw(scene, MARGIN, layout.legend_top);
    label(
        scene,
        &text::truncated(&panel.y.label, LABEL, Weight::Regular, room),
        (MARGIN, area.y - 14.0),
        Anchor::Start,
    );
    let x_label = text::truncated(&panel.x.label, LABEL, Weight::Regular, area.width);
    label(scene, &x_label, (area.x + area.width / 2.0, layout.x_label), Anchor::Middle);

    let Some(view) = &layout.view else {
        axis(scene, area, area.bottom());
        label(scene, "no data", (area.x + area.width / 2.0, area.y + area.height / 2.0), Anchor::Middle);
        return;
    };
    let projection = Projection::new(area, view);
    grid(scene, projection, view);
    axis(scene, area, projection.zero());
    marks::draw(scene, panel, layout, projection);
    x_labels(scene, projection, view);
}

fn grid(scene: &mut Scene, projection: Projection, view: &View) {
    let area = projection.area;
    for tick in &view.y_ticks {
        let y = projection.y(tick.at);
        scene.line(vec![(area.x, y), (area.right(), y)], Ink::Grid, 1.0, &[]);
        label(scene, &tick.label, (area.x - 8.0, y + LABEL * 0.36), Anchor::End);
    }
    for tick in &view.x_ticks {
        let x = projection.x(tick.at);
        scene.line(vec![(x, area.y), (x, area.bottom())], Ink::Grid, 1.0, &[]);
    }
}

fn x_labels(scene: &mut Scene, projection: Projection, view: &View) {
    let area = projection.area;
    for tick in &view.x_ticks {
        let x = projection.x(tick.at);
        scene.line(vec![(x, area.bottom()), (x, area.bottom() + 4.0)], Ink::Axis, 1.0, &[]);
        label(scene, &tick.label, (x, area.bottom() + 18.0), Anchor::Middle);
    }
    for (index, lines) in view.categories.iter().enumerate() {
        for (row, line) in lines.iter().enumerate() {
            let y = area.bottom() + 18.0 + row as f64 * LABEL * LINE;
            label(scene, line, (projection.x(index as f64), y), Anchor::Middle);
        }
    }
}

/// The line at zero.
fn axis(scene: &mut Scene, area: Rect, y: f64) {
    scene.line(vec![(area.x, y), (area.right(), y)], Ink::Axis, 1.0, &[]);
}

fn label(scene: &mut Scene, text: &str, at: Point, anchor: Anchor) {
    put(scene, text, at, LABEL, Weight::Regular, anchor, Ink::Muted);
}

fn put(scene: &mut Scene, text: &str, at: Point, size: f64, weight: Weight, anchor: Anchor, ink: Ink) {
    if !text.is_empty() {
        scene.text(Text { at, text: text.to_owned(), size, weight, anchor, ink });
    }
}

/// What the figure shows, in words.
fn description(plot: &Plot) -> String {
    let panel = |panel: &Panel| {
        let names = panel.series.iter().map(|series| series.name.as_str());
        let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
        let names = if names.is_empty() { String::new() } else { format!(", of {}", names.join(", ")) };
        let title = panel.title.as_ref().map(|title| format!("{title}: ")).unwrap_or_default();
        format!("{title}{} over {}{names}", panel.y.label, panel.x.label)
    };
    let panels = plot.panels.iter().map(panel);
    let sentences = plot.subtitle.iter().cloned().chain(panels);
    sentences.map(|text| format!("{}.", text.trim_end_matches('.'))).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Shape;
    use crate::{Axis, Mark, Scale, Series, Theme};
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![4 => 0.0..100.0, 1 => -1e16..1e16, 1 => -1e-7..1e-7, 1 => any::<f64>()]
    }

    fn axis() -> impl Strategy<Value = Axis> {
        let scale = prop_oneof![
            2 => Just(Scale::Number),
            2 => Just(Scale::Minutes),
            1 => prop::collection::vec(".{0,30}", 0..40).prop_map(Scale::Categories),
        ];
        (".{0,200}", prop::option::of((number(), number())), scale).prop_map(|(label, range, scale)| Axis {
            label,
            range,
            scale,
        })
    }

    fn series() -> impl Strategy<Value = Series> {
        let mark = prop::sample::select(vec![
            Mark::Line,
            Mark::Dashed,
            Mark::Step,
            Mark::StackedArea,
            Mark::StackedSteps,
            Mark::Bars,
        ]);
        (".{0,60}", mark, prop::collection::vec((number(), number()), 0..12))
            .prop_map(|(name, mark, points)| Series::new(name, mark, points))
    }

    fn plot() -> impl Strategy<Value = Plot> {
        let panel = (prop::option::of(".{0,200}"), axis(), axis(), prop::collection::vec(series(), 0..8))
            .prop_map(|(title, x, y, series)| Panel { title, x, y, series });
        (".{0,300}", prop::option::of(".{0,600}"), prop::collection::vec(panel, 0..4))
            .prop_map(|(title, subtitle, panels)| Plot { title, subtitle, panels })
    }

    /// The least rectangle around a shape, of a text as wide as it can be.
    fn corners(shape: &Shape) -> Vec<Point> {
        match shape {
            Shape::Polygon { points, .. } | Shape::Polyline { points, .. } => points.clone(),
            Shape::Text(text) => {
                let width = text::width(&text.text, text.size, text.weight);
                let left = match text.anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => width / 2.0,
                    Anchor::End => width,
                };
                let (x, y) = text.at;
                vec![(x - left, y - text.size), (x - left + width, y + text.size * 0.3)]
            }
        }
    }

    proptest! {
        #[test]
        fn all_that_is_drawn_is_finite_and_on_the_canvas(plot in plot()) {
            let scene = draw(&plot);
            for shape in &scene.shapes {
                for (x, y) in corners(shape) {
                    prop_assert!((0.0..=scene.width).contains(&x), "{shape:?}");
                    prop_assert!((0.0..=scene.height).contains(&y), "{shape:?}");
                }
            }
            prop_assert!(plot.svg().ends_with("</svg>\n"));
        }

        #[test]
        fn series_are_drawn_within_their_plot_area(plot in plot()) {
            let layout = Layout::new(&plot);
            let series = draw(&plot).shapes.into_iter().filter_map(|shape| match shape {
                // Lines of legends are the other lines in the colour of a series.
                Shape::Polyline { ref points, ink: Ink::Series(_), width, .. } if width < 2.4 => Some(points.clone()),
                Shape::Polygon { .. } | Shape::Polyline { .. } | Shape::Text(_) => None,
            });
            for points in series {
                let within = |rect: Rect, (x, y): Point| {
                    (rect.x - 0.01..=rect.right() + 0.01).contains(&x)
                        && (rect.y - 0.01..=rect.bottom() + 0.01).contains(&y)
                };
                let home = layout.panels.iter().any(|panel| points.iter().all(|point| within(panel.area, *point)));
                prop_assert!(home, "{points:?}");
            }
        }
    }

    #[test]
    fn a_panel_without_data_says_so() {
        let says = |points: Vec<(f64, f64)>, mark| {
            let panel = Panel::new(Axis::minutes("t"), Axis::number("y"));
            let plot = Plot::new("p").panel(panel.series(Series::new("a", mark, points)));
            plot.svg().contains(">no data<")
        };
        assert!(Plot::new("").png(Theme::Dark).is_ok());
        for mark in [Mark::Line, Mark::Step, Mark::StackedArea, Mark::StackedSteps, Mark::Bars] {
            assert!(says(Vec::new(), mark));
            assert!(says(vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (2.0, f64::NAN)], mark));
            assert!(!says(vec![(1.0, 0.0), (2.0, f64::NAN), (3.0, 1.0)], mark));
        }
    }
}
