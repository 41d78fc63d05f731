//! Structure-only features: random rows that replace the real node features, so that a model can only use the
//! graph. It owns which draws change with the epoch: training and validation do, test does not, so a trained
//! model has one test result.

use crate::streams::{Purpose, RandomStream, Stage};

/// Random features per node.
pub const STRUCTURE_ONLY_WIDTH: usize = 3;

/// Fills the rows of one graph with standard normal variates; the buffer holds `STRUCTURE_ONLY_WIDTH`
/// values per node. Draws for [`Stage::Test`] do not depend on the epoch.
pub fn fill_structure_only(seed: u64, split: u64, stage: Stage, epoch: u64, graph: u64, buffer: &mut [f32]) {
    let epoch = match stage {
        Stage::Training | Stage::Validation => epoch,
        Stage::Test => 0,
    };
    RandomStream::new(seed, split, Purpose::Features(stage), epoch, graph).fill_standard_normal(buffer);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(stage: Stage, epoch: u64, graph: u64) -> Vec<f32> {
        let mut buffer = vec![0.0; 30 * STRUCTURE_ONLY_WIDTH];
        fill_structure_only(421, 2, stage, epoch, graph, &mut buffer);
        buffer
    }

    #[test]
    fn training_and_validation_change_with_the_epoch_and_test_does_not() {
        assert_ne!(drawn(Stage::Training, 0, 5), drawn(Stage::Training, 1, 5));
        assert_ne!(drawn(Stage::Validation, 0, 5), drawn(Stage::Validation, 1, 5));
        assert_eq!(drawn(Stage::Test, 0, 5), drawn(Stage::Test, 1, 5));
    }

    #[test]
    fn the_same_graph_in_the_same_epoch_gets_the_same_features_and_another_graph_others() {
        assert_eq!(drawn(Stage::Training, 3, 5), drawn(Stage::Training, 3, 5));
        assert_ne!(drawn(Stage::Training, 3, 5), drawn(Stage::Training, 3, 6));
        assert_ne!(drawn(Stage::Training, 3, 5), drawn(Stage::Validation, 3, 5));
    }

    #[test]
    fn values_are_the_same_on_every_machine() {
        let bytes: Vec<u8> =
            drawn(Stage::Validation, 9, 100).iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(blake3::hash(&bytes).to_hex()[..16], *"e00a5bd1f69a7b65");
    }
}
