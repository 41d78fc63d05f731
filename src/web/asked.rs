//! What a page asks for now and then: tables as they are wanted, pages of folds, failures, figures, trials, one fold.
//! Each is read when it is asked for and bounded; what follows a sweep is in [`crate::live`].

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use togl_analysis::curves::grouped;
use togl_analysis::{Best, FoldRow, Table, figure, render};
use togl_coordinator::store::history::Acted;
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::replicates::Replicate;
use togl_coordinator::store::{FoldFilter, FoldWord, ResultRow, StoredFold, trials_beginning};
use togl_proto::wire;
use togl_sweeps::settings::Setting;
use togl_sweeps::spec::Metric;
use togl_sweeps::{FoldKey, SweepName, SweepSpec, TrialConfig};
use togl_web::source::{Answer, FoldsAsked, TableAsked, TableForm};
use togl_web::{Trouble, view};

use super::failed::Failed;
use super::{curves, views};
use crate::cli::{TableBlock, explained};
use crate::facts::{Facts as _, KnownWorkers, Remote, at, sweep_name, title};
use crate::live::{Made, results_of, trouble};
use crate::problem::Problem;
use crate::remote::{Client, refused};

/// So many acts are shown.
const MOST_ACTS: usize = 200;

/// Bytes of a figure that the page shows; a larger one is for `togl plot`.
const MOST_PICTURE: usize = 250 * 1024;

/// Folds of a timeline.
const MOST_BARS: usize = 1_200;

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
    let block = TableBlock::of(&rows, columns.as_ref(), None);
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

pub async fn table(made: Arc<Made>, asked: TableAsked) -> Answer<view::TableOnPage> {
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

pub async fn folds(remote: &mut Remote, wanted: Wanted, from: u64) -> Result<view::FoldsOnPage, Problem> {
    let (found, total, mut varying) = page(remote, wanted).await?;
    varying.retain(|setting| setting.name != "dataset");
    let folds = views::within(found.into_iter().map(|fold| views::fold_line(fold, &varying)).collect());
    let next =
        Some(from.saturating_add(folds.len() as u64)).filter(|next| *next < total && !folds.is_empty());
    Ok(view::FoldsOnPage { total, from, next, folds })
}

/// All failed folds of a sweep, gathered as they come.
pub async fn failures(remote: &mut Remote, name: &str) -> Result<view::Failures, Problem> {
    let hosts = match remote.workers().await? {
        KnownWorkers::Here(workers) => workers.into_iter().map(|one| (one.worker, one.host)).collect(),
        KnownWorkers::Past(_) => BTreeMap::new(),
    };
    let filter = FoldFilter { states: vec![FoldWord::Failed], ..FoldFilter::default() };
    let folds = Some(FoldsWanted { filter, skip: 0, limit: None });
    let wanted = Wanted { sweep: Some(sweep_name(name)?), folds, ..Wanted::default() };
    let (mut failed, mut total) = (Failed::default(), 0);
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
        false => {
            Err(Problem::negative("the figure is too large for a page")
                .hint("`togl plot` draws it into a file"))
        }
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
        let title =
            if work.len() < all { format!("{name} (the last {} of {all} folds)", work.len()) } else { name };
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
    apart(move || Ok(curves::curves(made.planned.spec.scale(), grouped(&rows), rows.len(), all, running)))
        .await
}

pub async fn trials(made: Arc<Made>, from: u64, limit: u64) -> Result<view::Trials, Problem> {
    let best = apart(move || {
        let usual = made.planned.spec.table.metric;
        let shown = if usual.is_of_test() { usual } else { Metric::TestAccuracy };
        Best::of(&made.frame, &made.planned.plan, Metric::ValidationAccuracy, shown)
    });
    Ok(views::trials(best.await?, from, limit))
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

pub async fn fold(
    remote: &mut Remote,
    client: &mut Client,
    asked: &str,
) -> Result<view::FoldOnPage, Problem> {
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
    Ok(views::fold(views::FoldKnowledge {
        explanation,
        history,
        log,
        result,
        config,
        title,
        growing,
        replicates,
    }))
}
