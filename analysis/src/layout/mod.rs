//! The layouts of published tables, which a plain table block cannot express because they compare named methods
//! and contain numbers made by choosing among runs. A layout is named as its table in the published cells. Owns
//! which layouts there are; numbers come from [`crate::table`] and [`crate::choice`].

mod by_dataset;
mod by_setting;
mod named;

use std::str::FromStr;

use togl_sweeps::nearest;

use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::table::Table;

/// A published table's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Structure-only runs by data set and depth: plain networks, each TOGL variant, and "General", which
    /// chooses the embedding per fold.
    StructuralExtended,
    /// Structure-only runs of four layers: plain networks and TOGL.
    Table1,
    /// Runs on the data sets' own features: plain networks and TOGL.
    Table2,
    /// Small networks against topological methods from the literature.
    Table3,
    /// As `Table1`, with the static variants.
    StructuralStatic,
    /// As `Table2`, with the static variants.
    BenchmarkStatic,
    /// Structure-only runs of six and eight layers.
    StructuralMoreLayers,
    /// Runs of six and eight layers on the data sets' own features.
    BenchmarkMoreLayers,
    /// Spheres against tori.
    SpheresTorus,
    /// Where TOGL stands among the layers.
    Placement,
    /// The same on necklaces.
    PlacementNecklaces,
}

/// Every layout with its name on the command line, which is its table's name among the published cells.
const LAYOUTS: [(&str, Layout); 11] = [
    ("structural-extended", Layout::StructuralExtended),
    ("table1", Layout::Table1),
    ("table2", Layout::Table2),
    ("table3", Layout::Table3),
    ("structural-static", Layout::StructuralStatic),
    ("benchmark-static", Layout::BenchmarkStatic),
    ("structural-more-layers", Layout::StructuralMoreLayers),
    ("benchmark-more-layers", Layout::BenchmarkMoreLayers),
    ("spheres-torus", Layout::SpheresTorus),
    ("placement", Layout::Placement),
    ("placement-necklaces", Layout::PlacementNecklaces),
];

impl FromStr for Layout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let found = LAYOUTS.iter().find(|(known, _)| *known == name).map(|(_, layout)| *layout);
        found.ok_or_else(|| Error::UnknownLayout {
            name: name.to_owned(),
            hint: nearest::hint(name, Self::names()),
        })
    }
}

impl Layout {
    /// The names of all layouts.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        LAYOUTS.iter().map(|(name, _)| *name)
    }

    /// Its name: that of the published table.
    pub fn name(self) -> &'static str {
        LAYOUTS.iter().find(|(_, layout)| *layout == self).map_or("", |(name, _)| name)
    }

    /// The table of this layout from all rows that belong to it; other rows are ignored.
    pub fn make(self, frame: &FoldFrame) -> Result<Table> {
        let (frame, without_cycles) = named::with_cycles(frame)?;
        if without_cycles == 0 {
            return self.of_named(&frame);
        }
        let left_out =
            format!("{without_cycles} folds of TOGL without cycles (`dim1: false`) are no part of it");
        match self.of_named(&frame) {
            Ok(mut table) => {
                table.remarks.push(left_out);
                table.reword();
                Ok(table)
            }
            Err(Error::Empty { origin }) => Err(Error::Empty { origin: format!("{origin}; {left_out}; it") }),
            Err(error) => Err(error),
        }
    }

    fn of_named(self, frame: &FoldFrame) -> Result<Table> {
        match self {
            Self::StructuralExtended => by_setting::by_depth(frame, self.name()),
            Self::Table1 | Self::StructuralStatic | Self::StructuralMoreLayers => {
                by_dataset::by_dataset(frame, self.name(), by_dataset::Nodes::Structure)
            }
            Self::Table2
            | Self::Table3
            | Self::BenchmarkStatic
            | Self::BenchmarkMoreLayers
            | Self::SpheresTorus => {
                by_dataset::by_dataset(frame, self.name(), by_dataset::Nodes::OwnFeatures)
            }
            Self::Placement | Self::PlacementNecklaces => by_setting::by_position(frame, self.name()),
        }
    }
}

#[cfg(test)]
mod tests;
