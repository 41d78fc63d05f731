//! Identities: `togl hash` shows what each trial of a sweep file is called and why two differ, `togl schema` prints the
//! schema of sweep files for editors. Nothing here changes anything.

use std::path::PathBuf;

use serde::Serialize;
use togl_sweeps::spec::PlannedTrial;

use crate::output::{self, ListRow, Listing};
use crate::problem::Problem;

/// Show the identity of every trial of a sweep file
#[derive(Debug, clap::Args)]
pub struct Hash {
    /// The sweep file
    file: PathBuf,
    /// Say why two trials differ: two beginnings of ids, or two places in the list (from 0)
    #[arg(long, num_args = 2, value_names = ["A", "B"])]
    explain: Option<Vec<String>>,
    #[command(flatten)]
    listing: Listing,
}

/// Print the JSON Schema of sweep files, for editors
#[derive(Debug, clap::Args)]
pub struct Schema {}

#[derive(Serialize)]
struct Identity {
    place: usize,
    trial: String,
    method: String,
    dataset: String,
    canonical: String,
}

impl ListRow for Identity {
    const COLUMNS: &'static [&'static str] = &["PLACE", "TRIAL", "METHOD", "DATASET", "SETTINGS"];
    const ALSO: &'static [&'static str] = &["canonical"];

    fn cells(&self) -> Vec<String> {
        let place = self.place.to_string();
        vec![place, self.trial.clone(), self.method.clone(), self.dataset.clone(), self.canonical.clone()]
    }
}

impl Hash {
    pub(super) fn run(self) -> Result<(), Problem> {
        let (_, spec, _) = super::read_sweep(&self.file)?;
        let trials = &spec.trials;
        if let Some(pair) = &self.explain {
            let [a, b] = pair.as_slice() else { return Err(Problem::usage("--explain takes two trials")) };
            return explain(find(trials, a)?, find(trials, b)?);
        }
        let identity = |(place, trial): (usize, &PlannedTrial)| Identity {
            place,
            trial: trial.id.to_string(),
            method: trial.config.method(),
            dataset: trial.config.dataset.clone(),
            canonical: trial.config.canonical(),
        };
        output::list(&trials.iter().enumerate().map(identity).collect::<Vec<_>>(), &self.listing)
    }
}

fn find<'a>(trials: &'a [PlannedTrial], asked: &str) -> Result<&'a PlannedTrial, Problem> {
    let by_place = asked.parse::<usize>().ok().and_then(|place| trials.get(place));
    let by_id = || trials.iter().find(|trial| trial.id.to_string().starts_with(asked));
    by_place.or_else(by_id).ok_or_else(|| {
        Problem::negative(format!("there is no trial `{asked}`"))
            .hint("`togl hash FILE` lists places and ids")
    })
}

fn explain(a: &PlannedTrial, b: &PlannedTrial) -> Result<(), Problem> {
    let mut text =
        format!("{} and {} are {}\n", a.id, b.id, if a.id == b.id { "the same trial" } else { "two trials" });
    for difference in togl_sweeps::explain::explain(&a.config, &b.config) {
        text += &format!("  {difference}\n");
    }
    output::print(&text)
}

impl Schema {
    pub(super) fn run(self) -> Result<(), Problem> {
        output::print(&output::json(&togl_sweeps::schema::schema())?)
    }
}
