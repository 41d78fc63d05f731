//! The layouts of published tables, which a plain table block cannot express because they compare named methods
//! and contain numbers made by choosing among runs. A layout is named as its table in the published cells. Owns
//! which layouts there are; numbers come from [`crate::table`] and [`crate::choice`].

mod by_dataset;
mod by_setting;
mod named;

pub(crate) use self::named::places;

use std::str::FromStr;

use togl_sweeps::nearest;

use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::table::Table;

togl_sweeps::words!(
    /// A published table's layout. Its word is that of its table among the published cells, and on the command line.
    Layout {
        /// Structure-only runs by data set and depth: plain networks, each TOGL variant, and "General", which
        /// chooses the embedding per fold.
        StructuralExtended = "structural-extended",
        /// Structure-only runs of four layers: plain networks and TOGL.
        Table1 = "table1",
        /// Runs on the data sets' own features: plain networks and TOGL.
        Table2 = "table2",
        /// Small networks against topological methods from the literature.
        Table3 = "table3",
        /// As `Table1`, with the static variants.
        StructuralStatic = "structural-static",
        /// As `Table2`, with the static variants.
        BenchmarkStatic = "benchmark-static",
        /// Structure-only runs of six and eight layers.
        StructuralMoreLayers = "structural-more-layers",
        /// Runs of six and eight layers on the data sets' own features.
        BenchmarkMoreLayers = "benchmark-more-layers",
        /// Spheres against tori.
        SpheresTorus = "spheres-torus",
        /// Where TOGL stands among the layers.
        Placement = "placement",
        /// The same on necklaces.
        PlacementNecklaces = "placement-necklaces",
    }
);

impl FromStr for Layout {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let hint = || nearest::hint(name, Self::WORDS.iter().copied());
        Self::from_word(name).ok_or_else(|| Error::Unfit(format!("no layout `{name}`; {}", hint())))
    }
}

impl Layout {
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
            Self::StructuralExtended => by_setting::by_depth(frame, self.as_str()),
            Self::Table1 | Self::StructuralStatic | Self::StructuralMoreLayers => {
                by_dataset::by_dataset(frame, self.as_str(), by_dataset::Nodes::Structure)
            }
            Self::Table2
            | Self::Table3
            | Self::BenchmarkStatic
            | Self::BenchmarkMoreLayers
            | Self::SpheresTorus => {
                by_dataset::by_dataset(frame, self.as_str(), by_dataset::Nodes::OwnFeatures)
            }
            Self::Placement | Self::PlacementNecklaces => by_setting::by_position(frame, self.as_str()),
        }
    }
}

#[cfg(test)]
mod tests;
