//! The binary files of CIFAR-10: records of one label and 32 x 32 pixels in three planes, in five training
//! batches and a test batch, in a folder or in the archive as distributed. A batch may hold fewer records
//! than the official 10,000. Turning images into graphs is done elsewhere.

use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;

use crate::error::Error;
use crate::files::{self, FileSet, OpenFile};
use crate::images::Images;
use crate::tar;

const NAME: &str = "cifar10";
const SIDE: usize = 32;
const CHANNELS: usize = 3;
const RECORD: usize = 1 + SIDE * SIDE * CHANNELS;
const MOST_RECORDS: usize = 100_000;
const TRAINING: [&str; 5] =
    ["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"];
const TEST: [&str; 1] = ["test_batch.bin"];
const ARCHIVE: &str = "cifar-10-binary.tar.gz";

/// Where the files may lie, the complete set before a part of it.
pub(crate) fn places(data_dir: &Path) -> Vec<PathBuf> {
    let unpacked = |folder: &str| Some(data_dir.join(folder)).filter(|path| path.join(TEST[0]).is_file());
    let mut places: Vec<PathBuf> = ["cifar10", "cifar10/cifar-10-batches-bin", "cifar-10-batches-bin"]
        .into_iter()
        .filter_map(unpacked)
        .collect();
    places.extend([data_dir.join("cifar10").join(ARCHIVE), data_dir.join(ARCHIVE)]);
    places.extend(unpacked("cifar10-subset"));
    places
}

/// The files that are read of one place.
pub(crate) fn files(place: &Path) -> Vec<PathBuf> {
    match place.is_dir() {
        true => TRAINING.iter().chain(&TEST).map(|batch| place.join(batch)).collect(),
        false => vec![place.to_path_buf()],
    }
}

/// The first images of the training batches in their order, or of the test batch; all where `first` is
/// absent.
pub(crate) fn read(place: &Path, training: bool, first: Option<usize>) -> Result<Images, Error> {
    let batches: &[&str] = if training { &TRAINING } else { &TEST };
    let records = if place.is_dir() {
        from_folder(place, batches, first)?
    } else {
        from_archive(place, batches, first)?
    };
    let mut images = Images::empty(SIDE, SIDE, CHANNELS);
    for record in records.chunks_exact(RECORD) {
        images.labels.push(record[0]);
        images.pixels.extend_from_slice(&record[1..]);
    }
    Ok(images)
}

fn from_folder(place: &Path, batches: &[&str], first: Option<usize>) -> Result<Vec<u8>, Error> {
    let mut records = Vec::new();
    let Some(mut files) = FileSet::open_first(&[place.to_path_buf()])? else { return Ok(records) };
    for batch in batches {
        let wanted = still_wanted(first, records.len());
        if wanted > 0 {
            let mut file = files.required(NAME, batch)?;
            records.extend(read_batch(&mut file, wanted, None)?);
        }
    }
    Ok(records)
}

/// The archive holds the batches in some order; they are put into theirs afterwards.
fn from_archive(place: &Path, batches: &[&str], first: Option<usize>) -> Result<Vec<u8>, Error> {
    let refused = |source| Error::Read { path: place.to_path_buf(), source };
    let file = files::open(place)?.ok_or_else(|| refused(std::io::ErrorKind::NotFound.into()))?;
    let reader = Box::new(GzDecoder::new(std::io::BufReader::new(file)));
    let mut archive = OpenFile::new(reader, place.display().to_string(), place.to_path_buf());
    from_tar(&mut archive, batches, first)
}

fn from_tar(archive: &mut OpenFile<'_>, batches: &[&str], first: Option<usize>) -> Result<Vec<u8>, Error> {
    let mut found: Vec<Option<Vec<u8>>> = vec![None; batches.len()];
    while found.iter().any(Option::is_none) {
        let Some(member) = tar::next_member(archive)? else { break };
        let name = member.name.rsplit('/').next().unwrap_or_default();
        let mut read = 0;
        if let Some(position) = batches.iter().position(|batch| *batch == name) {
            let records = read_batch(archive, still_wanted(first, 0), Some(member.size))?;
            read = records.len() as u64;
            found[position] = Some(records);
        }
        tar::skip_rest(archive, &member, read)?;
    }
    if let Some(absent) = found.iter().position(Option::is_none) {
        return Err(archive.damaged(format!("the archive does not hold {}", batches[absent])));
    }
    let mut records: Vec<u8> = found.into_iter().flatten().flatten().collect();
    records.truncate(still_wanted(first, 0).saturating_mul(RECORD));
    Ok(records)
}

/// The records of these bytes, taken for a batch and for an unpacked archive of the test batch.
pub(crate) fn read_bytes(bytes: &[u8]) -> [Result<Vec<u8>, Error>; 2] {
    let file = || OpenFile::new(Box::new(bytes), "memory".to_string(), PathBuf::from("memory"));
    [read_batch(&mut file(), MOST_RECORDS, None), from_tar(&mut file(), &TEST, Some(1))]
}

fn still_wanted(first: Option<usize>, bytes_read: usize) -> usize {
    first.map_or(MOST_RECORDS, |first| first.saturating_sub(bytes_read / RECORD))
}

/// Whole records, at most `most`; `size` is the batch's length where something follows it.
fn read_batch(file: &mut OpenFile<'_>, most: usize, size: Option<u64>) -> Result<Vec<u8>, Error> {
    let most = most.min(MOST_RECORDS) * RECORD;
    let available = size.map_or(most, |size| usize::try_from(size).unwrap_or(usize::MAX).min(most));
    let bytes = file.up_to(available)?;
    if bytes.len() % RECORD != 0 || bytes.is_empty() || size.is_some() && bytes.len() < available {
        let problem = format!("{} bytes are not a whole number of {RECORD}-byte records", bytes.len());
        return Err(file.damaged(problem));
    }
    Ok(bytes)
}
