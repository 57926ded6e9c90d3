//! Draws the series of a panel into its plot area.

use crate::clip;
use crate::data::Geometry;
use crate::layout::{LABEL, PanelLayout, View};
use crate::palette::Ink;
use crate::scene::{Anchor, Point, Rect, Scene, Text};
use crate::text::{self, Weight};
use crate::ticks;
use crate::{Mark, Panel};

const LINE_WIDTH: f64 = 2.0;
const WIDEST_BAR: f64 = 56.0;
/// The part of a category's slot that its bars take.
const GROUP: f64 = 0.8;

/// From data to the canvas.
#[derive(Clone, Copy)]
pub(crate) struct Projection {
    pub(crate) area: Rect,
    x: (f64, f64),
    y: (f64, f64),
}

impl Projection {
    pub(crate) fn new(area: Rect, view: &View) -> Projection {
        Projection { area, x: view.x, y: view.y }
    }

    pub(crate) fn x(self, value: f64) -> f64 {
        self.area.x + (value - self.x.0) / (self.x.1 - self.x.0) * self.area.width
    }

    pub(crate) fn y(self, value: f64) -> f64 {
        self.area.bottom() - (value - self.y.0) / (self.y.1 - self.y.0) * self.area.height
    }

    fn point(self, (x, y): Point) -> Point {
        (self.x(x), self.y(y))
    }

    fn points(self, points: &[Point]) -> Vec<Point> {
        points.iter().map(|point| self.point(*point)).collect()
    }

    /// Where bars stand: zero, or the edge nearest to it.
    pub(crate) fn zero(self) -> f64 {
        self.y(0.0).max(self.area.y).min(self.area.bottom())
    }
}

/// Draws all series: areas and bars first, so that lines lie over them.
pub(crate) fn draw(scene: &mut Scene, panel: &Panel, layout: &PanelLayout, projection: Projection) {
    let filled = |geometry: &Geometry| !matches!(geometry, Geometry::Curve(_));
    let places = layout.geometries.iter().filter(|g| matches!(g, Geometry::Bars { .. })).count();
    let over_areas = layout.geometries.iter().any(filled);
    let parts = || panel.series.iter().zip(&layout.geometries).zip(&layout.hues);
    for ((_, geometry), hue) in parts() {
        let ink = Ink::Series(*hue);
        match geometry {
            Geometry::Band { lower, upper } => band(scene, projection, lower, upper, ink),
            Geometry::Bars { place, bars } => {
                let slots = layout.view.as_ref().map_or(1, |view| view.categories.len().max(1));
                let group = Group { slots, places, place: *place };
                bars.iter()
                    .for_each(|(category, value)| group.bar(scene, projection, *category, *value, ink));
            }
            Geometry::Curve(_) => {}
        }
    }
    for ((series, geometry), hue) in parts() {
        let dash = match series.mark {
            Mark::Dashed => hue.broken_dash(),
            Mark::Line | Mark::Step | Mark::StackedArea | Mark::StackedSteps | Mark::Bars => hue.solid_dash(),
        };
        if let Geometry::Curve(runs) = geometry {
            for run in runs {
                curve(scene, projection, run, Pen { ink: Ink::Series(*hue), dash, cased: over_areas });
            }
        }
    }
}

/// How a line is drawn; `cased` with an edge in the colour of the page, to be seen on any area.
#[derive(Clone, Copy)]
struct Pen {
    ink: Ink,
    dash: &'static [f64],
    cased: bool,
}

fn curve(scene: &mut Scene, projection: Projection, run: &[Point], pen: Pen) {
    let points = projection.points(run);
    if let [only] = points.as_slice() {
        if clip::inside(*only, projection.area) == *only {
            let around = Rect { x: only.0 - 2.5, y: only.1 - 2.5, width: 5.0, height: 5.0 };
            scene.polygon(clip::polygon(&around.corners(), projection.area), pen.ink);
        }
        return;
    }
    for part in clip::polyline(&points, projection.area) {
        if pen.cased {
            scene.line(part.clone(), Ink::Background, LINE_WIDTH + 2.5, &[]);
        }
        scene.line(part, pen.ink, LINE_WIDTH, pen.dash);
    }
}

/// An area, with a thin upper edge in the colour of the page that parts it from the next one. Where the area is too thin
/// to be seen beside an edge it has none.
fn band(scene: &mut Scene, projection: Projection, lower: &[Point], upper: &[Point], ink: Ink) {
    const THINNEST: f64 = 2.0;
    let (top, bottom) = (projection.points(upper), projection.points(lower));
    let around: Vec<Point> = top.iter().chain(bottom.iter().rev()).copied().collect();
    scene.polygon(clip::polygon(&around, projection.area), ink);
    let edges: Vec<(Point, bool)> =
        top.iter().zip(&bottom).map(|(top, bottom)| (*top, (bottom.1 - top.1).abs() >= THINNEST)).collect();
    for run in edges.split(|(_, visible)| !visible) {
        let run: Vec<Point> = run.iter().map(|(point, _)| *point).collect();
        for edge in clip::polyline(&run, projection.area) {
            scene.line(edge, Ink::Background, 0.75, &[]);
        }
    }
}

/// The bars of one series among those of its category.
#[derive(Clone, Copy)]
struct Group {
    slots: usize,
    places: usize,
    place: usize,
}

impl Group {
    fn bar(self, scene: &mut Scene, projection: Projection, category: usize, value: f64, ink: Ink) {
        let slot = projection.area.width / self.slots as f64;
        let step = (slot * GROUP / self.places.max(1) as f64).min(WIDEST_BAR);
        let middle = projection.area.x + (category as f64 + 0.5) * slot;
        let left = middle + (self.place as f64 - self.places as f64 / 2.0) * step;
        let gap = if step > 8.0 { 1.5 } else { 0.0 };
        let zero = projection.zero();
        let end = projection.y(value).max(projection.area.y).min(projection.area.bottom());
        let (y, height) = (zero.min(end), (zero - end).abs());
        scene.rect(Rect { x: left + gap / 2.0, y, width: step - gap, height }, ink);

        let label = ticks::value(value);
        let size = LABEL - 1.5;
        if text::width(&label, size, Weight::Regular) <= step && value >= 0.0 {
            let at = (left + step / 2.0, end - 4.0);
            let anchor = Anchor::Middle;
            scene.text(Text { at, text: label, size, weight: Weight::Regular, anchor, ink: Ink::Text });
        }
    }
}
