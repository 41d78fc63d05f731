//! The real benchmark files against their published statistics. They are not part of the repository: each
//! test looks for them in `TOGL_DATA` or beside the project, and says so where it is skipped.

use std::path::PathBuf;

use togl_data::{
    Dataset, FeatureChoice, OpenOptions, SimpleGraph, SplitRule, Task, ValidSplits, check, check_with, open,
    read_graph6,
};

/// The folder that holds this part of the data, or nothing, with a message.
fn data_dir(part: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("TOGL_DATA").map_or_else(beside, PathBuf::from);
    if folder.join(part).exists() {
        return Some(folder);
    }
    eprintln!("skipped: no {part} in {} (set TOGL_DATA to the folder that holds it)", folder.display());
    None
}

fn opened(name: &str, features: FeatureChoice) -> Option<Dataset> {
    let data_dir = data_dir(&format!("tu/{name}.zip"))?;
    let options = OpenOptions { data_dir: Some(data_dir), features, ..OpenOptions::default() };
    match open(name, &options) {
        Ok(dataset) => Some(dataset),
        Err(error) => panic!("{name}: {error}"),
    }
}

struct Statistics {
    name: &'static str,
    class_counts: &'static [usize],
    nodes: usize,
    edges: usize,
    width: usize,
}

const PUBLISHED: [Statistics; 7] = [
    Statistics { name: "ENZYMES", class_counts: &[100; 6], nodes: 19_580, edges: 37_282, width: 18 },
    Statistics { name: "PROTEINS", class_counts: &[663, 450], nodes: 43_471, edges: 81_044, width: 1 },
    Statistics { name: "PROTEINS_full", class_counts: &[663, 450], nodes: 43_471, edges: 81_044, width: 29 },
    Statistics { name: "DD", class_counts: &[691, 487], nodes: 334_925, edges: 843_046, width: 89 },
    Statistics { name: "IMDB-BINARY", class_counts: &[500; 2], nodes: 19_773, edges: 96_531, width: 1 },
    Statistics { name: "IMDB-MULTI", class_counts: &[500; 3], nodes: 19_502, edges: 98_903, width: 1 },
    Statistics { name: "REDDIT-BINARY", class_counts: &[1000; 2], nodes: 859_254, edges: 995_508, width: 1 },
];

#[test]
fn benchmark_sets_have_their_published_statistics() {
    for expected in PUBLISHED {
        let Some(dataset) = opened(expected.name, FeatureChoice::AsPublished) else { continue };
        let name = expected.name;
        assert_eq!((dataset.name(), dataset.task()), (name, Task::GraphClassification));
        assert_eq!(dataset.class_counts(), expected.class_counts, "{name}");
        assert_eq!(dataset.node_count(), expected.nodes, "{name}");
        let edges: usize = dataset.graphs().map(|graph| graph.undirected_edges().count()).sum();
        assert_eq!((edges, dataset.directed_edge_count()), (expected.edges, 2 * expected.edges), "{name}");
        assert_eq!(dataset.feature_width(), expected.width, "{name}");
        let report = check_with(&dataset, &OpenOptions::default());
        assert!(report.passed() && report.expected_digest.is_some(), "{name}: {:?}", report.problems);
    }
}

#[test]
fn graph_sizes_span_the_published_range() {
    for (name, least, most) in [("DD", 30, 5_748), ("REDDIT-BINARY", 6, 3_782)] {
        let Some(dataset) = opened(name, FeatureChoice::Constant) else { continue };
        let sizes: Vec<usize> = dataset.graphs().map(|graph| graph.node_count).collect();
        assert_eq!((sizes.iter().min(), sizes.iter().max()), (Some(&least), Some(&most)), "{name}");
    }
}

#[test]
fn dd_uses_82_of_its_89_node_labels() {
    let Some(dataset) = opened("DD", FeatureChoice::NodeLabels) else { return };
    let mut used = [0usize; 89];
    for graph in dataset.graphs() {
        for row in graph.features.chunks(89) {
            assert_eq!(row.iter().sum::<f32>(), 1.0);
            row.iter().zip(&mut used).for_each(|(value, count)| *count += usize::from(*value == 1.0));
        }
    }
    assert_eq!(used.iter().filter(|count| **count > 0).count(), 82);
    assert!(used[0] > 0 && used[88] > 0, "labels run from 1 to 89");
}

#[test]
fn proteins_has_three_node_labels_and_the_same_graphs_as_proteins_full() {
    let pair =
        (opened("PROTEINS", FeatureChoice::NodeLabels), opened("PROTEINS_full", FeatureChoice::NodeLabels));
    let (Some(plain), Some(full)) = pair else { return };
    assert_eq!((plain.feature_width(), full.feature_width()), (3, 3));
    for (left, right) in plain.graphs().zip(full.graphs()) {
        assert_eq!(
            (left.sources, left.targets, left.features),
            (right.sources, right.targets, right.features)
        );
    }
}

#[test]
fn published_folds_have_their_sizes_and_their_tests_partition_the_data() {
    for (name, train, validation, test) in [
        ("ENZYMES", 480..=480, 60, 60..=60),
        ("DD", 941..=943, 118, 117..=119),
        ("PROTEINS_full", 889..=890, 112, 111..=112),
    ] {
        let Some(dataset) = opened(name, FeatureChoice::Constant) else { continue };
        assert_eq!(dataset.split_rule(), SplitRule::Published { splits: 10 });
        let mut tested = Vec::new();
        for fold in 0..10 {
            let split = dataset.split(fold).expect("ten folds");
            assert!(train.contains(&split.train.len()), "{name} fold {fold}: {}", split.train.len());
            assert_eq!(split.validation.len(), validation, "{name} fold {fold}");
            assert!(test.contains(&split.test.len()), "{name} fold {fold}: {}", split.test.len());
            tested.extend(split.test);
        }
        tested.sort_unstable();
        assert_eq!(tested, (0..dataset.graph_count() as u32).collect::<Vec<_>>(), "{name}");
        let hint = dataset.split(10).expect_err("ten folds only").hint();
        assert_eq!(hint.as_deref(), Some("valid splits are 0 to 9"));
    }
}

#[test]
fn sets_without_published_folds_are_split_60_20_20() {
    let Some(dataset) = opened("IMDB-BINARY", FeatureChoice::AsPublished) else { return };
    assert_eq!(dataset.valid_splits(), ValidSplits::Below(5));
    for fold in 0..5 {
        let split = dataset.split(fold).expect("five folds");
        assert_eq!([split.train.len(), split.validation.len(), split.test.len()], [600, 200, 200]);
        let ones = split.test.iter().filter(|graph| dataset.labels()[**graph as usize] == 1).count();
        assert_eq!(ones, 100, "the test part is stratified");
    }
}

#[test]
fn degree_features_agree_with_the_published_constants() {
    let Some(dataset) = opened("REDDIT-BINARY", FeatureChoice::DegreeNormalised) else { return };
    let (mean, deviation) = (2.317_14, 20.66);
    let graph = dataset.graph(0);
    let mut degrees = vec![0.0f64; graph.node_count];
    graph.sources.iter().for_each(|source| degrees[*source as usize] += 1.0);
    for (degree, feature) in degrees.iter().zip(graph.features) {
        assert!(
            ((degree - mean) / deviation - f64::from(*feature)).abs()
                < 0.01 * (1.0 + f64::from(feature.abs()))
        );
    }
    let Some(dataset) = opened("IMDB-BINARY", FeatureChoice::DegreeOneHot { largest: 540 }) else { return };
    assert_eq!(dataset.feature_width(), 541);
}

#[test]
fn molhiv_has_its_published_statistics_and_scaffold_split() {
    let Some(data_dir) = data_dir("ogbg_molhiv/hiv.zip") else { return };
    let options = OpenOptions { data_dir: Some(data_dir), ..OpenOptions::default() };
    let dataset = open("ogbg-molhiv", &options).expect("complete files");
    assert_eq!((dataset.graph_count(), dataset.node_count()), (41_127, 1_049_163));
    assert_eq!((dataset.directed_edge_count(), dataset.feature_width()), (2 * 1_129_688, 9));
    assert_eq!(check(&dataset).problems, Vec::<String>::new());
    let split = dataset.split(0).expect("one split");
    let positives =
        |part: &[u32]| part.iter().filter(|graph| dataset.labels()[**graph as usize] == 1).count();
    for (part, size, positive) in
        [(&split.train, 32_901, 1_232), (&split.validation, 4_113, 81), (&split.test, 4_113, 130)]
    {
        assert_eq!((part.len(), positives(part)), (size, positive));
    }
}

#[test]
fn lists_of_regular_graphs_are_complete_and_regular() {
    let Some(data_dir) = data_dir("graph6") else { return };
    for (file, count, nodes, degree) in [
        ("reg3_n12.g6", 85, 12, 3),
        ("reg3_n14.g6", 509, 14, 3),
        ("reg3_n16.g6", 4_060, 16, 3),
        ("reg4_n10.g6", 59, 10, 4),
        ("reg4_n11.g6", 265, 11, 4),
        ("reg4_n12.g6", 1_544, 12, 4),
    ] {
        let graphs = read_graph6(&data_dir.join("graph6").join(file)).expect("readable");
        assert_eq!(graphs.len(), count, "{file}");
        for graph in graphs {
            assert_eq!(graph.nodes, nodes, "{file}");
            let neighbours = adjacency(&graph);
            assert!(neighbours.iter().all(|row| row.count_ones() == degree), "{file}");
        }
    }
}

#[test]
fn strongly_regular_graphs_and_their_complements_have_their_parameters() {
    let Some(data_dir) = data_dir("graph6") else { return };
    for (file, count, parameters, complement) in [
        ("sr16622.g6", 2, [16, 6, 2, 2], [16, 9, 4, 6]),
        ("sr251256.g6", 15, [25, 12, 5, 6], [25, 12, 5, 6]),
        ("sr351668.g6", 3_854, [35, 16, 6, 8], [35, 18, 9, 9]),
    ] {
        let graphs = read_graph6(&data_dir.join("graph6").join(file)).expect("readable");
        assert_eq!(graphs.len(), count, "{file}");
        for graph in graphs {
            assert_strongly_regular(&graph, parameters);
            assert_strongly_regular(&graph.complement(), complement);
        }
    }
}

/// Neighbours of each vertex as a bit set.
fn adjacency(graph: &SimpleGraph) -> Vec<u64> {
    let mut rows = vec![0u64; graph.nodes as usize];
    for (u, v) in &graph.edges {
        rows[*u as usize] |= 1 << v;
        rows[*v as usize] |= 1 << u;
    }
    rows
}

fn assert_strongly_regular(graph: &SimpleGraph, [nodes, degree, joined, apart]: [u32; 4]) {
    assert_eq!(graph.nodes, nodes);
    let rows = adjacency(graph);
    for (u, row) in rows.iter().enumerate() {
        assert_eq!(row.count_ones(), degree);
        for (v, other) in rows.iter().enumerate().skip(u + 1) {
            let expected = if row >> v & 1 == 1 { joined } else { apart };
            assert_eq!((row & other).count_ones(), expected, "vertices {u} and {v}");
        }
    }
}
