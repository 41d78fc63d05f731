//! Ranks with ties: equal values share the mean of the ranks they take up.

/// Ranks from 1, in the order of the values given; smaller values have smaller ranks. Values no further apart
/// than `tolerance` are equal. Also returns the sizes of the groups of equal values.
pub fn ranks(values: &[f64], tolerance: f64) -> (Vec<f64>, Vec<usize>) {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut groups = Vec::new();
    let mut start = 0;
    while start < order.len() {
        let same = |at: &&usize| values[**at] - values[order[start]] <= tolerance;
        let size = order[start..].iter().take_while(same).count();
        for at in &order[start..start + size] {
            ranks[*at] = start as f64 + (size as f64 + 1.0) / 2.0;
        }
        groups.push(size);
        start += size;
    }
    (ranks, groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_their_mean_rank() {
        assert_eq!(ranks(&[0.3, 0.1, 0.3, 0.2], 0.0), (vec![3.5, 1.0, 3.5, 2.0], vec![1, 1, 2]));
        assert_eq!(ranks(&[], 0.0), (vec![], vec![]));
    }

    #[test]
    fn values_within_the_tolerance_are_equal() {
        assert_eq!(ranks(&[0.1 + 0.2, 0.3], 1e-12).0, [1.5, 1.5]);
    }
}
