//! Content digests: which bytes of a data set or of a split are hashed, in which order. They identify
//! data across machines, so the byte layout is little-endian, every part carries its length, and the
//! domain has a version.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! hex_digest {
    ($(#[$attribute:meta])* $name:ident) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The 64 hexadecimal digits.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl From<ContentHasher> for $name {
            fn from(hasher: ContentHasher) -> $name {
                $name(hasher.0.finalize().to_hex().to_string())
            }
        }
    };
}

hex_digest! {
    /// Identity of everything a data set holds: graphs, features, labels, published splits.
    DataDigest
}
hex_digest! {
    /// Identity of one partition into training, validation and test graphs.
    SplitDigest
}

impl DataDigest {
    /// A digest that was written down.
    pub(crate) fn from_pinned(digits: &str) -> DataDigest {
        DataDigest(digits.to_string())
    }
}

/// Hashes typed slices without regard to the machine's byte order.
pub(crate) struct ContentHasher(blake3::Hasher);

impl ContentHasher {
    /// A hasher for one kind of content; the domain names the kind and its layout version.
    pub(crate) fn new(domain: &str) -> ContentHasher {
        ContentHasher(blake3::Hasher::new_derive_key(domain))
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.update(text.as_bytes());
    }

    pub(crate) fn number(&mut self, number: u64) {
        self.0.update(&number.to_le_bytes());
    }

    pub(crate) fn indices(&mut self, indices: &[u32]) {
        self.words(indices, |index| *index);
    }

    pub(crate) fn floats(&mut self, floats: &[f32]) {
        self.words(floats, |float| float.to_bits());
    }

    pub(crate) fn offsets(&mut self, offsets: &[usize]) {
        self.number(offsets.len() as u64);
        offsets.iter().for_each(|offset| self.number(*offset as u64));
    }

    fn words<T>(&mut self, items: &[T], bits: impl Fn(&T) -> u32) {
        const ITEMS_AT_ONCE: usize = 1 << 16;
        self.number(items.len() as u64);
        let mut bytes = vec![0u8; 4 * ITEMS_AT_ONCE.min(items.len())];
        for chunk in items.chunks(ITEMS_AT_ONCE) {
            for (item, slot) in chunk.iter().zip(bytes.chunks_exact_mut(4)) {
                slot.copy_from_slice(&bits(item).to_le_bytes());
            }
            self.0.update(&bytes[..4 * chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(fill: impl FnOnce(&mut ContentHasher)) -> DataDigest {
        let mut hasher = ContentHasher::new("test v1");
        fill(&mut hasher);
        hasher.into()
    }

    #[test]
    fn moving_a_value_from_one_part_to_the_next_changes_the_digest() {
        let left = digest(|h| {
            h.indices(&[1, 2]);
            h.indices(&[3]);
        });
        let right = digest(|h| {
            h.indices(&[1]);
            h.indices(&[2, 3]);
        });
        assert_ne!(left, right);
    }

    #[test]
    fn long_slices_hash_like_the_bytes_they_stand_for() {
        let items: Vec<u32> = (0..10_000).collect();
        let mut reference = blake3::Hasher::new_derive_key("test v1");
        reference.update(&10_000u64.to_le_bytes());
        items.iter().for_each(|item| {
            reference.update(&item.to_le_bytes());
        });
        assert_eq!(digest(|h| h.indices(&items)).as_str(), reference.finalize().to_hex().as_str());
    }
}
