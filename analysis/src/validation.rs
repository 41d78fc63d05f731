//! What choices may see of a frame: keys, settings and validation columns. There are no test columns in a
//! [`ValidationView`], so that choosing by the test set is not a mistake one can make here. Chooses nothing itself.

use polars::prelude::DataFrame;
use togl_sweeps::spec::Metric;

use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::schema::{KEYS, SETTINGS};

/// The validation columns of the schema; test and training columns must never be listed here.
const VALIDATION: [&str; 4] =
    ["validation_accuracy", "validation_loss", "last_validation_accuracy", "last_validation_loss"];

/// The columns of a frame that a choice may look at, one row per fold in the frame's order.
#[derive(Debug, Clone)]
pub struct ValidationView(DataFrame);

impl ValidationView {
    pub(crate) fn of(frame: &FoldFrame) -> Result<Self> {
        let names = KEYS.iter().chain(&SETTINGS).map(|spec| spec.name).chain(VALIDATION);
        Ok(Self(frame.data().select(names)?))
    }

    /// The visible columns.
    pub fn data(&self) -> &DataFrame {
        &self.0
    }

    /// What decides, for each row; not a number decides nothing. Refuses a metric that is not of validation.
    pub(crate) fn values(&self, by: Metric) -> Result<Vec<Option<f64>>> {
        let hidden = |_| {
            let by = by.as_str();
            Error::Unfit(format!("what decides a choice cannot be `{by}`; use a validation metric"))
        };
        let values = self.0.column(by.as_str()).map_err(hidden)?.f64()?;
        Ok(values.iter().map(|value| value.filter(|value| !value.is_nan())).collect())
    }
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::Backbone;

    use crate::test_folds::{folds, frame, trial};

    #[test]
    fn a_view_shows_no_test_and_no_training_column() {
        let frame = frame(folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5]));
        let view = frame.validation().unwrap();
        for name in view.data().get_column_names() {
            assert!(!name.starts_with("test_") && !name.starts_with("train_"), "{name}");
        }
    }
}
