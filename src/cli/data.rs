//! `togl data`: lists, fetches, checks and draws data sets. The work is done by `togl-data`; this chooses folders
//! and prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use togl_data::{CheckReport, DataProgress, FetchOptions, FetchOutcome, OpenOptions};
use togl_proto::own_machine;
use togl_sweeps::SweepSpec;

use super::VerbOutcome;
use crate::output::{self, ListFormat, ListRow, Listing, Plain};
use crate::problem::{self, Problem};

/// Look at data sets
#[derive(Debug, clap::Args)]
pub struct Data {
    #[command(subcommand)]
    what: What,
    /// Where data sets are [default: the user's cache directory]
    #[arg(long, global = true, value_name = "DIR", env = "TOGL_DATA")]
    data_dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the data sets that are known or lie in the data directory
    List {
        #[command(flatten)]
        listing: Listing,
    },
    /// Download data sets, or copy them from a folder
    Fetch {
        /// Their names
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Load a data set and compare it with what is known of it
    Check {
        /// Its name
        name: String,
        /// How to print
        #[arg(long, value_enum, default_value = "human")]
        format: Plain,
    },
    /// Draw one graph of a data set as SVG, to standard output
    Show {
        /// Its name
        name: String,
        /// Which graph, from 0
        index: usize,
    },
    /// Say where the files of a data set belong
    Path {
        /// Its name
        name: String,
    },
}

/// Where files come from.
#[derive(Debug, clap::Args)]
struct How {
    /// Copy the files from this folder instead of downloading them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["mirror", "ca_file"])]
    from: Option<PathBuf>,
    /// Download from this address instead of the public sites: a folder laid out like a data directory
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Fetch also what is there already
    #[arg(long)]
    again: bool,
    /// Believe the certificate authorities in this PEM file instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

impl Data {
    pub(super) fn run(self) -> VerbOutcome {
        let folders = Folders::choose(self.data_dir)?;
        match self.what {
            What::List { listing } => list(&folders, &listing),
            What::Fetch { names, how } => fetch(&folders, &names, how),
            What::Check { name, format } => check(&folders, &name, format),
            What::Show { name, index } => show(&folders, &name, index),
            What::Path { name } => path(&folders, &name),
        }
    }
}

/// Where data sets and their caches are.
pub struct Folders {
    data: PathBuf,
    cache: PathBuf,
}

impl Folders {
    /// The given data directory, or the user's own; caches always go to the user's cache directory.
    pub fn choose(given: Option<PathBuf>) -> Result<Self, Problem> {
        let missing = || Problem::usage("no home directory for the cache").hint("set XDG_CACHE_HOME");
        let base = own_machine::cache_folder().ok_or_else(missing)?;
        if let Some(file) = given.as_ref().filter(|given| given.is_file()) {
            return Err(Problem::usage(format!("the data directory {} is a file", file.display()))
                .hint("`--data-dir` and TOGL_DATA name a folder"));
        }
        Ok(Self { data: given.unwrap_or_else(|| base.join("data")), cache: base.join("data-cache") })
    }

    fn options(&self) -> OpenOptions {
        let (data_dir, cache_dir) = (Some(self.data.clone()), Some(self.cache.clone()));
        OpenOptions { data_dir, cache_dir, ..OpenOptions::default() }
    }
}

/// Refuses a sweep that names a data set which neither the catalogue nor the data directory has.
pub fn check_names(names: &BTreeSet<&str>, data_dir: Option<PathBuf>) -> Result<(), Problem> {
    let folders = Folders::choose(data_dir)?;
    let check = |name: &str| togl_data::known_or_present(name, Some(&folders.data));
    names.iter().try_for_each(|name| check(name))?;
    let missing = names.iter().find(|name| is_offline() && is_missing(name, &folders));
    missing.map_or(Ok(()), |name| Err(Problem::usage(missing_offline(name, &folders)).hint(FETCH_FIRST)))
}

/// Refuses a sweep with a split that its data set is known not to have; what nobody knows here may have it elsewhere.
pub fn check_splits(spec: &SweepSpec, data_dir: Option<PathBuf>) -> Result<(), Problem> {
    if spec.program.is_some() {
        return Ok(()); // a program may make splits of its own
    }
    let folders = Folders::choose(data_dir)?;
    let mut highest: BTreeMap<&str, u32> = BTreeMap::new();
    for trial in &spec.trials {
        // Folds that seeds draw are no splits of the data set; reading the file has checked them.
        if trial.config.outer_folds == 0 {
            let split = spec.folds_of(trial.id).map(|fold| fold.split).max().unwrap_or_default();
            let known = highest.entry(&trial.config.dataset).or_default();
            *known = split.max(*known);
        }
    }
    let check =
        |(name, split): (&&str, &u32)| togl_data::check_split(name, u64::from(*split), Some(&folders.data));
    Ok(highest.iter().try_for_each(check)?)
}

/// Whether nothing may be fetched here, as the variable says that workers heed.
fn is_offline() -> bool {
    std::env::var("TOGL_OFFLINE").is_ok_and(|text| !matches!(text.as_str(), "" | "0" | "false" | "no"))
}

/// Tells of data sets of a sweep that nobody knows on this machine. Workers elsewhere may have them, so that is no error.
pub fn mention_unknown(spec: &SweepSpec, data_dir: Option<PathBuf>) -> Result<(), Problem> {
    if spec.program.is_some() {
        return Ok(()); // it may know data that nobody else does
    }
    let folders = Folders::choose(data_dir)?;
    for name in spec.datasets() {
        if let Err(error) = togl_data::known_or_present(name, Some(&folders.data)) {
            let hint = error.hint().unwrap_or_default();
            let nearest = hint.split_once('?').map_or(String::new(), |(nearest, _)| format!(" ({nearest}?)"));
            eprintln!("note: {error}{nearest}; fine if workers have it in their data directories");
        } else if is_offline() && is_missing(name, &folders) {
            eprintln!("note: {}; fine if workers have it or may fetch it", missing_offline(name, &folders));
        }
    }
    Ok(())
}

const FETCH_FIRST: &str =
    "fetch it with `togl data fetch`, or let this machine fetch by unsetting TOGL_OFFLINE";

fn is_missing(name: &str, folders: &Folders) -> bool {
    togl_data::is_available(name, &folders.options()).is_ok_and(|here| !here)
}

fn missing_offline(name: &str, folders: &Folders) -> String {
    format!("{name} is not in {}, and TOGL_OFFLINE forbids to fetch it", folders.data.display())
}

/// Sizes are those of the catalogue; of other sets they are known when they are checked.
#[derive(Serialize)]
struct Entry {
    name: String,
    task: String,
    graphs: Option<u64>,
    classes: Option<u32>,
    mean_nodes: Option<f64>,
    mean_edges: Option<f64>,
    available: bool,
    cached: bool,
    source: String,
    licence: String,
}

impl ListRow for Entry {
    const COLUMNS: &'static [&'static str] = &[
        "NAME",
        "TASK",
        "GRAPHS",
        "CLASSES",
        "MEAN_NODES",
        "MEAN_EDGES",
        "HERE",
        "CACHED",
        "SOURCE",
        "LICENCE",
    ];
    const FOR_PEOPLE: usize = 8;
    const ALSO: &'static [&'static str] = &["available"];

    fn cells(&self) -> Vec<String> {
        let word = |yes| if yes { "yes" } else { "no" }.to_owned();
        let mean = |mean: Option<f64>| known(mean.map(|mean| format!("{mean:.1}")));
        vec![
            self.name.clone(),
            self.task.clone(),
            known(self.graphs),
            known(self.classes),
            mean(self.mean_nodes),
            mean(self.mean_edges),
            word(self.available),
            word(self.cached),
            self.source.clone(),
            self.licence.clone(),
        ]
    }
}

fn known(cell: Option<impl ToString>) -> String {
    cell.map_or_else(|| "-".to_owned(), |cell| cell.to_string())
}

fn list(folders: &Folders, listing: &Listing) -> VerbOutcome {
    let options = folders.options();
    let listed = togl_data::sources().iter();
    let mut entries: Vec<Entry> = listed.map(|facts| listed_entry(facts, &options)).collect();
    let others = togl_data::unlisted(&folders.data);
    entries.extend(others.iter().map(|name| unlisted_entry(name, &options)));
    output::list(&entries, listing)?;
    if listing.format == ListFormat::Human {
        eprintln!("where each is from and under which licence: `togl data list --format csv`");
    }
    Ok(ExitCode::SUCCESS)
}

fn listed_entry(facts: &togl_data::DatasetFacts, options: &OpenOptions) -> Entry {
    Entry {
        name: facts.name.to_owned(),
        task: facts.task.as_str().to_owned(),
        graphs: Some(facts.graphs),
        classes: Some(facts.classes),
        mean_nodes: Some(facts.mean_nodes()),
        mean_edges: Some(facts.mean_edges()),
        available: togl_data::is_available(facts.name, options).unwrap_or(false),
        cached: togl_data::is_cached(facts.name, options).unwrap_or(false),
        source: facts.source.to_owned(),
        licence: facts.licence.to_owned(),
    }
}

/// A set in the data directory that the catalogue does not know.
fn unlisted_entry(name: &str, options: &OpenOptions) -> Entry {
    Entry {
        name: name.to_owned(),
        task: togl_data::Task::GraphClassification.as_str().to_owned(),
        graphs: None,
        classes: None,
        mean_nodes: None,
        mean_edges: None,
        available: true,
        cached: togl_data::is_cached(name, options).unwrap_or(false),
        source: "the data directory".to_owned(),
        licence: "unknown".to_owned(),
    }
}

fn fetch(folders: &Folders, names: &[String], how: How) -> VerbOutcome {
    let How { from, mirror, again, ca_file } = how;
    let options = FetchOptions { data_dir: folders.data.clone(), from, mirror, again, ca_file };
    for name in names {
        let bar = bar("{msg} [{bar:30}] {bytes}/{total_bytes} {eta}", name);
        let fetched = togl_data::fetch(name, &options, &|progress| advance(&bar, &progress));
        bar.finish_and_clear();
        let fetched = fetched?;
        if fetched.is_empty() {
            eprintln!("{name} is generated; there is nothing to fetch");
        }
        for file in fetched {
            let how = outcome_word(file.outcome);
            eprintln!("{name}: {how} {} ({} bytes)", file.path.display(), file.bytes);
            if let Some(warning) = file.warning {
                eprintln!("warning: {warning}");
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn outcome_word(outcome: FetchOutcome) -> &'static str {
    match outcome {
        FetchOutcome::Present => "already there:",
        FetchOutcome::Downloaded => "downloaded",
        FetchOutcome::Resumed => "downloaded the rest of",
        FetchOutcome::Copied => "copied",
    }
}

fn open(folders: &Folders, name: &str) -> Result<togl_data::Dataset, Problem> {
    let bar = bar("{msg} [{bar:30}] {pos}/{len} {eta}", name);
    let opened = togl_data::open_observed(name, &folders.options(), &|progress| advance(&bar, &progress));
    bar.finish_and_clear();
    Ok(opened?.dataset)
}

fn bar(template: &str, name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::no_length().with_style(style.progress_chars("=> ")).with_message(name.to_owned())
}

fn advance(bar: &ProgressBar, progress: &DataProgress) {
    if let Some(total) = progress.total {
        bar.set_length(total);
    }
    bar.set_position(progress.done);
}

fn check(folders: &Folders, name: &str, format: Plain) -> VerbOutcome {
    let dataset = open(folders, name)?;
    let report = togl_data::check_with(&dataset, &folders.options());
    output::one(&report, format, describe)?;
    Ok(ExitCode::from(if report.passed() { problem::DONE } else { problem::NEGATIVE }))
}

fn describe(report: &CheckReport) -> String {
    let mut text = format!(
        "{}: {} graphs, {} nodes (mean {:.2}), {} edges (mean {:.2}), {} classes {:?}, {} features\n  splits  {}\n  digest  {}\n",
        report.name,
        report.graphs,
        report.nodes,
        report.mean_nodes,
        report.edges,
        report.mean_edges,
        report.classes,
        report.class_counts,
        report.feature_width,
        report.splits,
        report.digest,
    );
    report.notes.iter().for_each(|note| text += &format!("  note    {note}\n"));
    report.problems.iter().for_each(|problem| text += &format!("  WRONG   {problem}\n"));
    text + if report.passed() { "as it should be\n" } else { "not as it should be\n" }
}

fn show(folders: &Folders, name: &str, index: usize) -> VerbOutcome {
    let dataset = open(folders, name)?;
    let svg = togl_data::draw_svg(&dataset, index)?;
    output::data(&svg)?;
    Ok(ExitCode::SUCCESS)
}

fn path(folders: &Folders, name: &str) -> VerbOutcome {
    let origins = togl_data::origins(name)?;
    if origins.is_empty() {
        eprintln!("{name} is generated; it has no files");
    }
    let lines = origins.iter().map(|origin| format!("{}\n", folders.data.join(&origin.path).display()));
    output::print(&lines.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
