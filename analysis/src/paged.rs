//! Finished folds that come one by one, on their way to a frame: a page of rows at a time becomes columns, so that a million folds
//! are never there as rows. The frame is that of all rows at once. Folds of programs wait for the last of them, because only
//! all values of a setting that a program declares say what it holds.

use polars::prelude::DataFrame;

use crate::error::Result;
use crate::frame::{FoldFrame, FoldRow};

/// Rows that become columns together.
const PAGE: usize = 20_000;

/// Folds that were handed in so far.
#[derive(Debug, Default)]
pub struct PagedFolds {
    page: Vec<FoldRow>,
    parts: Vec<DataFrame>,
}

impl PagedFolds {
    /// Takes in one more.
    pub fn push(&mut self, row: FoldRow) -> Result<()> {
        let waits = row.config.program.is_some();
        self.page.push(row);
        if waits || self.page.len() < PAGE { Ok(()) } else { self.turn() }
    }

    /// The frame of all of them.
    pub fn frame(mut self) -> Result<FoldFrame> {
        if self.parts.is_empty() {
            return FoldFrame::from_rows(self.page);
        }
        self.turn()?;
        let mut data = self.parts.remove(0);
        for part in self.parts {
            data.vstack_mut(&part)?;
        }
        data.rechunk_mut(); // whoever asks for a row would look for its part otherwise
        FoldFrame::from_data(&data, "the results")
    }

    fn turn(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.page);
        if !rows.is_empty() {
            self.parts.push(FoldFrame::from_rows(rows)?.data().clone());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::error::Error;
    use crate::test_folds::{fold, frame, trial};

    /// Folds of several trials, the last trial first, in pages of seven.
    fn paged(rows: &[FoldRow]) -> Result<FoldFrame> {
        let mut folds = PagedFolds::default();
        for row in rows {
            folds.push(row.clone())?;
            if folds.page.len() == 7 {
                folds.turn()?;
            }
        }
        folds.frame()
    }

    fn rows() -> Vec<FoldRow> {
        let of = |position: u32| {
            let config = trial("DD", Backbone::Gcn, position + 1);
            (0..5).map(move |split| fold(position.into(), &config, split, f64::from(position + split) / 20.0))
        };
        (0..6).rev().flat_map(of).collect()
    }

    #[test]
    fn pages_make_the_frame_that_all_rows_make_in_whatever_order_they_come() {
        for count in [0, 1, 7, 8, 14, 30] {
            let rows = &rows()[..count];
            assert_eq!(paged(rows).expect("a frame"), frame(rows.iter().cloned()), "{count}");
        }
    }

    #[test]
    fn a_fold_on_two_pages_is_refused() {
        let mut rows = rows();
        rows.push(rows[0].clone());
        assert!(matches!(paged(&rows), Err(Error::DuplicateFolds { .. })));
    }
}
