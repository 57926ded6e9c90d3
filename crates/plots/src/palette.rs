//! Colours: roles in a scene, and what they are on a light and on a dark page.
//!
//! The eight base colours were searched for by their least distance in Oklab, also as seen with protanopia, deuteranopia
//! and tritanopia, with a contrast of at least 3 to the background. After eight series the colours return as tints, then
//! as shades, and lines also with another dash pattern.

/// The page a figure is painted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Dark text on white.
    Light,
    /// Light text on near-black.
    Dark,
}

/// The colour of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hue {
    /// The colour of the text: a total, or a limit.
    Neutral,
    /// The colour with this index; 24 differ.
    Nth(usize),
}

/// What a shape is coloured as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ink {
    /// The page.
    Background,
    /// Titles and names.
    Text,
    /// Labels of ticks and axes.
    Muted,
    /// Grid lines.
    Grid,
    /// The lines of the axes.
    Axis,
    /// A series.
    Series(Hue),
}

/// Red, green and blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rgb(pub(crate) u8, pub(crate) u8, pub(crate) u8);

const fn rgb(hex: u32) -> Rgb {
    Rgb((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

const BASES: usize = 8;
const LIGHT: [Rgb; BASES] = [
    rgb(0x00_3e86),
    rgb(0xaf_931b),
    rgb(0x22_7b6f),
    rgb(0xb3_5200),
    rgb(0xec_4bb9),
    rgb(0x58_8fff),
    rgb(0x6d_3c00),
    rgb(0x88_32d7),
];
const DARK: [Rgb; BASES] = [
    rgb(0x10_6fe5),
    rgb(0xfe_cf0d),
    rgb(0x00_bb84),
    rgb(0xff_7918),
    rgb(0xc7_86dc),
    rgb(0x58_e3ff),
    rgb(0xaf_5600),
    rgb(0x7d_6389),
];

impl Hue {
    /// The same colour in its smallest form: indexes that look alike become one.
    pub(crate) fn canonical(self) -> Hue {
        match self {
            Hue::Neutral => Hue::Neutral,
            Hue::Nth(index) => Hue::Nth(index % (3 * BASES)),
        }
    }

    /// The lengths of dashes and gaps of a line that is not [`crate::Mark::Dashed`].
    pub(crate) fn solid_dash(self) -> &'static [f64] {
        match self.round() {
            0 => &[],
            1 => &[12.0, 3.0, 2.0, 3.0],
            _ => &[2.0, 2.5],
        }
    }

    /// The lengths of dashes and gaps of a [`crate::Mark::Dashed`] line.
    pub(crate) fn broken_dash(self) -> &'static [f64] {
        match self.round() {
            0 => &[7.0, 5.0],
            1 => &[4.0, 4.0],
            _ => &[10.0, 4.0, 4.0, 4.0],
        }
    }

    /// How often the base colours were used before this one.
    fn round(self) -> usize {
        match self.canonical() {
            Hue::Neutral => 0,
            Hue::Nth(index) => index / BASES,
        }
    }
}

impl Ink {
    /// The colour of this role on a page.
    pub(crate) fn on(self, theme: Theme) -> Rgb {
        let (light, dark) = match self {
            Ink::Background => (rgb(0xff_ffff), rgb(0x14_171c)),
            Ink::Text | Ink::Series(Hue::Neutral) => (rgb(0x1b_1f24), rgb(0xe9_ecf1)),
            Ink::Muted => (rgb(0x57_606a), rgb(0xa3_acb8)),
            Ink::Grid => (rgb(0xe4_e7eb), rgb(0x2b_313a)),
            Ink::Axis => (rgb(0x8c_959f), rgb(0x6b_7582)),
            Ink::Series(Hue::Nth(index)) => {
                (series(index, &LIGHT, Theme::Light), series(index, &DARK, Theme::Dark))
            }
        };
        match theme {
            Theme::Light => light,
            Theme::Dark => dark,
        }
    }
}

fn series(index: usize, bases: &[Rgb; BASES], theme: Theme) -> Rgb {
    let base = bases.get(index % BASES).copied().unwrap_or(rgb(0x80_8080));
    match (Hue::Nth(index).round(), theme) {
        (0, _) => base,
        (1, Theme::Light) => mixed(base, rgb(0xff_ffff), 38),
        (1, Theme::Dark) => mixed(base, Ink::Text.on(theme), 55),
        (_, Theme::Light) => mixed(base, rgb(0x00_0000), 52),
        (_, Theme::Dark) => mixed(base, Ink::Background.on(theme), 46),
    }
}

/// `base` with `percent` of `other` in it.
fn mixed(base: Rgb, other: Rgb, percent: u16) -> Rgb {
    let mix = |a: u8, b: u8| ((u16::from(a) * (100 - percent) + u16::from(b) * percent + 50) / 100) as u8;
    Rgb(mix(base.0, other.0), mix(base.1, other.1), mix(base.2, other.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(Rgb(r, g, b): Rgb) -> f64 {
        let linear = |channel: u8| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.040_45 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
    }

    fn contrast(a: Rgb, b: Rgb) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_and_base_colours_stand_out_from_the_page() {
        for theme in [Theme::Light, Theme::Dark] {
            let page = Ink::Background.on(theme);
            for ink in [Ink::Text, Ink::Muted] {
                assert!(contrast(ink.on(theme), page) >= 4.5, "{ink:?} on {theme:?}");
            }
            for index in 0..BASES {
                let ink = Ink::Series(Hue::Nth(index));
                assert!(contrast(ink.on(theme), page) >= 2.95, "{ink:?} on {theme:?}");
            }
        }
    }

    #[test]
    fn twenty_four_series_differ_in_colour_and_in_dash() {
        for theme in [Theme::Light, Theme::Dark] {
            for a in 0..24 {
                for b in 0..a {
                    let (x, y) = (Hue::Nth(a), Hue::Nth(b));
                    assert_ne!(Ink::Series(x).on(theme), Ink::Series(y).on(theme), "{a} and {b}");
                    if a % BASES == b % BASES {
                        assert_ne!(x.solid_dash(), y.solid_dash());
                        assert_ne!(x.broken_dash(), y.broken_dash());
                    }
                }
            }
        }
        assert_eq!(Hue::Nth(24).canonical(), Hue::Nth(0));
    }
}
