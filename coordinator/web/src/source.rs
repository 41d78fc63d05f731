//! Where views come from: one trait, which the command implements over its connection and tests play. Answers are asked for
//! often and by many tabs, so a source keeps what is asked for and answers at once.

use std::future::Future;

use crate::view;

/// Why there is no answer, in words for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// There is no such thing.
    Unknown(String),
    /// The request makes no sense.
    Bad(String),
    /// Whoever asks may not, or it cannot be done now.
    Refused(String),
    /// The coordinator cannot be reached.
    Away(String),
    /// Our fault.
    Ours(String),
}

impl Trouble {
    /// What happened.
    pub fn words(&self) -> &str {
        match self {
            Self::Unknown(words)
            | Self::Bad(words)
            | Self::Refused(words)
            | Self::Away(words)
            | Self::Ours(words) => words,
        }
    }
}

/// What a source answers.
pub type Answer<T> = Result<T, Trouble>;

/// Which folds of a sweep are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldsAsked {
    /// `pending`, `running`, `finished` or `failed`; all if empty.
    pub state: String,
    /// Only those that failed like this.
    pub class: String,
    /// Only those that this worker has or had last.
    pub worker: String,
    /// Only those of trials whose id begins like this.
    pub trial: String,
    /// So many are left out before the first.
    pub from: u64,
    /// So many at the most.
    pub limit: u64,
}

/// How a table is wanted, in the words of `togl table`; what is empty is as the sweep file says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableAsked {
    /// Settings that make rows, with commas between.
    pub rows: String,
    /// The setting that makes columns.
    pub columns: String,
    /// What ± means.
    pub spread: String,
    /// What stands out.
    pub bold: String,
}

/// A form in which a table can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableForm {
    /// Markdown.
    Markdown,
    /// LaTeX with booktabs.
    Latex,
    /// Comma-separated values.
    Csv,
}

/// A figure of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureAsked {
    /// Learning curves by method.
    Curves,
    /// What each worker trained when.
    Timeline,
    /// Accuracy against a setting.
    Against {
        /// Which one.
        setting: String,
    },
}

/// Something that knows a coordinator.
pub trait Source: Send + Sync + 'static {
    /// Where it is and whether it answers.
    fn about(&self) -> impl Future<Output = view::AboutPage> + Send;
    /// All sweeps and workers.
    fn overview(&self) -> impl Future<Output = Answer<view::Overview>> + Send;
    /// One sweep.
    fn sweep(&self, name: &str) -> impl Future<Output = Answer<view::SweepNow>> + Send;
    /// A number that changes whenever the table of a sweep may have changed.
    fn table_version(&self, name: &str) -> impl Future<Output = Answer<u64>> + Send;
    /// The table of a sweep as far as it is.
    fn table(&self, name: &str, asked: TableAsked) -> impl Future<Output = Answer<view::TableOnPage>> + Send;
    /// The same table as text.
    fn table_as(
        &self,
        name: &str,
        asked: TableAsked,
        form: TableForm,
    ) -> impl Future<Output = Answer<String>> + Send;
    /// Some folds of a sweep.
    fn folds(&self, name: &str, asked: FoldsAsked) -> impl Future<Output = Answer<view::FoldsOnPage>> + Send;
    /// Why folds of a sweep failed.
    fn failures(&self, name: &str) -> impl Future<Output = Answer<view::Failures>> + Send;
    /// Who did what to a sweep, or at all, the newest first.
    fn acts(&self, sweep: Option<&str>) -> impl Future<Output = Answer<view::Acts>> + Send;
    /// A figure as SVG.
    fn figure(&self, name: &str, asked: FigureAsked) -> impl Future<Output = Answer<String>> + Send;
    /// Learning curves as numbers.
    fn curves(&self, name: &str) -> impl Future<Output = Answer<view::CurvesNow>> + Send;
    /// Accuracy against a setting as numbers.
    fn against(&self, name: &str, setting: &str) -> impl Future<Output = Answer<view::Against>> + Send;
    /// Some trials of a sweep with what came out of them, from best to worst.
    fn trials(&self, name: &str, from: u64, limit: u64) -> impl Future<Output = Answer<view::Trials>> + Send;
    /// One worker.
    fn worker(&self, name: &str) -> impl Future<Output = Answer<view::WorkerNow>> + Send;
    /// Two trials beside each other.
    fn compare(
        &self,
        name: &str,
        a: &str,
        b: &str,
    ) -> impl Future<Output = Answer<view::ComparisonOnPage>> + Send;
    /// One fold.
    fn fold(&self, fold: &str) -> impl Future<Output = Answer<view::FoldOnPage>> + Send;
    /// Does something with a sweep and says what came of it.
    fn steer_sweep(&self, name: &str, act: view::SweepAct)
    -> impl Future<Output = Answer<view::Done>> + Send;
    /// Does something with a worker and says what came of it.
    fn steer_worker(
        &self,
        worker: &str,
        act: view::WorkerAct,
    ) -> impl Future<Output = Answer<view::Done>> + Send;
}
