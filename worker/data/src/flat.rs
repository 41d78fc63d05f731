//! A data set as one flat little-endian file: magic, version, fingerprint of the input, content digest, then
//! the arrays, each behind its length. Reading believes nothing: lengths are bounded by the file, the parts
//! are checked like any others, and the digest of what was read must be the one in the header.

use std::io::{self, Read, Write};

use crate::dataset::{Dataset, DatasetParts, Task};
use crate::fingerprint::Fingerprint;
use crate::splits::{Split, SplitRule};

const MAGIC: &[u8; 8] = b"togldata";
/// Raised with every change of the layout.
const VERSION: u32 = 1;
const ITEMS_AT_ONCE: usize = 1 << 16;
const MOST_TEXT: u64 = 4096;

/// Why a file is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It was made from something else.
    Stale(&'static str),
    /// It is not what was written.
    Corrupt(String),
}

/// Writes everything; the caller decides where and makes it durable.
pub(crate) fn write(out: &mut impl Write, dataset: &Dataset, fingerprint: &Fingerprint) -> io::Result<()> {
    let parts = dataset.parts();
    out.write_all(MAGIC)?;
    out.write_all(&VERSION.to_le_bytes())?;
    out.write_all(fingerprint)?;
    out.write_all(dataset.digest().as_str().as_bytes())?;
    write_text(out, &parts.name)?;
    write_text(out, parts.task.name())?;
    let (rule, count) = match parts.split_rule {
        SplitRule::RandomBySeed => (0, 0),
        SplitRule::StratifiedFolds { folds } => (1, folds),
        SplitRule::Published { splits } => (2, splits),
    };
    let width = parts.feature_width as u64;
    for number in [u64::from(parts.classes), width, rule, u64::from(count)] {
        out.write_all(&number.to_le_bytes())?;
    }
    for offsets in [&parts.node_offsets, &parts.edge_offsets] {
        write_items(out, offsets, |offset| (*offset as u64).to_le_bytes())?;
    }
    for indices in [&parts.sources, &parts.targets, &parts.labels] {
        write_items(out, indices, |index| index.to_le_bytes())?;
    }
    write_items(out, &parts.features, |value| value.to_le_bytes())?;
    out.write_all(&(parts.published_splits.len() as u64).to_le_bytes())?;
    for split in &parts.published_splits {
        for part in [&split.train, &split.validation, &split.test] {
            write_items(out, part, |graph| graph.to_le_bytes())?;
        }
    }
    Ok(())
}

/// Reads a file of `size` bytes that should hold what this fingerprint stands for.
pub(crate) fn read(input: impl Read, size: u64, fingerprint: &Fingerprint) -> Result<Dataset, Unusable> {
    let mut input = Input { reader: input, left: size };
    if input.bytes(MAGIC.len())? != MAGIC {
        return Err(Unusable::Stale("it is not a cached data set"));
    }
    if input.bytes(4)? != VERSION.to_le_bytes() {
        return Err(Unusable::Stale("its layout is of another version"));
    }
    if input.bytes(fingerprint.len())? != fingerprint {
        return Err(Unusable::Stale("it was made from other files or by another version"));
    }
    let digest = input.bytes(64)?;
    let parts = read_parts(&mut input)?;
    if input.left > 0 {
        return Err(Unusable::Corrupt(format!("{} bytes are left over", input.left)));
    }
    let dataset = Dataset::new(parts).map_err(|error| Unusable::Corrupt(error.to_string()))?;
    if dataset.digest().as_str().as_bytes() != digest {
        return Err(Unusable::Corrupt("its content has another digest than its header".to_string()));
    }
    Ok(dataset)
}

fn read_parts(input: &mut Input<impl Read>) -> Result<DatasetParts, Unusable> {
    let name = input.text()?;
    let task = match input.text()?.as_str() {
        "graph-classification" => Task::GraphClassification,
        "node-classification" => Task::NodeClassification,
        "graph-binary-auc" => Task::GraphBinaryAuc,
        other => return Err(Unusable::Corrupt(format!("there is no task {other:?}"))),
    };
    let classes = input.small("classes")?;
    let feature_width = input.small("features")? as usize;
    let (rule, count) = (input.number()?, input.small("splits")?);
    let split_rule = match rule {
        0 if count == 0 => SplitRule::RandomBySeed,
        1 => SplitRule::StratifiedFolds { folds: count },
        2 => SplitRule::Published { splits: count },
        other => return Err(Unusable::Corrupt(format!("there is no split rule {other} of {count}"))),
    };
    let node_offsets = input.items(|bytes| u64::from_le_bytes(bytes) as usize)?;
    let edge_offsets = input.items(|bytes| u64::from_le_bytes(bytes) as usize)?;
    let (sources, targets) = (input.items(u32::from_le_bytes)?, input.items(u32::from_le_bytes)?);
    let labels = input.items(u32::from_le_bytes)?;
    let features = input.items(f32::from_le_bytes)?;
    let mut published_splits = Vec::new();
    for _ in 0..input.small("published splits")? {
        let [train, validation, test] = [input.indices()?, input.indices()?, input.indices()?];
        published_splits.push(Split { train, validation, test });
    }
    #[rustfmt::skip]
    let parts = DatasetParts {
        name, task, classes, node_offsets, edge_offsets, sources, targets, feature_width, features, labels,
        split_rule, published_splits,
    };
    Ok(parts)
}

fn write_text(out: &mut impl Write, text: &str) -> io::Result<()> {
    out.write_all(&(text.len() as u64).to_le_bytes())?;
    out.write_all(text.as_bytes())
}

fn write_items<T, const BYTES: usize>(
    out: &mut impl Write,
    items: &[T],
    encode: impl Fn(&T) -> [u8; BYTES],
) -> io::Result<()> {
    out.write_all(&(items.len() as u64).to_le_bytes())?;
    let mut buffer = vec![0; BYTES * ITEMS_AT_ONCE];
    for chunk in items.chunks(ITEMS_AT_ONCE) {
        for (item, slot) in chunk.iter().zip(buffer.chunks_exact_mut(BYTES)) {
            slot.copy_from_slice(&encode(item));
        }
        out.write_all(&buffer[..BYTES * chunk.len()])?;
    }
    Ok(())
}

/// Counts down what the file still holds, so that no length makes us take more memory than there is file.
struct Input<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Input<R> {
    fn fill(&mut self, buffer: &mut [u8]) -> Result<(), Unusable> {
        self.reader.read_exact(buffer).map_err(|error| Unusable::Corrupt(error.to_string()))?;
        self.left = self.left.saturating_sub(buffer.len() as u64);
        Ok(())
    }

    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, Unusable> {
        let mut bytes = vec![0; count];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn number(&mut self) -> Result<u64, Unusable> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn small(&mut self, what: &str) -> Result<u32, Unusable> {
        let number = self.number()?;
        u32::try_from(number).map_err(|_| Unusable::Corrupt(format!("{number} {what}")))
    }

    fn text(&mut self) -> Result<String, Unusable> {
        let length = self.number()?;
        if length > MOST_TEXT {
            return Err(Unusable::Corrupt(format!("a name of {length} bytes")));
        }
        let bytes = self.bytes(length as usize)?;
        String::from_utf8(bytes).map_err(|_| Unusable::Corrupt("a name that is not text".to_string()))
    }

    fn indices(&mut self) -> Result<Vec<u32>, Unusable> {
        self.items(u32::from_le_bytes)
    }

    fn items<T, const BYTES: usize>(
        &mut self,
        decode: impl Fn([u8; BYTES]) -> T,
    ) -> Result<Vec<T>, Unusable> {
        let count = self.number()?;
        if count.saturating_mul(BYTES as u64) > self.left {
            return Err(Unusable::Corrupt(format!("{count} values, more than the file holds")));
        }
        let mut items = Vec::with_capacity(count as usize);
        let mut buffer = vec![0; BYTES * ITEMS_AT_ONCE.min(count as usize)];
        while items.len() < count as usize {
            let wanted = ITEMS_AT_ONCE.min(count as usize - items.len());
            self.fill(&mut buffer[..BYTES * wanted])?;
            let (chunks, _) = buffer[..BYTES * wanted].as_chunks::<BYTES>();
            items.extend(chunks.iter().map(|bytes| decode(*bytes)));
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::structure::tests::two_small_graphs;

    fn stored() -> (Dataset, Vec<u8>) {
        let mut parts = two_small_graphs();
        parts.split_rule = SplitRule::Published { splits: 1 };
        parts.published_splits = vec![Split { train: vec![1], validation: vec![], test: vec![0] }];
        let dataset = Dataset::new(parts).expect("sound");
        let mut bytes = Vec::new();
        write(&mut bytes, &dataset, &[7; 32]).expect("in memory");
        (dataset, bytes)
    }

    #[test]
    fn what_was_written_is_read_again_with_the_same_digest_and_splits() {
        let (dataset, bytes) = stored();
        let again = read(bytes.as_slice(), bytes.len() as u64, &[7; 32]).expect("sound");
        assert_eq!(again.digest(), dataset.digest());
        assert_eq!(again.published_splits(), dataset.published_splits());
        assert_eq!((again.name(), again.task()), (dataset.name(), dataset.task()));
    }

    #[test]
    fn another_fingerprint_or_version_is_stale() {
        let (_, mut bytes) = stored();
        let size = bytes.len() as u64;
        assert!(matches!(read(bytes.as_slice(), size, &[8; 32]), Err(Unusable::Stale(_))));
        bytes[8] ^= 1;
        assert!(matches!(read(bytes.as_slice(), size, &[7; 32]), Err(Unusable::Stale(_))));
    }

    #[test]
    fn a_number_that_the_split_rule_does_not_use_is_noticed() {
        let dataset = Dataset::new(two_small_graphs()).expect("sound");
        assert_eq!(dataset.split_rule(), SplitRule::RandomBySeed);
        let mut sound = Vec::new();
        write(&mut sound, &dataset, &[7; 32]).expect("in memory");
        for position in 0..sound.len() {
            let mut flipped = sound.clone();
            flipped[position] ^= 1;
            assert!(read(flipped.as_slice(), flipped.len() as u64, &[7; 32]).is_err(), "byte {position}");
        }
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        let (_, sound) = stored();
        for position in 0..sound.len() {
            let mut flipped = sound.clone();
            flipped[position] ^= 0x41;
            assert!(read(flipped.as_slice(), flipped.len() as u64, &[7; 32]).is_err(), "byte {position}");
            let cut = &sound[..position];
            assert!(read(cut, cut.len() as u64, &[7; 32]).is_err(), "cut at {position}");
        }
        let longer = [sound.as_slice(), &[0]].concat();
        assert!(read(longer.as_slice(), longer.len() as u64, &[7; 32]).is_err());
    }
}
