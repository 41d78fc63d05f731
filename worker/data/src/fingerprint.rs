//! What a data set would be made from, as one digest: its name, the options, and the bytes of every file that
//! would be read. Contents are hashed, not times: a file that was swapped for another of the same size and
//! date is noticed. It only reads.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::catalogue::OpenOptions;
use crate::error::Error;

/// Raised whenever a reader or generator gives other content for the same input.
const CONTENT_VERSION: u32 = 1;
const DEEPEST_FOLDER: usize = 4;
const MOST_FILES: usize = 1000;
const BLOCK_BYTES: u64 = 1 << 20;

/// Identity of a data set's input.
pub(crate) type Fingerprint = [u8; 32];

/// What was asked for, without the files: one cached copy is kept for each.
pub(crate) fn of_request(name: &str, options: &OpenOptions) -> Fingerprint {
    let mut hasher = blake3::Hasher::new_derive_key("togl request v1");
    text(&mut hasher, &name.to_ascii_lowercase());
    hasher.update(&options.data_seed.to_le_bytes());
    hasher.update(&options.graphs.map_or(u64::MAX, |graphs| graphs as u64).to_le_bytes());
    text(&mut hasher, &format!("{:?}", options.features));
    *hasher.finalize().as_bytes()
}

/// The request together with the content of its files. Files are named from the data folder on, so that machines
/// which share a cache but not the place of their data share the copies too.
pub(crate) fn of_input(
    request: &Fingerprint,
    data_dir: Option<&Path>,
    inputs: &[PathBuf],
) -> Result<Fingerprint, Error> {
    let mut hasher = blake3::Hasher::new_derive_key("togl input v2");
    hasher.update(&CONTENT_VERSION.to_le_bytes());
    hasher.update(request);
    let mut files = Vec::new();
    for input in inputs {
        collect(input, DEEPEST_FOLDER, &mut files)?;
    }
    for path in files {
        let inside = data_dir.and_then(|folder| path.strip_prefix(folder).ok());
        text(&mut hasher, &inside.unwrap_or(&path).to_string_lossy());
        hasher.update(content(&path)?.as_bytes());
    }
    Ok(*hasher.finalize().as_bytes())
}

/// The file itself, or the files of a folder and its folders by name. Nothing where nothing is.
fn collect(path: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let refused = |source| Error::Read { path: path.to_path_buf(), source };
    if path.is_file() {
        files.push(path.to_path_buf());
    } else if path.is_dir() && depth > 0 && files.len() < MOST_FILES {
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(path).map_err(refused)? {
            entries.push(entry.map_err(refused)?.path());
        }
        entries.sort();
        for entry in entries {
            collect(&entry, depth - 1, files)?;
        }
    }
    Ok(())
}

/// The digest of the digests of its blocks, which all cores read at once. The file is read, not mapped: it is not
/// ours, and somebody may shorten it meanwhile.
fn content(path: &Path) -> Result<blake3::Hash, Error> {
    let refused = |source| Error::Read { path: path.to_path_buf(), source };
    let file = File::open(path).map_err(refused)?;
    let length = file.metadata().map_err(refused)?.len();
    let block = |start: u64| {
        let mut bytes = vec![0; BLOCK_BYTES.min(length - start) as usize];
        file.read_exact_at(&mut bytes, start).map(|()| blake3::hash(&bytes))
    };
    let starts: Vec<u64> = (0..length).step_by(BLOCK_BYTES as usize).collect();
    let hashes = match starts.len() {
        0 | 1 => starts.into_iter().map(block).collect(), // not worth waking threads
        _ => starts.into_par_iter().map(block).collect::<Result<Vec<_>, _>>(),
    };
    let hashes = hashes.map_err(refused)?;
    Ok(blake3::hash(&hashes.iter().flat_map(|hash| *hash.as_bytes()).collect::<Vec<u8>>()))
}

fn text(hasher: &mut blake3::Hasher, text: &str) {
    hasher.update(&(text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::FeatureChoice;

    #[test]
    fn every_option_that_changes_the_content_changes_the_request() {
        let plain = OpenOptions::default();
        let requests = [
            of_request("DD", &plain),
            of_request("ENZYMES", &plain),
            of_request("DD", &OpenOptions { data_seed: 1, ..plain.clone() }),
            of_request("DD", &OpenOptions { graphs: Some(0), ..plain.clone() }),
            of_request("DD", &OpenOptions { features: FeatureChoice::Constant, ..plain.clone() }),
            of_request(
                "DD",
                &OpenOptions { features: FeatureChoice::DegreeOneHot { largest: 9 }, ..plain.clone() },
            ),
        ];
        let distinct: std::collections::HashSet<_> = requests.iter().collect();
        assert_eq!(distinct.len(), requests.len());
        assert_eq!(of_request("dd", &plain), requests[0]);
    }

    #[test]
    fn a_file_swapped_for_one_of_equal_size_is_noticed() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let inner = folder.path().join("raw");
        std::fs::create_dir(&inner).expect("folder");
        let fingerprint = |content: &str| {
            std::fs::write(inner.join("edge.csv"), content).expect("file");
            of_input(&[0; 32], None, &[folder.path().to_path_buf()]).expect("readable")
        };
        assert_eq!(fingerprint("1,2"), fingerprint("1,2"));
        assert_ne!(fingerprint("1,2"), fingerprint("1,3"));
        let long = |last: char| format!("{}{last}", "1,2\n".repeat(700_000));
        assert_ne!(fingerprint(&long('1')), fingerprint(&long('2')), "in the last of several blocks");
    }

    #[test]
    fn the_place_of_the_data_folder_does_not_matter_the_place_in_it_does() {
        let fingerprint = |file: &str| {
            let folder = tempfile::tempdir().expect("temporary folder");
            let path = folder.path().join(file);
            std::fs::write(&path, "1").expect("file");
            of_input(&[0; 32], Some(folder.path()), &[path]).expect("readable")
        };
        assert_eq!(fingerprint("a"), fingerprint("a"));
        assert_ne!(fingerprint("a"), fingerprint("b"));
    }
}
