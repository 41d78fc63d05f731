//! The MOLHIV data of the Open Graph Benchmark: molecules, active against HIV or not, in OGB's csv layout
//! with its scaffold split. Node features are the nine raw integer fields of an atom as numbers; bond
//! features are not used.

use std::path::{Path, PathBuf};

use crate::catalogue::OpenOptions;
use crate::dataset::{Dataset, DatasetParts, Task};
use crate::edge_order::Topology;
use crate::error::Error;
use crate::features::FeatureChoice;
use crate::files::FileSet;
use crate::lines::Lines;
use crate::splits::{Split, SplitRule};

const NAME: &str = "ogbg-molhiv";
pub(crate) const SPLIT_RULE: SplitRule = SplitRule::Published { splits: 1 };

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    options.refuse_graphs(NAME)?;
    refuse_other_features(options.features)?;
    let place = found(options.data_dir.as_deref());
    let mut files = FileSet::open_first(place.as_slice())?
        .ok_or_else(|| Error::missing(NAME, places(options.data_dir.as_deref())))?;
    let node_counts = counts(files.required_lines(NAME, "raw/num-node-list.csv")?)?;
    let node_offsets = offsets(&node_counts);
    let topology = Topology::arrange(edges(&mut files, &node_offsets)?, node_offsets);
    let nodes = topology.node_count();
    let (feature_width, features) = files.required_lines(NAME, "raw/node-feat.csv")?.rows(nodes, "nodes")?;
    let parts = DatasetParts {
        name: NAME.to_string(),
        task: Task::GraphBinaryAuc,
        classes: 2,
        labels: labels(&mut files, node_counts.len())?,
        node_offsets: topology.node_offsets,
        edge_offsets: topology.edge_offsets,
        sources: topology.sources,
        targets: topology.targets,
        feature_width,
        features,
        split_rule: SPLIT_RULE,
        published_splits: vec![scaffold_split(&mut files)?],
    };
    Dataset::new(parts).map_err(|source| Error::Structure { dataset: NAME.to_string(), source })
}

pub(crate) fn inputs(options: &OpenOptions) -> Vec<PathBuf> {
    found(options.data_dir.as_deref()).into_iter().collect()
}

/// Numbers of things, none negative, whose sum 32 bits can number.
fn counts(mut lines: Lines<'_>) -> Result<Vec<u32>, Error> {
    let mut counts = Vec::new();
    let mut sum = 0u64;
    while lines.advance()? {
        let count = lines.integer()?;
        sum = sum.saturating_add(count.max(0) as u64);
        match u32::try_from(count) {
            Ok(count) if sum < u64::from(u32::MAX) => counts.push(count),
            _ => return Err(lines.malformed(format!("{count} is not a possible number of nodes or edges"))),
        }
    }
    Ok(counts)
}

fn offsets(counts: &[u32]) -> Vec<usize> {
    let ends = counts.iter().scan(0, |end, count| {
        *end += *count as usize;
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

/// Pairs of nodes counted over all graphs; the file counts them within each graph.
fn edges(files: &mut FileSet, node_offsets: &[usize]) -> Result<Vec<(u32, u32)>, Error> {
    let edge_counts = {
        let lines = files.required_lines(NAME, "raw/num-edge-list.csv")?;
        let graphs = node_offsets.len() - 1;
        lines.integers(graphs, "graphs")?
    };
    let mut lines = files.required_lines(NAME, "raw/edge.csv")?;
    let mut edges = Vec::new();
    for (graph, count) in edge_counts.into_iter().enumerate() {
        let (first, nodes) = (node_offsets[graph], node_offsets[graph + 1] - node_offsets[graph]);
        for _ in 0..count {
            if !lines.advance()? {
                return Err(lines.ends_early(format!("the file ends within the edges of graph {graph}")));
            }
            let (u, v) = lines.integer_pair()?;
            if u.min(v) < 0 || u.max(v) >= nodes as i64 {
                let problem = format!("the edge joins {u} and {v}, but graph {graph} has {nodes} nodes");
                return Err(lines.malformed(problem));
            }
            edges.push(((first as i64 + u.min(v)) as u32, (first as i64 + u.max(v)) as u32));
        }
    }
    if lines.advance()? {
        return Err(lines.malformed("more edges than the graphs have together".to_string()));
    }
    Ok(edges)
}

fn labels(files: &mut FileSet, graphs: usize) -> Result<Vec<u32>, Error> {
    let lines = files.required_lines(NAME, "raw/graph-label.csv")?;
    let labels = lines.integers(graphs, "graphs")?;
    // A label that is neither 0 nor 1 becomes one that the structure check refuses.
    Ok(labels.into_iter().map(|label| u32::try_from(label).unwrap_or(u32::MAX)).collect())
}

fn scaffold_split(files: &mut FileSet) -> Result<Split, Error> {
    let mut part = |name: &str| {
        let mut lines = files.required_lines(NAME, &format!("split/scaffold/{name}.csv"))?;
        let mut graphs = Vec::new();
        while lines.advance()? {
            lines.append_indices(&mut graphs)?;
        }
        Ok::<Vec<u32>, Error>(graphs)
    };
    Ok(Split { train: part("train")?, validation: part("valid")?, test: part("test")? })
}

fn refuse_other_features(features: FeatureChoice) -> Result<(), Error> {
    match features {
        FeatureChoice::AsPublished | FeatureChoice::Attributes => Ok(()),
        other => {
            let reason = "atoms have their nine attributes only";
            Err(Error::bad_option(NAME, "features", format!("{other:?}"), reason))
        }
    }
}

fn places(data_dir: Option<&Path>) -> Vec<PathBuf> {
    let folder = data_dir.map(|data_dir| data_dir.join("ogbg_molhiv"));
    folder.map_or_else(Vec::new, |folder| vec![folder.join("hiv"), folder.join("hiv.zip"), folder])
}

/// The first place that holds the set; a folder without its raw files is not it.
fn found(data_dir: Option<&Path>) -> Option<PathBuf> {
    places(data_dir).into_iter().find(|place| place.is_file() || place.join("raw").is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 8] = [
        ("raw/num-node-list.csv", "2\n3\n"),
        ("raw/num-edge-list.csv", "1\n2\n"),
        ("raw/edge.csv", "1,0\n1,2\n0,1\n"),
        ("raw/node-feat.csv", "5,0\n6,1\n7,0\n5,0\n5,3\n"),
        ("raw/graph-label.csv", "0\n1\n"),
        ("split/scaffold/train.csv", "1\n"),
        ("split/scaffold/valid.csv", "0\n"),
        ("split/scaffold/test.csv", ""),
    ];

    fn read_with(replaced: &str, content: &str) -> Result<Dataset, Error> {
        let data_dir = tempfile::tempdir().expect("temporary folder");
        for (name, original) in FILES {
            let path = data_dir.path().join("ogbg_molhiv").join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("temporary folder");
            std::fs::write(path, if name == replaced { content } else { original }).expect("temporary file");
        }
        let options = OpenOptions { data_dir: Some(data_dir.path().to_path_buf()), ..OpenOptions::default() };
        open(&options)
    }

    #[test]
    fn bonds_are_stored_in_canonical_order_and_both_directions() {
        let dataset = read_with("", "").expect("sound files");
        assert_eq!((dataset.task(), dataset.feature_width()), (Task::GraphBinaryAuc, 2));
        assert_eq!(dataset.graph(0).directed_edges().collect::<Vec<_>>(), [(0, 1), (1, 0)]);
        assert_eq!(dataset.graph(1).directed_edges().collect::<Vec<_>>(), [(0, 1), (1, 2), (1, 0), (2, 1)]);
        assert_eq!(dataset.graph(1).features, [7.0, 0.0, 5.0, 0.0, 5.0, 3.0]);
        assert_eq!(dataset.published_splits()[0].train, [1]);
    }

    #[test]
    fn damage_is_reported_with_file_and_line() {
        for (file, content, expected) in [
            ("raw/edge.csv", "1,0\n1,2\n", "edge.csv, line 3: the file ends within the edges of graph 1"),
            (
                "raw/edge.csv",
                "1,2\n1,2\n0,1\n",
                "edge.csv, line 1: the edge joins 1 and 2, but graph 0 has 2",
            ),
            ("raw/edge.csv", "1,0\n1,2\n0,1\n0,1\n", "edge.csv, line 4: more edges"),
            ("raw/num-node-list.csv", "2\n-3\n", "num-node-list.csv, line 2: -3 is not a possible number"),
            ("raw/num-edge-list.csv", "1\n", "num-edge-list.csv, line 2: the file ends after 1 of 2 graphs"),
            ("raw/node-feat.csv", "5,0\n", "node-feat.csv, line 2: the file ends after 1 of 5 nodes"),
            ("raw/graph-label.csv", "0\nnan\n", "graph-label.csv, line 2: expected a whole number"),
        ] {
            let error = read_with(file, content).expect_err("damaged").to_string();
            assert!(error.contains(expected), "{error:?} does not say {expected:?}");
        }
        assert!(matches!(read_with("raw/graph-label.csv", "0\n2\n"), Err(Error::Structure { .. })));
        assert!(matches!(read_with("split/scaffold/test.csv", "1\n"), Err(Error::Structure { .. })));
    }
}
