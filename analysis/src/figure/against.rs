//! Values against a setting: depth, or where TOGL stands. One panel per data set, one line per method, error
//! bars with the meaning that the table's caption states. Works on any table that has the setting among its
//! labels, and makes one from a frame in which methods of all depths share a name.

use togl_sweeps::Goal;
use togl_sweeps::spec::{FigureSpec, Metric, Selection, TableSpec};

use super::Figure;
use super::axis::{Spacing, XAxis};
use super::lines::{Line, LinePlot, Panel, Point, Weight};
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::table::{Cell, Table};
use crate::wording::metric_words;

/// A table with one row per data set and value of `setting` and one column per family of methods: `GCN-4` and
/// `GCN-5` are both `GCN`. Trials that differ in something else are told apart by further rows; `plan` tells which
/// cells are complete ([`Plan::of_frame`] where the sweep is not known).
pub fn family_table(frame: &FoldFrame, plan: &Plan, setting: &str, metric: Metric) -> Result<Table> {
    let spec = TableSpec {
        rows: vec!["dataset".to_owned(), setting.to_owned()],
        columns: "method".to_owned(),
        metric,
        ..TableSpec::default()
    };
    let plan = plan.with_methods(family)?;
    Table::make(frame, &Table::separated(&spec, &plan)?, &plan)
}

/// The method without its number of layers.
fn family(method: &str) -> String {
    let (network, rest) =
        method.split_once("-TOGL-1").map_or((method, None), |(network, rest)| (network, Some(rest)));
    let backbone = network.rsplit_once('-').map_or(network, |(backbone, _)| backbone);
    rest.map_or_else(|| backbone.to_owned(), |rest| format!("{backbone}-TOGL{rest}"))
}

/// The figure that a `figure` block of a sweep asks for, after the choice of its table block if that has one and the
/// figure does not draw what is chosen among.
pub fn of_block(
    frame: &FoldFrame,
    plan: &Plan,
    spec: &FigureSpec,
    selection: Option<&Selection>,
) -> Result<Figure> {
    let rows: Vec<String> =
        spec.panels.iter().chain(&spec.lines).filter(|name| **name != spec.x).cloned().collect();
    let drawn = |name: &String| rows.contains(name) || *name == spec.x;
    let selection = selection.filter(|selection| !selection.among.iter().flatten().any(drawn));
    let block = TableSpec { rows, columns: spec.x.clone(), metric: spec.metric, ..TableSpec::default() };
    let table = Table::of_block(frame, &plan.with_methods(family)?, &block, selection)?;
    draw(&table, &spec.x, spec.panels.as_deref(), &spec.title)
}

/// Draws a table's means against one of its settings, with a panel for each data set. Refuses a setting that is the same
/// everywhere: there is nothing along such an axis.
pub fn against(table: &Table, setting: &str) -> Result<Figure> {
    if let [only] = values_along(table, setting).as_slice() {
        let others = table.settings().into_iter().filter(|name| !["dataset", "method"].contains(name));
        let varied: Vec<String> = others
            .filter(|name| *name != setting && values_along(table, name).len() > 1)
            .map(str::to_owned)
            .collect();
        return Err(Error::ConstantAxis { setting: setting.to_owned(), value: only.clone(), varied });
    }
    draw(table, setting, Some("dataset"), "")
}

fn draw(table: &Table, setting: &str, panels_of: Option<&str>, title: &str) -> Result<Figure> {
    if !table.settings().contains(&setting) {
        return Err(Error::Unfit(format!(
            "no setting `{setting}`; the table's rows or columns must have it; they have {}",
            table.settings().join(", ")
        )));
    }
    let mut panels: Vec<Panel> = Vec::new();
    let along = XAxis::of(&values_along(table, setting));
    for (row, column, cell) in table.cells() {
        let named: Vec<(&str, &str)> = table.settings().into_iter().zip(table.labels(row, column)).collect();
        if let Some(point) = point(&named, setting, cell, table, &along) {
            add(&mut panels, &named, setting, panels_of, point);
        }
    }
    if panels.is_empty() {
        let column = table.metric.as_str();
        return Err(Error::NoValues { what: format!("the figure against {setting}"), column });
    }
    tidy(&mut panels, table);
    let usual = format!("{} against {}", short_metric(table), words(setting));
    let plot = LinePlot {
        title: if title.is_empty() { usual } else { title.to_owned() },
        note: note(table, setting),
        x_label: axis_label(setting, along.scale),
        axis: along,
        across: None,
        panels,
    };
    plot.draw()
}

/// Points from left to right, names of axes, and short labels.
fn tidy(panels: &mut [Panel], table: &Table) {
    for line in panels.iter_mut().flat_map(|panel| &mut panel.lines) {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let y_label = match table.scale.unit() {
        "" => short_metric(table),
        unit => format!("{} ({unit})", short_metric(table)),
    };
    panels.iter_mut().for_each(|panel| panel.y_label.clone_from(&y_label));
    shorten(panels);
}

/// Leaves out of all labels what is the same in all of them.
fn shorten(panels: &mut [Panel]) {
    let parts = |label: &str| label.split(", ").map(str::to_owned).collect::<Vec<String>>();
    let labels: Vec<Vec<String>> =
        panels.iter().flat_map(|panel| &panel.lines).map(|line| parts(&line.label)).collect();
    let everywhere = |part: &String| labels.iter().all(|label| label.contains(part));
    for line in panels.iter_mut().flat_map(|panel| &mut panel.lines) {
        let kept: Vec<String> = parts(&line.label).into_iter().filter(|part| !everywhere(part)).collect();
        if !kept.is_empty() {
            line.label = kept.join(", ");
        }
    }
}

/// The different values of the setting, in the order of the table; none if it has no such setting.
fn values_along(table: &Table, setting: &str) -> Vec<String> {
    let Some(at) = table.settings().iter().position(|name| *name == setting) else { return Vec::new() };
    Distinct::of(table.cells().map(|(row, column, _)| table.labels(row, column)[at].to_owned()))
}

fn point(named: &[(&str, &str)], setting: &str, cell: &Cell, table: &Table, along: &XAxis) -> Option<Point> {
    let (_, value) = named.iter().find(|(name, _)| *name == setting)?;
    Some(Point {
        x: along.place(value)?,
        y: cell.centre(table.spread)?,
        error: cell.plus_minus(table.spread),
    })
}

fn add(
    panels: &mut Vec<Panel>,
    named: &[(&str, &str)],
    setting: &str,
    panels_of: Option<&str>,
    point: Point,
) {
    let of = |wanted: &str| named.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let title = match panels_of {
        Some("dataset") => of("dataset").unwrap_or("all data").to_owned(),
        Some(name) => format!("{} {}", words(name), of(name).unwrap_or_default()),
        None => "all trials".to_owned(),
    };
    let others = named.iter().filter(|(name, _)| *name != setting && Some(*name) != panels_of);
    let label = others
        .map(|(name, value)| if *name == "method" { (*value).to_owned() } else { format!("{name} {value}") })
        .collect::<Vec<_>>()
        .join(", ");
    let at = panels.iter().position(|panel| panel.title == title).unwrap_or_else(|| {
        panels.push(Panel { title: title.clone(), y_label: String::new(), lines: Vec::new() });
        panels.len() - 1
    });
    let lines = &mut panels[at].lines;
    match lines.iter_mut().find(|line| line.label == label) {
        Some(line) => line.points.push(point),
        None => lines.push(Line { label, points: vec![point], weight: Weight::Measured }),
    }
}

/// What bars are, and what else a reader must know.
fn note(table: &Table, setting: &str) -> String {
    let constant = match values_along(table, setting).as_slice() {
        [only] => format!(" All of these trials have {setting} {only}."),
        _ => String::new(),
    };
    let incomplete = table.cells().filter(|(_, _, cell)| cell.n > 0 && !cell.is_complete()).count();
    let incomplete = match incomplete {
        0 => String::new(),
        1 => " 1 point rests on fewer folds than planned.".to_owned(),
        cells => format!(" {cells} points rest on fewer folds than planned."),
    };
    let single = match table.cells().filter(|(_, _, cell)| cell.n == 1).count() {
        0 => String::new(),
        1 => " 1 point is one fold and has no bar.".to_owned(),
        cells => format!(" {cells} points are one fold each and have no bar."),
    };
    let (metric, centre) = (metric_words(table.metric, &table.scale), table.spread.centre());
    let better = match (table.scale.goal, table.scale.is_share()) {
        (Goal::Max, true) => "",
        (Goal::Max, false) => " (higher is better)",
        (Goal::Min, _) => " (lower is better)",
    };
    let spread = table.spread.to_string().replace(" - ", "\u{a0}-\u{a0}"); // `n - 1` stays on one line
    format!("{metric}{better}: {centre} over folds; bars: ± {spread}.{constant}{incomplete}{single}")
}

/// What is measured, without when.
fn short_metric(table: &Table) -> String {
    let words = metric_words(table.metric, &table.scale);
    words.split(" of the ").next().unwrap_or_default().to_owned()
}

fn words(setting: &str) -> String {
    match setting {
        "depth" => "depth".to_owned(),
        "togl_position" => "the place of the topological layer".to_owned(),
        other => other.replace('_', " "),
    }
}

fn axis_label(setting: &str, scale: Spacing) -> String {
    let name = match setting {
        "depth" => "depth (graph layers)",
        "togl_position" => "graph layers before TOGL",
        other => other,
    };
    match scale {
        Spacing::Linear | Spacing::Words => name.to_owned(),
        Spacing::Logarithmic => format!("{name} (logarithmic)"),
        Spacing::Uneven => format!("{name} (values evenly spaced, not to scale)"),
    }
}
