//! `togl plot` draws figures of a sweep, of saved folds or of a graph's filtrations. The drawing is done by
//! `togl-analysis`; this collects and writes.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use togl_analysis::figure::{self, Figure, LearntFiltrations, Work};
use togl_analysis::{Error, FoldFrame, Layout, Plan, Table, curves};
use togl_sweeps::FoldKey;
use togl_sweeps::spec::{Metric, TableSpec};

use super::table::{self, explained};
use super::table_block::{TableBlock, condition, metric};
use crate::facts::{self, Collected, Depth};
use crate::output;
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// Draw a figure of a sweep
#[derive(Debug, clap::Args)]
pub struct Plot {
    /// Name of the sweep
    #[arg(required_unless_present = "from")]
    sweep: Option<String>,
    /// Use saved folds instead of a sweep, or the JSON of `togl-worker filtrations`
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "sweep")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// What to draw [default: what the `figure` block of the sweep says, else `against`]
    #[arg(long, value_enum)]
    figure: Option<Kind>,
    /// The setting along the axis, for `against`
    #[arg(long, default_value = "depth")]
    against: String,
    /// What is averaged, for `against`, such as last_validation_accuracy [default: as the sweep's table]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Only trials with one of these values; may be given several times
    #[arg(long, value_name = "SETTING=VALUES")]
    filter: Vec<String>,
    /// A published layout whose cells are drawn, for saved folds
    #[arg(long, value_name = "NAME", conflicts_with = "sweep")]
    layout: Option<String>,
    /// Settings, or `method`, that make a row, for heat-map and critical-difference of saved folds
    #[arg(long, value_name = "SETTINGS", value_delimiter = ',', conflicts_with_all = ["sweep", "layout"])]
    rows: Vec<String>,
    /// The setting that makes the columns, for the same
    #[arg(long, value_name = "SETTING", conflicts_with_all = ["sweep", "layout"])]
    columns: Option<String>,
    /// Leave title and note out of the picture, for a paper with its own caption; they are printed instead
    #[arg(long)]
    no_title: bool,
    /// The picture, .svg, .png or .pdf; several figures get numbers before the ending
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// What can be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Accuracy against a setting, with error bars.
    Against,
    /// Accuracy of every fold.
    HeatMap,
    /// Methods by mean rank, with the critical difference.
    CriticalDifference,
    /// Loss and accuracy by epoch, one line per method.
    LearningCurves,
    /// What each worker trained.
    Timeline,
    /// Learnt filtrations on graphs, from a JSON file.
    Filtrations,
}

impl Plot {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let figures = match &self.sweep {
            Some(sweep) => {
                let mut source = self.target.facts().await?;
                self.of_sweep(facts::collected(source.as_mut(), sweep, Depth::Curves).await?)?
            }
            None => self.of_files()?,
        };
        let figures: Vec<Figure> = match self.no_title {
            true => figures.into_iter().map(Figure::without_heading).collect(),
            false => figures,
        };
        for (path, figure) in write_numbered(&figures, &self.out)?.iter().zip(&figures) {
            eprintln!("wrote {}", path.display());
            if self.no_title {
                output::print(&format!("{}\n", figure.caption()))?;
            }
        }
        Ok(())
    }

    fn of_sweep(&self, mut collected: Collected) -> Result<Vec<Figure>, Problem> {
        let filter = self.filter()?;
        let plan = Plan::of_sweep(&collected.spec).filtered(&filter).map_err(explained)?;
        collected.frame = collected.frame.filtered(&filter).map_err(explained)?;
        let kept: HashSet<FoldKey> = collected.frame.keys().map_err(explained)?.into_iter().collect();
        collected.rows.retain(|row| kept.contains(&row.fold));
        collected.spec.table.filter.extend(filter);
        let name = collected.spec.name.as_str();
        match self.figure {
            None if !collected.spec.figures.is_empty() => of_blocks(&collected, &plan),
            None | Some(Kind::Against) => self.against(&collected.frame, &plan, collected.spec.table.metric),
            Some(Kind::LearningCurves) => one(figure::method_curves(name, &curves::grouped(&collected.rows))),
            Some(Kind::Timeline) => work(name, &collected.frame),
            Some(Kind::Filtrations) => Err(needs_file()),
            Some(kind @ (Kind::HeatMap | Kind::CriticalDifference)) => {
                of_table(kind, &table::make(&collected)?)
            }
        }
    }

    fn of_files(&self) -> Result<Vec<Figure>, Problem> {
        if self.figure == Some(Kind::Filtrations) {
            let [file] = self.from.as_slice() else { return Err(needs_file()) };
            return LearntFiltrations::read(file)
                .and_then(|learnt| figure::filtrations(&learnt))
                .map_err(explained);
        }
        self.of_folds()
    }

    fn of_folds(&self) -> Result<Vec<Figure>, Problem> {
        let filter = self.filter()?;
        let frame = FoldFrame::read_all(&self.from).map_err(explained)?;
        let plan = Plan::of_frame("saved folds", &frame).and_then(|plan| plan.filtered(&filter));
        let (plan, frame) = (plan.map_err(explained)?, frame.filtered(&filter).map_err(explained)?);
        match (self.figure.unwrap_or(Kind::Against), &self.layout) {
            (Kind::LearningCurves, _) => {
                Err(Problem::usage("saved folds have no learning curves").hint("name a sweep"))
            }
            (Kind::Timeline, _) => work("saved folds", &frame),
            (Kind::Against, None) => self.against(&frame, &plan, Metric::TestAccuracy),
            (kind, Some(name)) => {
                let made =
                    name.parse::<Layout>().and_then(|layout| layout.make(&frame)).map_err(explained)?;
                match kind {
                    Kind::Against => one(figure::against(&made, &self.against)),
                    kind => of_table(kind, &made),
                }
            }
            (kind, None) => of_table(kind, &self.table(&frame, &plan)?),
        }
    }

    /// The table that `togl table --from` makes of the same folds.
    fn table(&self, frame: &FoldFrame, plan: &Plan) -> Result<Table, Problem> {
        let block = TableBlock::of(&self.rows, self.columns.as_ref(), self.metric.as_ref());
        let (spec, _) = block.over(&TableSpec::default(), None)?;
        Table::of_block(frame, plan, &spec, None).map_err(explained)
    }

    fn filter(&self) -> Result<Vec<(String, Vec<String>)>, Problem> {
        self.filter.iter().map(|text| condition(text)).collect()
    }

    fn against(&self, frame: &FoldFrame, plan: &Plan, usual: Metric) -> Result<Vec<Figure>, Problem> {
        let metric = self.metric.as_deref().map_or(Ok(usual), metric)?;
        let made = figure::family_table(frame, plan, &self.against, metric).map_err(explained)?;
        one(figure::against(&made, &self.against))
    }
}

fn one(figure: Result<Figure, Error>) -> Result<Vec<Figure>, Problem> {
    figure.map(|figure| vec![figure]).map_err(explained)
}

fn needs_file() -> Problem {
    Problem::usage("filtrations are drawn from one file")
        .hint("give --from FILE with what `togl-worker filtrations` wrote")
}

fn work(title: &str, frame: &FoldFrame) -> Result<Vec<Figure>, Problem> {
    one(Work::of_frame(frame).and_then(|work| figure::timeline(title, &work)))
}

fn of_table(kind: Kind, made: &Table) -> Result<Vec<Figure>, Problem> {
    match kind {
        Kind::CriticalDifference => {
            one(figure::ranking(made).and_then(|r| figure::critical_difference(&r, 0.05)))
        }
        _ => figure::fold_heat_maps(made).map_err(explained),
    }
}

/// The figures that the sweep file asks for.
pub fn of_blocks(collected: &Collected, plan: &Plan) -> Result<Vec<Figure>, Problem> {
    let selection = collected.spec.selection.as_ref();
    let draw = |spec| figure::of_block(&collected.frame, plan, spec, selection).map_err(explained);
    collected.spec.figures.iter().map(draw).collect()
}

/// Writes one figure under the name given, several under `NAME-1`, `NAME-2` and so on.
pub fn write_numbered(figures: &[Figure], out: &Path) -> Result<Vec<PathBuf>, Problem> {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let ending = out.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    let path = |at: usize| match figures.len() {
        1 => out.to_owned(),
        _ => out.with_file_name(format!("{stem}-{}{ending}", at + 1)),
    };
    figures.iter().enumerate().map(|(at, figure)| figure.write(&path(at)).map_err(explained)).collect()
}
