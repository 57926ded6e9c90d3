//! Figures of a simulation, as SVG and as PNG: the same bytes on every machine.
//!
//! ```
//! use portolan_plots::{Axis, Mark, Panel, Plot, Series};
//!
//! let plot = Plot::new("CPU requested").panel(
//!     Panel::new(Axis::minutes("time (minutes)"), Axis::number("CPU cores"))
//!         .series(Series::new("lille", Mark::StackedArea, vec![(0.0, 2.0), (30.0, 8.0)]))
//!         .series(Series::new("cloud", Mark::Dashed, vec![(0.0, 0.0), (30.0, 16.0)])),
//! );
//! assert!(plot.svg().starts_with("<svg"));
//! ```
//!
//! A plot becomes one scene: shapes whose colours are roles. `svg` writes the scene, `raster` paints it.
//! Coordinates are rounded to a hundredth of a pixel, and no function is used whose result depends on the machine:
//! no clock, no randomness, no system font, no trigonometry.

mod clip;
mod data;
mod figure;
mod layout;
mod legend;
mod marks;
mod palette;
mod raster;
mod scene;
mod svg;
mod text;
mod ticks;

pub use palette::{Hue, Theme};
pub use raster::PlotError;

/// A figure: a title and panels, one above the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Plot {
    /// The title of the figure.
    pub title: String,
    /// What the reader must know to read the figure, in one or two sentences.
    pub subtitle: Option<String>,
    /// The panels, from the top.
    pub panels: Vec<Panel>,
}

/// One plot area with its axes and its legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// The title of this panel, if the figure has several.
    pub title: Option<String>,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The data, in the order of the legend; of stacked series the first lies at the bottom.
    pub series: Vec<Series>,
}

/// One axis of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The quantity, with its unit.
    pub label: String,
    /// The first and the last value shown; taken from the data if absent, not finite or empty.
    pub range: Option<(f64, f64)>,
    /// Where ticks stand.
    pub scale: Scale,
}

/// Where the ticks of an axis stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scale {
    /// At multiples of 1, 2 or 5 times a power of ten.
    Number,
    /// At multiples of 1, 2, 5, 10, 15 or 30 minutes, or of hours.
    Minutes,
    /// One per category, for [`Mark::Bars`] on the horizontal axis: a point's x is the index of its category.
    Categories(Vec<String>),
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Straight lines between the points.
    Line,
    /// As `Line`, dashed: a second quantity over areas.
    Dashed,
    /// A value holds until the next point, the last one until the end of the axis.
    Step,
    /// An area on top of the areas before it, with straight lines between the points.
    StackedArea,
    /// As `StackedArea`, of values that hold until the next point.
    StackedSteps,
    /// Bars from zero, those of one category side by side.
    Bars,
}

/// One named row of data. Values that are not finite, or beyond ±10¹⁵, are gaps.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The name in the legend; series of one name have one colour in all panels.
    pub name: String,
    /// How the series is drawn.
    pub mark: Mark,
    /// The points, in any order.
    pub points: Vec<(f64, f64)>,
    /// The colour, so that one cluster has one colour in all figures; the next free one if absent.
    pub colour: Option<Hue>,
}

impl Plot {
    /// A figure without panels.
    pub fn new(title: impl Into<String>) -> Plot {
        Plot { title: title.into(), subtitle: None, panels: Vec::new() }
    }

    /// The figure with this subtitle.
    pub fn subtitle(self, subtitle: impl Into<String>) -> Plot {
        Plot { subtitle: Some(subtitle.into()), ..self }
    }

    /// The figure with one more panel below.
    pub fn panel(mut self, panel: Panel) -> Plot {
        self.panels.push(panel);
        self
    }

    /// The figure as one self-contained SVG file that is legible on light and on dark pages.
    pub fn svg(&self) -> String {
        svg::write(&figure::draw(self))
    }

    /// The figure as a PNG file with an opaque background, at two pixels for each unit of the SVG.
    pub fn png(&self, theme: Theme) -> Result<Vec<u8>, PlotError> {
        raster::paint(&figure::draw(self), theme)
    }
}

impl Panel {
    /// A panel without data.
    pub fn new(x: Axis, y: Axis) -> Panel {
        Panel { title: None, x, y, series: Vec::new() }
    }

    /// The panel with this title.
    pub fn title(self, title: impl Into<String>) -> Panel {
        Panel { title: Some(title.into()), ..self }
    }

    /// The panel with one more series.
    pub fn series(mut self, series: Series) -> Panel {
        self.series.push(series);
        self
    }
}

impl Axis {
    /// An axis of numbers.
    pub fn number(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), range: None, scale: Scale::Number }
    }

    /// An axis of minutes.
    pub fn minutes(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), range: None, scale: Scale::Minutes }
    }

    /// An axis of named categories.
    pub fn categories<S: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = S>) -> Axis {
        let names = names.into_iter().map(Into::into).collect();
        Axis { label: label.into(), range: None, scale: Scale::Categories(names) }
    }

    /// The axis with a fixed range.
    pub fn between(self, first: f64, last: f64) -> Axis {
        Axis { range: Some((first, last)), ..self }
    }
}

impl Series {
    /// A series in the next free colour.
    pub fn new(name: impl Into<String>, mark: Mark, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), mark, points, colour: None }
    }

    /// The series in this colour.
    pub fn colour(self, hue: Hue) -> Series {
        Series { colour: Some(hue), ..self }
    }
}
