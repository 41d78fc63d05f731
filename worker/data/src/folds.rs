//! Published folds: three index files (train, val, test), one line per fold, graph numbers from 0
//! separated by commas. It reads and counts; that each fold is a partition is checked with the rest of
//! the data set.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::files::FileSet;
use crate::splits::Split;

/// The index files of a data set.
pub(crate) fn files(data_dir: &Path, dataset: &str) -> [PathBuf; 3] {
    ["train", "val", "test"].map(|part| data_dir.join("splits").join(format!("{dataset}_{part}.index")))
}

/// Reads the folds of a data set from the folder of index files below `data_dir`.
pub(crate) fn read(data_dir: &Path, dataset: &str, folds: u32) -> Result<Vec<Split>, Error> {
    let [train, validation, test] =
        ["train", "val", "test"].map(|part| read_part(data_dir, dataset, part, folds));
    let parts = train?.into_iter().zip(validation?).zip(test?);
    Ok(parts.map(|((train, validation), test)| Split { train, validation, test }).collect())
}

fn read_part(data_dir: &Path, dataset: &str, part: &str, folds: u32) -> Result<Vec<Vec<u32>>, Error> {
    let folder = data_dir.join("splits");
    let name = format!("{dataset}_{part}.index");
    let missing = Error::missing(dataset, vec![folder.join(&name)]);
    let Some(mut files) = FileSet::open_first(&[folder])? else { return Err(missing) };
    let Some(mut lines) = files.lines(&name)? else { return Err(missing) };
    let mut rows = Vec::new();
    while lines.advance()? {
        if rows.len() == folds as usize {
            return Err(lines.malformed(format!("more than the {folds} folds that were published")));
        }
        let mut row = Vec::new();
        lines.append_indices(&mut row)?;
        rows.push(row);
    }
    if rows.len() < folds as usize {
        return Err(lines.ends_early(format!("the file ends after {} of {folds} folds", rows.len())));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::create_dir(folder.path().join("splits")).expect("folder");
        for (name, content) in files {
            std::fs::write(folder.path().join("splits").join(name), content).expect("file");
        }
        folder
    }

    #[test]
    fn each_line_is_one_fold() {
        let files = [("X_train.index", "0,3\n1,2\n"), ("X_val.index", "1\n3\n"), ("X_test.index", "2\n0\n")];
        let folds = read(folder(&files).path(), "X", 2).expect("two folds");
        assert_eq!(folds[1], Split { train: vec![1, 2], validation: vec![3], test: vec![0] });
        assert_eq!(folds.len(), 2);
    }

    #[test]
    fn missing_files_are_named_with_the_place_and_a_way_out() {
        let folder = folder(&[("X_train.index", "0\n")]);
        let error = read(folder.path(), "X", 1).expect_err("no validation file");
        assert!(error.to_string().contains("X_val.index") && error.hint().is_some(), "{error}");
    }

    #[test]
    fn too_few_and_too_many_folds_are_errors_with_a_line() {
        let files = [("X_train.index", "0\n1\n"), ("X_val.index", "1\n"), ("X_test.index", "2\n")];
        let error = read(folder(&files).path(), "X", 1).expect_err("two lines").to_string();
        assert!(error.contains("X_train.index, line 2: more than the 1 folds"), "{error}");
        let error = read(folder(&files).path(), "X", 2).expect_err("one line").to_string();
        assert!(error.contains("X_val.index, line 2: the file ends after 1 of 2 folds"), "{error}");
    }
}
