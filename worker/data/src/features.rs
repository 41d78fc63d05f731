//! Node features that a reader can be asked for: what the files hold, or what the graph itself gives. It owns
//! the widths and the arithmetic; reading the files and deciding what exists is the reader's part.

use serde::{Deserialize, Serialize};

/// Which node features a data set read from files gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FeatureChoice {
    /// As in the published runs: attributes where there are some, else one-hot node labels, else a constant
    /// 1.
    #[default]
    AsPublished,
    /// The node attributes.
    Attributes,
    /// The node labels, one-hot from the smallest to the largest label.
    NodeLabels,
    /// The degree, one-hot; degrees above the largest share its column.
    DegreeOneHot {
        /// The last degree that has a column; the width is one more.
        largest: u32,
    },
    /// The degree less its mean over all nodes, divided by its standard deviation.
    DegreeNormalised,
    /// The number 1.
    Constant,
    /// The mean colour of a superpixel without its position: what published runs on images call "without
    /// node attributes".
    Colour,
}

/// Row-major features of all nodes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FeatureMatrix {
    pub(crate) width: usize,
    pub(crate) values: Vec<f32>,
}

/// A matrix with more values than this is a mistake in a label file, not a feature.
const MOST_VALUES: usize = 1 << 28;
/// So is a wider one, however few the nodes.
const MOST_COLUMNS: usize = 1 << 16;

impl FeatureMatrix {
    pub(crate) fn constant(nodes: usize) -> FeatureMatrix {
        FeatureMatrix { width: 1, values: vec![1.0; nodes] }
    }

    /// One row per column number; `Err` holds the number of values where they would be too many.
    pub(crate) fn one_hot(columns: &[u32], width: usize) -> Result<FeatureMatrix, usize> {
        let count = columns.len().saturating_mul(width);
        if count > MOST_VALUES || width > MOST_COLUMNS {
            return Err(count);
        }
        let mut values = vec![0.0; count];
        for (row, column) in values.chunks_exact_mut(width.max(1)).zip(columns) {
            row[*column as usize] = 1.0;
        }
        Ok(FeatureMatrix { width, values })
    }

    /// Degrees above `largest` share the last column.
    pub(crate) fn degree_one_hot(degrees: &[u32], largest: u32) -> Result<FeatureMatrix, usize> {
        let columns: Vec<u32> = degrees.iter().map(|degree| (*degree).min(largest)).collect();
        FeatureMatrix::one_hot(&columns, largest as usize + 1)
    }

    /// Zero where all degrees are equal.
    pub(crate) fn degree_normalised(degrees: &[u32]) -> FeatureMatrix {
        let count = degrees.len() as f64;
        let mean = degrees.iter().map(|degree| f64::from(*degree)).sum::<f64>() / count;
        let squares = degrees.iter().map(|degree| (f64::from(*degree) - mean) * (f64::from(*degree) - mean));
        let deviation = (squares.sum::<f64>() / count).sqrt();
        let scale = if deviation > 0.0 { 1.0 / deviation } else { 0.0 };
        let values = degrees.iter().map(|degree| ((f64::from(*degree) - mean) * scale) as f32).collect();
        FeatureMatrix { width: 1, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_hot_rows_have_a_single_one_in_their_column() {
        let matrix = FeatureMatrix::one_hot(&[2, 0], 3).expect("small");
        assert_eq!(matrix, FeatureMatrix { width: 3, values: vec![0.0, 0.0, 1.0, 1.0, 0.0, 0.0] });
    }

    #[test]
    fn a_matrix_that_would_fill_the_memory_is_refused() {
        assert_eq!(FeatureMatrix::one_hot(&[0; 1024], 1 << 21), Err(1 << 31));
        assert!(FeatureMatrix::degree_one_hot(&[1; 1024], u32::MAX).is_err());
        assert!(FeatureMatrix::one_hot(&[0], 1 << 17).is_err());
    }

    #[test]
    fn large_degrees_share_the_last_column() {
        let matrix = FeatureMatrix::degree_one_hot(&[1, 2, 9], 2).expect("small");
        assert_eq!((matrix.width, &matrix.values[3..]), (3, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0][..]));
    }

    #[test]
    fn normalised_degrees_have_mean_zero_and_variance_one() {
        let values = FeatureMatrix::degree_normalised(&[1, 1, 4, 6]).values;
        assert!(values.iter().sum::<f32>().abs() < 1e-6);
        assert!((values.iter().map(|value| value * value).sum::<f32>() - 4.0).abs() < 1e-5);
        assert_eq!(FeatureMatrix::degree_normalised(&[3, 3]).values, [0.0, 0.0]);
    }
}
