//! A table as people read it: labelled rows, columns, cells, and a caption that says what the numbers are. Owns how
//! cells are arranged and who wins: the cell with the best mean of its column or row. What is honest about a
//! single number is in [`crate::cell`]. Renders nothing.

use togl_sweeps::Scale;
use togl_sweeps::spec::{Labels, Metric, Selection, TableSpec};

pub use crate::cell::{Cell, Mark};
use crate::cells::{self, CellFolds, GroupedCells};
use crate::choice;
use crate::columns::is_among;
use crate::distinct::Distinct;
use crate::emphasis::Emphasis;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::level;
use crate::plan::Plan;
use crate::scales;
use crate::spread::Spread;
use crate::wording;

/// Means closer than this (in percentage points) are equal: rounding of sums must not decide who wins.
const SAME_MEAN: f64 = 1e-9;

/// The same as a share of the mean, where values are not in percent and may be of any size.
const SAME_SHARE: f64 = 1e-12;

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableColumn {
    /// The value of the column setting: what was trained.
    pub label: String,
    /// What stands over it and its neighbours of the same group.
    pub group: Option<String>,
    /// What a publication prints above this column, where a table mirrors one and the two may differ.
    pub printed_as: Option<String>,
}

impl TableColumn {
    /// A column without a group and without another name in print.
    pub(crate) fn plain(label: &str) -> Self {
        Self { label: label.to_owned(), group: None, printed_as: None }
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableRow {
    /// One label per row setting.
    pub labels: Vec<String>,
    /// One cell per column.
    pub cells: Vec<Cell>,
    /// What a publication prints beside this row, where a table mirrors one and the two may differ.
    pub printed_as: Option<String>,
}

impl TableRow {
    /// Whether all its numbers are cited.
    pub fn is_cited(&self) -> bool {
        let mut there = self.cells.iter().filter(|cell| cell.is_there()).peekable();
        there.peek().is_some() && there.all(|cell| cell.cited)
    }
}

/// Among which cells the best one is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Winners {
    /// Among the cells of a column: rows are what is compared.
    PerColumn,
    /// Among the cells of a row: columns are what is compared.
    PerRow,
}

/// A finished table, ready for any renderer.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// What it is called.
    pub title: String,
    /// What the numbers are, what ± means and over how many folds. How winners are set off is the renderer's to
    /// say.
    pub caption: String,
    /// Further lines under the table: what marks mean, what was left out.
    pub notes: Vec<String>,
    /// The settings that label rows, in order.
    pub row_settings: Vec<String>,
    /// The setting that makes columns.
    pub column_setting: String,
    /// The setting that groups columns, if any.
    pub group_setting: Option<String>,
    /// The columns, in order.
    pub columns: Vec<TableColumn>,
    /// The rows, in order.
    pub rows: Vec<TableRow>,
    /// Among which cells winners were found.
    pub winners: Winners,
    /// What was measured.
    pub metric: Metric,
    /// What the values are; those that are shares stand here in percent.
    pub scale: Scale,
    /// What ± means.
    pub spread: Spread,
    /// Which cells are set off.
    pub emphasis: Emphasis,
    /// Notes that belong to this table whatever its cells hold, such as how a layout chose.
    pub remarks: Vec<String>,
    /// Finished folds that the plan does not contain and that no cell shows.
    pub unplanned: usize,
    /// Digits after the decimal point in rendered numbers.
    pub decimals: usize,
    /// What people read for settings and their values; labels of rows and columns stay as trials spell them.
    pub labels: Vec<Labels>,
    /// What a LaTeX paper refers to it by.
    pub reference: Option<String>,
    /// The settings that were chosen among before it was made; empty without a choice.
    pub chosen: Vec<String>,
}

impl Table {
    /// Makes the table that `spec` asks for. Rows and columns are those of the plan, in its order.
    ///
    /// A cell whose folds come from different trials is refused, because its mean would
    /// be of nothing in particular; [`Table::separated`] says which rows avoid that. Winners are found by the
    /// unrounded mean, so of two cells that print alike one may win; only complete cells compete, and only where
    /// at least two do.
    pub fn make(frame: &FoldFrame, spec: &TableSpec, plan: &Plan) -> Result<Self> {
        Self::make_after_choice(frame, spec, plan, &[])
    }

    /// Makes the table of a whole table block: what its filter leaves, after its choice if it has one, with further
    /// rows where several trials would share a cell.
    pub fn of_block(
        frame: &FoldFrame,
        plan: &Plan,
        spec: &TableSpec,
        selection: Option<&Selection>,
    ) -> Result<Self> {
        let judged = plan.judged(frame)?;
        let frame = judged.visible(frame)?.filtered(&spec.filter)?;
        let plan = judged.filtered(&spec.filter)?;
        let Some(selection) = selection else {
            let mut table = Self::make(&frame, &cells::separated(spec, &plan, &[])?, &plan)?;
            table.remarks.extend(plan.stopped().remark(&plan));
            return Ok(table);
        };
        refuse_chosen_labels(spec, selection)?;
        let chosen = choice::choose(&frame, &plan, selection, spec)?;
        let spec = cells::separated(spec, &chosen.plan, &chosen.among)?;
        let mut table = Self::make_after_choice(&chosen.frame, &spec, &chosen.plan, &chosen.among)?;
        table.remarks.extend(chosen.remarks);
        table.remarks.extend(plan.stopped().remark(&plan));
        let of_fewer = |cell: &Cell| cell.folds.iter().any(|fold| chosen.of_fewer.contains(&fold.trial));
        let cells = table.rows.iter_mut().flat_map(|row| &mut row.cells);
        cells.filter(|cell| of_fewer(cell)).for_each(|cell| {
            cell.marks.insert(Mark::FewerCandidates);
        });
        table.mark_best(Winners::PerColumn);
        table.chosen = chosen.among;
        if chosen.without_value > 0 {
            let cells = table.rows.iter_mut().flat_map(|row| &mut row.cells);
            cells.filter(|cell| cell.n == 0 && cell.planned > 0).for_each(|cell| cell.valueless += 1);
        }
        table.reword();
        Ok(table)
    }

    /// As [`Table::make`], for a frame in which a choice was made per fold: trials that differ only in the
    /// settings `among` which was chosen may share a cell.
    pub fn make_after_choice(
        frame: &FoldFrame,
        spec: &TableSpec,
        plan: &Plan,
        among: &[String],
    ) -> Result<Self> {
        if plan.is_empty() {
            return Err(Error::Empty { origin: format!("the plan of `{}`", plan.title()) });
        }
        let grouped = cells::group(frame, spec, plan, among)?;
        let levelled = grouped.levelled;
        let scale = scales::of_table(frame, plan, spec.metric)?;
        let mut table = Self::arrange(plan.title(), spec, grouped, scale);
        table.remarks.extend(levelled.then(|| level::REMARK.to_owned()));
        table.remarks.extend(frame.remark());
        table.mark_best(Winners::PerColumn);
        table.reword();
        Ok(table)
    }

    /// The table block with enough row settings that every cell is one trial.
    pub fn separated(spec: &TableSpec, plan: &Plan) -> Result<TableSpec> {
        cells::separated(spec, plan, &[])
    }

    /// The same table with another meaning of ±; the caption says which.
    #[must_use]
    pub fn with_spread(mut self, spread: Spread) -> Self {
        self.spread = spread;
        self.reword();
        self
    }

    /// All cells, row by row, each with its row and its column.
    pub fn cells(&self) -> impl Iterator<Item = (&TableRow, &TableColumn, &Cell)> {
        self.rows.iter().flat_map(|row| {
            self.columns.iter().zip(&row.cells).map(move |(column, cell)| (row, column, cell))
        })
    }

    /// The settings that label a cell: those of its row, of the group above it, of its column.
    pub fn settings(&self) -> Vec<&str> {
        let settings = self.row_settings.iter().chain(&self.group_setting).chain([&self.column_setting]);
        settings.map(String::as_str).collect()
    }

    /// The values of [`Table::settings`] in one cell.
    pub fn labels<'a>(&self, row: &'a TableRow, column: &'a TableColumn) -> Vec<&'a str> {
        let group = column.group.iter().filter(|_| self.group_setting.is_some());
        row.labels.iter().chain(group).chain([&column.label]).map(String::as_str).collect()
    }

    fn arrange(title: &str, spec: &TableSpec, grouped: GroupedCells, scale: Scale) -> Self {
        let (mut columns, mut labels) = (Distinct::default(), Distinct::default());
        let place = |cell: &CellFolds| {
            let head = (cell.group.clone(), cell.column.clone());
            (labels.place(cell.row.clone()), columns.place(head))
        };
        let places: Vec<(usize, usize)> = grouped.cells.iter().map(place).collect();
        let column = |(group, label)| TableColumn { label, group, printed_as: None };
        let mut columns: Vec<TableColumn> = columns.in_order.into_iter().map(column).collect();
        let empty = vec![Cell::default(); columns.len()];
        let row = |labels| TableRow { labels, cells: empty.clone(), printed_as: None };
        let mut rows: Vec<TableRow> = labels.in_order.into_iter().map(row).collect();
        for ((row, column), group) in places.into_iter().zip(grouped.cells) {
            rows[row].cells[column] = Cell::of(group, &scale);
        }
        put_in_order(&mut columns, &mut rows, spec);
        gather_groups(&mut columns, &mut rows);
        Self {
            title: spec.caption.as_deref().unwrap_or(title).to_owned(),
            caption: String::new(),
            notes: Vec::new(),
            row_settings: cells::row_settings(spec),
            column_setting: spec.columns.clone(),
            group_setting: spec.group.clone().filter(|name| *name != spec.columns),
            columns,
            rows,
            winners: Winners::PerColumn,
            metric: spec.metric,
            decimals: spec.decimals.unwrap_or(scale.decimals()),
            scale,
            spread: Spread::default(),
            emphasis: Emphasis::default(),
            remarks: Vec::new(),
            unplanned: grouped.unplanned,
            labels: spec.labels.clone(),
            reference: spec.label.clone(),
            chosen: Vec::new(),
        }
    }

    /// Finds the winners anew, within columns or within rows.
    pub(crate) fn mark_best(&mut self, winners: Winners) {
        self.winners = winners;
        match winners {
            Winners::PerColumn => {
                for column in 0..self.columns.len() {
                    let cells = self.rows.iter_mut().map(|row| &mut row.cells[column]).collect();
                    mark_winners(cells, &self.scale, |cell, wins| cell.best = wins);
                }
            }
            Winners::PerRow => {
                for row in &mut self.rows {
                    mark_winners(row.cells.iter_mut().collect(), &self.scale, |cell, wins| cell.best = wins);
                }
            }
        }
    }

    /// Words the caption and the notes for the cells as they are now.
    pub(crate) fn reword(&mut self) {
        self.caption = wording::caption(self);
        self.notes = wording::notes(self);
        self.notes.extend(self.remarks.iter().cloned());
    }
}

/// Puts rows and columns in the order that the table block asks for, where it does.
fn put_in_order(columns: &mut Vec<TableColumn>, rows: &mut Vec<TableRow>, spec: &TableSpec) {
    if spec.order.is_empty() {
        return;
    }
    let row_labels: Vec<Vec<String>> = rows.iter().map(|row| row.labels.clone()).collect();
    let mut in_order: Vec<(Vec<usize>, TableRow)> =
        ranks(&row_labels, &cells::row_settings(spec), spec).into_iter().zip(rows.drain(..)).collect();
    in_order.sort_by(|a, b| a.0.cmp(&b.0));
    rows.extend(in_order.into_iter().map(|(_, row)| row));
    let labels: Vec<Vec<String>> = columns
        .iter()
        .map(|column| column.group.iter().cloned().chain([column.label.clone()]).collect())
        .collect();
    let grouped = columns.iter().any(|column| column.group.is_some());
    let settings: Vec<String> =
        spec.group.iter().filter(|_| grouped).chain([&spec.columns]).cloned().collect();
    reorder(columns, rows, ranks(&labels, &settings, spec));
}

/// Puts columns and their cells in the order of these ranks, equal ones as they stand.
fn reorder<K: Ord>(columns: &mut Vec<TableColumn>, rows: &mut [TableRow], ranks: Vec<K>) {
    let mut order: Vec<(K, usize)> = ranks.into_iter().zip(0..).collect();
    order.sort();
    *columns = order.iter().map(|(_, at)| columns[*at].clone()).collect();
    for row in rows {
        row.cells = order.iter().map(|(_, at)| std::mem::take(&mut row.cells[*at])).collect();
    }
}

/// For each list of labels where it stands, setting by setting: as asked for, else as it came.
fn ranks(labels: &[Vec<String>], settings: &[String], spec: &TableSpec) -> Vec<Vec<usize>> {
    let mut came: Vec<Distinct<String>> = settings.iter().map(|_| Distinct::default()).collect();
    let mut rank = |at: usize, label: &String| {
        let order = spec.order.iter().find(|(name, _)| *name == settings[at]).map(|(_, values)| values);
        let asked = order
            .and_then(|values| values.iter().position(|value| is_among(label, std::slice::from_ref(value))));
        asked.unwrap_or_else(|| order.map_or(0, Vec::len) + came[at].place(label.clone()))
    };
    labels
        .iter()
        .map(|labels| labels.iter().enumerate().map(|(at, label)| rank(at, label)).collect())
        .collect()
}

/// Puts columns of one group side by side, groups in the order of their first column.
fn gather_groups(columns: &mut Vec<TableColumn>, rows: &mut [TableRow]) {
    let mut groups = Distinct::default();
    let ranks = columns.iter().map(|column| groups.place(column.group.clone())).collect();
    reorder(columns, rows, ranks);
}

/// A setting that a choice is made among has no single value in a cell, so it cannot label one.
fn refuse_chosen_labels(spec: &TableSpec, selection: &Selection) -> Result<()> {
    let mut labels = spec.rows.iter().chain([&spec.columns]).chain(&spec.group);
    match labels.find(|name| selection.among.as_ref().is_some_and(|among| among.contains(name))) {
        None => Ok(()),
        Some(name) => Err(Error::Unfit(format!(
            "a row or column of a table with a choice cannot be `{name}`; it is what `select` chooses among; leave it \
             out of rows, columns and group"
        ))),
    }
}

/// Tells each cell whether it has the best mean of those given. Who is alone has no rivals, unless a race has stopped them.
pub(crate) fn mark_winners(mut cells: Vec<&mut Cell>, scale: &Scale, mark: fn(&mut Cell, bool)) {
    let competes = |cell: &Cell| cell.mean.filter(|_| cell.is_complete()).map(|mean| scale.sign() * mean);
    let means: Vec<f64> = cells.iter().filter_map(|cell| competes(cell)).collect();
    let stopped = cells.iter().filter(|cell| cell.marks.contains(&Mark::Stopped)).count();
    let highest = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let same = if scale.is_share() { SAME_MEAN } else { SAME_SHARE * highest.abs() };
    for cell in &mut cells {
        let wins = means.len() + stopped > 1 && competes(cell).is_some_and(|mean| mean >= highest - same);
        mark(cell, wins);
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
