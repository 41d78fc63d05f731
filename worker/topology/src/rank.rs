//! Ranks the vertices of one graph by filtration value, so that the rest of the work compares small integers.
//! Owns the order of values: equal values get equal ranks and -0.0 equals 0.0. Values are finite by contract
//! (the caller checked them); it must not look at edges.
//!
//! Sums here cannot overflow (counts of vertices are below 2^32); they are written as wrapping, because a check
//! in the loop would stop the compiler from using vector instructions in the development profile.

/// Up to this many vertices, counting smaller values (vectorised, no branches) beats sorting.
const COUNTING_LIMIT: usize = 96;

/// How many steps per vertex the nearly sorted keys may need before a general sort takes over.
const MOVES_PER_VERTEX: usize = 4;

/// Whether the values of a graph are all different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// All ranks differ: they are a permutation of the vertices.
    Distinct,
    /// Some values, hence some ranks, are equal.
    Tied,
}

/// Scratch memory for ranking, grown to the largest graph seen.
#[derive(Debug, Default)]
pub(crate) struct RankScratch {
    keys: Vec<u64>,
    slot: Vec<u32>,
    bucket: Vec<u32>,
}

/// Writes to `rank[v]` the number of vertices whose value is strictly smaller than that of `v`.
///
/// Ranks are below `values.len()`; gaps follow groups of equal values.
pub(crate) fn rank_vertices(values: &[f32], scratch: &mut RankScratch, rank: &mut [u32]) -> Ties {
    if values.len() <= COUNTING_LIMIT { by_counting(values, rank) } else { by_sorting(values, scratch, rank) }
}

/// Compares all pairs, eight vertices at a time.
fn by_counting(values: &[f32], rank: &mut [u32]) -> Ties {
    const LANES: usize = 8;
    for (lane, out) in values.chunks(LANES).zip(rank.chunks_mut(LANES)) {
        let mut own = [0.0; LANES];
        own[..lane.len()].copy_from_slice(lane);
        let mut smaller = [0_u32; LANES];
        for &other in values {
            for (count, &value) in smaller.iter_mut().zip(&own) {
                *count = count.wrapping_add(u32::from(other < value));
            }
        }
        out.copy_from_slice(&smaller[..lane.len()]);
    }
    // Every pair of different values adds one to exactly one rank.
    let pairs = values.len() * values.len().saturating_sub(1) / 2;
    let ordered = rank.iter().fold(0_u32, |sum, &rank| sum.wrapping_add(rank));
    if ordered as usize == pairs { Ties::Distinct } else { Ties::Tied }
}

/// Sorts one integer per vertex: the value's order-preserving bits above the vertex.
fn by_sorting(values: &[f32], scratch: &mut RankScratch, rank: &mut [u32]) -> Ties {
    spread_keys(values, scratch);
    let keys = &mut scratch.keys[..];
    if !insertion_sort(keys, MOVES_PER_VERTEX * values.len()) {
        keys.sort_unstable();
    }
    let (mut previous, mut current, mut groups) = (u32::MAX, 0, 0_usize);
    for (position, &key) in keys.iter().enumerate() {
        let bits = (key >> 32) as u32;
        let larger = bits != previous;
        current = if larger { position as u32 } else { current };
        groups = groups.wrapping_add(usize::from(larger));
        previous = bits;
        rank[key as u32 as usize] = current;
    }
    if groups == values.len() { Ties::Distinct } else { Ties::Tied }
}

/// Fills `scratch.keys` in nearly sorted order: a counting sort by the value's place between minimum and maximum.
/// That place never decreases as values grow, whatever the rounding, so only neighbours can be out of order.
fn spread_keys(values: &[f32], scratch: &mut RankScratch) {
    let RankScratch { keys, slot, bucket } = scratch;
    let slots = 2 * values.len();
    keys.resize(values.len(), 0);
    slot.resize(values.len(), 0);
    bucket.clear();
    bucket.resize(slots, 0);
    let (low, high) = values.iter().fold((f32::MAX, f32::MIN), |(low, high), &value| {
        (if value < low { value } else { low }, if value > high { value } else { high })
    });
    let last = slots.saturating_sub(1) as u32;
    // The range may be zero or overflow: casts saturate, so such values only share a slot.
    let scale = last as f32 / (high - low);
    for (&value, slot) in values.iter().zip(slot.iter_mut()) {
        *slot = (((value - low) * scale) as u32).min(last);
        let count = &mut bucket[*slot as usize];
        *count = count.wrapping_add(1);
    }
    running_starts(bucket);
    for (vertex, (&value, &slot)) in values.iter().zip(slot.iter()).enumerate() {
        let place = &mut bucket[slot as usize];
        keys[*place as usize] = u64::from(ordered_bits(value)) << 32 | vertex as u64;
        *place = place.wrapping_add(1);
    }
}

/// Turns counts into the start of each group.
#[inline]
pub(crate) fn running_starts(counts: &mut [u32]) {
    let mut start = 0_u32;
    for count in counts {
        start = start.wrapping_add(std::mem::replace(count, start));
    }
}

/// Sorts `keys`, or gives up (with all keys still there) when they need more than `budget` moves.
fn insertion_sort(keys: &mut [u64], mut budget: usize) -> bool {
    for end in 1..keys.len() {
        let key = keys[end];
        let mut hole = end;
        while hole > 0 && keys[hole - 1] > key {
            keys[hole] = keys[hole - 1];
            hole -= 1;
        }
        keys[hole] = key;
        let Some(rest) = budget.checked_sub(end - hole) else { return false };
        budget = rest;
    }
    true
}

/// Maps finite floats to integers of the same order; adding zero turns -0.0 into 0.0.
fn ordered_bits(value: f32) -> u32 {
    let bits = (value + 0.0).to_bits();
    bits ^ (((bits as i32) >> 31) as u32 | 0x8000_0000)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Ranked = (Ties, Vec<u32>);

    fn both(values: &[f32]) -> (Ranked, Ranked) {
        let (mut counted, mut sorted) = (vec![0; values.len()], vec![0; values.len()]);
        let by_counting = by_counting(values, &mut counted);
        let by_sorting = by_sorting(values, &mut RankScratch::default(), &mut sorted);
        ((by_counting, counted), (by_sorting, sorted))
    }

    #[test]
    fn equal_values_share_a_rank_and_negative_zero_is_zero() {
        let (counted, sorted) = both(&[0.0, 2.5, -0.0, -1.0, 2.5, f32::MIN_POSITIVE]);
        assert_eq!(counted, (Ties::Tied, vec![1, 4, 1, 0, 4, 3]));
        assert_eq!(sorted, counted);
    }

    #[test]
    fn ranges_that_overflow_vanish_or_cluster_are_ranked_like_any_other() {
        let tiny = f32::from_bits(1);
        let mut clustered: Vec<f32> = (0..300).map(|i| ((i * 7919) % 300) as f32 * 1e-6).collect();
        clustered.push(1e30);
        for values in
            [vec![f32::MAX, f32::MIN, 0.0, 1.0], vec![tiny, 0.0, tiny, -tiny], vec![3.0; 5], clustered]
        {
            let (counted, sorted) = both(&values);
            assert_eq!(sorted, counted);
        }
    }

    proptest! {
        #[test]
        fn counting_and_sorting_rank_alike(values in prop::collection::vec(any::<u32>(), 0..200)) {
            let values: Vec<f32> =
                values.into_iter().map(f32::from_bits).filter(|value| value.is_finite()).collect();
            let (counted, sorted) = both(&values);
            prop_assert_eq!(counted, sorted);
        }

        #[test]
        fn counting_and_sorting_rank_ties_alike(values in prop::collection::vec(-3_i8..3, 0..200)) {
            let values: Vec<f32> = values.into_iter().map(f32::from).collect();
            let (counted, sorted) = both(&values);
            prop_assert_eq!(counted, sorted);
        }

        #[test]
        fn insertion_sort_keeps_every_key_even_if_it_gives_up(
            mut keys in prop::collection::vec(any::<u64>(), 0..60), budget in 0_usize..400
        ) {
            let mut expected = keys.clone();
            expected.sort_unstable();
            if !insertion_sort(&mut keys, budget) {
                keys.sort_unstable();
            }
            prop_assert_eq!(keys, expected);
        }
    }
}
