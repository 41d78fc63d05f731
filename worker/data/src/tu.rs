//! The TU benchmark sets by name: where their files may lie, how each is split, what to do when they are
//! absent. The format is read by `tu_format`; nothing is downloaded here.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::catalogue::{OpenOptions, find};
use crate::dataset::{Dataset, DatasetParts, Task};
use crate::error::Error;
use crate::features::FeatureChoice;
use crate::files::FileSet;
use crate::folds;
use crate::splits::{Split, SplitRule};
use crate::tu_format::TuFiles;

pub(crate) const DOWNLOAD_SITE: &str = "https://www.chrsmrrs.com/graphkerneldatasets";
pub(crate) const STRATIFIED: SplitRule = SplitRule::StratifiedFolds { folds: 5 };
pub(crate) const PUBLISHED: SplitRule = SplitRule::Published { splits: 10 };

/// Reads the set of this name; its published folds too, where it has some.
pub(crate) fn open(name: &str, rule: SplitRule, options: &OpenOptions) -> Result<Dataset, Error> {
    let files = find_files(name, options)?;
    let published = match (rule, &options.data_dir) {
        (SplitRule::Published { splits }, Some(data_dir)) => folds::read(data_dir, name, splits)?,
        _ => Vec::new(),
    };
    read(name, files, options.features, rule, published)
}

/// What that reads.
pub(crate) fn inputs(name: &str, rule: SplitRule, options: &OpenOptions) -> Vec<PathBuf> {
    let mut inputs: Vec<PathBuf> = found(name, options.data_dir.as_deref()).into_iter().collect();
    if let (SplitRule::Published { .. }, Some(data_dir)) = (rule, &options.data_dir) {
        inputs.extend(folds::files(data_dir, name));
    }
    inputs
}

/// Whether there is a folder or archive of this name in the data folder that has an edge file.
pub(crate) fn is_present(name: &str, data_dir: Option<&Path>) -> bool {
    let place = found(name, data_dir).filter(|_| is_plain_name(name));
    let files = place.and_then(|place| FileSet::open_first(&[place]).ok().flatten());
    files.is_some_and(|mut files| files.open(&edge_file(name)).is_ok_and(|file| file.is_some()))
}

/// Sets in the format of the TU collection that lie in the data folder and that the catalogue does not know.
pub fn unlisted(data_dir: &Path) -> Vec<String> {
    let entries = [data_dir.join("tu"), data_dir.to_path_buf()].map(std::fs::read_dir);
    let paths = entries.into_iter().flatten().flatten().flatten().map(|entry| entry.path());
    let names = paths.filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        Some(if path.is_dir() { name } else { name.strip_suffix(".zip")? }.to_string())
    });
    let names: BTreeSet<String> = names.filter(|name| find(name).is_err()).collect();
    names.into_iter().filter(|name| is_present(name, Some(data_dir))).collect()
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

fn find_files(name: &str, options: &OpenOptions) -> Result<FileSet, Error> {
    options.refuse_graphs(name)?;
    let place = found(name, options.data_dir.as_deref());
    let missing = || Error::missing(name, places(name, options.data_dir.as_deref()));
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
