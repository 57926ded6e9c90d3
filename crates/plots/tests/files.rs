//! The files as a user gets them: the SVG as it was looked at, the PNG with the pixels it had.
//!
//! `PORTOLAN_GOLDEN=write cargo test -p portolan-plots --test files` writes the SVG again; look at it before it is
//! committed.

use portolan_plots::{Axis, Hue, Mark, Panel, Plot, Series, Theme};

fn small() -> Plot {
    let time = || Axis::minutes("time (minutes)").between(0.0, 60.0);
    let stacked = Panel::new(time(), Axis::number("CPU requested (cores)"))
        .title("Requests & <capacity>")
        .series(Series::new("lille", Mark::StackedArea, vec![(0.0, 1.0), (20.0, 6.0), (60.0, 2.5)]))
        .series(Series::new("nantes", Mark::StackedArea, vec![(0.0, 0.0), (30.0, 4.0), (60.0, 4.0)]))
        .series(Series::new("cloud", Mark::Dashed, vec![(0.0, 0.0), (60.0, 8.0)]).colour(Hue::Neutral));
    let bars = Panel::new(Axis::categories("system", ["mck8s", "portolan"]), Axis::number("time (s)"))
        .series(Series::new("lille", Mark::Bars, vec![(0.0, 4.25), (1.0, 1.5)]))
        .series(Series::new("nantes", Mark::Bars, vec![(0.0, 3.0), (1.0, 2.0)]));
    Plot::new("A \"small\" figure").subtitle("Two clusters").panel(stacked).panel(bars)
}

#[test]
fn the_svg_is_as_it_was_looked_at() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/small.svg");
    let svg = small().svg();
    if std::env::var_os("PORTOLAN_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(path, &svg).unwrap();
    }
    assert_eq!(svg, std::fs::read_to_string(path).unwrap());
}

#[test]
fn text_is_escaped_in_the_svg() {
    let svg = small().svg();
    assert!(svg.contains("<title>A &quot;small&quot; figure</title>"));
    assert!(svg.contains(">Requests &amp; &lt;capacity&gt;</text>"));
    assert!(!svg.contains("<capacity>"));
}

/// The size and the pixels of a PNG, three bytes each.
fn decoded(file: &[u8]) -> Result<(u32, u32, Vec<u8>), png::DecodingError> {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info()?;
    let mut pixels = vec![0; reader.output_buffer_size().unwrap_or_default()];
    let frame = reader.next_frame(&mut pixels)?;
    assert_eq!((frame.color_type, frame.bit_depth), (png::ColorType::Rgb, png::BitDepth::Eight));
    Ok((frame.width, frame.height, pixels))
}

/// FNV-1a, a digest that needs no library.
fn digest(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[test]
fn the_png_has_two_pixels_for_each_unit_and_the_page_of_its_theme() {
    let plot = small();
    let svg = plot.svg();
    for (theme, page) in [(Theme::Light, [255, 255, 255]), (Theme::Dark, [0x14, 0x17, 0x1c])] {
        let (width, height, pixels) = decoded(&plot.png(theme).unwrap()).unwrap();
        let size = format!("width=\"{}\" height=\"{}\"", width / 2, height / 2);
        assert!(svg.contains(&size), "{size}");
        assert_eq!(pixels[..3], page);
    }
}

/// These digests hold on every machine: a difference on another processor is a defect. They change with the drawing.
#[test]
fn the_png_has_the_same_bytes_everywhere() {
    let digests = [Theme::Light, Theme::Dark].map(|theme| {
        let file = small().png(theme).unwrap();
        assert_eq!(file, small().png(theme).unwrap());
        digest(&file)
    });
    assert_eq!(digests, [0xb2ee_b1a0_b056_1862, 0x0a83_3302_2e8e_adae], "{digests:#x?}");
}
