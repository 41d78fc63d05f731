//! One read of a store: whatever somebody wants to know of sweeps, page by page, all of it from one state. Says in which
//! order; who asked takes the pages where they are wanted.

use std::collections::{HashSet, VecDeque};

use togl_sweeps::{FoldKey, SweepName, nearest};

use super::history::Acted;
use super::replicates::{self, Replicate};
use super::{
    FoldFilter, FoldQuery, Reader, ResultKind, ResultQuery, ResultRow, StoreError, StoredFold, StoredSweep,
};

/// Folds in one page of a listing.
const PAGE: u64 = 1_000;

/// What somebody wants to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Of this sweep; of all if there is none.
    pub sweep: Option<SweepName>,
    /// The results that count.
    pub results: bool,
    /// Only those of these folds; all of the sweep if none is named.
    pub results_of: Vec<FoldKey>,
    /// Their learning curves too.
    pub curves: bool,
    /// Further results.
    pub replicates: bool,
    /// These folds.
    pub folds: Option<FoldsWanted>,
}

/// Which folds of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoldsWanted {
    /// What they are like.
    pub filter: FoldFilter,
    /// Folds that fit and are left out before the first.
    pub skip: u64,
    /// Folds at the most; all if there is none.
    pub limit: Option<u64>,
}

/// Something that a store knows. The facts of a sweep follow the sweep itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// A sweep.
    Sweep(StoredSweep),
    /// A result that counts, in the order of the sweep's folds.
    Result(Box<ResultRow>),
    /// How many folds there are to list, and how many digits tell their trials apart; before the first of them.
    Folds {
        /// All that fit, shown or not.
        total: u64,
        /// Enough for every trial of the store.
        digits: usize,
    },
    /// A fold, in the order of the sweep.
    Fold(Box<StoredFold>),
    /// A further result.
    Replicate(Box<Replicate>),
}

/// What comes next of a sweep.
#[derive(Debug, Clone, Copy)]
enum Next {
    Sweep,
    Results { from: u64 },
    Count,
    Folds { from: u64, skip: u64, left: u64 },
    Replicates { from: u64 },
}

/// The sweep of this name; otherwise the nearest name is told.
pub fn find_sweep(reader: &dyn Reader, name: &SweepName) -> Result<StoredSweep, StoreError> {
    let mut sweeps = reader.sweeps()?;
    match sweeps.iter().position(|sweep| sweep.name == *name) {
        Some(at) => Ok(sweeps.swap_remove(at)),
        None => {
            let hint = nearest::hint(name.as_str(), sweeps.iter().map(|sweep| sweep.name.as_str()));
            Err(StoreError::UnknownSweep { name: name.to_string(), hint })
        }
    }
}

/// What people did to a sweep that there is, or at all.
pub fn acts(reader: &dyn Reader, sweep: Option<&SweepName>) -> Result<Vec<Acted>, StoreError> {
    if let Some(sweep) = sweep {
        find_sweep(reader, sweep)?;
    }
    reader.acts(sweep)
}

/// A read that goes on.
pub struct Reading {
    reader: Box<dyn Reader>,
    wanted: Wanted,
    /// Sweeps to come; the first one is being read.
    sweeps: VecDeque<StoredSweep>,
    next: Next,
    /// Folds may be in several sweeps; their further results are told once.
    told: HashSet<(FoldKey, ResultKind, u32)>,
}

impl Reading {
    /// Begins to read. A sweep that is not there is refused, with the nearest name.
    pub fn new(reader: Box<dyn Reader>, wanted: Wanted) -> Result<Self, StoreError> {
        let sweeps: VecDeque<StoredSweep> = match &wanted.sweep {
            Some(name) => [find_sweep(reader.as_ref(), name)?].into(),
            None => reader.sweeps()?.into(),
        };
        Ok(Self { reader, wanted, sweeps, next: Next::Sweep, told: HashSet::new() })
    }

    /// The next page, which may be empty; none after the last.
    pub fn page(&mut self) -> Result<Option<Vec<Fact>>, StoreError> {
        let Some(sweep) = self.sweeps.front() else { return Ok(None) };
        let (facts, next) = match self.next {
            Next::Sweep => (vec![Fact::Sweep(sweep.clone())], Some(Next::Results { from: 0 })),
            Next::Results { .. } if self.wanted.results && !self.wanted.results_of.is_empty() => {
                (self.results_of()?, Some(Next::Count))
            }
            Next::Results { from } if self.wanted.results => self.results(&sweep.name, from)?,
            Next::Results { .. } => (Vec::new(), Some(Next::Count)),
            Next::Count => self.count(&sweep.name)?,
            Next::Folds { from, skip, left } => self.folds(&sweep.name, from, skip, left)?,
            Next::Replicates { from } if self.wanted.replicates => {
                let (further, next) = replicates::page(self.reader.as_ref(), &sweep.name, from)?;
                let told = &mut self.told;
                let new = further.into_iter().filter(|row| told.insert((row.fold, row.kind, row.attempt.0)));
                (
                    new.map(|row| Fact::Replicate(Box::new(row))).collect(),
                    next.map(|from| Next::Replicates { from }),
                )
            }
            Next::Replicates { .. } => (Vec::new(), None),
        };
        self.next = next.unwrap_or(Next::Sweep);
        if next.is_none() {
            self.sweeps.pop_front();
        }
        Ok(Some(facts))
    }

    fn results(&self, sweep: &SweepName, from: u64) -> Result<(Vec<Fact>, Option<Next>), StoreError> {
        let page = self.reader.results(&ResultQuery { from, ..ResultQuery::accepted(sweep.clone()) })?;
        let facts = page.rows.into_iter().map(|row| self.fact(row)).collect();
        Ok((facts, Some(page.next.map_or(Next::Count, |from| Next::Results { from }))))
    }

    /// The results of the folds that were named; who has none yet is left out.
    fn results_of(&self) -> Result<Vec<Fact>, StoreError> {
        let found = self.wanted.results_of.iter().map(|fold| self.reader.result(fold));
        found.filter_map(|row| row.map(|row| row.map(|row| self.fact(row))).transpose()).collect()
    }

    fn fact(&self, mut row: ResultRow) -> Fact {
        if !self.wanted.curves {
            row.result.history = Vec::new();
        }
        Fact::Result(Box::new(row))
    }

    fn count(&self, sweep: &SweepName) -> Result<(Vec<Fact>, Option<Next>), StoreError> {
        let Some(wanted) = &self.wanted.folds else {
            return Ok((Vec::new(), Some(Next::Replicates { from: 0 })));
        };
        let query =
            FoldQuery { sweep: sweep.clone(), filter: wanted.filter.clone(), from: 0, skip: 0, limit: 0 };
        let (total, digits) = (self.reader.count_folds(&query)?, self.reader.digits()?);
        let left = wanted.limit.unwrap_or(u64::MAX);
        Ok((vec![Fact::Folds { total, digits }], Some(Next::Folds { from: 0, skip: wanted.skip, left })))
    }

    fn folds(
        &self,
        sweep: &SweepName,
        from: u64,
        skip: u64,
        left: u64,
    ) -> Result<(Vec<Fact>, Option<Next>), StoreError> {
        let filter = self.wanted.folds.as_ref().map(|wanted| wanted.filter.clone()).unwrap_or_default();
        let page = self.reader.folds(&FoldQuery {
            sweep: sweep.clone(),
            filter,
            from,
            skip,
            limit: left.min(PAGE),
        })?;
        let left = left - page.folds.len() as u64;
        let next = match page.next {
            Some(from) if left > 0 => Next::Folds { from, skip: 0, left },
            Some(_) | None => Next::Replicates { from: 0 },
        };
        Ok((page.folds.into_iter().map(|fold| Fact::Fold(Box::new(fold))).collect(), Some(next)))
    }
}
