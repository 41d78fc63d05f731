//! Data sets of togl: generators, readers, splits, and the catalogue that finds them by name.
//!
//! Everything here is a pure function of its arguments and of the files it is given: no printing, no global
//! random state, no environment. The one exception is `fetch`, which uses the network, through the proxy that
//! the environment may name. Tensors belong to `togl-learning`.
//!
//! Layout
//! - `dataset`, `structure`, `builder`: the one in-memory form of all data sets, and what makes it valid
//! - `streams`, `normal`: random numbers that depend on named coordinates only
//! - `cycles`, `necklaces`, `no_cycles`, `sphere_torus`, `clique_planting`: one synthetic source
//!   a file; `synthetic` is what they share
//! - `tu`, `tu_format`, `features`: the TU benchmark sets, their files and node features
//! - `files`, `lines`: text files in folders and archives, within limits
//! - `pattern`, `cluster`, `block_model`: node classification in generated block models
//! - `molhiv`, `graph6`: molecules in OGB's layout; lists of small graphs
//! - `images`, `idx`, `cifar`, `tar`: image files; `superpixels`, `slic`, `colour`: their graphs
//! - `edge_order`: the one order of edges that were read from files
//! - `splits`, `folds`: who trains, who validates, who tests
//! - `structure_only`: random node features that replace the real ones
//! - `facts`: the data sets, one row each; `catalogue`: finds and opens them; `check`: whether they are as their row says
//! - `cache`, `flat`, `seal`, `array`, `fingerprint`: copies that load fast, and when they may be used
//! - `fetch`, `download`, `origins`: files from the public sites; the only use of the network
//! - `obtain`: opens a data set and fetches its files before that where they are missing; what workers call
//! - `draw`, `layout`: one graph as a picture
//! - `hostile`: the readers for bytes from anywhere, as the fuzz targets and their corpus use them
//! - `progress`: how long work tells how far it is

mod array;
mod block_model;
mod builder;
mod cache;
mod catalogue;
mod check;
mod cifar;
mod clique_planting;
mod cluster;
mod colour;
mod cycles;
mod dataset;
mod digest;
mod download;
mod draw;
mod edge_order;
mod error;
mod facts;
mod features;
mod fetch;
mod files;
mod fingerprint;
mod flat;
mod folds;
mod graph6;
#[doc(hidden)]
pub mod hostile;
mod idx;
mod images;
mod layout;
mod lines;
mod molhiv;
mod necklaces;
mod no_cycles;
mod normal;
mod obtain;
mod origins;
mod pattern;
mod progress;
mod repeats;
mod seal;
mod slic;
mod sphere_torus;
mod splits;
mod streams;
mod structure;
mod structure_only;
mod superpixels;
mod synthetic;
mod tar;
mod tu;
mod tu_format;

pub use builder::DatasetBuilder;
pub use cache::CacheOutcome;
pub use catalogue::{
    OpenOptions, Opened, check_split, find, is_available, is_cached, known_or_present, open, open_observed,
    sources,
};
pub use check::{CheckReport, check, check_with};
pub use dataset::{Dataset, DatasetParts, Graph, Task};
pub use digest::{DataDigest, SplitDigest};
pub use draw::draw_svg;
pub use error::Error;
pub use facts::{DatasetFacts, Size, expected_digest, facts};
pub use features::FeatureChoice;
pub use fetch::{FetchError, FetchOptions, FetchOutcome, Fetched, fetch};
pub use graph6::{Graph6Error, SimpleGraph, parse_graph6, read_graph6};
pub use obtain::{ObtainError, Supply, obtain};
pub use origins::{Origin, origins};
pub use progress::{DataObserver, DataProgress, DataWork};
pub use splits::{Split, SplitError, SplitRule, ValidSplits};
pub use streams::{Purpose, RandomStream, Stage};
pub use structure::StructureError;
pub use structure_only::{STRUCTURE_ONLY_WIDTH, fill_structure_only};
pub use tu::{read_tu, unlisted};
