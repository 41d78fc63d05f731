//! A data set as one flat file: magic, layout, fingerprint of the input, content digest, the arrays, each behind
//! its length, and a seal over all of it. Arrays lie as they lie in memory, so a mapped file is read in place; the
//! layout names the kind of machine, and a copy made on another is stale. What the seal covers was checked before
//! it was written, so only shapes are checked again; nothing that is wrong is believed.

use std::io::{self, Write};
use std::sync::Arc;

use bytemuck::{AnyBitPattern, NoUninit};
use memmap2::Mmap;

use crate::array::Array;
use crate::dataset::{Dataset, DatasetContent, Task};
use crate::digest::DataDigest;
use crate::fingerprint::Fingerprint;
use crate::seal::{self, Sealing};
use crate::splits::{Split, SplitRule};

const MAGIC: &[u8; 8] = b"togldata";
/// Raised with every change of the layout.
const VERSION: u32 = 2;
const DIGEST_BYTES: usize = 64;
/// Every array begins at a multiple of this, which is enough for all items.
const ALIGNMENT: usize = 8;
const MOST_TEXT: u64 = 4096;

/// Bytes by which a copy is known without looking further.
pub(crate) const HEADER_BYTES: usize = 48;

/// Why a file is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It was made from something else.
    Stale(&'static str),
    /// It is not what was written.
    Corrupt(String),
}

/// The header of a copy: version, byte order and width of a word of this machine, and what it was made from.
pub(crate) fn header(fingerprint: &Fingerprint) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_ne_bytes());
    header[12..16].copy_from_slice(&usize::BITS.to_ne_bytes());
    header[16..].copy_from_slice(fingerprint);
    header
}

/// Writes everything; the caller decides where and makes it durable.
pub(crate) fn write<W: Write>(out: W, dataset: &Dataset, fingerprint: &Fingerprint) -> io::Result<W> {
    let content = dataset.content();
    let mut out = Sealing::new(out);
    out.write_all(&header(fingerprint))?;
    out.write_all(dataset.digest().as_str().as_bytes())?;
    let (rule, count) = match content.split_rule {
        SplitRule::RandomBySeed => (0, 0),
        SplitRule::StratifiedFolds { folds } => (1, folds),
        SplitRule::Published { splits } => (2, splits),
    };
    let width = content.feature_width as u64;
    let splits = content.published_splits.len() as u64;
    write_items(&mut out, &[u64::from(content.classes), width, rule, u64::from(count), splits])?;
    write_items(&mut out, content.name.as_bytes())?;
    write_items(&mut out, content.task.as_str().as_bytes())?;
    write_items(&mut out, &content.node_offsets)?;
    write_items(&mut out, &content.edge_offsets)?;
    for indices in [&content.sources, &content.targets, &content.labels] {
        write_items(&mut out, indices)?;
    }
    write_items(&mut out, &content.features)?;
    for split in &content.published_splits {
        for part in [&split.train, &split.validation, &split.test] {
            write_items(&mut out, part)?;
        }
    }
    out.finish()
}

/// The length, the items as they are, and zeros up to where the next array may begin.
fn write_items<T: NoUninit>(out: &mut impl Write, items: &[T]) -> io::Result<()> {
    let bytes: &[u8] = bytemuck::cast_slice(items);
    out.write_all(&(items.len() as u64).to_ne_bytes())?;
    out.write_all(bytes)?;
    out.write_all(&[0; ALIGNMENT][..padding(bytes.len())])
}

fn padding(bytes: usize) -> usize {
    bytes.next_multiple_of(ALIGNMENT) - bytes
}

/// Reads a file that should hold what this fingerprint stands for; its large arrays stay where they are.
pub(crate) fn read(map: &Arc<Mmap>, fingerprint: &Fingerprint) -> Result<Dataset, Unusable> {
    let header = header(fingerprint);
    let found = map.get(..HEADER_BYTES).unwrap_or_default();
    if !found.starts_with(MAGIC) {
        return Err(Unusable::Stale("it is not a cached data set"));
    }
    if found[..16] != header[..16] {
        return Err(Unusable::Stale("its layout is of another version or machine"));
    }
    if found != header {
        return Err(Unusable::Stale("it was made from other files or by another version"));
    }
    let sealed = seal::opened(map).ok_or_else(|| Unusable::Corrupt("its seal is broken".to_string()))?;
    let mut input = Input { map, place: HEADER_BYTES, end: sealed.len() };
    let digest = input.take(DIGEST_BYTES)?;
    let digest = std::str::from_utf8(digest).map_err(|_| corrupt("a digest that is not text"))?;
    let content = read_content(&mut input)?;
    if input.place != input.end {
        return Err(Unusable::Corrupt(format!("{} bytes are left over", input.end - input.place)));
    }
    Dataset::restored(content, DataDigest::from_pinned(digest)).map_err(|error| corrupt(&error.to_string()))
}

fn read_content(input: &mut Input<'_>) -> Result<DatasetContent, Unusable> {
    let numbers = input.items::<u64>()?;
    let [classes, feature_width, rule, count, splits] =
        *numbers.first_chunk().ok_or_else(|| corrupt("numbers are missing"))?;
    let small = |number| u32::try_from(number).map_err(|_| Unusable::Corrupt(format!("a count of {number}")));
    let split_rule = match (rule, small(count)?) {
        (0, _) => SplitRule::RandomBySeed,
        (1, folds) => SplitRule::StratifiedFolds { folds },
        (2, splits) => SplitRule::Published { splits },
        (other, _) => return Err(Unusable::Corrupt(format!("there is no split rule {other}"))),
    };
    Ok(DatasetContent {
        classes: small(classes)?,
        feature_width: small(feature_width)? as usize,
        split_rule,
        name: input.text()?,
        task: task(&input.text()?)?,
        node_offsets: input.items()?,
        edge_offsets: input.items()?,
        sources: input.items()?,
        targets: input.items()?,
        labels: input.items()?,
        features: input.items()?,
        published_splits: (0..splits).map(|_| input.split()).collect::<Result<_, _>>()?,
    })
}

fn task(name: &str) -> Result<Task, Unusable> {
    Task::from_word(name).ok_or_else(|| Unusable::Corrupt(format!("there is no task {name:?}")))
}

fn corrupt(problem: &str) -> Unusable {
    Unusable::Corrupt(problem.to_string())
}

/// Walks through the sealed bytes; no length leads beyond their end.
struct Input<'a> {
    map: &'a Arc<Mmap>,
    place: usize,
    end: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Unusable> {
        let bytes =
            self.map[self.place..self.end].get(..count).ok_or_else(|| corrupt("it ends too early"))?;
        self.place += count;
        Ok(bytes)
    }

    /// The place of the next array, in bytes; the walk goes on behind it.
    fn items<T: AnyBitPattern>(&mut self) -> Result<Array<T>, Unusable> {
        let length = self.take(8)?.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        let bytes = usize::try_from(length).ok().and_then(|length| length.checked_mul(size_of::<T>()));
        let padded = bytes.filter(|bytes| *bytes <= self.end).map(|bytes| (bytes, bytes + padding(bytes)));
        let (bytes, padded) = padded.ok_or_else(|| corrupt("more values than the file holds"))?;
        let start = self.place;
        self.take(padded)?;
        Array::mapped(self.map, start..start + bytes).ok_or_else(|| corrupt("an array is not aligned"))
    }

    fn text(&mut self) -> Result<String, Unusable> {
        let bytes = self.items::<u8>()?;
        if bytes.len() as u64 > MOST_TEXT {
            return Err(Unusable::Corrupt(format!("a name of {} bytes", bytes.len())));
        }
        String::from_utf8(bytes.to_vec()).map_err(|_| corrupt("a name that is not text"))
    }

    fn split(&mut self) -> Result<Split, Unusable> {
        let [train, validation, test] = [self.items()?, self.items()?, self.items()?];
        Ok(Split { train: train.to_vec(), validation: validation.to_vec(), test: test.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::tests::mapped;
    use crate::structure::tests::two_small_graphs;

    const INPUT: Fingerprint = [7; 32];

    fn read_bytes(bytes: &[u8]) -> Result<Dataset, Unusable> {
        read(&mapped(bytes), &INPUT)
    }

    fn stored(dataset: &Dataset) -> Vec<u8> {
        write(Vec::new(), dataset, &INPUT).expect("in memory")
    }

    fn with_a_published_split() -> Dataset {
        let mut parts = two_small_graphs();
        parts.split_rule = SplitRule::Published { splits: 1 };
        parts.published_splits = vec![Split { train: vec![1], validation: vec![], test: vec![0] }];
        Dataset::new(parts).expect("sound")
    }

    /// The bytes with a change and a seal that fits it: a file that somebody forged.
    fn forged(sound: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut content = seal::opened(sound).expect("sealed").to_vec();
        change(&mut content);
        let mut out = Sealing::new(Vec::new());
        out.write_all(&content).expect("in memory");
        out.finish().expect("in memory")
    }

    #[test]
    fn what_was_written_is_read_again_in_every_part() {
        let dataset = with_a_published_split();
        let again = read_bytes(&stored(&dataset)).expect("sound");
        assert_eq!(again.digest(), dataset.digest());
        assert_eq!(again.published_splits(), dataset.published_splits());
        assert_eq!((again.name(), again.task()), (dataset.name(), dataset.task()));
        assert_eq!((again.labels(), again.split_rule()), (dataset.labels(), dataset.split_rule()));
        for (left, right) in again.graphs().zip(dataset.graphs()) {
            assert_eq!((left.sources, left.targets), (right.sources, right.targets));
            assert_eq!((left.features, left.node_count), (right.features, right.node_count));
        }
        assert_eq!(again.computed_digest(), *dataset.digest(), "the stored digest is that of the content");
    }

    #[test]
    fn another_fingerprint_version_or_machine_is_stale() {
        let bytes = stored(&with_a_published_split());
        assert!(matches!(read(&mapped(&bytes), &[8; 32]), Err(Unusable::Stale(_))));
        for position in [0, 8, 12] {
            let other = forged(&bytes, |content| content[position] ^= 1);
            assert!(matches!(read_bytes(&other), Err(Unusable::Stale(_))), "byte {position}");
        }
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        for dataset in [with_a_published_split(), Dataset::new(two_small_graphs()).expect("sound")] {
            let sound = stored(&dataset);
            for position in 0..sound.len() {
                for mask in [1, 0x41] {
                    let mut flipped = sound.clone();
                    flipped[position] ^= mask;
                    assert!(read_bytes(&flipped).is_err(), "byte {position}");
                }
                assert!(read_bytes(&sound[..position]).is_err(), "cut at {position}");
            }
            assert!(read_bytes(&[sound.as_slice(), &[0]].concat()).is_err());
        }
    }

    #[test]
    fn a_forged_seal_does_not_make_shapes_that_cannot_be_walked() {
        let sound = stored(&with_a_published_split());
        let mut refused = 0;
        for position in HEADER_BYTES + DIGEST_BYTES..sound.len() - seal::SEAL_BYTES {
            for mask in [1, 0x80] {
                let forged = forged(&sound, |content| content[position] ^= mask);
                match read_bytes(&forged) {
                    Err(_) => refused += 1,
                    Ok(dataset) => assert_eq!(dataset.graphs().count(), 2, "byte {position}"),
                }
            }
            let cut = forged(&sound, |content| content.truncate(position));
            assert!(read_bytes(&cut).is_err(), "cut at {position}");
        }
        assert!(refused > 100, "{refused} changes were noticed");
    }
}
