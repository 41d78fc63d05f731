//! What choices may see of a frame: keys, settings and validation columns. There are no test columns in a
//! [`ValidationView`], so that choosing by the test set is not a mistake one can make here. Chooses nothing itself.

use polars::prelude::DataFrame;
use togl_sweeps::spec::Metric;

use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::scales::Scales;
use crate::schema::{KEYS, SETTINGS};

/// The validation columns of the schema; test and training columns must never be listed here.
const VALIDATION: [&str; 4] =
    ["validation_accuracy", "validation_loss", "last_validation_accuracy", "last_validation_loss"];

/// The columns of a frame that a choice may look at, one row per fold in the frame's order.
#[derive(Debug, Clone)]
pub struct ValidationView {
    data: DataFrame,
    /// What turns each value so that higher is better; none where all are so.
    signs: Option<Vec<f64>>,
}

impl ValidationView {
    pub(crate) fn of(frame: &FoldFrame) -> Result<Self> {
        let names = KEYS.iter().chain(&SETTINGS).map(|spec| spec.name).chain(VALIDATION);
        Ok(Self { data: frame.data().select(names)?, signs: Scales::of(frame.data())?.signs() })
    }

    /// The visible columns.
    pub fn data(&self) -> &DataFrame {
        &self.data
    }

    /// What decides, for each row, turned so that higher is better; not a number decides nothing. Refuses a metric that is not of validation.
    pub(crate) fn values(&self, by: Metric) -> Result<Vec<Option<f64>>> {
        let hidden = |_| {
            let by = by.as_str();
            Error::Unfit(format!("what decides a choice cannot be `{by}`; use a validation metric"))
        };
        let values = self.data.column(by.as_str()).map_err(hidden)?.f64()?;
        let values = values.iter().map(|value| value.filter(|value| !value.is_nan()));
        Ok(match &self.signs {
            None => values.collect(),
            Some(signs) => values.zip(signs).map(|(value, sign)| value.map(|value| sign * value)).collect(),
        })
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
