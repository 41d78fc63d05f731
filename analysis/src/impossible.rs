//! What a file of folds may not say: values that are not in the range of their score, such as accuracies that are no shares, and two descriptions of one trial. Looks at files
//! only, where anybody may have written; what comes from a coordinator was checked when it was reported. Changes nothing.

use std::collections::HashMap;

use polars::prelude::{Column, DataFrame, DataType};
use togl_sweeps::Scale;

use crate::columns::label;
use crate::error::{Error, Result};
use crate::scales::Scales;

/// Columns whose values are on the scale of their row.
const VALUES: [&str; 4] =
    ["test_accuracy", "validation_accuracy", "train_accuracy", "last_validation_accuracy"];

/// What all rows of a trial must agree in. Settings without effect are not part of a trial's identity and may differ, so
/// only those are here that always have one.
const ONE_PER_TRIAL: [&str; 4] = ["dataset", "model", "togl", "method"];

/// The same for trained networks; kernels ignore these.
const ONE_PER_NETWORK: [&str; 5] = ["features", "depth", "hidden_dim", "batch_size", "lr"];

/// Refuses data in the columns of the schema that cannot be true; rows are counted from 1, as they stand in the file.
pub fn refuse_impossible(data: &DataFrame, origin: &str) -> Result<()> {
    let scales = Scales::of(data)?;
    if !scales.all_shares() {
        refuse_scales(&scales, data.height(), origin)?;
    }
    for name in VALUES {
        let values = data.column(name)?.f64()?;
        let fits = |(row, value): (usize, f64)| match scales.all_shares() {
            true => Scale::share().contains(value),
            false => scales.at(row).is_ok_and(|scale| scale.contains(value)),
        };
        let known = values.iter().enumerate().filter_map(|(row, value)| Some((row, value?)));
        if let Some((row, value)) = known.filter(|(_, value)| !value.is_nan()).find(|known| !fits(*known)) {
            let scale = scales.at(row).unwrap_or_default();
            let what = match scale == Scale::SHARE {
                true => "share from 0 to 1".to_owned(),
                false => format!("{} ({})", scale.name, scale.range()),
            };
            return Err(Error::bad_column(
                origin,
                name,
                format!("row {} has {value}, which is no {what}", row + 1),
            ));
        }
    }
    refuse_contradictions(data, origin)
}

fn refuse_scales(scales: &Scales<'_>, rows: usize, origin: &str) -> Result<()> {
    match (0..rows).find_map(|row| Some((row, scales.at(row).err()?))) {
        None => Ok(()),
        Some((row, why)) => {
            Err(Error::bad_column(origin, "score", format!("row {} has no score: {why}", row + 1)))
        }
    }
}

fn refuse_contradictions(data: &DataFrame, origin: &str) -> Result<()> {
    let first = first_rows(data)?;
    let models = data.column("model")?.str()?;
    let is_network =
        |row: usize| models.get(row).is_some_and(|model| ["gcn", "gin", "gat", "gatedgcn"].contains(&model));
    for (names, networks_only) in [(ONE_PER_TRIAL.as_slice(), false), (ONE_PER_NETWORK.as_slice(), true)] {
        for name in names {
            let column = data.column(name)?;
            let differs = differing(column, &first)?;
            let wrong = differs.into_iter().find(|row| !networks_only || is_network(*row));
            let Some(row) = wrong else { continue };
            let (here, there) = (label(&column.get(row)?), label(&column.get(first[row])?));
            let reason = format!(
                "row {} says `{here}`, row {} of the same trial says `{there}`; one of them is of another trial",
                row + 1,
                first[row] + 1
            );
            return Err(Error::bad_column(origin, name, reason));
        }
    }
    Ok(())
}

/// For each row the first one of its trial. Rows of a trial mostly stand together, so a look at the one before spares
/// nearly all searching.
fn first_rows(data: &DataFrame) -> Result<Vec<usize>> {
    let mut first: HashMap<&str, usize> = HashMap::new();
    let mut before = None;
    let trials = data.column("trial")?.str()?.iter().enumerate();
    Ok(trials
        .map(|(row, trial)| {
            let trial = trial.unwrap_or_default();
            let found = match before {
                Some((same, found)) if same == trial => found,
                _ => *first.entry(trial).or_insert(row),
            };
            before = Some((trial, found));
            found
        })
        .collect())
}

/// The rows with another value than the first of their trial.
fn differing(column: &Column, first: &[usize]) -> Result<Vec<usize>> {
    Ok(match column.dtype() {
        DataType::String => unlike_first(&column.str()?.iter().collect::<Vec<_>>(), first),
        DataType::Boolean => unlike_first(&column.bool()?.iter().collect::<Vec<_>>(), first),
        DataType::Float64 => unlike_first(&column.f64()?.iter().collect::<Vec<_>>(), first),
        _ => unlike_first(&column.u64()?.iter().collect::<Vec<_>>(), first),
    })
}

fn unlike_first<T: PartialEq>(values: &[T], first: &[usize]) -> Vec<usize> {
    let rows = first.iter().enumerate();
    rows.filter(|(row, first)| values[*row] != values[**first]).map(|(row, _)| row).collect()
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::frame::FoldFrame;
    use crate::test_folds::{folds, frame, trial};

    /// Reads a file of two trials with two folds each, after somebody wrote into it.
    fn read_with(column: Column) -> Result<FoldFrame> {
        let (gcn, gin) = (trial("DD", Backbone::Gcn, 4), trial("DD", Backbone::Gin, 4));
        let rows = folds(0, &gcn, &[0.5, 0.6]).into_iter().chain(folds(1, &gin, &[0.5, 0.6]));
        let mut data = frame(rows).data().clone();
        data.with_column(column).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("folds.parquet");
        FoldFrame::from_data(&data, "written").unwrap().write(&path).unwrap();
        FoldFrame::read(&path)
    }

    fn reason(column: Column) -> String {
        let message = read_with(column).unwrap_err().to_string();
        message.split_once("folds.parquet`, ").unwrap().1.to_owned()
    }

    #[test]
    fn an_accuracy_that_is_no_share_is_refused_with_its_row() {
        let of = |value: f64| Column::new("test_accuracy".into(), vec![0.5, 0.5, value, 0.5]);
        insta::assert_snapshot!(reason(of(50.0)), @"column `test_accuracy`: row 3 has 50, which is no share from 0 to 1");
        insta::assert_snapshot!(reason(of(-1.0)), @"column `test_accuracy`: row 3 has -1, which is no share from 0 to 1");
        insta::assert_snapshot!(reason(of(f64::INFINITY)), @"column `test_accuracy`: row 3 has inf, which is no share from 0 to 1");
        assert!(read_with(of(1.0)).is_ok() && read_with(of(f64::NAN)).is_ok());
    }

    #[test]
    fn rows_of_one_trial_that_contradict_each_other_are_refused() {
        let datasets = Column::new("dataset".into(), ["DD", "DD", "DD", "ENZYMES"]);
        insta::assert_snapshot!(reason(datasets), @"column `dataset`: row 4 says `ENZYMES`, row 3 of the same trial says `DD`; one of them is of another trial");
        let depths = Column::new("depth".into(), [4_u64, 5, 4, 4]);
        insta::assert_snapshot!(reason(depths), @"column `depth`: row 2 says `5`, row 1 of the same trial says `4`; one of them is of another trial");
        let without_effect = Column::new("deepset".into(), [true, false, false, false]);
        assert!(read_with(without_effect).is_ok(), "a network without TOGL has no embedding");
    }
}
