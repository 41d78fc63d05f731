//! Small data sets in the TU format, written by the tests: every trap of the format that is known, every
//! kind of damage with the file and line it is reported at, and random content that must never panic.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use togl_data::{Dataset, Error, FeatureChoice, OpenOptions, open, read_tu};

/// Two graphs: a triangle and an edge. Each test replaces what it is about.
struct Fixture {
    files: Vec<(&'static str, Vec<u8>)>,
}

impl Fixture {
    fn new() -> Fixture {
        let files = [
            ("X_A.txt", "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n"),
            ("X_graph_indicator.txt", "1\n1\n1\n2\n2\n"),
            ("X_graph_labels.txt", "1\n-1\n"),
        ];
        Fixture { files: files.map(|(name, text)| (name, text.as_bytes().to_vec())).to_vec() }
    }

    fn with(mut self, name: &'static str, content: impl AsRef<[u8]>) -> Fixture {
        self.files.retain(|(known, _)| *known != name);
        self.files.push((name, content.as_ref().to_vec()));
        self
    }

    fn without(mut self, name: &str) -> Fixture {
        self.files.retain(|(known, _)| *known != name);
        self
    }

    fn folder(&self) -> TempDir {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (name, content) in &self.files {
            std::fs::write(folder.path().join(name), content).expect("temporary file");
        }
        folder
    }

    fn read(&self, features: FeatureChoice) -> Result<Dataset, Error> {
        read_tu(self.folder().path(), "X", features)
    }

    fn dataset(&self) -> Dataset {
        self.read(FeatureChoice::AsPublished).expect("a sound fixture")
    }

    /// The error, from the file's name on.
    fn problem(&self) -> String {
        let error = self.read(FeatureChoice::AsPublished).expect_err("a damaged fixture");
        let text = error.to_string();
        text[text.find("X_").unwrap_or(0)..].to_string()
    }
}

#[test]
fn labels_become_classes_from_zero_in_ascending_order() {
    let dataset = Fixture::new().dataset();
    assert_eq!((dataset.classes(), dataset.labels()), (2, &[1, 0][..]));
    let gaps = Fixture::new().with("X_graph_labels.txt", "7\n3\n").dataset();
    assert_eq!((gaps.classes(), gaps.labels()), (2, &[1, 0][..]));
}

#[test]
fn edge_order_directions_repetition_and_spacing_of_the_file_do_not_matter() {
    let reference = Fixture::new().dataset();
    let edges: Vec<_> = reference.graph(0).directed_edges().collect();
    assert_eq!(edges, [(0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]);
    for other in [
        "5,4\n3,1\n2,1\n3,2\n",
        "1, 2\n1, 2\n2, 1\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n4, 5\n5, 4\n",
        "4, 5\r\n3, 2\r\n1, 3\r\n1, 2\r\n\r\n",
    ] {
        let dataset = Fixture::new().with("X_A.txt", other).dataset();
        assert_eq!(dataset.digest(), reference.digest(), "{other:?}");
    }
}

#[test]
fn self_loops_are_kept_once_and_edgeless_graphs_are_allowed() {
    let dataset = Fixture::new().with("X_A.txt", "2, 2\n2, 2\n1, 2\n").dataset();
    assert_eq!(dataset.graph(0).directed_edges().collect::<Vec<_>>(), [(0, 1), (1, 1), (1, 0)]);
    assert_eq!(dataset.graph(1).directed_edges().count(), 0);
}

#[test]
fn published_features_are_attributes_before_node_labels_before_a_constant() {
    let bare = Fixture::new();
    assert_eq!((bare.dataset().feature_width(), bare.dataset().graph(0).features), (1, &[1.0; 3][..]));
    let labelled = bare.with("X_node_labels.txt", "3\n5\n3\n3\n5\n");
    let dataset = labelled.dataset();
    assert_eq!(dataset.feature_width(), 3, "labels 3 to 5, of which 4 is not used");
    assert_eq!(dataset.graph(1).features, [1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    let attributed = labelled.with("X_node_attributes.txt", "0.5, 1\n1,2\n 2.5,-3\n3, 4\n4, 5\n");
    assert_eq!(attributed.dataset().graph(0).features, [0.5, 1.0, 1.0, 2.0, 2.5, -3.0]);
    let chosen = attributed.read(FeatureChoice::NodeLabels).expect("labels exist");
    assert_eq!(chosen.digest(), dataset.digest());
}

#[test]
fn features_of_the_graph_itself_can_be_chosen() {
    let fixture = Fixture::new().with("X_A.txt", "1, 2\n2, 3\n4, 5\n");
    let one_hot = fixture.read(FeatureChoice::DegreeOneHot { largest: 1 }).expect("degrees");
    assert_eq!(one_hot.graph(0).features, [0.0, 1.0].repeat(3), "degree 2 shares the column of degree 1");
    let normalised = fixture.read(FeatureChoice::DegreeNormalised).expect("degrees");
    // Degrees 1 2 1 1 1: mean 1.2, deviation 0.4.
    assert!((normalised.graph(0).features[1] - 2.0).abs() < 1e-6);
    assert!((normalised.graph(1).features[0] + 0.5).abs() < 1e-6);
    let error = fixture.read(FeatureChoice::Attributes).expect_err("no attributes").to_string();
    assert_eq!(error, "features attributes cannot be used for X: it has no node attributes");
}

#[test]
fn damage_is_reported_with_file_and_line() {
    let cases: [(&str, &str, &str); 14] = [
        ("X_A.txt", "1, 2\n2, 9\n", "X_A.txt, line 2: the edge names node 9, but the nodes are 1 to 5"),
        ("X_A.txt", "0, 1\n", "X_A.txt, line 1: the edge names node 0, but the nodes are 1 to 5"),
        ("X_A.txt", "1, 2\n3, 4\n", "X_A.txt, line 2: the edge joins graph 1 and graph 2"),
        ("X_A.txt", "1, 2\n2", "X_A.txt, line 2: expected two numbers with a comma, found `2`"),
        ("X_A.txt", "1, 2\n2, ", "X_A.txt, line 2: expected a whole number, found ``"),
        ("X_A.txt", "1, two\n", "X_A.txt, line 1: expected a whole number, found `two`"),
        ("X_graph_indicator.txt", "1\n1\n3\n", "line 3: expected graph 1 or 2, found 3"),
        ("X_graph_indicator.txt", "0\n1\n", "line 1: expected graph 1, found 0"),
        ("X_graph_indicator.txt", "1\n2\n1\n", "line 3: expected graph 2 or 3, found 1"),
        ("X_graph_labels.txt", "1\n", "X_graph_labels.txt, line 2: the file ends after 1 of 2 graphs"),
        ("X_graph_labels.txt", "1\n2\n3\n", "X_graph_labels.txt, line 3: more lines than the 2 graphs"),
        ("X_graph_labels.txt", "1\n0.5\n", "line 2: expected a whole number, found `0.5`"),
        ("X_node_labels.txt", "1\n2\n", "X_node_labels.txt, line 3: the file ends after 2 of 5 nodes"),
        ("X_node_attributes.txt", "1, 2\n1\n", "line 2: 1 numbers, but the lines before have 2"),
    ];
    for (file, content, expected) in cases {
        let problem = Fixture::new().with(file, content).problem();
        assert!(problem.contains(expected), "{problem:?} does not say {expected:?}");
    }
}

#[test]
fn bytes_that_are_not_text_are_reported_with_their_line() {
    let problem = Fixture::new().with("X_A.txt", b"1, 2\n\xff\xfe, 3\n").problem();
    assert!(problem.starts_with("X_A.txt, line 2:") && problem.ends_with("not UTF-8 text"), "{problem}");
}

#[test]
fn a_label_that_would_need_an_enormous_matrix_is_refused() {
    for far in ["1000000000", "999999999999999999"] {
        let labels = format!("1\n1\n1\n1\n{far}\n");
        let error = Fixture::new().with("X_node_labels.txt", labels).read(FeatureChoice::NodeLabels);
        assert!(matches!(error, Err(Error::BadOption { option: "features", .. })), "{error:?}");
    }
}

#[test]
fn a_missing_part_is_named_and_an_empty_set_is_refused() {
    let problem = Fixture::new().without("X_graph_labels.txt").problem();
    assert!(problem.contains("X_graph_labels.txt"), "{problem}");
    let empty =
        Fixture::new().with("X_graph_indicator.txt", "").with("X_A.txt", "").with("X_graph_labels.txt", "");
    assert!(matches!(empty.read(FeatureChoice::AsPublished), Err(Error::Structure { .. })));
}

#[test]
fn the_catalogue_finds_an_unpacked_set_below_its_data_folder() {
    let data_dir = tempfile::tempdir().expect("temporary folder");
    let folder = data_dir.path().join("tu").join("MUTAG");
    std::fs::create_dir_all(&folder).expect("folder");
    for (name, content) in Fixture::new().files {
        std::fs::write(folder.join(name.replace('X', "MUTAG")), content).expect("file");
    }
    let options = OpenOptions { data_dir: Some(data_dir.path().to_path_buf()), ..OpenOptions::default() };
    let dataset = open("mutag", &options).expect("found");
    assert_eq!((dataset.name(), dataset.graph_count()), ("MUTAG", 2));
}

#[test]
fn a_path_that_does_not_exist_is_shown() {
    let missing: PathBuf = Path::new("no").join("such").join("folder");
    let error = read_tu(&missing, "X", FeatureChoice::AsPublished).expect_err("nothing there");
    assert!(error.to_string().contains(&missing.display().to_string()) && error.hint().is_some(), "{error}");
}

/// Damaged numbers are likelier than noise to get deep into the reader.
fn noisy_lines() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..60),
        proptest::collection::vec("[-]?[0-9]{1,20}(, ?[0-9]{1,3}){0,2}", 0..8)
            .prop_map(|lines| lines.join("\n").into_bytes()),
        Just(b"1\n1\n1\n2\n2\n".to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_content_whatever_makes_the_reader_panic(
        edges in noisy_lines(), members in noisy_lines(), labels in noisy_lines(), nodes in noisy_lines(),
    ) {
        let fixture = Fixture::new()
            .with("X_A.txt", edges)
            .with("X_graph_indicator.txt", members)
            .with("X_graph_labels.txt", labels)
            .with("X_node_labels.txt", &nodes)
            .with("X_node_attributes.txt", &nodes);
        use FeatureChoice::{AsPublished, DegreeNormalised, NodeLabels};
        for choice in [AsPublished, NodeLabels, DegreeNormalised] {
            let _ = fixture.read(choice);
        }
    }

    #[test]
    fn any_listing_of_the_same_edges_gives_the_same_data_set(
        pairs in proptest::collection::vec((1u32..6, 1u32..6), 1..12).prop_shuffle(), flips in any::<u64>(),
    ) {
        let indicator = "1\n".repeat(5);
        let fixture = |lines: String| {
            let files = Fixture::new().with("X_graph_indicator.txt", &indicator);
            files.with("X_graph_labels.txt", "0\n").with("X_A.txt", lines).dataset()
        };
        let line = |(u, v): &(u32, u32)| format!("{u}, {v}\n");
        let mut sorted: Vec<(u32, u32)> = pairs.iter().map(|(u, v)| (*u.min(v), *u.max(v))).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let flip = |(i, (u, v)): (usize, &(u32, u32))| if flips >> i & 1 == 1 { (*v, *u) } else { (*u, *v) };
        let flipped = pairs.iter().enumerate().map(flip);
        let listed = fixture(flipped.map(|pair| line(&pair)).collect());
        let canonical = fixture(sorted.iter().map(line).collect());
        prop_assert_eq!(listed.digest(), canonical.digest());
        let expected: Vec<(u32, u32)> = sorted.iter().map(|(u, v)| (u - 1, v - 1)).collect();
        prop_assert_eq!(listed.undirected_edges(0), expected);
    }
}
