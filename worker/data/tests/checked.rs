//! Checking data sets against the catalogue: what passes, what is reported, and that the report is data.

use togl_data::{
    CheckReport, Dataset, DatasetBuilder, DatasetParts, OpenOptions, SplitRule, Task, check, check_with,
    facts, open, sources,
};

fn generated(name: &str, data_seed: u64, graphs: Option<usize>) -> (Dataset, OpenOptions) {
    let options = OpenOptions { data_seed, graphs, ..OpenOptions::default() };
    (open(name, &options).expect("no files needed"), options)
}

/// Two graphs on three nodes with these directed edges in the first.
fn own(name: &str, edges: &[(u32, u32)]) -> Dataset {
    Dataset::new(DatasetParts {
        name: name.to_string(),
        task: Task::GraphClassification,
        classes: 3,
        node_offsets: vec![0, 3, 6],
        edge_offsets: vec![0, edges.len(), edges.len()],
        sources: edges.iter().map(|edge| edge.0).collect(),
        targets: edges.iter().map(|edge| edge.1).collect(),
        feature_width: 1,
        features: vec![1.0; 6],
        labels: vec![0, 2],
        split_rule: SplitRule::StratifiedFolds { folds: 5 },
        published_splits: Vec::new(),
    })
    .expect("sound parts")
}

#[test]
fn generated_sets_pass_with_any_seed_and_in_any_number() {
    for name in ["cycles", "necklaces", "no-cycles", "sphere-torus", "clique-planting"] {
        for (seed, graphs) in [(0, None), (7, Some(60))] {
            let (dataset, options) = generated(name, seed, graphs);
            let report = check_with(&dataset, &options);
            assert!(report.passed(), "{name}: {:?}", report.problems);
            assert_eq!(report.expected_digest.is_some(), graphs.is_none());
            assert_eq!(report.notes.is_empty(), graphs.is_none(), "{:?}", report.notes);
        }
    }
    for name in ["pattern", "cluster"] {
        let report = check(&generated(name, 0, Some(70)).0);
        assert!(report.passed(), "{name}: {:?}", report.problems);
    }
}

#[test]
fn other_content_under_a_known_name_is_reported() {
    let mut builder = DatasetBuilder::new("MUTAG", Task::GraphClassification, 2, 1);
    for label in [0, 1].repeat(10) {
        builder.push_undirected(2, &[(0, 1)], &[1.0, 1.0], &[label]);
    }
    let dataset =
        builder.split_by(SplitRule::StratifiedFolds { folds: 5 }, Vec::new()).finish().expect("sound");
    assert_eq!(
        check(&dataset).problems,
        [
            "graphs: found 20, the catalogue says 188",
            "nodes a graph: found 2.00, the catalogue says 17.93",
            "edges a graph: found 1.00, the catalogue says 19.79",
        ]
    );
    let (cycles, _) = generated("cycles", 1, None);
    let report = check_with(&cycles, &OpenOptions::default());
    assert!(report.problems[0].starts_with("digest: found"), "{:?}", report.problems);
}

#[test]
fn a_set_that_the_catalogue_does_not_know_is_checked_for_consistency() {
    let report = check(&own("home-made", &[(0, 1), (1, 0), (1, 2)]));
    let noted = |words: &str| report.notes.iter().any(|note| note.contains(words));
    assert!(!report.listed && noted("does not know"), "{:?}", report.notes);
    assert!(noted("class 0 has 1 members for 5 folds: some folds test without it"), "{:?}", report.notes);
    assert_eq!(
        report.problems.len(),
        4,
        "each once, though five splits have the last two: {:?}",
        report.problems
    );
    assert_eq!(report.class_counts, [1, 0, 1]);
    for (problem, expected) in report.problems.iter().zip([
        "class 1 has no members",
        "graph 0: the edge from 1 to 2 has no way back",
        "home-made has 2 graphs, too few for 5 stratified folds",
    ]) {
        assert!(problem.starts_with(expected), "{problem:?} does not say {expected:?}");
    }
    let twice = check(&own("home-made", &[(0, 1), (0, 1), (1, 0), (1, 0)]));
    assert!(twice.problems[1].ends_with("the edge from 0 to 1 is listed twice"), "{:?}", twice.problems);
}

#[test]
fn the_report_is_data_that_survives_json() {
    let report = check(&generated("necklaces", 0, Some(30)).0);
    let text = serde_json::to_string(&report).expect("plain data");
    for key in ["\"name\":\"necklaces\"", "\"graphs\":30", "\"classes\":2", "\"problems\":[]"] {
        assert!(text.contains(key), "{key} is not in {text}");
    }
    assert_eq!(serde_json::from_str::<CheckReport>(&text).expect("the same"), report);
}

#[test]
fn every_entry_of_the_catalogue_says_what_it_is_and_on_which_terms() {
    for source in sources() {
        let facts = facts(source.name).expect("facts for every source");
        assert!(facts.graphs > 0 && facts.classes > 1 && facts.mean_nodes() > 1.0, "{}", facts.name);
        assert!(!facts.source.is_empty() && !facts.licence.is_empty(), "{}", facts.name);
        assert!(serde_json::to_string(facts).expect("plain data").contains(facts.name));
    }
}
