//! Paints a scene as PNG.
//!
//! Letters are outlines of a font that is built in. Painting uses only additions, multiplications, divisions and square
//! roots, which all processors round alike; the compression is fixed.

use crate::palette::{Ink, Rgb, Theme};
use crate::scene::{Anchor, Point, Scene, Shape, Text};
use crate::text::Weight;
use tiny_skia::{Color, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, FaceParsingError, OutlineBuilder};

/// Why a figure cannot be painted.
#[derive(Debug, thiserror::Error)]
pub enum PlotError {
    /// The figure has too many panels to fit in one image.
    #[error(
        "the figure would be {width} by {height} pixels, which is too large for one image: divide its panels"
    )]
    TooLarge {
        /// The width in pixels.
        width: u32,
        /// The height in pixels.
        height: u32,
    },
    /// The built-in font cannot be read.
    #[error("the built-in font cannot be read: {0}")]
    Font(#[from] FaceParsingError),
    /// The image cannot be encoded.
    #[error("the image cannot be encoded as PNG: {0}")]
    Encode(#[from] png::EncodingError),
}

const REGULAR: &[u8] = include_bytes!("../font/Inter-Regular.ttf");
const SEMI_BOLD: &[u8] = include_bytes!("../font/Inter-SemiBold.ttf");
/// Pixels for each unit of a scene.
const PIXELS: f32 = 2.0;
/// The longest side of an image, in pixels.
const LONGEST: u32 = 32_000;

/// The PNG of a scene.
pub(crate) fn paint(scene: &Scene, theme: Theme) -> Result<Vec<u8>, PlotError> {
    let (width, height) = (pixels(scene.width), pixels(scene.height));
    let too_large = PlotError::TooLarge { width, height };
    let pixmap = if width.max(height) <= LONGEST { Pixmap::new(width, height) } else { None };
    let mut painter = Painter {
        pixmap: pixmap.ok_or(too_large)?,
        theme,
        regular: Face::parse(REGULAR, 0)?,
        semi_bold: Face::parse(SEMI_BOLD, 0)?,
    };
    painter.pixmap.fill(colour(Ink::Background.on(theme)));
    for shape in &scene.shapes {
        match shape {
            Shape::Polygon { points, ink } => painter.fill(outline(points, true), *ink),
            Shape::Polyline { points, ink, width, dash } => painter.stroke(points, *ink, *width, dash),
            Shape::Text(text) => painter.text(text),
        }
    }
    encode(&painter.pixmap)
}

struct Painter<'a> {
    pixmap: Pixmap,
    theme: Theme,
    regular: Face<'a>,
    semi_bold: Face<'a>,
}

impl Painter<'_> {
    fn paint(&self, ink: Ink) -> Paint<'static> {
        let mut paint = Paint::default();
        paint.set_color(colour(ink.on(self.theme)));
        paint.anti_alias = true;
        paint
    }

    /// Fills an outline; one without points is nothing to fill.
    fn fill(&mut self, path: Option<Path>, ink: Ink) {
        let paint = self.paint(ink);
        if let Some(path) = path {
            self.pixmap.fill_path(&path, &paint, FillRule::Winding, scaled(), None);
        }
    }

    fn stroke(&mut self, points: &[Point], ink: Ink, width: f64, dash: &[f64]) {
        let paint = self.paint(ink);
        let dash = StrokeDash::new(dash.iter().map(|length| *length as f32).collect(), 0.0);
        let stroke = Stroke { width: width as f32, line_join: LineJoin::Round, dash, ..Stroke::default() };
        if let Some(path) = outline(points, false) {
            self.pixmap.stroke_path(&path, &paint, &stroke, scaled(), None);
        }
    }

    fn text(&mut self, text: &Text) {
        let face = match text.weight {
            Weight::Regular => &self.regular,
            Weight::SemiBold => &self.semi_bold,
        };
        let scale = text.size as f32 / f32::from(face.units_per_em());
        let glyphs: Vec<_> = text.text.chars().map(|c| face.glyph_index(c).unwrap_or_default()).collect();
        let advance = |glyph| f32::from(face.glyph_hor_advance(glyph).unwrap_or_default()) * scale;
        let width: f32 = glyphs.iter().map(|glyph| advance(*glyph)).sum();
        let start = match text.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        let mut pen =
            Pen { path: PathBuilder::new(), x: text.at.0 as f32 - start, y: text.at.1 as f32, scale };
        for glyph in glyphs {
            // A glyph without an outline is a space.
            face.outline_glyph(glyph, &mut pen);
            pen.x += advance(glyph);
        }
        self.fill(pen.path.finish(), text.ink);
    }
}

/// Moves outlines of letters to their place.
struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn outline(points: &[Point], closed: bool) -> Option<Path> {
    let mut path = PathBuilder::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if index == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
    }
    if closed {
        path.close();
    }
    path.finish()
}

fn scaled() -> Transform {
    Transform::from_scale(PIXELS, PIXELS)
}

fn pixels(units: f64) -> u32 {
    (units * f64::from(PIXELS)).ceil() as u32
}

fn colour(Rgb(red, green, blue): Rgb) -> Color {
    Color::from_rgba8(red, green, blue, 255)
}

/// The page is opaque, so the file has no transparency.
fn encode(pixmap: &Pixmap) -> Result<Vec<u8>, PlotError> {
    let pixels: Vec<u8> = pixmap.pixels().iter().flat_map(|p| [p.red(), p.green(), p.blue()]).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixmap.width(), pixmap.height());
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Balanced);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(file)
}
