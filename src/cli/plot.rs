//! `togl plot` draws figures of a sweep or of saved folds; `togl report` writes one HTML file about a sweep. The
//! drawing is done by `togl-analysis`; this collects and writes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::ValueEnum;
use togl_analysis::figure::{self, Curve, Figure};
use togl_analysis::report::{self, FailedFold, ReportInput};
use togl_analysis::{FoldFrame, Layout, Plan};
use togl_sweeps::spec::Metric;

use super::Outcome;
use super::folds;
use super::table::{self, explained};
use crate::problem::Problem;
use crate::remote::{self, Target};
use crate::rows::{self, Collected};

/// Draw a figure of a sweep
#[derive(Debug, clap::Args)]
pub struct Plot {
    /// Name of the sweep
    #[arg(required_unless_present = "from")]
    sweep: Option<String>,
    /// Use saved folds instead of a sweep
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "sweep")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    target: Target,
    /// What to draw
    #[arg(long, value_enum, default_value = "against")]
    figure: Kind,
    /// The setting along the axis, for `against`
    #[arg(long, default_value = "depth")]
    against: String,
    /// A published layout whose cells are drawn, for saved folds
    #[arg(long, value_name = "NAME", conflicts_with = "sweep")]
    layout: Option<String>,
    /// The picture, .svg or .png
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
    /// Loss and accuracy by epoch.
    LearningCurves,
}

/// Write one HTML file about a sweep
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
    /// The file [default: SWEEP.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Plot {
    pub(super) async fn run(self) -> Outcome {
        let figure = match &self.sweep {
            Some(sweep) => self.of_sweep(&rows::collected(&self.target, sweep).await?)?,
            None => self.of_files()?,
        };
        let path = figure.write(&self.out).map_err(explained)?;
        eprintln!("wrote {}", path.display());
        Ok(ExitCode::SUCCESS)
    }

    fn of_sweep(&self, collected: &Collected) -> Result<Figure, Problem> {
        if self.figure == Kind::LearningCurves {
            let curve = |row: &togl_analysis::FoldRow| Curve {
                label: format!("{} on {}, split {}", row.config.method(), row.config.dataset, row.fold.split),
                history: row.result.history.clone(),
            };
            let curves: Vec<Curve> = collected.rows.iter().map(curve).collect();
            return figure::learning_curves(collected.spec.name.as_str(), &curves).map_err(explained);
        }
        let plan = Plan::of_sweep(&collected.spec).map_err(explained)?;
        match self.figure {
            Kind::Against => self.against(&collected.frame, &plan, collected.spec.table.metric),
            _ => self.of_table(&table::make(collected)?),
        }
    }

    fn of_files(&self) -> Result<Figure, Problem> {
        let frames: Result<Vec<FoldFrame>, _> = self.from.iter().map(|file| FoldFrame::read(file)).collect();
        let frame = FoldFrame::concat(frames.map_err(explained)?).map_err(explained)?;
        let plan = Plan::of_frame("saved folds", &frame).map_err(explained)?;
        match (self.figure, &self.layout) {
            (Kind::LearningCurves, _) => {
                Err(Problem::usage("saved folds have no learning curves").hint("name a sweep"))
            }
            (Kind::Against, None) => self.against(&frame, &plan, Metric::TestAccuracy),
            (_, Some(name)) => {
                let made =
                    name.parse::<Layout>().and_then(|layout| layout.make(&frame)).map_err(explained)?;
                self.of_table(&made)
            }
            (_, None) => {
                Err(Problem::usage("this figure needs a table").hint("give --layout NAME, or name a sweep"))
            }
        }
    }

    fn against(&self, frame: &FoldFrame, plan: &Plan, metric: Metric) -> Result<Figure, Problem> {
        let made = figure::family_table(frame, plan, &self.against, metric).map_err(explained)?;
        figure::against(&made, &self.against).map_err(explained)
    }

    fn of_table(&self, made: &togl_analysis::Table) -> Result<Figure, Problem> {
        match self.figure {
            Kind::HeatMap => figure::fold_heat_map(made),
            Kind::CriticalDifference => {
                figure::ranking(made).and_then(|r| figure::critical_difference(&r, 0.05))
            }
            Kind::Against | Kind::LearningCurves => figure::against(made, &self.against),
        }
        .map_err(explained)
    }
}

impl Report {
    /// What was given up, as a coordinator tells it; without one, only results are known.
    async fn failures(&self) -> Result<Vec<FailedFold>, Problem> {
        if self.target.coordinator.is_none() && self.target.state()?.served().is_none() {
            return Ok(Vec::new());
        }
        let folds = folds::of_sweep(&mut self.target.connect().await?, &self.sweep).await?;
        let failed = folds.into_iter().filter_map(|summary| {
            let failure = summary.failure?;
            Some(FailedFold {
                fold: remote::fold_text(summary.fold.as_ref()),
                attempt: summary.attempts,
                worker: summary.worker,
                class: failure.class,
                message: failure.message,
            })
        });
        Ok(failed.collect())
    }

    pub(super) async fn run(self) -> Outcome {
        let collected = rows::collected(&self.target, &self.sweep).await?;
        let failures = self.failures().await?;
        let commands = vec![format!("togl run {}.yaml", self.sweep), format!("togl table {}", self.sweep)];
        let input = ReportInput {
            sweep: &collected.spec,
            sweep_text: &collected.yaml,
            rows: &collected.rows,
            failures: &failures,
            commands: &commands,
            made_at: "",
        };
        let out = self.out.unwrap_or_else(|| PathBuf::from(format!("{}.html", self.sweep)));
        let path = report::write(&out, &input).map_err(explained)?;
        eprintln!("wrote {}", path.display());
        Ok(ExitCode::SUCCESS)
    }
}
