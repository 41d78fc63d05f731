//! Counter-based random streams: every draw is a function of (seed, split, purpose, epoch, graph), so no
//! draw depends on what was drawn elsewhere, on threads or on the order of work. This file owns the exact
//! algorithms from key to variate; they are pinned by tests because changing one changes every trained
//! number.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::normal::standard_normal_quantile;

/// Raised whenever a stream would yield other numbers than before.
const KEY_DOMAIN: &str = "togl random streams v1";

togl_sweeps::words!(
    /// Which part of a split a draw is made for. Its word is part of the key of its stream and never changes.
    Stage {
        /// Mini-batches that are learned from.
        Training = "training",
        /// The evaluation after each epoch.
        Validation = "validation",
        /// The final evaluation.
        Test = "test",
    }
);

/// What a stream is for. Two purposes never share numbers; the names below are part of the key and never
/// change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose<'a> {
    /// Initial values of the parameter of this name.
    Initialisation(&'a str),
    /// Initial values of the parameter at this position.
    InitialisationAt(u64),
    /// The order of training graphs within an epoch.
    Shuffle,
    /// Node features that replace the real ones.
    Features(Stage),
    /// Random edges of the static variant of TOGL.
    StaticEdges(Stage),
    /// Dropout masks of the layer of this name.
    Dropout(&'a str),
    /// Partition of a data set.
    Split,
    /// Graphs of the generator of this name.
    Generate(&'a str),
}

impl Purpose<'_> {
    fn update(self, hasher: &mut blake3::Hasher) {
        let mut word = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        match self {
            Purpose::Initialisation(parameter) => {
                word("initialisation");
                word(parameter);
            }
            Purpose::InitialisationAt(position) => {
                word("initialisation at");
                word(&position.to_string());
            }
            Purpose::Shuffle => word("shuffle"),
            Purpose::Features(stage) => {
                word("features");
                word(stage.as_str());
            }
            Purpose::StaticEdges(stage) => {
                word("static edges");
                word(stage.as_str());
            }
            Purpose::Dropout(layer) => {
                word("dropout");
                word(layer);
            }
            Purpose::Split => word("split"),
            Purpose::Generate(generator) => {
                word("generate");
                word(generator);
            }
        }
    }
}

/// An endless sequence of random numbers that belongs to one purpose.
///
/// ```
/// use togl_data::{Purpose, RandomStream};
/// let mut first = RandomStream::new(421, 0, Purpose::Shuffle, 3, 0);
/// let mut again = RandomStream::new(421, 0, Purpose::Shuffle, 3, 0);
/// assert_eq!(first.permutation(10), again.permutation(10));
/// ```
#[derive(Clone, Debug)]
pub struct RandomStream {
    generator: ChaCha8Rng,
}

impl RandomStream {
    /// The stream at these coordinates; a coordinate that plays no role is 0.
    pub fn new(seed: u64, split: u64, purpose: Purpose<'_>, epoch: u64, graph: u64) -> RandomStream {
        let mut hasher = blake3::Hasher::new_derive_key(KEY_DOMAIN);
        for coordinate in [seed, split, epoch, graph] {
            hasher.update(&coordinate.to_le_bytes());
        }
        purpose.update(&mut hasher);
        RandomStream { generator: ChaCha8Rng::from_seed(*hasher.finalize().as_bytes()) }
    }

    /// The next 64 random bits; everything else is computed from these.
    pub fn next_bits(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// Uniform on [0, 1): the upper 53 bits as a fraction.
    pub fn uniform(&mut self) -> f64 {
        (self.next_bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability one half.
    pub fn coin(&mut self) -> bool {
        self.next_bits() >> 63 == 1
    }

    /// Uniform on `0..bound` without bias (Lemire's multiply and reject); 0 where `bound` is 0.
    pub fn uniform_below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return 0;
        }
        let rejected_below = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.next_bits()) * u128::from(bound);
            if product as u64 >= rejected_below {
                return (product >> 64) as u64;
            }
        }
    }

    /// A standard normal variate: the quantile of one uniform draw strictly between 0 and 1.
    pub fn standard_normal(&mut self) -> f64 {
        // 52 bits and a half: exact in f64, symmetric around 1/2, never 0 or 1.
        let uniform = ((self.next_bits() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64);
        standard_normal_quantile(uniform)
    }

    /// Fills a buffer with standard normal variates, computed in f64 and rounded once.
    pub fn fill_standard_normal(&mut self, buffer: &mut [f32]) {
        for value in buffer {
            *value = self.standard_normal() as f32;
        }
    }

    /// Fisher-Yates from the last position down.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let chosen = self.uniform_below(last as u64 + 1) as usize;
            items.swap(last, chosen);
        }
    }

    /// The numbers `0..length` in random order.
    pub fn permutation(&mut self, length: u32) -> Vec<u32> {
        let mut items: Vec<u32> = (0..length).collect();
        self.shuffle(&mut items);
        items
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn stream() -> RandomStream {
        RandomStream::new(421, 3, Purpose::Features(Stage::Training), 7, 11)
    }

    fn digest_of(words: impl Iterator<Item = u64>) -> String {
        let mut hasher = blake3::Hasher::new();
        words.for_each(|word| {
            hasher.update(&word.to_le_bytes());
        });
        hasher.finalize().to_hex()[..16].to_string()
    }

    #[test]
    fn sequences_are_the_same_on_every_machine_and_in_every_release() {
        // The first digest was also computed by another implementation of BLAKE3 and of ChaCha8.
        let mut bits = stream();
        let mut uniforms = stream();
        let mut bounded = stream();
        let mut normals = stream();
        assert_eq!(digest_of((0..1000).map(|_| bits.next_bits())), "12cbcc599352d3ac");
        assert_eq!(digest_of((0..1000).map(|_| uniforms.uniform().to_bits())), "de7b145d4ba141ed");
        assert_eq!(digest_of((1..1000).map(|bound| bounded.uniform_below(bound))), "b02a356a934c22a2");
        assert_eq!(digest_of((0..100_000).map(|_| normals.standard_normal().to_bits())), "d4e0bc1fb72aad69");
        assert_eq!(digest_of(stream().permutation(1000).into_iter().map(u64::from)), "6c2f43fe675c7c1c");
    }

    #[test]
    fn every_coordinate_and_every_purpose_has_numbers_of_its_own() {
        let purposes = [
            Purpose::Initialisation("layers.0.weight"),
            Purpose::Initialisation("layers.0.bias"),
            Purpose::Initialisation("0"),
            Purpose::InitialisationAt(0),
            Purpose::InitialisationAt(1),
            Purpose::Shuffle,
            Purpose::Features(Stage::Training),
            Purpose::Features(Stage::Validation),
            Purpose::Features(Stage::Test),
            Purpose::StaticEdges(Stage::Training),
            Purpose::StaticEdges(Stage::Validation),
            Purpose::StaticEdges(Stage::Test),
            Purpose::Dropout("0"),
            Purpose::Split,
            Purpose::Generate("cycles"),
            Purpose::Generate("necklaces"),
        ];
        let mut first_words = HashSet::new();
        for purpose in purposes {
            for [seed, split, epoch, graph] in
                [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
            {
                assert!(
                    first_words.insert(RandomStream::new(seed, split, purpose, epoch, graph).next_bits())
                );
            }
        }
    }

    #[test]
    fn bounded_draws_are_uniform_for_a_bound_that_does_not_divide_the_range() {
        let mut stream = stream();
        let mut counts = [0u32; 7];
        for _ in 0..70_000 {
            counts[stream.uniform_below(7) as usize] += 1;
        }
        // Six degrees of freedom: the 0.999 quantile of chi squared is 22.5.
        let chi_squared: f64 = counts.iter().map(|&c| (f64::from(c) - 10_000.0).powi(2) / 10_000.0).sum();
        assert!(chi_squared < 22.5, "{counts:?}");
        assert_eq!(stream.uniform_below(1), 0);
        assert_eq!(stream.uniform_below(0), 0);
    }

    #[test]
    fn normal_variates_have_the_moments_of_the_standard_normal() {
        let mut stream = stream();
        let draws: Vec<f64> = (0..200_000).map(|_| stream.standard_normal()).collect();
        let moment = |power| draws.iter().map(|x: &f64| x.powi(power)).sum::<f64>() / draws.len() as f64;
        assert!(moment(1).abs() < 0.01, "mean {}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.02, "variance {}", moment(2));
        assert!(moment(3).abs() < 0.05, "third {}", moment(3));
        assert!((moment(4) - 3.0).abs() < 0.12, "fourth {}", moment(4));
    }

    #[test]
    fn permutations_hold_every_item_once_and_hit_all_orders() {
        let mut stream = stream();
        let mut sorted = stream.permutation(100);
        sorted.sort_unstable();
        assert_eq!(sorted, (0..100).collect::<Vec<_>>());
        let orders: HashSet<Vec<u32>> = (0..500).map(|_| stream.permutation(4)).collect();
        assert_eq!(orders.len(), 24);
        assert!(stream.permutation(0).is_empty());
    }

    #[test]
    fn uniform_draws_stay_below_one_and_coins_are_fair() {
        let mut stream = stream();
        assert!((0..10_000).map(|_| stream.uniform()).all(|u| (0.0..1.0).contains(&u)));
        let heads = (0..10_000).filter(|_| stream.coin()).count();
        assert!((4_800..5_200).contains(&heads), "{heads}");
    }
}
