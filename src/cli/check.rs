//! `togl check`: whether everything in the store is as it was stored. Reads only, also while it is served.

use serde_json::json;
use togl_coordinator::store::check::{self, Checked};

use super::backup::{StoreLocation, explain};
use crate::output::{self, Plain};
use crate::problem::Problem;

/// Read everything in the store and say what is damaged
#[derive(Debug, clap::Args)]
pub struct Check {
    #[command(flatten)]
    place: StoreLocation,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

impl Check {
    pub(super) fn run(self) -> Result<(), Problem> {
        let state = self.place.resolve()?;
        let store = state.store().to_string();
        let checked = check::check(state.store()).map_err(explain)?;
        output::print(&match self.format {
            Plain::Human => human(&store, &checked),
            Plain::Json => output::json(&json!({
                "store": store,
                "rows": checked.rows,
                "damage": checked.damage.iter().map(|damage| json!({
                    "table": damage.table,
                    "fold": damage.fold.map(|fold| fold.to_string()),
                    "detail": damage.detail,
                })).collect::<Vec<_>>(),
                "unnamed": checked.unnamed,
            }))?,
        })?;
        match checked.is_whole() {
            true => Ok(()),
            false => Err(Problem::negative(format!("{store} is damaged")).hint(
                "`togl restore FILE --replace` puts a backup in its place; what is there is kept beside it",
            )),
        }
    }
}

fn human(store: &str, checked: &Checked) -> String {
    let mut text: String = checked.damage.iter().map(|damage| format!("{damage}\n")).collect();
    match (checked.is_whole(), checked.unnamed) {
        (true, _) => text = format!("{store}: {} rows, nothing is damaged\n", checked.rows),
        (false, 0) => {}
        (false, unnamed) => text.push_str(&format!("and {unnamed} more\n")),
    }
    text
}
