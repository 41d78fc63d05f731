//! `togl race`: what the race of a sweep has stopped, and what races would have saved on folds that have all finished. The rule is
//! `togl_sweeps::race`, the replay `togl_analysis::replay`; this collects and prints.

use std::collections::HashMap;
use std::path::PathBuf;

use serde::Serialize;
use togl_analysis::FoldFrame;
use togl_analysis::replay::{self, ReplaySpec};
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted as Facts};
use togl_coordinator::store::{FoldFilter, FoldState, FoldWord};
use togl_sweeps::race::{self, FoldStanding, Score};
use togl_sweeps::spec::Metric;
use togl_sweeps::{FoldKey, SweepSpec, TrialId};

use super::table::explained;
use super::table_block::metric;
use crate::facts::{self, Depth};
use crate::output::{self, ListFormat, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// List the trials that a race has stopped, or replay races on finished folds
#[derive(Debug, clap::Args)]
pub struct Race {
    /// Name of the sweep
    #[arg(required_unless_present = "from")]
    sweep: Option<String>,
    /// Use saved folds instead of a sweep, for --replay
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "sweep", requires = "replay")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// Say what races would have saved on the folds that have finished, and whether they would have kept the winner
    #[arg(long)]
    replay: bool,
    /// Settings that trials may differ in, for --replay [default: as the sweep's race, else all that vary but the data set]
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',', requires = "replay")]
    among: Vec<String>,
    /// What is compared, for --replay: validation_accuracy or last_validation_accuracy
    #[arg(long, value_name = "METRIC", requires = "replay")]
    by: Option<String>,
    /// Splits that are compared before the first trial is stopped, for --replay [default: as the sweep's race, else 4]
    #[arg(long, value_name = "N", requires = "replay")]
    after: Option<u32>,
    /// Validation size divided by training size, for --replay of folds that do not say their sizes
    #[arg(long, value_name = "R", requires = "replay")]
    ratio: Option<f64>,
    /// Draw so many smaller searches from each group, with their splits in another order, for --replay
    #[arg(long, value_name = "N", requires = "replay", default_value_t = 0)]
    draws: u32,
    /// Trials of each drawn search
    #[arg(long, value_name = "N", requires = "draws", default_value_t = 12)]
    of: usize,
    #[command(flatten)]
    listing: Listing,
}

impl Race {
    pub(super) async fn run(self) -> Result<(), Problem> {
        if self.replay {
            return self.replayed().await;
        }
        let sweep = self.sweep.clone().unwrap_or_default();
        let mut source = self.target.facts().await?;
        let judged = judged(source.as_mut(), &sweep).await?.ok_or_else(|| {
            Problem::negative(format!("{sweep} has no race"))
                .hint("`race: {among: [lr]}` in its file makes trials race; `--replay` says what that would have saved")
        })?;
        if judged.knows_no_sizes {
            output::talk(
                "note: no result says how large the parts of its split are, so this race can stop nobody; programs say it with \
                 `sizes` in their result (docs/programs.md)",
            );
        }
        let why = format!("the race of {sweep} has stopped nobody");
        output::list_unless_empty(&judged.stopped, &self.listing, &why)
    }

    async fn replayed(self) -> Result<(), Problem> {
        let (frame, spec) = match &self.sweep {
            Some(sweep) => {
                let mut source = self.target.facts().await?;
                let collected = facts::collected(source.as_mut(), sweep, Depth::Frame).await?;
                (collected.frame, Some(collected.spec))
            }
            None => (FoldFrame::read_all(&self.from).map_err(explained)?, None),
        };
        let said = spec.as_ref().and_then(|spec| spec.race.as_ref());
        let varying = || {
            let varying = spec.iter().flat_map(SweepSpec::varying).map(|setting| setting.name);
            varying.filter(|name| *name != "dataset").map(str::to_owned).collect::<Vec<_>>()
        };
        let among = match (self.among.is_empty(), said) {
            (false, _) => self.among.clone(),
            (true, Some(race)) => race.among.clone(),
            (true, None) => varying(),
        };
        if among.is_empty() {
            return Err(Problem::usage("nobody says which settings trials race among")
                .hint("name them with --among, such as --among lr,hidden_dim"));
        }
        let by = self.by.as_deref().map(metric).transpose()?;
        let by = by.or(said.map(|race| race.by)).unwrap_or(Metric::ValidationAccuracy);
        let after = self.after.or(said.map(|race| race.after)).unwrap_or(race::AFTER);
        let wanted = ReplaySpec { among, by, after, ratio: self.ratio, draws: self.draws, of: self.of };
        let replayed = replay::replay(&frame, &wanted).map_err(explained)?;
        match self.listing.format {
            ListFormat::Json => output::print(&output::json(&replayed)?),
            ListFormat::Ndjson => output::print(&output::ndjson(&replayed)?),
            ListFormat::Human | ListFormat::Csv => output::print(&replay::text(&replayed)),
        }
    }
}

/// A trial that is not trained on.
#[derive(Debug, Serialize)]
pub struct StoppedTrial {
    /// Its identity.
    pub trial: TrialId,
    /// Its settings that are raced among.
    pub settings: String,
    /// Splits that were compared; of a halving how far it was trained.
    pub look: u64,
    /// Splits that there are; of a halving how far those are trained that go all the way.
    pub splits: u64,
    /// What both count: `splits`, or the setting that a halving is over.
    pub counted: &'static str,
    /// Who was better; empty if a fold failed.
    pub leader: String,
    /// Folds without a result, which are not trained for this sweep.
    pub saved: usize,
}

impl ListRow for StoppedTrial {
    const COLUMNS: &'static [&'static str] = &["TRIAL", "SETTINGS", "AFTER", "OF", "WHAT", "BETTER", "SAVED"];

    fn cells(&self) -> Vec<String> {
        let better = if self.leader.is_empty() {
            "a fold failed".to_owned()
        } else {
            self.leader.chars().take(12).collect()
        };
        let trial = self.trial.to_string().chars().take(12).collect();
        vec![
            trial,
            self.settings.clone(),
            self.look.to_string(),
            self.splits.to_string(),
            self.counted.to_owned(),
            better,
            self.saved.to_string(),
        ]
    }
}

/// What a race has stopped, in words.
pub fn in_words(stopped: &[StoppedTrial]) -> String {
    match stopped.len() as u64 {
        0 => "nobody is stopped yet".to_owned(),
        trials => {
            let (trials, folds) = (output::count(trials, "trial"), output::count(saved(stopped), "fold"));
            format!("{trials} stopped, {folds} not to be trained; `togl race` lists them")
        }
    }
}

/// Folds that need not be trained because of a race.
pub fn saved(stopped: &[StoppedTrial]) -> u64 {
    stopped.iter().map(|trial| trial.saved as u64).sum()
}

/// What the race of a sweep has come to.
pub struct JudgedRace {
    /// Whom it has stopped.
    pub stopped: Vec<StoppedTrial>,
    /// Whether it needs the sizes of the parts of splits, and there are results, none of which says them.
    pub knows_no_sizes: bool,
}

/// What the file of a sweep says; none if it cannot have a race, whose trials are then not enumerated.
async fn raced(source: &mut dyn facts::Facts, sweep: &str) -> Result<Option<SweepSpec>, Problem> {
    let mut text = String::new();
    let only_the_text = Facts { sweep: Some(facts::sweep_name(sweep)?), ..Facts::default() };
    let mut take = |fact: Fact| {
        if let Fact::Sweep(stored) = fact {
            text = stored.yaml;
        }
        Ok(())
    };
    source.read(only_the_text, &mut take).await?;
    if !["race", "halve"].iter().any(|key| text.contains(key)) {
        return Ok(None);
    }
    let spec = SweepSpec::parse(&text)
        .map_err(|error| Problem::ours(format!("the stored sweep file cannot be read any more: {error}")))?;
    Ok(Some(spec))
}

/// What the race of a sweep has come to, from its stored results; none if it has no race, which costs no look at results.
pub async fn judged(source: &mut dyn facts::Facts, sweep: &str) -> Result<Option<JudgedRace>, Problem> {
    let Some(spec) = raced(source, sweep).await? else { return Ok(None) };
    let Some(race) = spec.race() else { return Ok(None) };
    let failed = FoldFilter { states: vec![FoldWord::Failed], ..FoldFilter::default() };
    let wanted = Facts {
        sweep: Some(facts::sweep_name(sweep)?),
        results: true,
        results_of: Vec::new(),
        curves: false,
        replicates: false,
        folds: Some(FoldsWanted { filter: failed, ..FoldsWanted::default() }),
    };
    let mut outcomes = HashMap::new();
    let mut take = |fact: Fact| {
        match fact {
            Fact::Result(row) => _ = outcomes.insert(row.fold, FoldStanding::Scored(Score::of(&row.result))),
            Fact::Fold(fold) if matches!(fold.state, FoldState::Failed(_)) => {
                _ = outcomes.insert(fold.fold, FoldStanding::Failed)
            }
            Fact::Sweep(_) | Fact::Fold(_) | Fact::Replicate(_) | Fact::Folds { .. } => {}
        }
        Ok(())
    };
    source.read(wanted, &mut take).await?;
    let scores = || {
        outcomes.values().filter_map(|outcome| match outcome {
            FoldStanding::Scored(score) => Some(score),
            FoldStanding::Open | FoldStanding::Failed => None,
        })
    };
    let knows_no_sizes =
        race.rungs.is_none() && scores().next().is_some() && scores().all(|score| score.sizes.contains(&0));
    Ok(Some(JudgedRace { stopped: of_results(&spec, &race, &outcomes), knows_no_sizes }))
}

fn of_results(
    spec: &SweepSpec,
    race: &race::Race,
    outcomes: &HashMap<FoldKey, FoldStanding>,
) -> Vec<StoppedTrial> {
    let outcome = |fold: &FoldKey| outcomes.get(fold).copied().unwrap_or(FoldStanding::Open);
    let raced = spec.race.iter().flat_map(|race| &race.among);
    let among = raced.chain(spec.halve.iter().flat_map(|halve| &halve.among)).collect::<Vec<_>>();
    let settings = |trial: TrialId| {
        let planned = spec.trials.iter().find(|planned| planned.id == trial);
        let said = |name: &&String| Some(format!("{name}={}", planned?.config.show(name)?));
        among.iter().copied().filter_map(|name| said(&name)).collect::<Vec<_>>().join(" ")
    };
    let mut stopped = Vec::new();
    for group in &race.groups {
        let heat = race::run(race, group, outcome);
        for (place, trial) in group.trials.iter().enumerate() {
            let Some(stop) = heat.stop(place) else { continue };
            let folds = (0..group.stages()).flat_map(|stage| group.folds(place, stage));
            let (look, splits, counted) = match &race.rungs {
                None => (stop.look.into(), group.splits.len() as u64, "splits"),
                Some(rungs) => {
                    let value = |rung: usize| rungs.values.get(rung).copied().unwrap_or_default();
                    (value(stop.look as usize - 1), value(rungs.values.len() - 1), rungs.over)
                }
            };
            let rung = if group.is_halving() { stop.look as usize - 1 } else { 0 };
            stopped.push(StoppedTrial {
                trial: group.on_rung(place, rung),
                settings: settings(*trial),
                look,
                splits,
                counted,
                leader: stop.leader.map(|leader| group.on_rung(leader, rung).to_string()).unwrap_or_default(),
                saved: folds.filter(|fold| outcome(fold) == FoldStanding::Open).count(),
            });
        }
    }
    stopped
}
