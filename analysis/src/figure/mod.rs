//! Tables and learning curves as pictures: SVG drawn with `plotters`, PNG rendered from that same SVG with a font
//! that is part of the program, so that a picture is the same on every machine. Owns the files; what is drawn is
//! in the files beside this one. Colours are those of Okabe and Ito, and no line is told apart by colour alone.

mod against;
mod arrangement;
mod axis;
mod critical;
mod curves;
mod filtration;
mod heat;
mod lines;
mod png;
mod style;
mod timeline;

use std::io::Write;
use std::path::{Path, PathBuf};

use plotters::prelude::*;

pub use against::{against, family_table, of_block};
pub use critical::{critical_difference, ranking};
pub use curves::{Curve, MethodCurves, learning_curves, method_curves};
pub use filtration::{Filtrations, GraphFiltrations, filtrations};
pub use heat::fold_heat_map;
pub use timeline::{Work, timeline};

use crate::atomic::Staged;
use crate::error::{Error, Result};

/// How many pixels of a PNG one unit of the drawing takes: sharp in print and on dense screens.
const PNG_SCALE: f32 = 2.0;

/// What is drawn on.
type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;

/// A finished picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    title: String,
    svg: String,
}

impl Figure {
    /// Draws on a white page of this size; `title` is also what a screen reader says.
    fn draw(title: &str, size: (u32, u32), paint: impl FnOnce(&Area<'_>) -> Result<()>) -> Result<Self> {
        let mut svg = String::new();
        {
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            area.fill(&WHITE).map_err(failed)?;
            paint(&area)?;
            area.present().map_err(failed)?;
        }
        let spoken = format!(">\n<title>{}</title>", crate::render::escape(title));
        Ok(Self { title: title.to_owned(), svg: svg.replacen('>', &spoken, 1) })
    }

    /// What the picture is called.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The picture as SVG text, which may also stand inside an HTML page.
    pub fn svg(&self) -> &str {
        &self.svg
    }

    /// The picture as the bytes of a PNG file.
    pub fn png(&self) -> Result<Vec<u8>> {
        png::from_svg(&self.svg, PNG_SCALE)
    }

    /// Writes the picture in the format that the file's name promises, `.svg` or `.png`; never half of it.
    pub fn write(&self, path: &Path) -> Result<PathBuf> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let bytes = match extension.to_ascii_lowercase().as_str() {
            "svg" => self.svg.clone().into_bytes(),
            "png" => self.png()?,
            _ => return Err(Error::UnknownPicture { path: path.to_owned() }),
        };
        let staged = Staged::write(path, |writer| {
            writer.write_all(&bytes).map_err(|source| Error::io("cannot write", path, source))
        });
        staged?.publish()
    }
}

/// Drawing fails only by a fault of this program.
fn failed(error: impl std::fmt::Display) -> Error {
    Error::Drawing { reason: error.to_string() }
}

#[cfg(test)]
mod tests;
