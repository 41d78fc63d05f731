//! The TU benchmark sets by name: where their files may lie, how each is split, what to do when they are
//! absent. The format is read by `tu_format`; nothing is downloaded here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::catalogue::{OpenOptions, Source};
use crate::dataset::{Dataset, DatasetParts, Task};
use crate::error::Error;
use crate::features::FeatureChoice;
use crate::files::FileSet;
use crate::folds;
use crate::origins::how_to_get;
use crate::splits::{Split, SplitRule};
use crate::tu_format::TuFiles;

pub(crate) const DOWNLOAD_SITE: &str = "https://www.chrsmrrs.com/graphkerneldatasets";
const STRATIFIED: SplitRule = SplitRule::StratifiedFolds { folds: 5 };
const PUBLISHED: SplitRule = SplitRule::Published { splits: 10 };

/// One data set of the collection.
pub(crate) struct Tu {
    name: &'static str,
    summary: &'static str,
    split_rule: SplitRule,
}

macro_rules! tu_sets {
    ($($constant:ident $name:literal $rule:ident $summary:literal;)*) => {
        $(pub(crate) static $constant: Tu = Tu { name: $name, summary: $summary, split_rule: $rule };)*
        const LISTED: &[&str] = &[$($name),*];
    };
}

tu_sets! {
    COLLAB "COLLAB" STRATIFIED "collaboration networks of physicists, 3 fields";
    DD "DD" PUBLISHED "protein structures, enzymes or not";
    ENZYMES "ENZYMES" PUBLISHED "protein structures, 6 enzyme classes";
    IMDB_BINARY "IMDB-BINARY" STRATIFIED "actors who appear together, 2 genres";
    IMDB_MULTI "IMDB-MULTI" STRATIFIED "actors who appear together, 3 genres";
    MUTAG "MUTAG" STRATIFIED "molecules, mutagenic or not";
    NCI1 "NCI1" STRATIFIED "molecules, active against lung cancer or not";
    NCI109 "NCI109" STRATIFIED "molecules, active against ovarian cancer or not";
    PROTEINS "PROTEINS" STRATIFIED "protein structures, enzymes or not, 1 attribute";
    PROTEINS_FULL "PROTEINS_full" PUBLISHED "protein structures, enzymes or not, 29 attributes";
    PTC_MR "PTC_MR" STRATIFIED "molecules, carcinogenic for male rats or not";
    REDDIT_BINARY "REDDIT-BINARY" STRATIFIED "discussion threads, 2 kinds";
    REDDIT_MULTI_5K "REDDIT-MULTI-5K" STRATIFIED "discussion threads, 5 kinds";
}

impl Source for Tu {
    fn name(&self) -> &'static str {
        self.name
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn split_rule(&self) -> SplitRule {
        self.split_rule
    }

    fn open(&self, options: &OpenOptions) -> Result<Dataset, Error> {
        let files = find_files(self.name, options)?;
        let published = match (self.split_rule, &options.data_dir) {
            (SplitRule::Published { splits }, Some(data_dir)) => folds::read(data_dir, self.name, splits)?,
            _ => Vec::new(),
        };
        read(self.name, files, options.features, self.split_rule, published)
    }

    fn inputs(&self, options: &OpenOptions) -> Vec<PathBuf> {
        let mut inputs: Vec<PathBuf> = found(self.name, options.data_dir.as_deref()).into_iter().collect();
        if let (SplitRule::Published { .. }, Some(data_dir)) = (self.split_rule, &options.data_dir) {
            inputs.extend(folds::files(data_dir, self.name));
        }
        inputs
    }
}

/// A data set of this format that the catalogue does not know; its splits are five stratified folds.
pub(crate) struct Unlisted {
    name: String,
}

impl Source for Unlisted {
    fn name(&self) -> &str {
        &self.name
    }

    fn summary(&self) -> &str {
        "a set in the format of the TU collection"
    }

    fn split_rule(&self) -> SplitRule {
        STRATIFIED
    }

    fn open(&self, options: &OpenOptions) -> Result<Dataset, Error> {
        let files = find_files(&self.name, options)?;
        read(&self.name, files, options.features, STRATIFIED, Vec::new())
    }

    fn inputs(&self, options: &OpenOptions) -> Vec<PathBuf> {
        found(&self.name, options.data_dir.as_deref()).into_iter().collect()
    }
}

/// The source for a folder or archive of this name in the data folder, if its edge file is there.
pub(crate) fn find_unlisted(name: &str, data_dir: Option<&Path>) -> Option<Unlisted> {
    if !is_plain_name(name) {
        return None;
    }
    let mut files = FileSet::open_first(&[found(name, data_dir)?]).ok().flatten()?;
    let has_edges = files.open(&edge_file(name)).is_ok_and(|file| file.is_some());
    has_edges.then(|| Unlisted { name: name.to_string() })
}

/// The sets in the data folder that the catalogue does not know, by name.
pub(crate) fn unlisted(data_dir: &Path) -> Vec<String> {
    let entries = [data_dir.join("tu"), data_dir.to_path_buf()].map(std::fs::read_dir);
    let paths = entries.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    let names = paths.filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        Some(if path.is_dir() { name } else { name.strip_suffix(".zip")? }.to_string())
    });
    let known = |name: &String| LISTED.iter().any(|listed| listed.eq_ignore_ascii_case(name));
    let names: BTreeSet<String> = names.filter(|name| !known(name)).collect();
    names.into_iter().filter(|name| find_unlisted(name, Some(data_dir)).is_some()).collect()
}

/// Why what lies in the data folder under this name is no set that can be read; nothing where nothing lies there.
pub(crate) fn refusal(name: &str, data_dir: Option<&Path>) -> Option<Error> {
    // The folder of the collection itself is nobody's set.
    if ["", "tu"].contains(&name) || name.starts_with('.') || name.contains(['/', '\\']) {
        return None;
    }
    let place = places(name, data_dir).into_iter().find(|place| place.exists())?;
    let problem = if is_plain_name(name) {
        let edges = edge_file(name);
        match FileSet::open_first(std::slice::from_ref(&place)) {
            Err(error) => return Some(error),
            Ok(files) => match files?.open(&edges) {
                Err(error) => return Some(error),
                Ok(_) => format!("it holds no {edges}"),
            },
        }
    } else {
        "names of data sets are made of English letters, digits and `_`, `-`, `.`, `+`; rename it".to_string()
    };
    Some(Error::Damaged { file: place.display().to_string(), problem })
}

/// Whether the name can be part of a file name and of an address without being anything else.
pub(crate) fn is_plain_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.+".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name.bytes().all(plain)
}

/// Whether the catalogue has a set of the collection under exactly this name.
pub(crate) fn is_listed(name: &str) -> bool {
    LISTED.contains(&name)
}

fn find_files(name: &str, options: &OpenOptions) -> Result<FileSet, Error> {
    options.refuse_graphs(name)?;
    let place = found(name, options.data_dir.as_deref());
    let missing = || Error::MissingFiles {
        dataset: name.to_string(),
        looked_at: places(name, options.data_dir.as_deref()),
        hint: how_to_get(name),
    };
    FileSet::open_first(place.as_slice())?.ok_or_else(missing)
}

/// The first place that holds the set; a folder without its edges is not it.
pub(crate) fn found(name: &str, data_dir: Option<&Path>) -> Option<PathBuf> {
    let edges = edge_file(name);
    let holds = |place: &PathBuf| {
        let unpacked = || place.join(&edges).exists() || place.join(format!("{edges}.gz")).exists();
        if place.is_dir() { unpacked() } else { place.exists() }
    };
    places(name, data_dir).into_iter().find(holds)
}

fn edge_file(name: &str) -> String {
    format!("{name}_A.txt")
}

/// Reads any data set in the format of the TU collection, which the catalogue need not know, from its
/// folder or its archive. Its splits are five stratified folds.
pub fn read_tu(path: &Path, name: &str, features: FeatureChoice) -> Result<Dataset, Error> {
    let places = [path.to_path_buf()];
    let missing = || Error::MissingFiles {
        dataset: name.to_string(),
        looked_at: places.to_vec(),
        hint: format!("the path is a folder or archive that holds {name}_A.txt and its sisters"),
    };
    let files = FileSet::open_first(&places)?.ok_or_else(missing)?;
    read(name, files, features, STRATIFIED, Vec::new())
}

/// The same for contents that are no files.
pub(crate) fn read_in_memory(
    name: &str,
    files: Vec<(String, Vec<u8>)>,
    features: FeatureChoice,
) -> Result<Dataset, Error> {
    read(name, FileSet::in_memory(files), features, STRATIFIED, Vec::new())
}

fn read(
    name: &str,
    files: FileSet,
    features: FeatureChoice,
    split_rule: SplitRule,
    published_splits: Vec<Split>,
) -> Result<Dataset, Error> {
    let mut files = TuFiles { name, files };
    let topology = files.topology()?;
    let (labels, classes) = files.classes(topology.node_offsets.len() - 1)?;
    let features = files.features(features, &topology)?;
    let parts = DatasetParts {
        name: name.to_string(),
        task: Task::GraphClassification,
        classes,
        node_offsets: topology.node_offsets,
        edge_offsets: topology.edge_offsets,
        sources: topology.sources,
        targets: topology.targets,
        feature_width: features.width,
        features: features.values,
        labels,
        split_rule,
        published_splits,
    };
    Dataset::new(parts).map_err(|source| Error::Structure { dataset: name.to_string(), source })
}

/// Where a set of this name may lie. Unpacked before packed: whoever unpacked it may have changed it on purpose.
pub(crate) fn places(name: &str, data_dir: Option<&Path>) -> Vec<PathBuf> {
    let Some(data_dir) = data_dir else { return Vec::new() };
    let archive = format!("{name}.zip");
    let collection = data_dir.join("tu");
    vec![collection.join(name), collection.join(&archive), data_dir.join(name), data_dir.join(archive)]
}
