//! `togl submit`: sends sweep files to a coordinator and says what that changed; asks before folds are dropped.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use togl_proto::wire;
use togl_sweeps::SweepSpec;
use tonic::Code;

use super::sources::{Sources, SweepSource};
use super::steer::Because;
use super::{VerbOutcome, status};
use crate::facts::{Facts as _, Remote};
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::reading::Wait;
use crate::remote::{self, Client, CoordinatorTarget};

/// Send a sweep file to a coordinator
#[derive(Debug, clap::Args)]
pub struct Submit {
    #[command(flatten)]
    sources: Sources,
    #[command(flatten)]
    consent: Consent,
    #[command(flatten)]
    because: Because,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// Where data sets are, to tell of unknown ones
    #[arg(long, value_name = "DIR", env = "TOGL_DATA")]
    data_dir: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

/// Whether somebody has agreed to what cannot be seen in the command.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct Consent {
    /// Do not ask before folds are taken out of a sweep of the same name
    #[arg(long)]
    yes: bool,
}

impl Consent {
    /// Shows what a file would change in the sweep that has its name, and asks if folds would be dropped.
    pub async fn ask(self, client: &mut Client, yaml: &str) -> Result<(), Problem> {
        let request = wire::SubmitRequest { yaml: yaml.to_owned(), ..Default::default() };
        let change = match client.preview(request).await {
            Ok(reply) => reply.into_inner().change,
            Err(status) if status.code() == Code::Unimplemented => None, // an older coordinator
            Err(status) => return Err(remote::refused(status)),
        };
        let Some(change) = change.filter(|change| change.removed > 0) else { return Ok(()) };
        let wire::SubmitReply { sweep, folds, added, removed, .. } = change;
        let are = |number: u64| if number == 1 { "is" } else { "are" };
        let (kept, new) = (folds.saturating_sub(added), output::count(added, "fold"));
        let difference = format!(
            "there is another sweep {sweep}: with this file {new} {} new, {kept} {} kept, {removed} {} no longer in it",
            are(added),
            are(kept),
            are(removed)
        );
        let hint = "give the file another `name`, or say --yes; results are kept either way";
        if self.yes {
            eprintln!("{difference}");
            return Ok(());
        }
        match output::agreed(&format!("{difference}\nresults are kept; change the sweep?"))? {
            Some(true) => Ok(()),
            Some(false) => Err(Problem::negative("nothing was changed").hint(hint)),
            None => Err(Problem::usage(difference).hint(hint)),
        }
    }
}

/// What a submission changed.
#[derive(Debug, Serialize)]
pub struct SubmitAnswer {
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

impl SubmitAnswer {
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
pub async fn submit(
    client: &mut Client,
    SweepSource { yaml, spec, program }: SweepSource,
    because: &Because,
) -> Result<SubmitAnswer, Problem> {
    let _line = Wait::of(format!("submitting {}", output::count(spec.count_folds() as u64, "fold")));
    let request = because.ask(wire::SubmitRequest {
        data_digests: expected_digests(&spec),
        yaml,
        program: program.map_or_else(Vec::new, |files| files.to_bytes()),
    });
    let reply = client.submit(request).await.map_err(remote::refused)?.into_inner();
    let wire::SubmitReply { sweep, trials, folds, done, added, removed } = reply;
    Ok(SubmitAnswer { sweep, trials, folds, done, added, removed })
}

/// What the catalogue knows about the data of a sweep, so that the first result from other data is noticed.
fn expected_digests(spec: &SweepSpec) -> HashMap<String, String> {
    let expected = |name: &str| {
        let digest = togl_data::expected_digest(name, &togl_data::OpenOptions::default())?;
        Some((name.to_owned(), digest.as_str().to_owned()))
    };
    spec.datasets().into_iter().filter_map(expected).collect()
}

impl Submit {
    pub(super) async fn run(self) -> VerbOutcome {
        let sources = self.sources.read()?;
        let mut client = self.target.connect().await?;
        for source in sources {
            super::data::check_splits(&source.spec, self.data_dir.clone())?;
            super::data::mention_unknown(&source.spec, self.data_dir.clone())?;
            self.consent.ask(&mut client, &source.yaml).await?;
            let submitted = submit(&mut client, source, &self.because).await?;
            match self.format {
                Plain::Human => {
                    eprintln!("{}", submitted.sentence());
                    let now = Remote::new(client.clone()).status(&submitted.sweep).await?;
                    eprint!("{}", status::nothing_runs(&now));
                    eprintln!("watch it with `togl watch {}`", submitted.sweep);
                }
                Plain::Json => output::print(&output::json(&submitted)?)?,
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_catalogue_says_what_generated_data_must_be() {
        let yaml = "version: 1\nname: x\ngrid: {dataset: [cycles, necklaces, my-own]}\n";
        let expected = expected_digests(&SweepSpec::parse(yaml).unwrap());
        assert_eq!(
            expected.keys().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>(),
            ["cycles", "necklaces"]
        );
        assert_ne!(expected["cycles"], expected["necklaces"]);
    }

    #[test]
    fn an_edited_sweep_says_what_changed() {
        let base = |added, removed| SubmitAnswer {
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
