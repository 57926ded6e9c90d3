//! A drawing: shapes in order, with roles for colours. The SVG and the PNG are two forms of one scene.

use crate::palette::Ink;
use crate::text::Weight;

/// A point in units of the canvas, from its top left corner.
pub(crate) type Point = (f64, f64);

/// A rectangle of the canvas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Which part of a text stands at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// One thing that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Shape {
    /// A filled polygon.
    Polygon { points: Vec<Point>, ink: Ink },
    /// A line through points.
    Polyline { points: Vec<Point>, ink: Ink, width: f64, dash: &'static [f64] },
    /// A text on a baseline.
    Text(Text),
}

/// A text on a baseline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    pub(crate) at: Point,
    pub(crate) text: String,
    pub(crate) size: f64,
    pub(crate) weight: Weight,
    pub(crate) anchor: Anchor,
    pub(crate) ink: Ink,
}

/// A canvas and the shapes on it, the first lowest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scene {
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// The title, for readers who do not see the drawing.
    pub(crate) title: String,
    /// What the drawing shows, for the same readers.
    pub(crate) description: String,
    pub(crate) shapes: Vec<Shape>,
}

impl Rect {
    pub(crate) fn right(self) -> f64 {
        self.x + self.width
    }

    pub(crate) fn bottom(self) -> f64 {
        self.y + self.height
    }

    pub(crate) fn corners(self) -> Vec<Point> {
        vec![(self.x, self.y), (self.right(), self.y), (self.right(), self.bottom()), (self.x, self.bottom())]
    }
}

impl Scene {
    /// Draws a filled polygon, unless it has no area.
    pub(crate) fn polygon(&mut self, points: Vec<Point>, ink: Ink) {
        let points = simplified(points);
        if points.len() > 2 {
            self.shapes.push(Shape::Polygon { points, ink });
        }
    }

    /// Draws a filled rectangle.
    pub(crate) fn rect(&mut self, rect: Rect, ink: Ink) {
        self.polygon(rect.corners(), ink);
    }

    /// Draws a line through points.
    pub(crate) fn line(&mut self, points: Vec<Point>, ink: Ink, width: f64, dash: &'static [f64]) {
        let points = simplified(points);
        if points.len() > 1 {
            self.shapes.push(Shape::Polyline { points, ink, width, dash });
        }
    }

    /// Draws a text.
    pub(crate) fn text(&mut self, text: Text) {
        let at = rounded(text.at);
        self.shapes.push(Shape::Text(Text { at, ..text }));
    }
}

/// Rounded to a hundredth: finer differences are not seen.
fn rounded((x, y): Point) -> Point {
    let round = |value: f64| (value * 100.0).round() / 100.0;
    (round(x), round(y))
}

/// Rounded points without those that lie on a level or upright line between their neighbours.
fn simplified(points: Vec<Point>) -> Vec<Point> {
    let mut kept: Vec<Point> = Vec::with_capacity(points.len());
    for point in points.into_iter().map(rounded) {
        if kept.last() == Some(&point) {
            continue;
        }
        if let [.., before, last] = kept.as_slice()
            && (between(before.0, last.0, point.0) && before.1 == last.1 && last.1 == point.1
                || between(before.1, last.1, point.1) && before.0 == last.0 && last.0 == point.0)
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}

fn between(first: f64, middle: f64, last: f64) -> bool {
    (first <= middle && middle <= last) || (first >= middle && middle >= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_level_lines_are_left_out() {
        let points =
            vec![(0.0, 1.0), (1.001, 1.001), (2.0, 1.0), (2.0, 5.0), (2.0, 3.0), (9.0, 4.0), (9.0, 4.0)];
        assert_eq!(simplified(points), [(0.0, 1.0), (2.0, 1.0), (2.0, 5.0), (2.0, 3.0), (9.0, 4.0)]);
    }
}
