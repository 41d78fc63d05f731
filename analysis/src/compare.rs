//! Our numbers beside the published ones: for each cell the published value, the difference, and whether it lies
//! within one published standard deviation and within two standard errors; how much agrees is counted in `agreement`. Owns how a cell of ours finds its counterpart: by data set, by depth
//! or position where the published table has them, and by the method as printed, or by the settings that a sweep file
//! says a printed label means.

use std::collections::HashMap;

use serde::Serialize;
use togl_sweeps::spec::{Published, TableSpec};
use togl_sweeps::{Scale, SweepSpec, TrialConfig, TrialId};

use crate::agreement::{self, Agreement, GroupAgreement};
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::layout;
use crate::plan::Plan;
use crate::published::{self, PublishedCell};
use crate::render::{aligned, latex};
use crate::spreadsheet;
use crate::table::{Cell, Table, TableColumn, TableRow};
use crate::wording::fixed;

/// Differences this small over one deviation are rounding of the printed digit: half a unit of it.
fn rounding(scale: &Scale) -> f64 {
    0.5 * 0.1_f64.powi(i32::try_from(scale.decimals()).unwrap_or_default())
}

/// One cell of ours with its counterpart.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedCell {
    /// The labels of its row.
    pub row: Vec<String>,
    /// The label of its column.
    pub column: String,
    /// Our mean in percent.
    pub mean: Option<f64>,
    /// Our sample standard deviation in percent.
    pub std: Option<f64>,
    /// How many folds are behind ours.
    pub n: usize,
    /// How many are planned.
    pub planned: usize,
    /// What was published, if anything was.
    pub published: Option<PublishedCell>,
    /// Ours minus the published mean, in percentage points.
    pub difference: Option<f64>,
    /// Whether the difference is at most one published standard deviation; none where it was not printed.
    pub within_one_std: Option<bool>,
    /// Whether it is at most two standard errors of a difference of two such means; none where one deviation is not known.
    pub within_two_standard_errors: Option<bool>,
}

/// A table beside a published one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// The published table.
    pub published_table: String,
    /// Our cells that have a number, row by row.
    pub cells: Vec<ComparedCell>,
    /// Published numbers without a counterpart of ours.
    pub missing: Vec<PublishedCell>,
    /// How much agrees among the cells with one value of a setting, for the settings that vary.
    pub groups: Vec<GroupAgreement>,
    /// What the values are.
    #[serde(skip)]
    pub scale: Scale,
}

impl Comparison {
    /// Compares a table of these folds with the published table of this name. A layout's name is that of its table.
    pub fn with(table: &Table, frame: &FoldFrame, published_table: &str) -> Result<Self> {
        if published::cells_of(published_table).next().is_none() {
            return Err(Error::NothingPublished {
                reason: format!("there is no table `{published_table}`"),
                hint: togl_sweeps::nearest::hint(published_table, published::tables()),
            });
        }
        Ok(Self::by_name(table, &layout::places(frame)?, published_table))
    }

    /// Each cell of ours beside the one that is called the same.
    fn by_name(table: &Table, places: &Places, published_table: &str) -> Self {
        let printed: Vec<&PublishedCell> = published::cells_of(published_table).collect();
        Self::beside(table, published_table, &printed, |printed, row, column, cell| {
            is_called(printed, table, row, column) && stands_there(printed, cell, places)
        })
    }

    /// Each cell of ours beside the first printed one that it `is`.
    fn beside(
        table: &Table,
        name: &str,
        printed: &[&PublishedCell],
        is: impl Fn(&PublishedCell, &TableRow, &TableColumn, &Cell) -> bool,
    ) -> Self {
        let mut missing = vec![true; printed.len()];
        let mut cells = Vec::new();
        for (row, column, cell) in table.cells().filter(|(_, _, cell)| cell.n > 0) {
            let at = printed.iter().position(|printed| is(printed, row, column, cell));
            at.iter().for_each(|at| missing[*at] = false);
            cells.push(compare(cell, row, column, at.map(|at| printed[at]), &table.scale));
        }
        let missing = printed.iter().zip(missing).filter(|(_, missing)| *missing);
        let missing = missing.map(|(cell, _)| (*cell).clone()).collect();
        let groups = agreement::groups(table, &cells);
        Self { published_table: name.to_owned(), cells, missing, groups, scale: table.scale.clone() }
    }

    /// Compares with the only published table in which every cell of ours that has one anywhere is found.
    /// Refuses if there is none, or if several would do: structure-only and full runs have the same names.
    pub fn find(table: &Table, frame: &FoldFrame) -> Result<Self> {
        let places = layout::places(frame)?;
        let found = |name: &str| {
            Self::by_name(table, &places, name).cells.iter().filter(|cell| cell.published.is_some()).count()
        };
        let all = published::tables();
        let counts: Vec<usize> = all.iter().map(|name| found(name)).collect();
        let most = counts.iter().copied().max().unwrap_or_default();
        let best: Vec<&str> =
            all.iter().zip(counts).filter(|(_, count)| *count == most).map(|(name, _)| *name).collect();
        match (most, best.as_slice()) {
            (0, _) => Err(Error::NothingPublished {
                reason: "no cell of this table has a counterpart".to_owned(),
                hint: format!("make the table with the layout of one of {}", all.join(", ")),
            }),
            (_, [only]) => Ok(Self::by_name(table, &places, only)),
            (_, several) => Err(Error::NothingPublished {
                reason: "several tables fit it equally well".to_owned(),
                hint: format!("name one of {}", several.join(", ")),
            }),
        }
    }

    /// Compares with every `published` block of a sweep, each in the metric that it has. The sweep knows which trials
    /// a printed label means, so cells are matched by settings, not by names.
    pub fn of_sweep(frame: &FoldFrame, plan: &Plan, sweep: &SweepSpec) -> Result<Vec<Self>> {
        if sweep.published.is_empty() {
            return Err(Error::NothingPublished {
                reason: format!("the sweep `{}` has no `published` block", sweep.name),
                hint: "compare with the published tables (`--compare paper`), or add the block".to_owned(),
            });
        }
        let trials: HashMap<TrialId, TrialConfig> =
            sweep.trials.iter().map(|trial| (trial.id, trial.config.clone())).collect();
        let places: Places =
            trials.iter().map(|(trial, config)| (*trial, config.layers_around_togl().0)).collect();
        let compare = |block: &Published| {
            let spec = TableSpec { metric: block.metric, ..sweep.table.clone() };
            let table = Table::of_block(frame, plan, &spec, sweep.selection.as_ref())?;
            let printed: Vec<&PublishedCell> = block.cells.iter().collect();
            Ok(Self::beside(&table, &block.table, &printed, |printed, _, _, cell| {
                is_meant(printed, cell, block, &trials) && stands_there(printed, cell, &places)
            }))
        };
        sweep.published.iter().map(compare).collect()
    }

    /// How much agrees of all cells.
    pub fn agreement(&self) -> Agreement {
        Agreement::of(&self.cells)
    }

    /// What the columns mean and how much agrees.
    pub fn caption(&self) -> String {
        let Agreement { within_one_std, of_std, within_two_standard_errors, of_errors, .. } =
            self.agreement();
        format!(
            "Ours beside {} as published{} (mean ± sample standard deviation). {within_one_std} of {of_std} cells lie \
             within one published standard deviation, {within_two_standard_errors} of {of_errors} within two standard \
             errors of the difference, which takes a published mean to be over as many folds as ours is planned to be \
             (allowing for the rounding of print); {} published cells have no counterpart here.",
            self.published_table,
            if self.scale.is_share() { ", in percent" } else { "" },
            self.missing.len()
        )
    }

    /// As aligned text, one line per cell.
    pub fn text(&self) -> String {
        let groups = match self.groups.as_slice() {
            [] => String::new(),
            groups => format!(
                "\n{}",
                aligned(&agreement::HEADERS, &agreement::lines(groups, self.scale.decimals()))
            ),
        };
        format!("{}\n{}\n{groups}", aligned(&HEADERS, &self.lines()), self.caption())
    }

    /// As a Markdown table, one line per cell.
    pub fn markdown(&self) -> String {
        let groups = match self.groups.as_slice() {
            [] => String::new(),
            groups => {
                format!("\n{}", piped(&agreement::HEADERS, &agreement::lines(groups, self.scale.decimals())))
            }
        };
        format!("{}\n{}\n{groups}", piped(&HEADERS, &self.lines()), self.caption())
    }

    /// As a LaTeX table, one line per cell, called and referred to as the paper wants it.
    pub fn latex(&self, title: Option<&str>, label: Option<&str>) -> String {
        let title = title.map_or_else(String::new, |title| format!("{title}: "));
        let cells = latex::listing(&HEADERS, &self.lines(), &(title + &self.caption()), label);
        match self.groups.as_slice() {
            [] => cells,
            groups => {
                let caption = format!("How much of {} agrees, by setting.", self.published_table);
                let lines = agreement::lines(groups, self.scale.decimals());
                latex::both(&cells, &latex::listing(&agreement::HEADERS, &lines, &caption, None))
            }
        }
    }

    /// As CSV with numbers that are not rounded.
    pub fn csv(&self) -> String {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let word = |within: Option<bool>| within.map(|within| within.to_string()).unwrap_or_default();
        let headers = "row,column,mean,std,n,planned,published_method,published_mean,published_std,difference,\
             within_one_std,within_two_standard_errors\n";
        let line = |cell: &ComparedCell| {
            let published = cell.published.as_ref();
            spreadsheet::line([
                cell.row.join(" "),
                cell.column.clone(),
                number(cell.mean),
                number(cell.std),
                cell.n.to_string(),
                cell.planned.to_string(),
                published.map(|cell| cell.method.clone()).unwrap_or_default(),
                number(published.map(|cell| cell.mean)),
                number(published.and_then(|cell| cell.std)),
                number(cell.difference),
                word(cell.within_one_std),
                word(cell.within_two_standard_errors),
            ])
        };
        std::iter::once(headers.to_owned()).chain(self.cells.iter().map(line)).collect()
    }

    /// As JSON.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    pub(crate) fn lines(&self) -> Vec<Vec<String>> {
        self.cells.iter().map(|cell| line(cell, self.scale.decimals())).collect()
    }
}

pub(crate) const HEADERS: [&str; 7] =
    ["row", "column", "ours", "published", "difference", "within 1 std", "within 2 SE"];

/// How many graph layers stand before the topological one, by trial.
type Places = HashMap<TrialId, u32>;

/// A Markdown table.
fn piped(headers: &[&str], lines: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let headers: Vec<String> = headers.iter().map(|header| (*header).to_owned()).collect();
    let rule = vec!["---".to_owned(); headers.len()];
    let body: String = lines.iter().map(|cells| line(cells)).collect();
    format!("{}{}{body}", line(&headers), line(&rule))
}

fn line(cell: &ComparedCell, digits: usize) -> Vec<String> {
    let std =
        |value: Option<f64>| value.map_or_else(|| "n/a".to_owned(), |value| format!("{value:.digits$}"));
    let count = if cell.n < cell.planned { format!(" n={}/{}", cell.n, cell.planned) } else { String::new() };
    let ours = cell.mean.map(|mean| format!("{mean:.digits$} ± {}{count}", std(cell.std)));
    let cited = |cell: &PublishedCell| if cell.cited { " (cited)" } else { "" };
    let published = cell
        .published
        .as_ref()
        .map(|cell| format!("{:.digits$} ± {} {}{}", cell.mean, std(cell.std), cell.method, cited(cell)));
    let word =
        |within: Option<bool>| within.map_or("–", |within| if within { "yes" } else { "NO" }).to_owned();
    vec![
        cell.row.join(" "),
        cell.column.clone(),
        ours.unwrap_or_else(|| "–".to_owned()),
        published.unwrap_or_else(|| "–".to_owned()),
        cell.difference.map_or_else(|| "–".to_owned(), |difference| signed(difference, digits)),
        word(cell.within_one_std),
        word(cell.within_two_standard_errors),
    ]
}

/// A difference with its sign, which nothing that rounds to zero has.
pub(crate) fn signed(difference: f64, digits: usize) -> String {
    let text = fixed(difference, digits);
    if difference > 0.0 && text != fixed(0.0, digits) { format!("+{text}") } else { text }
}

/// Whether all trials behind a cell are what a printed number is about.
fn is_meant(
    printed: &PublishedCell,
    cell: &Cell,
    block: &Published,
    trials: &HashMap<TrialId, TrialConfig>,
) -> bool {
    let Some((_, condition)) = block.methods.iter().find(|(label, _)| *label == printed.method) else {
        return false;
    };
    let named = block.datasets.iter().find(|(label, _)| *label == printed.dataset);
    let dataset = named.map_or(printed.dataset.as_str(), |(_, ours)| ours.as_str());
    let fits = |config: &TrialConfig| {
        config.dataset == dataset
            && printed.depth.is_none_or(|depth| depth == config.depth)
            && condition.holds(config)
    };
    let mut configs = cell.folds.iter().map(|fold| trials.get(&fold.trial));
    configs.all(|config| config.is_some_and(fits))
}

/// Whether the topological layer of all trials behind a cell stands where that of a printed number does, which may be called
/// `last` here and have a number there.
fn stands_there(printed: &PublishedCell, cell: &Cell, places: &Places) -> bool {
    let Some(place) = printed.position else { return true };
    cell.folds.iter().all(|fold| places.get(&fold.trial) == Some(&place))
}

fn compare(
    cell: &Cell,
    row: &TableRow,
    column: &TableColumn,
    published: Option<&PublishedCell>,
    scale: &Scale,
) -> ComparedCell {
    let difference = published.and_then(|published| Some(cell.mean? - published.mean));
    let deviation = published.and_then(|published| published.std);
    let within = |most: f64| move |difference: f64| difference.abs() <= most + rounding(scale);
    let error = cell.std.zip(deviation).map(|(ours, theirs)| {
        (ours.powi(2) / cell.n as f64 + theirs.powi(2) / cell.planned.max(cell.n) as f64).sqrt()
    });
    ComparedCell {
        row: row.labels.clone(),
        column: column.label.clone(),
        mean: cell.mean,
        std: cell.std,
        n: cell.n,
        planned: cell.planned,
        published: published.cloned(),
        difference,
        within_one_std: difference.zip(deviation).map(|(difference, std)| within(std)(difference)),
        within_two_standard_errors: difference.zip(error).map(|(off, error)| within(2.0 * error)(off)),
    }
}

/// Whether the labels of a cell, or what its row or column is printed as, are those of a printed number.
fn is_called(printed: &PublishedCell, table: &Table, row: &TableRow, column: &TableColumn) -> bool {
    let label = |setting: &str| {
        if table.column_setting == setting {
            return Some(column.label.as_str());
        }
        let at = table.row_settings.iter().position(|name| name == setting)?;
        row.labels.get(at).map(String::as_str)
    };
    let number = |setting: &str| label(setting).and_then(|text| text.parse().ok());
    let printed_as = column.printed_as.as_deref().or(row.printed_as.as_deref());
    let (Some(method), Some(dataset)) = (printed_as.or_else(|| label("method")), label("dataset")) else {
        return false;
    };
    let placed = printed.position.is_none() || label("togl_position").is_some();
    placed && published::is_about(printed, method, dataset, number("depth"))
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
