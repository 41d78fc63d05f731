//! Reduces one boundary matrix over Z/2, column by column.
//! Owns the algebra only: rows and columns are positions in an order that the caller made, columns must come in
//! that order, and the caller leaves out columns that it knows to be zero (clearing).

const NONE: u32 = u32::MAX;

/// The state of one reduction: finished columns and the column in work.
#[derive(Debug)]
pub(crate) struct Reduction {
    /// The column in work, one bit a row.
    work: Vec<u64>,
    /// For each row, the finished column that has its lowest entry there.
    column_of: Vec<u32>,
    /// Rows of all finished columns, one after the other.
    rows: Vec<u32>,
    /// Where each finished column starts in `rows`; one more at the end.
    starts: Vec<usize>,
}

impl Reduction {
    /// An empty matrix with `rows` rows.
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            work: vec![0; rows.div_ceil(64)],
            column_of: vec![NONE; rows],
            rows: Vec::new(),
            starts: vec![0],
        }
    }

    /// Reduces the column with these rows by all columns before it.
    ///
    /// Returns its pivot, the row that it pairs with, or nothing if it reduces to zero.
    pub(crate) fn add_column(&mut self, rows: impl Iterator<Item = u32>) -> Option<u32> {
        let mut top = 0;
        for row in rows {
            let word = row as usize / 64;
            self.work[word] ^= 1 << (row % 64);
            top = top.max(word + 1);
        }
        loop {
            let pivot = self.pivot(&mut top)?;
            match self.column_of[pivot as usize] {
                NONE => {
                    self.finish(pivot, top);
                    return Some(pivot);
                }
                column => self.add_finished(column as usize),
            }
        }
    }

    /// The largest row of the column in work; it only moves down, and `top` remembers how far.
    fn pivot(&self, top: &mut usize) -> Option<u32> {
        while *top > 0 {
            let word = self.work[*top - 1];
            if word != 0 {
                return Some((*top as u32 - 1) * 64 + 63 - word.leading_zeros());
            }
            *top -= 1;
        }
        None
    }

    fn add_finished(&mut self, column: usize) {
        for &row in &self.rows[self.starts[column]..self.starts[column + 1]] {
            self.work[row as usize / 64] ^= 1 << (row % 64);
        }
    }

    /// Stores the column in work and leaves zeros behind.
    fn finish(&mut self, pivot: u32, top: usize) {
        self.column_of[pivot as usize] = (self.starts.len() - 1) as u32;
        for (index, word) in self.work[..top].iter_mut().enumerate() {
            while *word != 0 {
                self.rows.push(index as u32 * 64 + word.trailing_zeros());
                *word &= *word - 1;
            }
        }
        self.starts.push(self.rows.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triangle_pairs_two_edges_and_leaves_a_cycle() {
        let mut reduction = Reduction::new(3);
        assert_eq!(reduction.add_column([0, 1].into_iter()), Some(1));
        assert_eq!(reduction.add_column([1, 2].into_iter()), Some(2));
        assert_eq!(reduction.add_column([0, 2].into_iter()), None);
    }

    #[test]
    fn a_column_that_vanishes_leaves_no_trace_in_the_next() {
        let mut reduction = Reduction::new(130);
        assert_eq!(reduction.add_column([3, 129].into_iter()), Some(129));
        assert_eq!(reduction.add_column([3, 129].into_iter()), None);
        assert_eq!(reduction.add_column([5, 129].into_iter()), Some(5));
        assert_eq!(reduction.add_column([3, 5, 64].into_iter()), Some(64));
    }

    #[test]
    fn an_empty_column_is_zero() {
        assert_eq!(Reduction::new(0).add_column(std::iter::empty()), None);
    }
}
