//! Matrices of kernel values, one row and one column a graph of the data set. Owns their size limit; which values they
//! hold is the business of the kernels.

use crate::error::{Result, TrainError};

/// Graphs up to which a matrix is made: 512 MB for each matrix, of which there are at most three at a time.
pub const MOST_GRAPHS: usize = 8_000;

/// A symmetric matrix of kernel values.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    size: usize,
    values: Vec<f64>,
}

impl Gram {
    /// All values 0.
    pub fn zeros(size: usize) -> Result<Self> {
        if size > MOST_GRAPHS {
            let text = format!(
                "a kernel compares all {size} graphs with each other, and more than {MOST_GRAPHS} do not fit; \
                 use a network, such as `model: gin`"
            );
            return Err(TrainError::Data(text));
        }
        Ok(Self { size, values: vec![0.0; size * size] })
    }

    /// A matrix from a function of two graphs, the second not after the first.
    pub fn from_fn(size: usize, value: impl Fn(usize, usize) -> f64) -> Result<Self> {
        let mut gram = Self::zeros(size)?;
        for row in 0..size {
            for column in 0..=row {
                gram.values[row * size + column] = value(row, column);
            }
        }
        gram.mirror();
        Ok(gram)
    }

    /// Number of graphs.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The values of one graph with all graphs.
    pub fn row(&self, graph: usize) -> &[f64] {
        &self.values[graph * self.size..][..self.size]
    }

    /// The value of two graphs.
    pub fn get(&self, left: usize, right: usize) -> f64 {
        self.values[left * self.size + right]
    }

    /// The part of a row up to the diagonal, to add to; [`Gram::normalised`] mirrors it.
    pub(super) fn lower_row(&mut self, graph: usize) -> &mut [f64] {
        &mut self.values[graph * self.size..][..=graph]
    }

    /// Copies the lower triangle to the upper one.
    fn mirror(&mut self) {
        for row in 0..self.size {
            for column in 0..row {
                self.values[column * self.size + row] = self.values[row * self.size + column];
            }
        }
    }

    /// The lower triangle as a whole matrix in which every graph has the value 1 with itself:
    /// k(x, y) / sqrt(k(x, x) k(y, y)). Large graphs then weigh as much as small ones.
    pub fn normalised(&self) -> Self {
        let scale = |graph: usize| {
            let own = self.get(graph, graph);
            if own > 0.0 { 1.0 / own.sqrt() } else { 0.0 }
        };
        let scales: Vec<f64> = (0..self.size).map(scale).collect();
        let mut made = self.clone();
        for row in 0..self.size {
            let lower = made.lower_row(row).iter_mut().zip(&scales);
            lower.for_each(|(value, scale)| *value *= scale * scales[row]);
        }
        made.mirror();
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normalised_matrix_is_symmetric_with_ones_on_its_diagonal() {
        let gram = Gram::from_fn(3, |row, column| ((row + 1) * (column + 1)) as f64).unwrap();
        assert_eq!(gram.row(1), [2.0, 4.0, 6.0]);
        let normalised = gram.normalised();
        (0..3).for_each(|row| {
            (0..3).for_each(|column| assert!((normalised.get(row, column) - 1.0).abs() < 1e-12));
        });
    }

    #[test]
    fn a_graph_without_any_value_stays_zero_instead_of_becoming_nan() {
        let gram = Gram::zeros(2).unwrap().normalised();
        assert_eq!(gram.row(0), [0.0, 0.0]);
    }

    #[test]
    fn too_many_graphs_are_refused_before_the_memory_is_asked_for() {
        let error = Gram::zeros(41_127).unwrap_err();
        assert_eq!(error.class(), togl_sweeps::FailureClass::Data);
        assert!(error.to_string().contains("41127 graphs"), "{error}");
    }
}
