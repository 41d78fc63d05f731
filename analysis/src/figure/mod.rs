//! Tables and learning curves as pictures: SVG drawn with `plotters`, PNG and PDF made from that same SVG with a font
//! that is part of the program, so that a picture is the same on every machine. Owns the files and the heading that all
//! figures have and can do without; what is drawn is in the files beside this one. Colours are those of Okabe and Ito,
//! and no line is told apart by colour alone.

mod against;
mod arrangement;
mod axis;
mod critical;
mod curves;
mod filtration;
mod heat;
mod lines;
mod outlines;
mod pdf;
mod style;
mod timeline;

use std::path::{Path, PathBuf};

use plotters::prelude::*;

pub use against::{against, family_table, of_block};
pub use critical::{critical_difference, ranking};
pub use curves::{Curve, learning_curves, method_curves};
pub use filtration::{LearntFiltrations, LearntGraph, filtrations};
pub use heat::fold_heat_maps;
pub use lines::MOST_CURVES;
pub use timeline::{Work, timeline};

use crate::atomic;
use crate::error::{Error, Result};
use crate::render::escape;
use style::{BODY, GREY, HEADING, Side, wrapped, write};

/// How many pixels of a PNG one unit of the drawing takes: sharp in print and on dense screens.
const PNG_SCALE: f32 = 2.0;

/// From the border of a figure to what is written first.
const MARGIN: i32 = 16;

/// Height of a line of notes.
const LINE: i32 = 20;

/// What is drawn on.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A finished picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    title: String,
    note: String,
    /// Title and note; none in a figure whose caption stands elsewhere.
    heading: Option<Drawing>,
    body: Drawing,
}

/// A part of a picture: elements of SVG on a rectangle of this size.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Drawing {
    size: (u32, u32),
    elements: String,
}

impl Drawing {
    fn paint(size: (u32, u32), paint: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<Self> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            paint(&area)?;
            area.present().map_err(failed)?;
        }
        let inside = svg.split_once(">\n").and_then(|(_, rest)| rest.rsplit_once("</svg>"));
        let (elements, _) = inside.ok_or_else(|| failed("the drawing has no end"))?;
        Ok(Self { size, elements: elements.to_owned() })
    }

    fn heading(title: &str, note: &str, width: u32) -> Result<Self> {
        let notes = wrapped(note, width as i32 - 2 * MARGIN);
        let height = MARGIN + 30 + notes.len() as i32 * LINE;
        Self::paint((width, height as u32), |area| {
            write(area, title, (MARGIN, MARGIN + 10), HEADING, &BLACK, Side::Left)?;
            notes.iter().enumerate().try_for_each(|(at, note)| {
                write(area, note, (MARGIN, MARGIN + 36 + at as i32 * LINE), BODY, &GREY, Side::Left)
            })
        })
    }
}

impl Figure {
    /// Draws on a white page of this size below a heading; `title` is also what a screen reader says, and `note` what
    /// a reader must know.
    fn draw(
        title: &str,
        note: &str,
        size: (i32, i32),
        paint: impl FnOnce(&Area<'_>) -> Result<()>,
    ) -> Result<Self> {
        let size = (size.0.max(1) as u32, size.1.max(1) as u32);
        Ok(Self {
            title: title.to_owned(),
            note: note.to_owned(),
            heading: Some(Drawing::heading(title, note, size.0)?),
            body: Drawing::paint(size, paint)?,
        })
    }

    /// What the picture is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Title and note in one sentence or more: what a paper prints below the picture.
    pub fn caption(&self) -> String {
        format!("{}. {}", self.title.trim_end_matches('.'), self.note.replace('\u{a0}', " "))
    }

    /// The same picture without title and note inside it.
    #[must_use]
    pub fn without_heading(mut self) -> Self {
        self.heading = None;
        self
    }

    /// The picture as SVG text, which may also stand inside an HTML page.
    pub fn svg(&self) -> String {
        let (width, body) = self.body.size;
        let (above, heading) = match &self.heading {
            Some(heading) => (heading.size.1, heading.elements.as_str()),
            None => (0, ""),
        };
        let height = above + body;
        format!(
            "<svg width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             xmlns=\"http://www.w3.org/2000/svg\">\n<title>{}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#FFFFFF\"/>\n\
             {heading}<g transform=\"translate(0 {above})\">\n{}</g>\n</svg>\n",
            escape(&self.title),
            self.body.elements
        )
    }

    /// The picture as the bytes of a PNG file.
    pub fn png(&self) -> Result<Vec<u8>> {
        outlines::png(&self.svg(), PNG_SCALE)
    }

    /// The picture as the bytes of a PDF file of one page: lines stay lines at any size.
    pub fn pdf(&self) -> Result<Vec<u8>> {
        pdf::of(&outlines::tree(&self.svg())?, &self.title)
    }

    /// Writes the picture in the format that the file's name promises, `.svg`, `.png` or `.pdf`; never half of it.
    pub fn write(&self, path: &Path) -> Result<PathBuf> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let bytes = match extension.to_ascii_lowercase().as_str() {
            "svg" => self.svg().into_bytes(),
            "png" => self.png()?,
            "pdf" => self.pdf()?,
            _ => {
                let shown = path.display();
                return Err(Error::Unfit(format!(
                    "cannot tell the kind of picture from the name `{shown}`; use .svg, .png or .pdf"
                )));
            }
        };
        atomic::publish(atomic::draft_of(path, bytes)?)
    }
}

/// Drawing fails only by a fault of this program.
fn failed(error: impl std::fmt::Display) -> Error {
    Error::Drawing { reason: error.to_string() }
}

#[cfg(test)]
mod tests;
