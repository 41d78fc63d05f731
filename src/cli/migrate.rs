//! `togl migrate`: the store into another kind of store or another place, compared row by row. Nobody may serve it
//! meanwhile.

use togl_coordinator::store::address::StoreAddress;
use togl_coordinator::store::copy;

use super::backup::{StoreLocation, explain, show};
use crate::output::Plain;
use crate::problem::Problem;

/// Copy the store to another kind of store or another place
#[derive(Debug, clap::Args)]
pub struct Migrate {
    /// Where to: sqlite:PATH or postgres://USER@HOST/DATABASE; must be empty
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    #[command(flatten)]
    place: StoreLocation,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

impl Migrate {
    pub(super) fn run(self) -> Result<(), Problem> {
        let state = self.place.resolve()?;
        let to: StoreAddress = self.to.parse().map_err(Problem::usage)?;
        let summary = copy::migrate(state.store(), &to).map_err(explain)?;
        eprintln!("serve the copy with `togl serve --store ADDRESS`; do not serve the original any more");
        show(&summary, &state.store().to_string(), &to.to_string(), self.format)
    }
}
