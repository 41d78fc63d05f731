//! A seal at the end of a file: a digest of every byte before it. Blocks are hashed by themselves, so that all
//! cores can check a large file at once. It knows nothing of what the bytes mean.

use std::io::{self, Write};

use rayon::prelude::*;

const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of a seal.
pub(crate) const SEAL_BYTES: usize = 32;

/// The bytes before the seal; nothing where the seal is not theirs.
pub(crate) fn opened(file: &[u8]) -> Option<&[u8]> {
    let (content, seal) = file.split_last_chunk::<SEAL_BYTES>()?;
    (of(content) == *seal).then_some(content)
}

fn of(content: &[u8]) -> [u8; SEAL_BYTES] {
    let hashes: Vec<blake3::Hash> = match content.len() > BLOCK_BYTES {
        true => content.par_chunks(BLOCK_BYTES).map(blake3::hash).collect(),
        false => content.chunks(BLOCK_BYTES).map(blake3::hash).collect(), // not worth waking threads
    };
    let mut whole = Whole::new();
    hashes.iter().for_each(|hash| whole.add(hash));
    whole.seal()
}

/// The digest of the digests of the blocks.
struct Whole(blake3::Hasher);

impl Whole {
    fn new() -> Whole {
        Whole(blake3::Hasher::new_derive_key("togl sealed file v1"))
    }

    fn add(&mut self, block: &blake3::Hash) {
        self.0.update(block.as_bytes());
    }

    fn seal(&self) -> [u8; SEAL_BYTES] {
        *self.0.finalize().as_bytes()
    }
}

/// Passes on what is written, and ends it with its seal.
pub(crate) struct Sealing<W> {
    out: W,
    whole: Whole,
    block: blake3::Hasher,
    filled: usize,
}

impl<W: Write> Sealing<W> {
    /// Nothing is written yet.
    pub(crate) fn new(out: W) -> Sealing<W> {
        Sealing { out, whole: Whole::new(), block: blake3::Hasher::new(), filled: 0 }
    }

    /// Writes the seal and gives back where everything went.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.end_block();
        self.out.write_all(&self.whole.seal())?;
        Ok(self.out)
    }

    fn end_block(&mut self) {
        if self.filled > 0 {
            self.whole.add(&self.block.finalize());
            self.block.reset();
            self.filled = 0;
        }
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = &bytes[..bytes.len().min(BLOCK_BYTES - self.filled)];
        let written = self.out.write(fits)?;
        self.block.update(&fits[..written]);
        self.filled += written;
        if self.filled == BLOCK_BYTES {
            self.end_block();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(content: &[u8], at_once: usize) -> Vec<u8> {
        let mut out = Sealing::new(Vec::new());
        content.chunks(at_once).for_each(|part| out.write_all(part).expect("in memory"));
        out.finish().expect("in memory")
    }

    #[test]
    fn a_seal_fits_however_the_content_was_written() {
        for length in [0, 1, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1, 3 * BLOCK_BYTES] {
            let content: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
            for at_once in [1000, 1 << 19, 1 << 30] {
                assert_eq!(
                    opened(&sealed(&content, at_once)),
                    Some(content.as_slice()),
                    "{length} {at_once}"
                );
            }
        }
    }

    #[test]
    fn every_change_breaks_the_seal() {
        let sound = sealed(&vec![5; 2 * BLOCK_BYTES + 9], 1 << 20);
        for position in
            [0, BLOCK_BYTES - 1, BLOCK_BYTES, 2 * BLOCK_BYTES + 8, 2 * BLOCK_BYTES + 9, sound.len() - 1]
        {
            let mut flipped = sound.clone();
            flipped[position] ^= 1;
            assert_eq!(opened(&flipped), None, "byte {position}");
        }
        assert_eq!(opened(&sound[..sound.len() - 1]), None);
        assert_eq!(opened(&[sound.as_slice(), &[0]].concat()), None);
        assert_eq!(opened(&sound[BLOCK_BYTES..]), None, "a block is missing");
        assert_eq!(opened(&[]), None);
    }
}
