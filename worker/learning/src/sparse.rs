//! Sparse matrices with their transposes, for message passing, pooling and every other sum over parts of a batch.
//! Owns how they are built from arcs and offsets; the products live behind `native`. Values are constants: nothing
//! is differentiated through a matrix.

use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::native::{self, Rows};

impl Rows {
    fn upload(rows: &HostRows, device: Device) -> Self {
        let values = rows.values.as_ref().map(|values| Tensor::from_slice(values).to_device(device));
        Self {
            row_start: Tensor::from_slice(&rows.row_start).to_device(device),
            columns: Tensor::from_slice(&rows.columns).to_device(device),
            values,
            compressed: None,
        }
    }

    /// Adds the tensor of compressed rows where the device multiplies with those.
    fn compress(&mut self, width: i64) -> Result<()> {
        if self.row_start.device().is_cuda() {
            let ones = || Tensor::ones(self.columns.size(), (Kind::Float, Device::Cpu));
            let there = self.columns.device();
            let values = self.values.as_ref().map_or_else(|| ones().to_device(there), Tensor::shallow_clone);
            self.compressed = Some(native::compressed_rows(&self.row_start, &self.columns, &values, width)?);
        }
        Ok(())
    }

    fn share(&self) -> Self {
        Self {
            row_start: self.row_start.shallow_clone(),
            columns: self.columns.shallow_clone(),
            values: self.values.as_ref().map(Tensor::shallow_clone),
            compressed: self.compressed.as_ref().map(Tensor::shallow_clone),
        }
    }
}

/// Compressed rows in plain vectors.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HostRows {
    pub row_start: Vec<i64>,
    pub columns: Vec<i64>,
    /// Absent: every entry is 1.
    pub values: Option<Vec<f32>>,
}

/// A sparse matrix and its transpose.
#[derive(Debug)]
pub struct SparseMatrix {
    forward: Rows,
    backward: Rows,
}

impl SparseMatrix {
    pub(crate) fn new(forward: &HostRows, backward: &HostRows, device: Device) -> Result<Self> {
        let (height, width) = (forward.row_start.len() as i64 - 1, backward.row_start.len() as i64 - 1);
        let mut uploaded = Rows::upload(forward, device);
        uploaded.compress(width)?;
        if forward == backward {
            return Ok(Self { backward: uploaded.share(), forward: uploaded });
        }
        let mut backward = Rows::upload(backward, device);
        backward.compress(height)?;
        Ok(Self { forward: uploaded, backward })
    }

    /// Both halves as tensors of compressed rows, on devices that multiply with those.
    pub(crate) fn compressed(&self) -> Option<[&Tensor; 2]> {
        Some([self.forward.compressed.as_ref()?, self.backward.compressed.as_ref()?])
    }

    /// The matrix with one entry 1 in every row, at these columns of `width`: its product gathers rows.
    pub(crate) fn gather(columns: &[i64], width: usize, device: Device) -> Result<Self> {
        let row_start: Vec<i64> = (0..=columns.len() as i64).collect();
        let forward = HostRows { row_start, columns: columns.to_vec(), values: None };
        let backward = rows_of(width, columns.iter().copied().zip(0i64..));
        Self::new(&forward, &backward, device)
    }

    /// The transposed matrix, sharing its memory.
    pub fn transposed(&self) -> Self {
        Self { forward: self.backward.share(), backward: self.forward.share() }
    }

    /// The product with a dense matrix.
    pub fn product(&self, x: &Tensor) -> Result<Tensor> {
        native::sparse_product(&self.forward, &self.backward, x)
    }

    /// The column of every entry.
    #[cfg(test)]
    pub(crate) fn columns(&self) -> &Tensor {
        &self.forward.columns
    }
}

/// Groups (row, column) entries by row, stably, with a counting sort.
pub(crate) fn rows_of(rows: usize, entries: impl Iterator<Item = (i64, i64)> + Clone) -> HostRows {
    let mut row_start = vec![0i64; rows + 1];
    let mut count = 0;
    for (row, _) in entries.clone() {
        row_start[row as usize + 1] += 1;
        count += 1;
    }
    for row in 0..rows {
        row_start[row + 1] += row_start[row];
    }
    let mut next = row_start.clone();
    let mut columns = vec![0i64; count];
    for (row, column) in entries {
        let slot = &mut next[row as usize];
        columns[*slot as usize] = column;
        *slot += 1;
    }
    HostRows { row_start, columns, values: None }
}

impl HostRows {
    /// Entries (row, column) in storage order.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (i64, i64)> + Clone + '_ {
        self.row_start.windows(2).zip(0i64..).flat_map(|(bounds, row)| {
            self.columns[bounds[0] as usize..bounds[1] as usize].iter().map(move |column| (row, *column))
        })
    }

    /// The transposed matrix, columns ascending within each row; only for matrices of ones.
    pub(crate) fn transposed(&self, columns: usize) -> Self {
        rows_of(columns, self.entries().map(|(row, column)| (column, row)))
    }

    /// Entries in each row.
    pub(crate) fn row_lengths(&self) -> impl Iterator<Item = i64> + '_ {
        self.row_start.windows(2).map(|bounds| bounds[1] - bounds[0])
    }
}

/// Consecutive rows of a dense matrix that belong together: the nodes, or the kept edges, of each graph.
#[derive(Debug)]
pub struct Segments {
    offsets: Vec<usize>,
    sum: SparseMatrix,
    mean: SparseMatrix,
}

impl Segments {
    /// Segment `s` is `offsets[s]..offsets[s + 1]`.
    pub fn new(offsets: Vec<usize>, device: Device) -> Result<Self> {
        let members = offsets.last().copied().unwrap_or(0);
        let row_start: Vec<i64> = offsets.iter().map(|offset| *offset as i64).collect();
        let mut forward = HostRows { row_start, columns: (0..members as i64).collect(), values: None };
        let mut backward = HostRows {
            row_start: (0..=members as i64).collect(),
            columns: forward.entries().map(|(segment, _)| segment).collect(),
            values: None,
        };
        let sum = SparseMatrix::new(&forward, &backward, device)?;
        let shares: Vec<f32> = forward.row_lengths().flat_map(|n| vec![1.0 / n as f32; n as usize]).collect();
        forward.values = Some(shares.clone());
        backward.values = Some(shares);
        let mean = SparseMatrix::new(&forward, &backward, device)?;
        Ok(Self { offsets, sum, mean })
    }

    /// First member of each segment, and the number of members.
    pub fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Sum of the rows of each segment; 0 for an empty one.
    pub fn sum(&self, x: &Tensor) -> Result<Tensor> {
        self.sum.product(x)
    }

    /// Mean of the rows of each segment; 0 for an empty one.
    pub fn mean(&self, x: &Tensor) -> Result<Tensor> {
        self.mean.product(x)
    }

    /// Largest value of each column in each segment; 0 for an empty one. The gradient goes to the first largest.
    pub fn max(&self, x: &Tensor) -> Result<Tensor> {
        let (rows, width) = x.size2()?;
        let host = x.detach().to_device(Device::Cpu).to_kind(Kind::Float).contiguous();
        let values = Vec::<f32>::try_from(host.view([-1]))?;
        let mut winners = vec![rows; (self.offsets.len() - 1) * width as usize];
        for (segment, bounds) in self.offsets.windows(2).enumerate() {
            let winners = &mut winners[segment * width as usize..][..width as usize];
            for row in bounds[0]..bounds[1] {
                for (column, winner) in winners.iter_mut().enumerate() {
                    let value = |row: usize| values[row * width as usize + column];
                    if *winner == rows || value(row) > value(*winner as usize) {
                        *winner = row as i64;
                    }
                }
            }
        }
        let index = Tensor::from_slice(&winners).view([-1, width]).to_device(x.device());
        let none = Tensor::zeros([1, width], (x.kind(), x.device()));
        Ok(Tensor::cat(&[x, &none], 0).f_gather(0, &index, false)?)
    }

    /// Row `s` of a matrix for every member of segment `s`.
    pub fn spread(&self, per_segment: &Tensor) -> Result<Tensor> {
        self.sum.transposed().product(per_segment)
    }

    /// The segment of every member.
    #[cfg(test)]
    pub(crate) fn of_members(&self) -> &Tensor {
        &self.sum.backward.columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(tensor: &Tensor) -> Vec<f64> {
        Vec::<f64>::try_from(tensor.detach().to_kind(Kind::Double).contiguous().view([-1])).unwrap()
    }

    fn dense(kind: Kind) -> Tensor {
        Tensor::from_slice(&[1.0, -2.0, 3.0, 4.0, 0.5, 6.0])
            .to_kind(kind)
            .view([3, 2])
            .set_requires_grad(true)
    }

    #[test]
    fn the_fast_and_the_general_product_agree_with_a_dense_one_in_value_and_gradient() {
        let mut forward = rows_of(2, [(0i64, 1i64), (0, 2), (1, 0)].into_iter());
        let mut backward = forward.transposed(3);
        forward.values = Some(vec![0.5, 2.0, -1.0]);
        backward.values = Some(vec![-1.0, 0.5, 2.0]);
        let matrix = SparseMatrix::new(&forward, &backward, Device::Cpu).unwrap();
        for kind in [Kind::Float, Kind::Double] {
            let x = dense(kind);
            let out = matrix.product(&x).unwrap();
            assert_eq!(values(&out), [1.5 + 1.0, 2.0 + 12.0, -1.0, 2.0]);
            (out * Tensor::from_slice(&[1.0, 2.0, 3.0, 4.0]).view([2, 2])).sum(kind).backward();
            assert_eq!(values(&x.grad()), [-3.0, -4.0, 0.5, 1.0, 2.0, 4.0]);
        }
    }

    #[test]
    fn an_operand_of_another_height_is_refused() {
        let matrix = SparseMatrix::gather(&[0, 1, 1], 2, Device::Cpu).unwrap();
        let error = matrix.product(&dense(Kind::Float)).unwrap_err().to_string();
        assert!(error.contains("the matrix has 2 columns"), "{error}");
    }

    #[test]
    fn segments_reduce_and_spread_and_an_empty_one_gives_zero() {
        let segments = Segments::new(vec![0, 2, 2, 3], Device::Cpu).unwrap();
        let x = dense(Kind::Float);
        assert_eq!(values(&segments.sum(&x).unwrap()), [4.0, 2.0, 0.0, 0.0, 0.5, 6.0]);
        assert_eq!(values(&segments.mean(&x).unwrap()), [2.0, 1.0, 0.0, 0.0, 0.5, 6.0]);
        let most = segments.max(&x).unwrap();
        assert_eq!(values(&most), [3.0, 4.0, 0.0, 0.0, 0.5, 6.0]);
        most.sum(Kind::Float).backward();
        assert_eq!(values(&x.grad()), [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]);
        let spread = segments.spread(&Tensor::from_slice(&[1f32, 2.0, 3.0]).view([3, 1])).unwrap();
        assert_eq!(values(&spread), [1.0, 1.0, 3.0]);
        assert_eq!(values(segments.of_members()), [0.0, 0.0, 2.0]);
    }
}
