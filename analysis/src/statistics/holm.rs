//! Holm's step-down correction: what a p-value is worth when several were computed.

/// The adjusted p-values, in the order given: comparing them with α keeps the chance of any false alarm below α.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|a, b| p_values[*a].total_cmp(&p_values[*b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut highest: f64 = 0.0;
    for (rank, at) in order.into_iter().enumerate() {
        // Never less than a smaller p-value was adjusted to.
        highest = highest.max((p_values.len() - rank) as f64 * p_values[at]).min(1.0);
        adjusted[at] = highest;
    }
    adjusted
}
