//! From finished folds to tables that can be printed in a paper: Polars frames, choices by validation values,
//! statistics, tables and their renderers. The only crate that uses Polars.
//!
//! The way of the data: [`frame`] (one row per fold, fixed [`schema`], defined order) → optionally [`choice`]
//! (sees a [`validation`] view only) → [`table`] (needs a [`plan`] to tell complete cells from incomplete ones) →
//! [`render`] (one format per file). It reads rows and files and writes files; it never prints, trains, or talks
//! to a coordinator.

pub mod agreement;
mod atomic;
pub mod best;
mod cell;
mod cells;
pub mod choice;
mod columns;
mod compact;
pub mod compare;
pub mod curves;
mod distinct;
pub mod emphasis;
pub mod error;
pub mod explain;
pub mod export;
pub mod figure;
pub mod files;
pub mod frame;
pub mod import;
mod impossible;
pub mod layout;
mod level;
pub mod live;
mod ndjson;
pub mod paged;
pub mod plan;
pub mod published;
mod read_back;
pub mod render;
pub mod replay;
pub mod report;
mod scales;
pub mod schema;
pub mod spread;
pub mod spreadsheet;
pub mod statistics;
mod stopped;
pub mod table;
#[cfg(test)]
mod test_folds;
pub mod validation;
pub mod verify;
mod wording;

pub use best::Best;
pub use compare::Comparison;
pub use emphasis::Emphasis;
pub use error::{Error, Result};
pub use explain::CellExplanation;
pub use figure::Figure;
pub use files::FileFormat;
pub use frame::{FoldFrame, FoldRow};
pub use layout::Layout;
pub use live::LiveFolds;
pub use paged::PagedFolds;
pub use plan::Plan;
pub use spread::Spread;
pub use statistics::Summary;
pub use table::{Cell, Mark, Table, TableColumn, TableRow, Winners};
pub use validation::ValidationView;
pub use verify::{SavedTable, Verification};
