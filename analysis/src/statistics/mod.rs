//! Numbers about the folds behind a cell, and tests that compare cells: plain slices in, plain structs out. Owns
//! when a test may be used at all ([`TestRefusal`]), because folds share training data and seeds share a split, which
//! the textbook tests do not allow for. Distributions come from `statrs`; results agree with SciPy. Knows nothing
//! of frames, tables or words around numbers.

mod f1;
mod friedman;
mod holm;
mod paired;
mod ranks;
mod refusal;
mod studentized_range;
mod summary;
mod wilcoxon;

pub use f1::mean_f1;
pub use friedman::{Friedman, friedman};
pub use holm::holm;
pub use paired::{CorrectedT, FoldValue, PartSizes, corrected_paired_t, differences};
pub use refusal::TestRefusal;
pub use studentized_range::{range_quantile, range_tail};
pub use summary::{Quartiles, Summary, confidence_half_width, population_std, quartiles};
pub use wilcoxon::{SignedRank, signed_rank};

#[cfg(test)]
mod tests;
