//! The data sets, one row each: task, size, origin, licence, the digest that the content must have, how it is split, and
//! how it is made or read. Only the rows and what follows from one live here; `catalogue` finds and opens them, `check`
//! compares. Names and what sweep files must know of a data set are in `togl_sweeps::datasets`.

use std::path::PathBuf;

use serde::Serialize;

use crate::catalogue::OpenOptions;
use crate::dataset::{Dataset, Task};
use crate::digest::DataDigest;
use crate::error::Error;
use crate::features::FeatureChoice;
use crate::images::{self, CIFAR10, ImageSource, MNIST};
use crate::progress::DataObserver;
use crate::splits::SplitRule;
use crate::tu::{self, PUBLISHED, STRATIFIED};
use crate::{
    block_model, clique_planting, cluster, cycles, molhiv, necklaces, no_cycles, pattern, sphere_torus,
};

const TU: &str = "TU collection, www.chrsmrrs.com/graphkerneldatasets";
const TU_LICENCE: &str = "none stated; cite Morris et al. 2020 and the set's own paper";

/// How sure the size is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "known", content = "value")]
pub enum Size {
    /// Nodes and edges, counted.
    Exact {
        /// Nodes of all graphs.
        nodes: u64,
        /// Edges of all graphs.
        edges: u64,
    },
    /// Means per graph as published.
    Means {
        /// Nodes of a graph.
        nodes: f64,
        /// Edges of a graph.
        edges: f64,
    },
}

/// How a data set is made or read.
#[derive(Clone, Copy)]
pub(crate) enum DatasetReader {
    /// Generated from a seed, in any number.
    Made(fn(&OpenOptions) -> Result<Dataset, Error>),
    /// Files in the format of the TU collection.
    Tu,
    /// Files in OGB's layout.
    Molhiv,
    /// Images, made graphs here.
    Images(&'static ImageSource),
}

/// A file that is published beside those of the TU collection: site, folder in a data folder, name, SHA-256.
type PublishedFile = (&'static str, &'static str, &'static str, Option<&'static str>);

/// One data set of the catalogue.
#[derive(Clone, Copy, Serialize)]
pub struct DatasetFacts {
    /// The name in the catalogue.
    pub name: &'static str,
    /// What is predicted.
    pub task: Task,
    /// Graphs of the complete set.
    pub graphs: u64,
    /// Classes of graphs, or of nodes for a node task.
    pub classes: u32,
    /// How large it is.
    pub size: Size,
    /// Whether an edge has one direction only; edges are then counted by direction.
    pub directed: bool,
    /// Whether a part of it is a valid set too: generated in any number, or the first images.
    pub divisible: bool,
    /// Where it comes from.
    pub source: &'static str,
    /// On which terms.
    pub licence: &'static str,
    /// Digest with default options.
    #[serde(skip)]
    digest: Option<&'static str>,
    /// How it is split; known without the data.
    #[serde(skip)]
    pub split_rule: SplitRule,
    #[serde(skip)]
    pub(crate) reader: DatasetReader,
    #[serde(skip)]
    pub(crate) files: &'static [PublishedFile],
}

impl DatasetFacts {
    /// Whether it is generated here, from a seed and in any number.
    pub fn is_generated(&self) -> bool {
        matches!(self.reader, DatasetReader::Made(_))
    }

    /// Reads or generates it, and tells the observer how far it is where that takes long. The name is another one where
    /// the row stands for sets that have none.
    pub(crate) fn open(
        &self,
        name: &str,
        options: &OpenOptions,
        observer: DataObserver<'_>,
    ) -> Result<Dataset, Error> {
        match self.reader {
            DatasetReader::Made(make) => make(options),
            DatasetReader::Tu => tu::open(name, self.split_rule, options),
            DatasetReader::Molhiv => molhiv::open(options),
            DatasetReader::Images(source) => source.open(options, observer),
        }
    }

    /// The files and folders that opening it would read; none for a generator.
    pub(crate) fn inputs(&self, name: &str, options: &OpenOptions) -> Vec<PathBuf> {
        match self.reader {
            DatasetReader::Made(_) => Vec::new(),
            DatasetReader::Tu => tu::inputs(name, self.split_rule, options),
            DatasetReader::Molhiv => molhiv::inputs(options),
            DatasetReader::Images(source) => source.inputs(options),
        }
    }

    /// Mean number of nodes of a graph.
    pub fn mean_nodes(&self) -> f64 {
        match self.size {
            Size::Exact { nodes, .. } => nodes as f64 / self.graphs as f64,
            Size::Means { nodes, .. } => nodes,
        }
    }

    /// Mean number of edges of a graph: each once, or by direction where they have one.
    pub fn mean_edges(&self) -> f64 {
        match self.size {
            Size::Exact { edges, .. } => edges as f64 / self.graphs as f64,
            Size::Means { edges, .. } => edges,
        }
    }
}

/// What is known of the data set of this name, whatever its case.
pub fn facts(name: &str) -> Option<&'static DatasetFacts> {
    FACTS.iter().find(|facts| facts.name.eq_ignore_ascii_case(name))
}

/// What is known of a set in the format of the TU collection that has no row.
pub(crate) static UNLISTED: DatasetFacts = tu("", STRATIFIED, 0, 0, exact(0, 0));

/// The digest that opening with these options must give, where that is known: the complete set with its
/// published features and, for a generator, the default seed.
pub fn expected_digest(name: &str, options: &OpenOptions) -> Option<DataDigest> {
    let facts = facts(name)?;
    let as_published = options.graphs.is_none() && options.features == FeatureChoice::AsPublished;
    let digest =
        facts.digest.filter(|_| as_published && (!facts.is_generated() || options.data_seed == 0))?;
    Some(DataDigest::from_pinned(digest))
}

const fn tu(
    name: &'static str,
    split_rule: SplitRule,
    graphs: u64,
    classes: u32,
    size: Size,
) -> DatasetFacts {
    DatasetFacts {
        name,
        task: Task::GraphClassification,
        graphs,
        classes,
        size,
        directed: false,
        divisible: false,
        source: TU,
        licence: TU_LICENCE,
        digest: None,
        split_rule,
        reader: DatasetReader::Tu,
        files: &[],
    }
}

const fn generated(
    name: &'static str,
    make: fn(&OpenOptions) -> Result<Dataset, Error>,
    size: Size,
) -> DatasetFacts {
    DatasetFacts {
        divisible: true,
        source: "generated by this program",
        licence: "none needed: generated",
        reader: DatasetReader::Made(make),
        ..tu(name, SplitRule::RandomBySeed, 1000, 2, size)
    }
}

const fn superpixels(name: &'static str, graphs: u64, size: Size, of: &'static ImageSource) -> DatasetFacts {
    DatasetFacts {
        directed: true,
        divisible: true,
        reader: DatasetReader::Images(of),
        ..tu(name, images::SPLIT_RULE, graphs, 10, size)
    }
}

const fn exact(nodes: u64, edges: u64) -> Size {
    Size::Exact { nodes, edges }
}

const fn means(nodes: f64, edges: f64) -> Size {
    Size::Means { nodes, edges }
}

const fn mnist(file: &'static str, sha256: &'static str) -> PublishedFile {
    ("https://ossci-datasets.s3.amazonaws.com/mnist", "mnist", file, Some(sha256))
}

/// Makes the catalogue of rows, each with the digest of its content where that is known.
macro_rules! catalogue {
    (@row $row:expr) => {
        $row
    };
    (@row $row:expr, $digest:literal) => {
        DatasetFacts { digest: Some($digest), ..$row }
    };
    ($($row:expr $(=> $digest:literal)?;)+) => {
        [$(catalogue!(@row $row $(, $digest)?)),+]
    };
}

/// In the order of the catalogue.
pub(crate) static FACTS: [DatasetFacts; 23] = catalogue! {
    generated("cycles", cycles::open, exact(14_510, 14_510))
        => "012aacfc2eb493285597a953f1d62bfd13b671d9e1deebd2fe086b4e0dbe1e9f";
    generated("necklaces", necklaces::open, exact(14_549, 15_549))
        => "de0f57472b128f288d4c5f408f8d7a0628517a5558e7a1cff252d032afa1a1b6";
    generated("no-cycles", no_cycles::open, exact(14_501, 14_008))
        => "1c14748c7c7afccfcacb17f45729dc006ff493dfd82752dec13fc1d888d441f7";
    generated("sphere-torus", sphere_torus::open, exact(50_000, 1_275_000))
        => "fef9c6cf14976bfdbfdf5ac926987fa715d397480d06358517124c3b4f9d856a";
    generated("clique-planting", clique_planting::open, exact(100_000, 2_510_930))
        => "7799bcba60c807188d9c03439809d92d3c3f1163ec98c2a9fd8f9e98c742ee41";
    DatasetFacts {
        task: Task::NodeClassification,
        graphs: 14_000,
        split_rule: block_model::SPLIT_RULE,
        ..generated("pattern", pattern::open, exact(1_643_125, 41_312_952))
    }
        => "808650e2088a9d6c89cb9645a8af55fb0dc74aded30cb43110b9959c1a4e95b9";
    DatasetFacts {
        task: Task::NodeClassification,
        graphs: 12_000,
        split_rule: block_model::SPLIT_RULE,
        classes: 6,
        ..generated("cluster", cluster::open, exact(1_399_113, 25_577_168))
    }
        => "a605cf5d9827f66ee96364fbe00efaf896364676035173f30d2e077cfe91736d";
    tu("COLLAB", STRATIFIED, 5_000, 3, means(74.49, 2_457.78));
    tu("DD", PUBLISHED, 1_178, 2, exact(334_925, 843_046))
        => "3196655f82352071ad8350167a0cdbe79dcf8ecd211d0dfed0da5d4056d8b80e";
    tu("ENZYMES", PUBLISHED, 600, 6, exact(19_580, 37_282))
        => "891a9af6979c0c3f802105dedb4662be4feea64381cd8c18a4d6aa8b2f9339e4";
    tu("IMDB-BINARY", STRATIFIED, 1_000, 2, exact(19_773, 96_531))
        => "d773901246ad04212ff88ca708a7f0dceffcf33c10415e4d20d85530cd4d0921";
    tu("IMDB-MULTI", STRATIFIED, 1_500, 3, exact(19_502, 98_903))
        => "64fa21dbd368b4624ea8d8169f5112e13598c27619c445d5b924613022937420";
    tu("MUTAG", STRATIFIED, 188, 2, means(17.93, 19.79));
    tu("NCI1", STRATIFIED, 4_110, 2, means(29.87, 32.30));
    tu("NCI109", STRATIFIED, 4_127, 2, means(29.68, 32.13));
    tu("PROTEINS", STRATIFIED, 1_113, 2, exact(43_471, 81_044))
        => "7ab188c8cfa509886d4d2492dc41c3da144a93b21e7c0be6a2b821e67c8abf7a";
    tu("PROTEINS_full", PUBLISHED, 1_113, 2, exact(43_471, 81_044))
        => "248cc830935c4ba6aed856efc5450ba38c4370667c6961985f1b92e165aaa2bf";
    tu("PTC_MR", STRATIFIED, 344, 2, means(14.29, 14.69));
    tu("REDDIT-BINARY", STRATIFIED, 2_000, 2, exact(859_254, 995_508))
        => "5cd332d48043c0d060f235ba1fc34aa005e482943f407466ce69088b7ea2e02e";
    tu("REDDIT-MULTI-5K", STRATIFIED, 4_999, 5, means(508.52, 594.87));
    DatasetFacts {
        task: Task::GraphBinaryAuc,
        source: "Open Graph Benchmark, snap.stanford.edu/ogb",
        licence: "MIT; cite Hu et al. 2020 and Wu et al. 2018",
        reader: DatasetReader::Molhiv,
        files: &[(
            "http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download",
            "ogbg_molhiv",
            "hiv.zip",
            None,
        )],
        ..tu("ogbg-molhiv", molhiv::SPLIT_RULE, 41_127, 2, exact(1_049_163, 1_129_688))
    };
    DatasetFacts {
        source: "LeCun, Cortes and Burges, yann.lecun.com/exdb/mnist; superpixels by this program",
        licence: "CC BY-SA 3.0",
        files: &[
            mnist("train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
            mnist("train-labels-idx1-ubyte.gz",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
            mnist("t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
            mnist("t10k-labels-idx1-ubyte.gz",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
        ],
        // 70.57 nodes and 564.53 edges a graph, as published.
        ..superpixels("mnist", 70_000, means(70.57, 564.53), &MNIST)
    }
        => "1cb60925fce7bcb13707388f99cb44c48cb2f33612820e7d0394497495f4378e";
    DatasetFacts {
        source: "Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html; superpixels by this program",
        licence: "none stated; cite Krizhevsky 2009",
        files: &[(
            "https://www.cs.toronto.edu/~kriz",
            "cifar10",
            "cifar-10-binary.tar.gz",
            Some("c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
        )],
        ..superpixels("cifar10", 60_000, means(117.63, 941.07), &CIFAR10)
    };
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::open;

    #[test]
    fn small_generated_sets_have_their_pinned_digests() {
        for name in ["cycles", "necklaces", "no-cycles", "sphere-torus", "clique-planting"] {
            let options = OpenOptions::default();
            let dataset = open(name, &options).expect("no files needed");
            assert_eq!(Some(dataset.digest()), expected_digest(name, &options).as_ref(), "{name}");
        }
    }

    #[test]
    fn a_digest_is_expected_only_for_what_it_was_pinned_for() {
        let plain = OpenOptions::default();
        assert!(expected_digest("Enzymes", &plain).is_some());
        assert!(expected_digest("ENZYMES", &OpenOptions { data_seed: 3, ..plain.clone() }).is_some());
        assert!(expected_digest("cycles", &OpenOptions { data_seed: 3, ..plain.clone() }).is_none());
        assert!(expected_digest("cycles", &OpenOptions { graphs: Some(9), ..plain.clone() }).is_none());
        let constant = OpenOptions { features: FeatureChoice::Constant, ..plain.clone() };
        assert!(expected_digest("ENZYMES", &constant).is_none());
        assert!(expected_digest("MUTAG", &plain).is_none());
        assert!(expected_digest("unheard-of", &plain).is_none());
    }
}
