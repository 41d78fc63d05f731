//! A checkpoint on its way between a worker and the coordinator: what names it, how large it may be, and the comparison of
//! what was promised with what came. Both sides use it; neither believes the other. Knows nothing of what is in the bytes.

use std::fmt;
use std::str::FromStr;

use crate::convert::ConvertError;
use crate::wire;

/// Bytes of the largest checkpoint that moves through the coordinator.
pub const LARGEST: u64 = 64 << 20;

/// Bytes of the largest one that moves through storage; larger ones stay where they are.
pub const LARGEST_STORED: u64 = 1 << 30;

/// Bytes in one chunk, as we send them.
pub const CHUNK: usize = 256 << 10;

/// Bytes of the largest message that is taken in: a chunk of 1 MiB and what is around it.
pub const CHUNK_MESSAGE: usize = (1 << 20) + 1_024;

/// The BLAKE3 digest of a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct CheckpointDigest([u8; 32]);

impl CheckpointDigest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }
}

impl fmt::Display for CheckpointDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from(self.0).to_hex())
    }
}

impl fmt::Debug for CheckpointDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl FromStr for CheckpointDigest {
    type Err = blake3::HexError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(blake3::Hash::from_hex(text)?.into()))
    }
}

/// What names a checkpoint of a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Epochs that are done.
    pub epochs: u32,
    /// Bytes.
    pub size: u64,
    /// Digest of the bytes.
    pub digest: CheckpointDigest,
}

impl Held {
    /// Of these bytes.
    pub fn of(epochs: u32, bytes: &[u8]) -> Self {
        Self { epochs, size: bytes.len() as u64, digest: CheckpointDigest::of(bytes) }
    }
}

impl From<Held> for wire::HeldCheckpoint {
    fn from(held: Held) -> Self {
        Self { epochs: held.epochs, size: held.size, digest: held.digest.0.to_vec() }
    }
}

impl TryFrom<wire::HeldCheckpoint> for Held {
    type Error = ConvertError;

    fn try_from(held: wire::HeldCheckpoint) -> Result<Self, ConvertError> {
        let wrong = |field, reason: String| ConvertError::Wrong { field, reason };
        let wire::HeldCheckpoint { epochs, size, digest } = held;
        let bytes = digest.len();
        let digest =
            digest.try_into().map_err(|_| wrong("held.digest", format!("it has {bytes} bytes, not 32")))?;
        if epochs == 0 {
            return Err(wrong("held.epochs", "a checkpoint has at least one epoch".to_owned()));
        }
        if size == 0 || size > LARGEST_STORED {
            let reason = format!("{size} bytes; at least 1 and at most {} MiB move", LARGEST_STORED >> 20);
            return Err(wrong("held.size", reason));
        }
        Ok(Self { epochs, size, digest: CheckpointDigest(digest) })
    }
}

/// Why bytes are not the checkpoint that was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Torn {
    /// More came than was promised.
    #[error("more than the {0} bytes that were promised")]
    Longer(u64),
    /// Less came.
    #[error("{came} of {promised} bytes came")]
    Shorter {
        /// So many.
        came: u64,
        /// Of so many.
        promised: u64,
    },
    /// Other bytes came.
    #[error("the bytes do not have the digest that was promised")]
    Other,
}

/// Compares bytes with what was promised, as they come.
#[derive(Debug)]
pub struct DigestCheck {
    promised: Held,
    came: u64,
    hasher: blake3::Hasher,
}

impl DigestCheck {
    /// With this promise.
    pub fn with(promised: Held) -> Self {
        Self { promised, came: 0, hasher: blake3::Hasher::new() }
    }

    /// Some more bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), Torn> {
        self.came = self.came.saturating_add(bytes.len() as u64);
        if self.came > self.promised.size {
            return Err(Torn::Longer(self.promised.size));
        }
        self.hasher.update(bytes);
        Ok(())
    }

    /// Nothing more comes.
    pub fn end(&self) -> Result<(), Torn> {
        let (came, promised) = (self.came, self.promised.size);
        if came < promised {
            return Err(Torn::Shorter { came, promised });
        }
        match <[u8; 32]>::from(self.hasher.finalize()) == self.promised.digest.0 {
            true => Ok(()),
            false => Err(Torn::Other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_promised_bytes_pass_in_whatever_pieces_they_come() {
        let bytes: Vec<u8> = (0..1000_u32).map(|number| (number % 251) as u8).collect();
        let held = Held::of(3, &bytes);
        let check = |bytes: &[u8], pieces: usize| {
            let mut comparison = DigestCheck::with(held);
            bytes.chunks(pieces).try_for_each(|piece| comparison.take(piece))?;
            comparison.end()
        };
        for pieces in [1, 7, 999, 1000, 5000] {
            assert_eq!(check(&bytes, pieces), Ok(()));
            assert_eq!(check(&bytes[..999], pieces), Err(Torn::Shorter { came: 999, promised: 1000 }));
            let (mut other, mut longer) = (bytes.clone(), bytes.clone());
            other[500] ^= 1;
            longer.push(0);
            assert_eq!(check(&other, pieces), Err(Torn::Other));
            assert_eq!(check(&longer, pieces), Err(Torn::Longer(1000)));
        }
    }

    #[test]
    fn a_name_crosses_the_wire_and_what_cannot_be_one_is_refused_by_field() {
        let held = Held::of(7, b"bytes");
        assert_eq!(Held::try_from(wire::HeldCheckpoint::from(held)), Ok(held));
        assert_eq!(held.digest.to_string().parse::<CheckpointDigest>().unwrap(), held.digest);
        let good = wire::HeldCheckpoint::from(held);
        for (bad, field) in [
            (wire::HeldCheckpoint { digest: vec![1; 31], ..good.clone() }, "held.digest"),
            (wire::HeldCheckpoint { size: 0, ..good.clone() }, "held.size"),
            (wire::HeldCheckpoint { size: LARGEST_STORED + 1, ..good.clone() }, "held.size"),
            (wire::HeldCheckpoint { size: u64::MAX, ..good.clone() }, "held.size"),
            (wire::HeldCheckpoint { epochs: 0, ..good }, "held.epochs"),
        ] {
            assert!(Held::try_from(bad).unwrap_err().to_string().contains(field));
        }
    }
}
