//! Compares a data set with what the catalogue knows of it, and any data set with itself: edges in both
//! directions and once, no class without members, splits that can be made. It reports all it finds; it never
//! opens or changes anything.

use std::fmt::Display;

use serde::{Deserialize, Serialize};
use togl_sweeps::hint;

use crate::catalogue::OpenOptions;
use crate::dataset::{Dataset, Graph, Task};
use crate::digest::DataDigest;
use crate::facts::{DatasetFacts, Size, expected_digest, facts};
use crate::splits::{SplitRule, ValidSplits};

/// Published means are rounded, and some count repeated edges.
const MEAN_TOLERANCE: f64 = 0.005;
/// A set that is made again by another program may differ by this many nodes a graph.
const NODES_TOLERANCE: f64 = 1.0;
/// Generous multiple of the spread of one generated graph.
const GENERATED_TOLERANCE: f64 = 2.0;
/// Published splits are few; of random ones some are tried.
const SPLITS_TRIED: u32 = 10;

/// What a data set holds and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// Its name.
    pub name: String,
    /// Whether the catalogue knows it.
    pub listed: bool,
    /// What is predicted.
    pub task: Task,
    /// Graphs.
    pub graphs: u64,
    /// Nodes of all graphs.
    pub nodes: u64,
    /// Edges of all graphs: each once, or by direction where they have one.
    pub edges: u64,
    /// Whether an edge has one direction only.
    pub directed: bool,
    /// Classes.
    pub classes: u32,
    /// Graphs, or nodes for a node task, of each class.
    pub class_counts: Vec<u64>,
    /// Features of a node.
    pub feature_width: u64,
    /// Mean number of nodes of a graph.
    pub mean_nodes: f64,
    /// Mean number of edges of a graph.
    pub mean_edges: f64,
    /// Nodes of the smallest graph.
    pub smallest: u64,
    /// Nodes of the largest graph.
    pub largest: u64,
    /// How it is split.
    pub splits: String,
    /// Identity of the content.
    pub digest: DataDigest,
    /// The identity it should have, where that is known for the way it was opened.
    pub expected_digest: Option<DataDigest>,
    /// What is worth knowing but not wrong.
    pub notes: Vec<String>,
    /// What is wrong; empty where all is well.
    pub problems: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn passed(&self) -> bool {
        self.problems.is_empty()
    }
}

/// The same for a data set that was opened with these options: its digest must then be the pinned one.
pub fn check_with(dataset: &Dataset, options: &OpenOptions) -> CheckReport {
    let mut report = check(dataset);
    report.expected_digest = expected_digest(dataset.name(), options);
    if let Some(expected) = &report.expected_digest
        && *expected != report.digest
    {
        report.problems.push(format!("digest: found {}, the catalogue says {expected}", report.digest));
    }
    report
}

/// Checks a data set against the catalogue; one that the catalogue does not know, for consistency only.
pub fn check(dataset: &Dataset) -> CheckReport {
    let known = facts(dataset.name());
    let mut report = describe(dataset, known);
    check_classes(&mut report, dataset.split_rule());
    check_edges(dataset, &mut report);
    check_splits(dataset, &mut report);
    match known {
        Some(known) => compare(&mut report, known),
        None => report.notes.push("the catalogue does not know it: checked for consistency only".to_string()),
    }
    report
}

fn describe(dataset: &Dataset, known: Option<&DatasetFacts>) -> CheckReport {
    let directed = known.is_some_and(|known| known.directed);
    let sizes = || dataset.graphs().map(|graph| graph.node_count as u64);
    let (graphs, nodes) = (dataset.graph_count() as u64, dataset.node_count() as u64);
    let edges = match directed {
        true => dataset.directed_edge_count() as u64,
        false => dataset.graphs().map(|graph| graph.undirected_edges().count() as u64).sum(),
    };
    CheckReport {
        name: dataset.name().to_string(),
        listed: known.is_some(),
        task: dataset.task(),
        graphs,
        nodes,
        edges,
        directed,
        classes: dataset.classes(),
        class_counts: dataset.class_counts().into_iter().map(|count| count as u64).collect(),
        feature_width: dataset.feature_width() as u64,
        mean_nodes: nodes as f64 / graphs as f64,
        mean_edges: edges as f64 / graphs as f64,
        smallest: sizes().min().unwrap_or(0),
        largest: sizes().max().unwrap_or(0),
        splits: dataset.split_rule().to_string(),
        digest: dataset.digest().clone(),
        expected_digest: None,
        notes: Vec::new(),
        problems: Vec::new(),
    }
}

fn check_classes(report: &mut CheckReport, rule: SplitRule) {
    for (class, count) in report.class_counts.iter().enumerate() {
        if *count == 0 {
            let what = format!("class {class} has no members");
            // The start of a larger set may lack a class.
            if report.listed { report.notes.push(what) } else { report.problems.push(what) }
        }
    }
    // A fold without a class is no mistake of the files, but surprises whoever looks at its accuracy.
    if report.class_counts.len() == 1 {
        report.notes.push("there is only one class, so there is nothing to learn".to_string());
    }
    if let SplitRule::StratifiedFolds { folds } = rule {
        let few = |(_, count): &(usize, &u64)| (1..u64::from(folds)).contains(*count);
        for (class, count) in report.class_counts.iter().enumerate().filter(few) {
            let note =
                format!("class {class} has {count} members for {folds} folds: some folds test without it");
            report.notes.push(note);
        }
    }
}

/// Reports the first graph that breaks a rule.
fn check_edges(dataset: &Dataset, report: &mut CheckReport) {
    for graph in dataset.graphs() {
        if let Some(problem) = edge_problem(&graph, report.directed) {
            report.problems.push(format!("graph {}: {problem}", graph.index));
            return;
        }
    }
}

fn edge_problem(graph: &Graph<'_>, directed: bool) -> Option<String> {
    // An edge as one number sorts several times faster than a pair.
    let number = |(source, target): (u32, u32)| u64::from(source) << 32 | u64::from(target);
    let ends = |edge: u64| (edge >> 32, edge & u64::from(u32::MAX));
    let mut edges: Vec<u64> = graph.directed_edges().map(number).collect();
    edges.sort_unstable();
    if let Some(pair) = edges.windows(2).find(|pair| pair[0] == pair[1]) {
        let (source, target) = ends(pair[0]);
        return Some(format!("the edge from {source} to {target} is listed twice"));
    }
    if directed {
        return None;
    }
    let mut reversed: Vec<u64> = edges.iter().map(|edge| edge.rotate_left(32)).collect();
    reversed.sort_unstable();
    let lonely = edges.iter().zip(&reversed).find(|(edge, back)| edge != back)?;
    let edge = if lonely.0 < lonely.1 { *lonely.0 } else { lonely.1.rotate_left(32) };
    let (source, target) = ends(edge);
    Some(format!("the edge from {source} to {target} has no way back"))
}

fn check_splits(dataset: &Dataset, report: &mut CheckReport) {
    let tried = match dataset.valid_splits() {
        ValidSplits::AnySeed => 1,
        ValidSplits::Below(count) => count.min(SPLITS_TRIED),
    };
    for split in 0..tried {
        if let Err(error) = dataset.split(u64::from(split)) {
            let problem = hint::beside(&error, error.hint());
            if !report.problems.contains(&problem) {
                report.problems.push(problem);
            }
        }
    }
}

fn compare(report: &mut CheckReport, known: &DatasetFacts) {
    expect(report, "task", report.task.as_str(), known.task.as_str());
    expect(report, "classes", report.classes, known.classes);
    let part = known.divisible && report.graphs != known.graphs;
    if part {
        report.notes.push(format!("{} graphs; the complete set has {}", report.graphs, known.graphs));
    } else {
        expect(report, "graphs", report.graphs, known.graphs);
    }
    match known.size {
        Size::Exact { nodes, edges } if !known.divisible => {
            expect(report, "nodes", report.nodes, nodes);
            expect(report, "edges", report.edges, edges);
        }
        _ => compare_means(report, known),
    }
}

fn compare_means(report: &mut CheckReport, known: &DatasetFacts) {
    let (nodes, edges) = (known.mean_nodes(), known.mean_edges());
    let slack = match (known.is_generated(), known.divisible) {
        // Other seeds and numbers of graphs scatter about the mean.
        (true, _) => GENERATED_TOLERANCE * nodes / (report.graphs as f64).sqrt(),
        (false, true) => NODES_TOLERANCE + nodes / report.graphs as f64,
        (false, false) => MEAN_TOLERANCE * nodes,
    };
    expect_near(report, "nodes a graph", report.mean_nodes, nodes, slack);
    expect_near(report, "edges a graph", report.mean_edges, edges, 2.0 * slack * edges / nodes);
}

fn expect<T: PartialEq + Display>(report: &mut CheckReport, what: &str, found: T, expected: T) {
    if found != expected {
        report.problems.push(format!("{what}: found {found}, the catalogue says {expected}"));
    }
}

fn expect_near(report: &mut CheckReport, what: &str, found: f64, expected: f64, slack: f64) {
    if (found - expected).abs() > slack {
        report.problems.push(format!("{what}: found {found:.2}, the catalogue says {expected:.2}"));
    }
}
