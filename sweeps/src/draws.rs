//! Random numbers for sweeps, made from a key and a counter: the same on every machine and in every version, and the
//! n-th number does not depend on how many are drawn. Owns the derivation and a keyed shuffle of 0..n without memory.
//! Logarithms are libm's, because a platform's own would give different trials on different machines.

/// A stream of draws with its own key.
#[derive(Debug, Clone)]
pub struct Draws {
    key: [u8; 32],
}

impl Draws {
    /// The stream of a seed for one purpose.
    pub fn new(seed: u64, purpose: &str) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("togl sweeps 1: random draws");
        hasher.update(&seed.to_le_bytes());
        hasher.update(purpose.as_bytes());
        Self { key: *hasher.finalize().as_bytes() }
    }

    /// The 64 bits of one counter.
    pub fn bits(&self, counter: u128) -> u64 {
        let digest = blake3::keyed_hash(&self.key, &counter.to_le_bytes());
        let mut first = [0; 8];
        first.copy_from_slice(&digest.as_bytes()[..8]);
        u64::from_le_bytes(first)
    }

    /// A number in 0..1 with 53 random bits.
    pub fn unit(&self, counter: u128) -> f64 {
        (self.bits(counter) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Where `index` goes in a shuffle of `0..size`; every place is taken exactly once.
    pub fn shuffled(&self, index: u128, size: u128) -> u128 {
        let bits = (128 - size.saturating_sub(1).leading_zeros()).max(2).div_ceil(2);
        let mut place = index;
        loop {
            place = self.mix(place, bits);
            if place < size {
                return place;
            }
        }
    }

    /// A permutation of the numbers of `2 * half` bits: eight rounds of a Feistel network.
    fn mix(&self, value: u128, half: u32) -> u128 {
        let mask = (1u128 << half) - 1;
        let (mut left, mut right) = (value >> half, value & mask);
        for round in 0..8u128 {
            let drawn = u128::from(self.bits(right | (round << 64) | (1 << 100)));
            (left, right) = (right, (left ^ drawn) & mask);
        }
        (left << half) | right
    }
}

/// The number with so many significant decimal digits, as a person would write it.
pub fn rounded(x: f64, digits: usize) -> f64 {
    format!("{x:.*e}", digits.saturating_sub(1)).parse().unwrap_or(x)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn draws_are_pinned() {
        let draws = Draws::new(7, "lr");
        assert_eq!(draws.bits(0), PINNED, "other draws would be other trials: never change them");
        assert_ne!(draws.bits(0), Draws::new(7, "depth").bits(0));
        assert_ne!(draws.bits(0), Draws::new(8, "lr").bits(0));
    }

    const PINNED: u64 = 14_975_273_025_074_902_507;

    #[test]
    fn a_shuffle_takes_every_place_once() {
        for size in [1u128, 2, 3, 10, 64, 1000] {
            let places: BTreeSet<u128> =
                (0..size).map(|index| Draws::new(1, "x").shuffled(index, size)).collect();
            assert_eq!(places, (0..size).collect(), "{size}");
        }
        let huge = u128::MAX / 3;
        assert!(Draws::new(1, "x").shuffled(5, huge) < huge);
    }

    #[test]
    fn a_number_is_rounded_as_a_person_would_write_it() {
        assert_eq!(rounded(0.000_999_999_99, 6), 0.001);
    }
}
