//! What a page asks for now and then: pages of folds, failures, figures, trials, comparisons, one fold, and what operators do.
//! Each is read when it is asked for and bounded; what follows a sweep is in [`crate::live`].

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use togl_analysis::statistics::{FoldValue, PartSizes, corrected_paired_t, differences};
use togl_analysis::curves::grouped;
use togl_analysis::{Best, FoldRow, Table, figure, render};
use togl_coordinator::store::history::Acted;
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::replicates::Replicate;
use togl_coordinator::store::{FoldFilter, FoldWord, ResultRow, StoredFold, trials_beginning};
use togl_proto::wire;
use togl_sweeps::settings::{self, Setting};
use togl_sweeps::spec::Metric;
use togl_sweeps::{FoldKey, SweepName, SweepSpec, TrialConfig, TrialId};
use togl_web::source::{Answer, FoldsAsked, TableAsked, TableForm};
use togl_web::{Trouble, view};

use super::{curves, views};
use crate::cli::{Because, Block, explained};
use crate::facts::{Facts as _, Remote, Workers, at, sweep_name, title};
use crate::live::{Made, results_of, trouble};
use crate::problem::Problem;
use crate::remote::{Client, refused};

/// So many acts are shown.
const MOST_ACTS: usize = 200;

/// Bytes of a figure that the page shows; a larger one is for `togl plot`.
const MOST_PICTURE: usize = 250 * 1024;

/// Folds of a timeline.
const MOST_BARS: usize = 1_200;

/// Level of an interval.
const LEVEL: f64 = 0.95;

/// Folds whose learning curves are drawn; of more, so many are taken evenly.
const MOST_CURVES: usize = 200;

/// The table as it is wanted, and not as the sweep file says.
fn table_of(made: &Made, asked: &TableAsked) -> Answer<Table> {
    if *asked == TableAsked::default() {
        return made.table.clone().map_err(Trouble::Unknown);
    }
    let bad = |problem: &Problem| Trouble::Bad(problem.in_one_line());
    let spec = &made.planned.spec;
    let rows: Vec<String> =
        asked.rows.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let columns = Some(asked.columns.clone()).filter(|name| !name.is_empty());
    let block = Block::of(&rows, columns.as_ref(), None);
    let (spec_of_table, selection) =
        block.over(&spec.table, spec.selection.as_ref()).map_err(|problem| bad(&problem))?;
    let made_so = || {
        let table = Table::of_block(&made.frame, &made.planned.plan, &spec_of_table, selection.as_ref())?;
        let table = match asked.spread.as_str() {
            "" => table,
            word => table.with_spread(word.parse()?),
        };
        match asked.bold.as_str() {
            "" => Ok(table),
            word => table.with_emphasis(word.parse()?, &made.frame),
        }
    };
    made_so().map_err(|error: togl_analysis::Error| bad(&explained(error)))
}

pub async fn table(made: Arc<Made>, asked: TableAsked) -> Answer<view::Table> {
    let new = tokio::task::spawn_blocking(move || {
        let table = table_of(&made, &asked)?;
        Ok(views::table(&table, made.version, made.frame.len() as u64, made.reading))
    });
    new.await.map_err(|_| Trouble::Ours("making the table failed".to_owned()))?
}

pub async fn table_as(made: Arc<Made>, asked: TableAsked, form: TableForm) -> Answer<String> {
    let written = tokio::task::spawn_blocking(move || {
        let table = table_of(&made, &asked)?;
        Ok(match form {
            TableForm::Markdown => render::markdown(&table),
            TableForm::Latex => render::latex(&table),
            TableForm::Csv => render::csv(&table),
        })
    });
    written.await.map_err(|_| Trouble::Ours("making the table failed".to_owned()))?
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
    let sweep = sweep_name(name).map_err(|problem| trouble(&problem))?;
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
    let folds = views::within(found.into_iter().map(|fold| views::fold_line(fold, &varying)).collect());
    let next =
        Some(from.saturating_add(folds.len() as u64)).filter(|next| *next < total && !folds.is_empty());
    Ok(view::Folds { total, from, next, folds })
}

/// All failed folds of a sweep, gathered as they come.
pub async fn failures(remote: &mut Remote, name: &str) -> Result<view::Failures, Problem> {
    let hosts = match remote.workers().await? {
        Workers::Here(workers) => workers.into_iter().map(|one| (one.worker, one.host)).collect(),
        Workers::Past(_) => BTreeMap::new(),
    };
    let filter = FoldFilter { states: vec![FoldWord::Failed], ..FoldFilter::default() };
    let folds = Some(FoldsWanted { filter, skip: 0, limit: None });
    let wanted = Wanted { sweep: Some(sweep_name(name)?), folds, ..Wanted::default() };
    let (mut failed, mut total) = (views::Failed::default(), 0);
    let mut take = |fact| {
        match fact {
            Fact::Folds { total: all, .. } => total = all,
            Fact::Fold(fold) => failed.add(*fold, &hosts),
            Fact::Sweep(_) | Fact::Result(_) | Fact::Replicate(_) => {}
        }
        Ok(())
    };
    remote.read(wanted, &mut take).await?;
    Ok(failed.view(total))
}

/// What people did, the newest first: so much as fits a page.
pub async fn acts(remote: &mut Remote, sweep: Option<&str>) -> Result<view::Acts, Problem> {
    let sweep = sweep.map(sweep_name).transpose()?;
    let acts = remote.acts(sweep.as_ref().map(SweepName::as_str)).await?;
    let line =
        |Acted { at, by, act, about, detail, reason }| view::ActLine { at, by, act, about, detail, reason };
    Ok(view::Acts { acts: views::within(acts.into_iter().rev().take(MOST_ACTS).map(line).collect()) })
}

/// Does what takes a while where it may.
async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, togl_analysis::Error> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Problem::ours("drawing failed"))?.map_err(explained)
}

/// A picture that the page can show.
fn small(svg: String) -> Result<String, Problem> {
    match svg.len() <= MOST_PICTURE {
        true => Ok(svg),
        false => Err(Problem::negative("the figure is too large for a page").hint("`togl plot` draws it into a file")),
    }
}

pub async fn against_points(made: Arc<Made>, setting: String) -> Result<view::Against, Problem> {
    apart(move || curves::against(&made, &setting)).await
}

pub async fn against(made: Arc<Made>, setting: String) -> Result<String, Problem> {
    let drawn = apart(move || {
        let metric = made.planned.spec.table.metric;
        let table = figure::family_table(&made.frame, &made.planned.plan, &setting, metric)?;
        Ok(figure::against(&table, &setting)?.svg())
    });
    small(drawn.await?)
}

pub async fn timeline(name: &SweepName, made: Arc<Made>) -> Result<String, Problem> {
    let name = name.to_string();
    let drawn = apart(move || {
        let mut work = figure::Work::of_frame(&made.frame)?;
        let all = work.len();
        work.sort_by(|one, other| one.finished_at.partial_cmp(&other.finished_at).unwrap_or(Ordering::Equal));
        let work = work.split_off(all.saturating_sub(MOST_BARS));
        let title = if work.len() < all { format!("{name} (the last {} of {all} folds)", work.len()) } else { name };
        Ok(figure::timeline(&title, &work)?.svg())
    });
    small(drawn.await?)
}

/// Some finished folds with their learning curves, taken evenly, and how many there are.
async fn with_curves(
    remote: &mut Remote,
    name: &SweepName,
    made: &Made,
) -> Result<(Vec<FoldRow>, usize), Problem> {
    let keys = made.frame.keys().map_err(explained)?;
    let step = keys.len().div_ceil(MOST_CURVES).max(1);
    let chosen: Vec<FoldKey> = keys.iter().copied().step_by(step).collect();
    let found = results_of(remote, name, chosen, true).await?;
    let row = |row: ResultRow| Some(at(made.planned.place(row.fold.trial)?, row));
    Ok((found.into_iter().filter_map(row).collect(), keys.len()))
}

pub async fn curves(remote: &mut Remote, name: &SweepName, made: Arc<Made>) -> Result<String, Problem> {
    let (rows, all) = with_curves(remote, name, &made).await?;
    let shown = rows.len();
    let title = if shown < all { format!("{name} ({shown} of {all} folds)") } else { name.to_string() };
    let drawn = apart(move || Ok(figure::method_curves(&title, &grouped(&rows))?.svg()));
    small(drawn.await?)
}

pub async fn curve_points(
    remote: &mut Remote,
    client: &mut Client,
    name: &SweepName,
    made: Arc<Made>,
) -> Result<view::CurvesNow, Problem> {
    let (rows, all) = with_curves(remote, name, &made).await?;
    let request = wire::CurvesRequest { sweep: name.to_string(), fold: None };
    let running = client.curves(request).await.map_err(refused)?.into_inner();
    apart(move || Ok(curves::curves(grouped(&rows), rows.len(), all, running))).await
}

pub async fn trials(made: Arc<Made>, from: u64, limit: u64) -> Result<view::Trials, Problem> {
    let best = apart(move || {
        let usual = made.planned.spec.table.metric;
        let shown = if usual.is_of_test() { usual } else { Metric::TestAccuracy };
        Best::of(&made.frame, &made.planned.plan, Metric::ValidationAccuracy, shown)
    });
    Ok(views::trials(best.await?, from, limit))
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
            value: 100.0 * row.result.test.accuracy,
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
        verdict: verdict(a, b, &sizes),
        difference: difference(a, b, &sizes),
    })
}

/// Mean sizes of the parts.
fn parts(sizes: &[[u64; 3]]) -> Option<PartSizes> {
    let mean =
        |part: usize| sizes.iter().map(|sizes| sizes[part] as f64).sum::<f64>() / sizes.len().max(1) as f64;
    Some(PartSizes { train: mean(0), test: mean(2) }).filter(|_| !sizes.is_empty())
}

/// The mean difference with the interval of the corrected test, where that can be made.
fn difference(a: &[FoldValue], b: &[FoldValue], sizes: &[[u64; 3]]) -> Option<view::MeanDifference> {
    let test = corrected_paired_t(a, b, parts(sizes)).ok()?;
    let (mean, half) = (test.mean_difference, test.half_width(LEVEL)?);
    let level = (100.0 * LEVEL).round() as u64;
    Some(view::MeanDifference { mean, low: mean - half, high: mean + half, level })
}

/// What can be said of the difference, or why nothing can.
fn verdict(a: &[FoldValue], b: &[FoldValue], sizes: &[[u64; 3]]) -> String {
    match (differences(a, b), corrected_paired_t(a, b, parts(sizes))) {
        (Err(refusal), _) => format!("no test is made: {refusal}"),
        (Ok(_), Err(refusal)) => format!("no test is made: {refusal}"),
        (Ok(by_split), Ok(test)) => format!(
            "A is {:+.2} percentage points from B on the test part, over {} splits; corrected paired t test (Nadeau and \
             Bengio): t = {:.2}, p = {:.3}",
            test.mean_difference,
            by_split.len(),
            test.t,
            test.p
        ),
    }
}

/// Further results of a fold.
async fn replicates(remote: &mut Remote, sweep: &SweepName, key: FoldKey) -> Result<Vec<Replicate>, Problem> {
    let wanted = Wanted { sweep: Some(sweep.clone()), replicates: true, ..Wanted::default() };
    let mut found = Vec::new();
    let mut take = |fact| {
        if let Fact::Replicate(row) = fact
            && row.fold == key
        {
            found.push(*row);
        }
        Ok(())
    };
    remote.read(wanted, &mut take).await?;
    Ok(found)
}

pub async fn fold(remote: &mut Remote, client: &mut Client, asked: &str) -> Result<view::Fold, Problem> {
    let explanation = remote.explain(asked).await?;
    let (key, history) = remote.history(&explanation.fold).await?;
    let log = remote.log(&explanation.fold).await?;
    let sweep = explanation.sweeps.first().map(|name| sweep_name(name)).transpose()?;
    let (mut result, mut config, mut again) = (None, None, Vec::new());
    if let Some(sweep) = sweep {
        let filter = FoldFilter { trials: Some([key.trial, key.trial]), ..FoldFilter::default() };
        let folds = Some(FoldsWanted { filter, skip: 0, limit: Some(1) });
        let wanted = Wanted { sweep: Some(sweep.clone()), folds, ..Wanted::default() };
        let (found, ..) = page(remote, wanted).await?;
        config = found.first().and_then(|fold| TrialConfig::from_canonical(&fold.trial).ok());
        result = results_of(remote, &sweep, vec![key], true).await?.pop();
        again = replicates(remote, &sweep, key).await?;
    }
    let growing = match result {
        Some(_) => Vec::new(),
        None => {
            let request = wire::CurvesRequest { sweep: String::new(), fold: Some(key.into()) };
            let reply = client.curves(request).await.map_err(refused)?.into_inner();
            reply.running.first().map(|curve| curves::growing(&curve.points)).unwrap_or_default()
        }
    };
    let named = config.as_ref().map_or_else(|| "a trial of another version".to_owned(), title);
    let title = format!("{named}, split {}, seed {}", key.split, key.seed);
    let replicates = again;
    Ok(views::fold(views::Known { explanation, history, log, result, config, title, growing, replicates }))
}

pub async fn steer_sweep(
    client: &mut Client,
    name: &str,
    act: view::SweepAct,
) -> Result<view::Done, Problem> {
    use view::SweepAct;
    let (sweep, because) = (name.to_owned(), Because::of(act.reason()));
    let said = match act {
        SweepAct::Pause { .. } => {
            client.pause(because.ask(wire::PauseRequest { sweep })).await.map_err(refused)?;
            format!("{name} is paused; what runs goes on")
        }
        SweepAct::Resume { .. } => {
            client.resume(because.ask(wire::ResumeRequest { sweep })).await.map_err(refused)?;
            format!("{name} goes on")
        }
        SweepAct::Retry { .. } => {
            let request = because.ask(wire::RetryRequest { sweep });
            let reply = client.retry(request).await.map_err(refused)?.into_inner();
            format!("{} failed folds of {name} are tried again", reply.folds)
        }
        SweepAct::Cancel { .. } => {
            let request = because.ask(wire::CancelRequest { sweep });
            let reply = client.cancel(request).await.map_err(refused)?.into_inner();
            format!("{name} is cancelled; {} folds stopped, {} results kept", reply.abandoned, reply.finished)
        }
        SweepAct::Archive { .. } => {
            let request = because.ask(wire::ArchiveRequest { sweep });
            let reply = client.archive(request).await.map_err(refused)?.into_inner();
            format!("{name} is archived; {} folds stopped, {} results kept", reply.abandoned, reply.finished)
        }
        SweepAct::Prioritise { priority, .. } => {
            let request = because.ask(wire::PrioritiseRequest { sweep, priority });
            client.prioritise(request).await.map_err(refused)?;
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
    let undo = matches!(act, view::WorkerAct::Undrain { .. });
    let request = wire::DrainRequest { worker: worker.to_owned(), undo };
    client.drain(Because::of(act.reason()).ask(request)).await.map_err(refused)?;
    let said = match undo {
        false => format!("{worker} finishes what it runs and leaves"),
        true => format!("{worker} goes on"),
    };
    Ok(view::Done { said })
}
