//! The points of a sweep: one grid or several in order, each enumerated in full or as a random sample, each with its
//! splits and seeds. Counts before it enumerates. Knows nothing of files.

use crate::draws::Draws;
use crate::grid::{Grid, PointError, Points};
use crate::random::{DrawnFrom, Random};
use crate::trial::TrialConfig;

/// One grid of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct GridPart {
    /// Its points.
    pub grid: Grid,
    /// A sample instead of all points.
    pub random: Option<Random>,
    /// Splits on which its trials are trained.
    pub splits: Vec<u32>,
    /// Seeds with which its trials are trained.
    pub seeds: Vec<u64>,
}

/// All grids of a sweep, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Union {
    /// At least one.
    pub parts: Vec<GridPart>,
}

type Boxed<'a> = Box<dyn Iterator<Item = Result<TrialConfig, PointError>> + 'a>;

impl GridPart {
    /// Number of points; saturates.
    pub fn count(&self) -> u128 {
        match &self.random {
            None => self.grid.count(),
            Some(Random { budget, source: DrawnFrom::Grid, .. }) => self.grid.count().min((*budget).into()),
            Some(Random { budget, .. }) => self.grid.count().saturating_mul((*budget).into()),
        }
    }

    /// Folds that its points would make, before equal trials are merged; saturates.
    pub fn count_folds(&self) -> u128 {
        let per_trial = (self.splits.len() as u128).saturating_mul(self.seeds.len() as u128);
        self.count().saturating_mul(per_trial)
    }

    /// All points in order, made one at a time.
    pub fn points(&self) -> Boxed<'_> {
        match &self.random {
            None => Box::new(self.grid.points()),
            Some(random) => match &random.source {
                DrawnFrom::Grid => self.sample(random),
                DrawnFrom::Distributions(distributions) => {
                    Box::new((0..random.budget).flat_map(move |index| {
                        let mut base = self.grid.base.clone();
                        for distribution in distributions {
                            distribution.draw(random.seed, index, &mut base);
                        }
                        Points::from_base(&self.grid, base)
                    }))
                }
            },
        }
    }

    /// A shuffled walk over all combinations that stops when the budget is spent.
    fn sample(&self, random: &Random) -> Boxed<'_> {
        let (draws, size) = (Draws::new(random.seed, "grid"), self.grid.combinations());
        let found = (0..size).filter_map(move |index| self.grid.combination(draws.shuffled(index, size)));
        let budget = usize::try_from(self.count()).unwrap_or(usize::MAX);
        Box::new(found.take(budget).map(|trial| self.grid.checked(trial)))
    }
}

impl Union {
    /// Number of points, before equal trials are merged; saturates.
    pub fn count(&self) -> u128 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.count()))
    }

    /// Folds of all points, before equal trials are merged; saturates.
    pub fn count_folds(&self) -> u128 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.count_folds()))
    }

    /// Whether every part has the same splits and seeds.
    pub(crate) fn is_uniform(&self) -> bool {
        self.parts
            .windows(2)
            .all(|pair| (&pair[0].splits, &pair[0].seeds) == (&pair[1].splits, &pair[1].seeds))
    }
}
