//! From series to geometry in units of the data: curves, bands and bars, and the ranges they take.

use crate::{Axis, Mark, Panel, Scale};

/// A point of the data.
type Point = (f64, f64);

/// What one series is drawn as.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Geometry {
    /// Lines, one for each run without a gap.
    Curve(Vec<Vec<Point>>),
    /// The lower and the upper edge of an area.
    Band { lower: Vec<Point>, upper: Vec<Point> },
    /// Categories and values, at this place among the bars of a category.
    Bars { place: usize, bars: Vec<(usize, f64)> },
}

/// Values beyond this are drawn no more than values that are not finite.
const LARGEST: f64 = 1e15;

/// Whether a value can be drawn.
fn usable(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// The geometry of each series of a panel.
pub(crate) fn geometries(panel: &Panel) -> Vec<Geometry> {
    let end = fixed(&panel.x).or_else(|| x_extent(panel)).map(|(_, last)| last);
    let mut areas = stack(panel, Mark::StackedArea, end).into_iter();
    let mut steps = stack(panel, Mark::StackedSteps, end).into_iter();
    let none = || Geometry::Curve(Vec::new());
    let mut place = 0;
    let mut geometry = |series: &crate::Series| match series.mark {
        Mark::Line | Mark::Dashed => Geometry::Curve(runs(&series.points)),
        Mark::Step => Geometry::Curve(runs(&series.points).iter().map(|run| stairs(run, end)).collect()),
        Mark::StackedArea => areas.next().unwrap_or_else(none),
        Mark::StackedSteps => steps.next().unwrap_or_else(none),
        Mark::Bars => {
            place += 1;
            Geometry::Bars { place: place - 1, bars: bars(&series.points, panel) }
        }
    };
    panel.series.iter().map(&mut geometry).collect()
}

/// The range of the horizontal axis, if there is something to show.
pub(crate) fn x_range(panel: &Panel) -> Option<(f64, f64)> {
    let extent = x_extent(panel)?;
    match &panel.x.scale {
        Scale::Categories(names) => Some((-0.5, names.len().max(1) as f64 - 0.5)),
        Scale::Number | Scale::Minutes => Some(fixed(&panel.x).unwrap_or_else(|| broad(extent))),
    }
}

/// The range of the values of geometries, with zero in it.
pub(crate) fn y_extent(geometries: &[Geometry]) -> (f64, f64) {
    let values = geometries.iter().flat_map(|geometry| -> Vec<f64> {
        match geometry {
            Geometry::Curve(runs) => runs.iter().flatten().map(|point| point.1).collect(),
            Geometry::Band { lower, upper } => lower.iter().chain(upper).map(|point| point.1).collect(),
            Geometry::Bars { bars, .. } => bars.iter().map(|bar| bar.1).collect(),
        }
    });
    let (first, last) = values.fold((0.0_f64, 0.0_f64), |(a, b), value| (a.min(value), b.max(value)));
    if first == last { (0.0, 1.0) } else { broad((first, last)) }
}

/// The range that an axis is given, if it is one.
pub(crate) fn fixed(axis: &Axis) -> Option<(f64, f64)> {
    axis.range.filter(|(first, last)| usable(*first) && usable(*last) && first < last).map(broad)
}

/// A range that is wide enough to divide by and to label.
fn broad((first, last): (f64, f64)) -> (f64, f64) {
    if first == last {
        return (first - 0.5, last + 0.5_f64.max(last.abs() * 1e-6));
    }
    let least = 1e-6_f64.max(first.abs().max(last.abs()) * 1e-6);
    (first, last.max(first + least))
}

fn x_extent(panel: &Panel) -> Option<(f64, f64)> {
    let points = panel.series.iter().flat_map(|series| &series.points);
    points.filter(|(x, y)| usable(*x) && usable(*y)).fold(None, |extent, (x, _)| match extent {
        None => Some((*x, *x)),
        Some((first, last)) => Some((x.min(first), x.max(last))),
    })
}

/// The points in order, divided at gaps.
fn runs(points: &[Point]) -> Vec<Vec<Point>> {
    let mut sorted: Vec<Point> = points.iter().copied().filter(|(x, _)| usable(*x)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let runs = sorted.split(|(_, y)| !usable(*y)).filter(|run| !run.is_empty());
    runs.map(<[Point]>::to_vec).collect()
}

/// A line on which each value holds until the next point, and the last one until `end`.
fn stairs(points: &[Point], end: Option<f64>) -> Vec<Point> {
    let mut line: Vec<Point> = Vec::with_capacity(points.len() * 2);
    for &(x, y) in points {
        if let Some(&(_, before)) = line.last() {
            line.push((x, before));
        }
        line.push((x, y));
    }
    if let (Some(&(x, y)), Some(end)) = (line.last(), end)
        && end > x
    {
        line.push((end, y));
    }
    line
}

fn bars(points: &[Point], panel: &Panel) -> Vec<(usize, f64)> {
    let categories = match &panel.x.scale {
        Scale::Categories(names) => names.len(),
        Scale::Number | Scale::Minutes => 0,
    };
    let near = points.iter().filter(|(x, y)| usable(*x) && usable(*y) && *x > -0.5);
    near.map(|(x, y)| (x.round() as usize, *y)).filter(|(category, _)| *category < categories).collect()
}

/// The bands of all series with a stacked mark, from the bottom.
fn stack(panel: &Panel, mark: Mark, end: Option<f64>) -> Vec<Geometry> {
    let stacked = panel.series.iter().filter(|series| series.mark == mark);
    let rows: Vec<Vec<Point>> = stacked.map(|series| runs(&series.points).concat()).collect();
    let mut xs: Vec<f64> = rows.iter().flatten().map(|point| point.0).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let mut floor: Vec<Point> = xs.iter().map(|x| (*x, 0.0)).collect();
    let edge = |points: &[Point]| match mark {
        Mark::StackedSteps => stairs(points, end),
        Mark::StackedArea | Mark::Line | Mark::Dashed | Mark::Step | Mark::Bars => points.to_vec(),
    };
    let mut bands = Vec::with_capacity(rows.len());
    for row in &rows {
        let values = sampled(row, &xs, mark);
        let top: Vec<Point> = floor.iter().zip(values).map(|((x, base), value)| (*x, base + value)).collect();
        bands.push(Geometry::Band { lower: edge(&floor), upper: edge(&top) });
        floor = top;
    }
    bands
}

/// The values of a row at positions: held or interpolated between its points, zero before the first one. Held values
/// last; interpolated ones end with the last point.
fn sampled(row: &[Point], xs: &[f64], mark: Mark) -> Vec<f64> {
    let mut rest = row.iter().peekable();
    let mut last: Option<Point> = None;
    let mut values = Vec::with_capacity(xs.len());
    for &x in xs {
        while let Some(point) = rest.next_if(|point| point.0 <= x) {
            last = Some(*point);
        }
        values.push(match (last, rest.peek()) {
            (None, _) => 0.0,
            (Some((_, y)), _) if mark == Mark::StackedSteps => y,
            (Some((at, y)), _) if at == x => y,
            (Some((at, y)), Some((next, then))) => y + (then - y) * (x - at) / (next - at),
            (Some(_), None) => 0.0,
        });
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Series;

    fn panel(series: Vec<Series>) -> Panel {
        Panel { title: None, x: Axis::number("x"), y: Axis::number("y"), series }
    }

    #[test]
    fn areas_of_unlike_points_are_stacked_by_interpolation() {
        let a = Series::new("a", Mark::StackedArea, vec![(0.0, 0.0), (4.0, 4.0)]);
        let b =
            Series::new("b", Mark::StackedArea, vec![(2.0, 1.0), (0.0, 1.0), (4.0, 1.0), (3.0, f64::NAN)]);
        let geometries = geometries(&panel(vec![a, b]));
        let top = vec![(0.0, 1.0), (2.0, 3.0), (4.0, 5.0)];
        let middle = vec![(0.0, 0.0), (2.0, 2.0), (4.0, 4.0)];
        assert_eq!(geometries[1], Geometry::Band { lower: middle, upper: top });
        assert_eq!(y_extent(&geometries), (0.0, 5.0));
    }

    #[test]
    fn steps_hold_until_the_end_of_the_axis() {
        let steps = panel(vec![Series::new("a", Mark::Step, vec![(0.0, 1.0), (2.0, 3.0)])]);
        let steps = Panel { x: steps.x.clone().between(0.0, 5.0), ..steps };
        let line = vec![(0.0, 1.0), (2.0, 1.0), (2.0, 3.0), (5.0, 3.0)];
        assert_eq!(geometries(&steps), [Geometry::Curve(vec![line])]);
    }

    #[test]
    fn a_value_that_is_not_finite_is_a_gap() {
        let points =
            [(0.0, 1.0), (1.0, 1.0), (2.0, f64::INFINITY), (3.0, 1.0), (f64::NAN, 1.0), (4.0, 1e300)];
        assert_eq!(runs(&points), [vec![(0.0, 1.0), (1.0, 1.0)], vec![(3.0, 1.0)]]);
        assert_eq!(x_range(&panel(vec![Series::new("a", Mark::Line, vec![(f64::NAN, 1.0)])])), None);
    }
}
