//! `togl submit`: sends a sweep file to a coordinator and says what that changed.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use togl_proto::wire;
use togl_sweeps::SweepSpec;

use super::Outcome;
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::remote::{self, Client, Target};

/// Send a sweep file to a coordinator
#[derive(Debug, clap::Args)]
pub struct Submit {
    /// The sweep file
    file: PathBuf,
    #[command(flatten)]
    target: Target,
    /// Where data sets are, to tell of unknown ones
    #[arg(long, value_name = "DIR", env = "TOGL_DATA")]
    data_dir: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

/// What a submission changed.
#[derive(Debug, Serialize)]
pub struct Submitted {
    /// The sweep.
    pub sweep: String,
    /// Distinct trials.
    pub trials: u64,
    /// All folds.
    pub folds: u64,
    /// Folds that had a result already.
    pub done: u64,
    /// Folds that are new in the sweep.
    pub added: u64,
    /// Folds that the sweep no longer has.
    pub removed: u64,
}

impl Submitted {
    /// One line for people.
    pub fn sentence(&self) -> String {
        let Self { sweep, trials, folds, done, added, removed } = self;
        let edit = match (added, removed) {
            (0, 0) => "; nothing new in it".to_owned(),
            (_, 0) if added == folds => String::new(),
            (_, 0) => format!("; {added} new"),
            _ => format!("; {added} new, {removed} no longer in it"),
        };
        let (trials, folds) = (output::count(*trials, "trial"), output::count(*folds, "fold"));
        format!("{sweep}: {trials}, {folds}, {done} done already{edit}")
    }
}

/// Submits the text of a sweep file.
pub async fn submit(client: &mut Client, yaml: String) -> Result<Submitted, Problem> {
    let reply = client
        .submit(wire::SubmitRequest { data_digests: expected_digests(&yaml), yaml })
        .await
        .map_err(remote::refused)?
        .into_inner();
    let wire::SubmitReply { sweep, trials, folds, done, added, removed } = reply;
    Ok(Submitted { sweep, trials, folds, done, added, removed })
}

/// What the catalogue knows about the data of a sweep, so that the first result from other data is noticed. A file that
/// cannot be read expects nothing: the coordinator says what is wrong with it.
fn expected_digests(yaml: &str) -> HashMap<String, String> {
    let Ok(spec) = SweepSpec::parse(yaml) else { return HashMap::new() };
    let names: BTreeSet<String> = spec.each_trial().flatten().map(|trial| trial.config.dataset).collect();
    let expected = |name: String| {
        let digest = togl_data::expected_digest(&name, &togl_data::OpenOptions::default())?;
        Some((name, digest.as_str().to_owned()))
    };
    names.into_iter().filter_map(expected).collect()
}

impl Submit {
    pub(super) async fn run(self) -> Outcome {
        let (yaml, spec) = super::read_sweep(&self.file)?;
        let mut client = self.target.connect().await?;
        super::data::mention_unknown(&spec, self.data_dir.clone())?;
        let submitted = submit(&mut client, yaml).await?;
        match self.format {
            Plain::Human => {
                eprintln!("{}", submitted.sentence());
                eprintln!("watch it with `togl watch {}`", submitted.sweep);
            }
            Plain::Json => output::print(&output::json(&submitted)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_says_what_generated_data_must_be() {
        let yaml = "version: 1\nname: x\ngrid: {dataset: [cycles, necklaces, my-own]}\n";
        let expected = expected_digests(yaml);
        assert_eq!(
            expected.keys().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
            ["cycles", "necklaces"]
        );
        assert_ne!(expected["cycles"], expected["necklaces"]);
        assert!(expected_digests("nonsense: [").is_empty());
    }

    #[test]
    fn an_edited_sweep_says_what_changed() {
        let base = |added, removed| Submitted {
            sweep: "s".to_owned(),
            trials: 2,
            folds: 6,
            done: 1,
            added,
            removed,
        };
        assert_eq!(base(6, 0).sentence(), "s: 2 trials, 6 folds, 1 done already");
        assert_eq!(base(0, 0).sentence(), "s: 2 trials, 6 folds, 1 done already; nothing new in it");
        assert_eq!(base(2, 3).sentence(), "s: 2 trials, 6 folds, 1 done already; 2 new, 3 no longer in it");
    }
}
