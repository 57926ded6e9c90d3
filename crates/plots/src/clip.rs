//! Lines and polygons cut at the edges of the plot area, so that nothing is drawn outside it.

use crate::scene::{Point, Rect};

/// The parts of a line that lie in a rectangle.
pub(crate) fn polyline(points: &[Point], area: Rect) -> Vec<Vec<Point>> {
    let mut parts: Vec<Vec<Point>> = Vec::new();
    for (start, end) in points.iter().zip(points.iter().skip(1)) {
        let Some((from, to)) = segment(*start, *end, area) else { continue };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&from) => part.push(to),
            Some(_) | None => parts.push(vec![from, to]),
        }
    }
    parts
}

/// The part of a polygon that lies in a rectangle.
pub(crate) fn polygon(points: &[Point], area: Rect) -> Vec<Point> {
    let right_of_left = half(points, |p| p.0 - area.x);
    let left_of_right = half(&right_of_left, |p| area.right() - p.0);
    let below_top = half(&left_of_right, |p| p.1 - area.y);
    let above_bottom = half(&below_top, |p| area.bottom() - p.1);
    above_bottom.into_iter().map(|point| inside(point, area)).collect()
}

/// The nearest point of a rectangle: cutting very long lines leaves rounding errors.
pub(crate) fn inside((x, y): Point, area: Rect) -> Point {
    (x.max(area.x).min(area.right()), y.max(area.y).min(area.bottom()))
}

/// The part of a segment that lies in a rectangle (Liang and Barsky).
fn segment(start: Point, end: Point, area: Rect) -> Option<(Point, Point)> {
    let (dx, dy) = (end.0 - start.0, end.1 - start.1);
    let edges = [
        (-dx, start.0 - area.x),
        (dx, area.right() - start.0),
        (-dy, start.1 - area.y),
        (dy, area.bottom() - start.1),
    ];
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (speed, room) in edges {
        if speed == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if speed < 0.0 {
            enter = enter.max(room / speed);
        } else {
            leave = leave.min(room / speed);
        }
    }
    let at = |t: f64| (start.0 + t * dx, start.1 + t * dy);
    let from = if enter > 0.0 { at(enter) } else { start };
    let to = if leave < 1.0 { at(leave) } else { end };
    (enter <= leave).then_some((inside(from, area), inside(to, area)))
}

/// The part of a polygon where `depth` is not negative (Sutherland and Hodgman).
fn half(points: &[Point], depth: impl Fn(Point) -> f64) -> Vec<Point> {
    let mut kept = Vec::with_capacity(points.len());
    let before = points.iter().cycle().skip(points.len().saturating_sub(1));
    for (previous, current) in before.zip(points) {
        let (a, b) = (depth(*previous), depth(*current));
        if (a < 0.0) != (b < 0.0) {
            let t = a / (a - b);
            kept.push((previous.0 + t * (current.0 - previous.0), previous.1 + t * (current.1 - previous.1)));
        }
        if b >= 0.0 {
            kept.push(*current);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Rect = Rect { x: 0.0, y: 0.0, width: 10.0, height: 10.0 };

    #[test]
    fn a_line_that_leaves_and_returns_becomes_two() {
        let parts = polyline(&[(2.0, 5.0), (4.0, 5.0), (4.0, 25.0), (6.0, 25.0), (6.0, 5.0)], AREA);
        assert_eq!(parts, [vec![(2.0, 5.0), (4.0, 5.0), (4.0, 10.0)], vec![(6.0, 10.0), (6.0, 5.0)]]);
        assert!(polyline(&[(-5.0, -1.0), (15.0, -1.0)], AREA).is_empty());
        let long = polyline(&[(5.0, -1e22), (5.0, 25.0)], AREA);
        assert_eq!(long, [vec![(5.0, 0.0), (5.0, 10.0)]], "its parameters are rounded to those of its ends");
    }

    #[test]
    fn a_polygon_is_cut_at_the_edges() {
        let cut = polygon(&[(-5.0, 5.0), (5.0, 5.0), (5.0, 20.0), (-5.0, 20.0)], AREA);
        assert_eq!(cut, [(0.0, 10.0), (0.0, 5.0), (5.0, 5.0), (5.0, 10.0)]);
        assert!(polygon(&[(20.0, 20.0), (30.0, 20.0), (30.0, 30.0)], AREA).is_empty());
    }
}
