//! What a page asks for now and then: pages of folds, failures, figures, trials, comparisons, one fold, and what operators do.
//! Each is read when it is asked for and bounded; what follows a sweep is in [`super::sweep`].

use std::sync::Arc;

use togl_analysis::statistics::{FoldValue, PartSizes, corrected_paired_t, differences};
use togl_analysis::{Best, curves, figure, render};
use togl_coordinator::store::history::Acted;
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::{FoldFilter, FoldWord, ResultRow, StoredFold, trials_beginning};
use togl_proto::wire;
use togl_sweeps::settings::{self, Setting};
use togl_sweeps::spec::Metric;
use togl_sweeps::{FoldKey, Scale, SweepName, SweepSpec, TrialConfig, TrialId};
use togl_web::source::{Answer, FoldsAsked, TableForm};
use togl_web::{Trouble, view};

use super::sweep::{Made, results_of};
use super::views;
use crate::cli::explained;
use crate::facts::{Facts as _, Remote, at, sweep_name, title};
use crate::problem::Problem;
use crate::remote::{Client, refused};

/// So many acts are shown.
const MOST_ACTS: usize = 200;

/// Failed folds that are looked at for their groups.
const MOST_FAILED: u64 = 5_000;

/// Folds whose learning curves are drawn; of more, so many are taken evenly.
const MOST_CURVES: usize = 200;

pub fn table_as(made: &Made, form: TableForm) -> Answer<String> {
    let table = made.table.as_ref().map_err(|problem| Trouble::Unknown(problem.clone()))?;
    Ok(match form {
        TableForm::Markdown => render::markdown(table),
        TableForm::Latex => render::latex(table),
        TableForm::Csv => render::csv(table),
    })
}

/// What of the folds is wanted, if the words make sense.
pub fn folds_wanted(name: &str, asked: &FoldsAsked) -> Answer<Wanted> {
    fn word<T: std::str::FromStr<Err: ToString>>(text: &str) -> Answer<Option<T>> {
        let parse = || text.parse().map_err(|error: T::Err| Trouble::Bad(error.to_string()));
        if text.is_empty() { Ok(None) } else { parse().map(Some) }
    }
    let no_trial = || Trouble::Bad(format!("`{}` is not the beginning of a trial's id", asked.trial));
    let filter = FoldFilter {
        states: word::<FoldWord>(&asked.state)?.into_iter().collect(),
        worker: word(&asked.worker)?,
        class: word(&asked.class)?,
        trials: match asked.trial.as_str() {
            "" => None,
            digits => Some(trials_beginning(digits).ok_or_else(no_trial)?),
        },
        dataset: None,
    };
    let sweep = sweep_name(name).map_err(|problem| views::trouble(&problem))?;
    let folds = Some(FoldsWanted { filter, skip: asked.from, limit: Some(asked.limit) });
    Ok(Wanted { sweep: Some(sweep), folds, ..Wanted::default() })
}

/// A page of folds, with the settings that vary and the number of all that fit.
async fn page(
    remote: &mut Remote,
    wanted: Wanted,
) -> Result<(Vec<StoredFold>, u64, Vec<&'static Setting>), Problem> {
    let (mut folds, mut total, mut varying) = (Vec::new(), 0, Vec::new());
    let mut take = |fact| {
        match fact {
            Fact::Sweep(stored) => {
                varying = SweepSpec::parse(&stored.yaml).map(|spec| spec.varying()).unwrap_or_default();
            }
            Fact::Folds { total: all, .. } => total = all,
            Fact::Fold(fold) => folds.push(*fold),
            Fact::Result(_) | Fact::Replicate(_) => {}
        }
        Ok(())
    };
    remote.read(wanted, &mut take).await?;
    Ok((folds, total, varying))
}

pub async fn folds(remote: &mut Remote, wanted: Wanted, from: u64) -> Result<view::Folds, Problem> {
    let (found, total, mut varying) = page(remote, wanted).await?;
    varying.retain(|setting| setting.name != "dataset");
    let folds: Vec<_> = found.into_iter().map(|fold| views::fold_line(fold, &varying)).collect();
    let next =
        Some(from.saturating_add(folds.len() as u64)).filter(|next| *next < total && !folds.is_empty());
    Ok(view::Folds { total, from, next, folds })
}

pub async fn failures(remote: &mut Remote, name: &str) -> Result<view::Failures, Problem> {
    let filter = FoldFilter { states: vec![FoldWord::Failed], ..FoldFilter::default() };
    let folds = Some(FoldsWanted { filter, skip: 0, limit: Some(MOST_FAILED) });
    let wanted = Wanted { sweep: Some(sweep_name(name)?), folds, ..Wanted::default() };
    let (found, total, _) = page(remote, wanted).await?;
    Ok(views::failures(found, total))
}

/// What people did, the newest first: so much as fits a page.
pub async fn acts(remote: &mut Remote, sweep: Option<&str>) -> Result<view::Acts, Problem> {
    let sweep = sweep.map(sweep_name).transpose()?;
    let acts = remote.acts(sweep.as_ref().map(SweepName::as_str)).await?;
    let line =
        |Acted { at, by, act, about, detail, reason }| view::ActLine { at, by, act, about, detail, reason };
    Ok(view::Acts { acts: acts.into_iter().rev().take(MOST_ACTS).map(line).collect() })
}

/// Does what takes a while where it may.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, togl_analysis::Error> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::ours("drawing failed"))?.map_err(explained)
}

pub async fn against(made: Arc<Made>, setting: String) -> Result<String, Problem> {
    apart(move || {
        let metric = made.planned.spec.table.metric;
        let table = figure::family_table(&made.frame, &made.planned.plan, &setting, metric)?;
        Ok(figure::against(&table, &setting)?.svg())
    })
    .await
}

pub async fn timeline(name: &SweepName, made: Arc<Made>) -> Result<String, Problem> {
    let title = name.to_string();
    apart(move || Ok(figure::timeline(&title, &figure::Work::of_frame(&made.frame)?)?.svg())).await
}

pub async fn curves(remote: &mut Remote, name: &SweepName, made: Arc<Made>) -> Result<String, Problem> {
    let keys = made.frame.keys().map_err(explained)?;
    let step = keys.len().div_ceil(MOST_CURVES).max(1);
    let chosen: Vec<FoldKey> = keys.iter().copied().step_by(step).collect();
    let shown = chosen.len();
    let found = results_of(remote, name, chosen, true).await?;
    let all = keys.len();
    let title = if shown < all { format!("{name} ({shown} of {all} folds)") } else { name.to_string() };
    apart(move || {
        let row = |row: ResultRow| Some(at(made.planned.place(row.fold.trial)?, row));
        let rows: Vec<_> = found.into_iter().filter_map(row).collect();
        Ok(figure::method_curves(&title, &curves::grouped(&rows))?.svg())
    })
    .await
}

pub async fn trials(made: Arc<Made>) -> Result<view::Trials, Problem> {
    let best = apart(move || {
        let usual = made.planned.spec.table.metric;
        let shown = if usual.is_of_test() { usual } else { Metric::TestAccuracy };
        Best::of(&made.frame, &made.planned.plan, Metric::ValidationAccuracy, shown)
    });
    Ok(views::trials(best.await?))
}

/// The one trial of the sweep whose id begins like this.
fn trial_like(spec: &SweepSpec, beginning: &str) -> Result<TrialId, Problem> {
    let [least, greatest] = trials_beginning(beginning)
        .ok_or_else(|| Problem::usage(format!("`{beginning}` is not the beginning of a trial's id")))?;
    let mut found = spec.trials.iter().map(|trial| trial.id).filter(|id| (least..=greatest).contains(id));
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(Problem::usage(format!("several trials begin with `{beginning}`"))),
        (None, _) => Err(Problem::negative(format!("no trial of {} begins with `{beginning}`", spec.name))),
    }
}

pub async fn compare(
    remote: &mut Remote,
    name: &SweepName,
    made: &Made,
    asked: [&str; 2],
) -> Result<view::Comparison, Problem> {
    let spec = &made.planned.spec;
    let scale = spec.scale();
    let (mut sides, mut configs, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for beginning in asked {
        let id = trial_like(spec, beginning)?;
        let planned = made.planned.place(id).ok_or_else(|| Problem::ours("a trial without a place"))?;
        configs.push(planned.config.clone());
        let rows = results_of(remote, name, spec.folds_of(id).take(1_000).collect(), false).await?;
        sizes.extend(rows.iter().map(|row| row.result.part_sizes));
        let measured = |row: &ResultRow| FoldValue {
            split: row.fold.split,
            seed: row.fold.seed,
            value: scale.factor() * row.result.test.accuracy,
        };
        sides.push(rows.iter().map(measured).collect::<Vec<_>>());
    }
    let [a, b] = [&sides[0], &sides[1]];
    let pair = |one: &FoldValue| {
        let other = b.iter().find(|other| (other.split, other.seed) == (one.split, one.seed))?;
        Some(view::Pair { split: one.split, seed: one.seed, a: one.value, b: other.value })
    };
    let differ = |name: String| {
        let [one, other] = [&configs[0], &configs[1]].map(|config| config.show(&name).unwrap_or_default());
        (one != other).then_some([name, one, other])
    };
    let names = [title(&configs[0]), title(&configs[1])];
    let settings = settings::names_of(&configs).into_iter().filter_map(differ).collect();
    Ok(view::Comparison {
        names,
        settings,
        pairs: a.iter().filter_map(pair).collect(),
        verdict: verdict(a, b, &sizes, scale),
        score: views::score(scale),
    })
}

/// What can be said of the difference, or why nothing can.
fn verdict(a: &[FoldValue], b: &[FoldValue], sizes: &[[u64; 3]], scale: &Scale) -> String {
    let mean =
        |part: usize| sizes.iter().map(|sizes| sizes[part] as f64).sum::<f64>() / sizes.len().max(1) as f64;
    let parts = Some(PartSizes { train: mean(0), test: mean(2) }).filter(|_| !sizes.is_empty());
    let digits = scale.decimals() + 1;
    let points = if scale.is_share() { "percentage points " } else { "" };
    match (differences(a, b), corrected_paired_t(a, b, parts)) {
        (Err(refusal), _) => format!("no test is made: {refusal}"),
        (Ok(_), Err(refusal)) => format!("no test is made: {refusal}"),
        (Ok(by_split), Ok(test)) => format!(
            "A is {:+.digits$} {points}from B on the test part, over {} splits; corrected paired t test (Nadeau and \
             Bengio): t = {:.2}, p = {:.3}",
            test.mean_difference,
            by_split.len(),
            test.t,
            test.p
        ),
    }
}

pub async fn fold(remote: &mut Remote, asked: &str) -> Result<view::Fold, Problem> {
    let explanation = remote.explain(asked).await?;
    let (key, history) = remote.history(&explanation.fold).await?;
    let log = remote.log(&explanation.fold).await?;
    let sweep = explanation.sweeps.first().map(|name| sweep_name(name)).transpose()?;
    let (mut result, mut config) = (None, None);
    if let Some(sweep) = sweep {
        let filter = FoldFilter { trials: Some([key.trial, key.trial]), ..FoldFilter::default() };
        let folds = Some(FoldsWanted { filter, skip: 0, limit: Some(1) });
        let wanted = Wanted { sweep: Some(sweep.clone()), folds, ..Wanted::default() };
        let (found, ..) = page(remote, wanted).await?;
        config = found.first().and_then(|fold| TrialConfig::from_canonical(&fold.trial).ok());
        result = results_of(remote, &sweep, vec![key], true).await?.pop();
    }
    let named = config.as_ref().map_or_else(|| "a trial of another version".to_owned(), title);
    let title = format!("{named}, split {}, seed {}", key.split, key.seed);
    Ok(views::fold(views::Known { explanation, history, log, result, config, title }))
}

pub async fn steer_sweep(
    client: &mut Client,
    name: &str,
    act: view::SweepAct,
) -> Result<view::Done, Problem> {
    use view::SweepAct;
    let sweep = name.to_owned();
    let said = match act {
        SweepAct::Pause {} => {
            client.pause(wire::PauseRequest { sweep }).await.map_err(refused)?;
            format!("{name} is paused; what runs goes on")
        }
        SweepAct::Resume {} => {
            client.resume(wire::ResumeRequest { sweep }).await.map_err(refused)?;
            format!("{name} goes on")
        }
        SweepAct::Retry {} => {
            let reply = client.retry(wire::RetryRequest { sweep }).await.map_err(refused)?.into_inner();
            format!("{} failed folds of {name} are tried again", reply.folds)
        }
        SweepAct::Cancel {} => {
            let reply = client.cancel(wire::CancelRequest { sweep }).await.map_err(refused)?.into_inner();
            format!("{name} is cancelled; {} folds stopped, {} results kept", reply.abandoned, reply.finished)
        }
        SweepAct::Archive {} => {
            let reply = client.archive(wire::ArchiveRequest { sweep }).await.map_err(refused)?.into_inner();
            format!("{name} is archived; {} folds stopped, {} results kept", reply.abandoned, reply.finished)
        }
        SweepAct::Prioritise { priority } => {
            client.prioritise(wire::PrioritiseRequest { sweep, priority }).await.map_err(refused)?;
            format!("{name} has priority {priority} now")
        }
    };
    Ok(view::Done { said })
}

pub async fn steer_worker(
    client: &mut Client,
    worker: &str,
    act: view::WorkerAct,
) -> Result<view::Done, Problem> {
    let undo = act == view::WorkerAct::Undrain {};
    let request = wire::DrainRequest { worker: worker.to_owned(), undo };
    client.drain(request).await.map_err(refused)?;
    let said = match undo {
        false => format!("{worker} finishes what it runs and leaves"),
        true => format!("{worker} goes on"),
    };
    Ok(view::Done { said })
}
