//! How everything looks: colours that colour-blind readers can tell apart, shapes and dashes that need no colour,
//! sizes of letters, and text placed on a page.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, failed};
use crate::error::Result;

/// Okabe and Ito's colours, darkest first so that neighbours in a legend differ most; yellow is left out, because
/// it cannot be read on white.
const OKABE_ITO: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(0, 0, 0),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
];

/// Letters of headings, of panel titles, and of everything else.
pub const HEADING: u32 = 22;
pub const SUBHEADING: u32 = 18;
pub const BODY: u32 = 15;

/// Grey of secondary text.
pub const GREY: RGBColor = RGBColor(90, 90, 90);

/// About how wide a character of body text is.
const CHARACTER: f64 = 7.3;

/// How a line looks: each of the first 21 differs from all others in colour or shape, and most in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineStyle {
    at: usize,
}

impl LineStyle {
    /// That of the label at this place of the legend.
    pub fn of(at: usize) -> Self {
        Self { at }
    }

    /// The seven colours, in turn.
    pub fn colour(self) -> RGBColor {
        OKABE_ITO[self.at % OKABE_ITO.len()]
    }

    /// The three signs, in turn; seven and three have no common divisor.
    pub fn shape(self) -> Sign {
        [Sign::Circle, Sign::Triangle, Sign::Cross][self.at % 3]
    }

    /// Whether a line without signs needs dashes to differ from the one of its colour.
    pub fn dashed(self) -> bool {
        self.at >= OKABE_ITO.len()
    }
}

/// The sign at a measured value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    Circle,
    Triangle,
    Cross,
}

/// Room that a text takes, about.
pub fn text_width(text: &str) -> i32 {
    (text.chars().count() as f64 * CHARACTER).ceil() as i32
}

/// Where a text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It begins there.
    Left,
    /// It is centred there.
    Centre,
    /// It ends there.
    Right,
}

/// Writes one line of text whose middle height is at the point.
pub fn write(
    area: &Area<'_>,
    text: &str,
    at: (i32, i32),
    size: u32,
    colour: &RGBColor,
    side: Side,
) -> Result<()> {
    let side = match side {
        Side::Left => HPos::Left,
        Side::Centre => HPos::Center,
        Side::Right => HPos::Right,
    };
    let style = ("sans-serif", size).into_font().color(colour).pos(Pos::new(side, VPos::Center));
    area.draw_text(text, &style, at).map_err(failed)
}

/// Breaks a text into lines that fit into a width.
pub fn wrapped(text: &str, width: i32) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split([' ', '\n']).filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(word) + text_width(" ") <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
