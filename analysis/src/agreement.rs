//! How much of a comparison agrees: of all its cells, and of those that share a value of a setting, because what is off by
//! chance is off in all directions, and what is off for a reason is off together. Counts; finds no counterparts.

use serde::Serialize;

use crate::compare::{ComparedCell, signed};
use crate::distinct::Distinct;
use crate::table::Table;

/// How many of some cells agree with print, and how far they are off together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Cells with a counterpart.
    pub cells: usize,
    /// Those within one published standard deviation.
    pub within_one_std: usize,
    /// Those for which that is known.
    pub of_std: usize,
    /// Those within two standard errors of the difference.
    pub within_two_standard_errors: usize,
    /// Those for which that is known.
    pub of_errors: usize,
    /// Mean of ours minus published, in percentage points.
    pub difference: Option<f64>,
}

/// The agreement of the cells with one value of a setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupAgreement {
    /// The setting.
    pub setting: String,
    /// Its value, as the table has it.
    pub value: String,
    /// How many cells agree.
    #[serde(flatten)]
    pub agreement: Agreement,
}

pub(crate) const HEADERS: [&str; 5] = ["of", "cells", "within 1 std", "within 2 SE", "mean difference"];

impl Agreement {
    /// Of these cells.
    pub fn of<'a>(cells: impl IntoIterator<Item = &'a ComparedCell>) -> Self {
        let (mut all, mut sum) = (Self::default(), 0.0);
        for cell in cells.into_iter().filter(|cell| cell.published.is_some()) {
            all.cells += 1;
            all.of_std += usize::from(cell.within_one_std.is_some());
            all.within_one_std += usize::from(cell.within_one_std == Some(true));
            all.of_errors += usize::from(cell.within_two_standard_errors.is_some());
            all.within_two_standard_errors += usize::from(cell.within_two_standard_errors == Some(true));
            sum += cell.difference.unwrap_or_default();
        }
        all.difference = (all.cells > 0).then(|| sum / all.cells as f64);
        all
    }
}

/// The agreement for each value of the settings that vary among the cells with a counterpart.
pub(crate) fn groups(table: &Table, cells: &[ComparedCell]) -> Vec<GroupAgreement> {
    let compared: Vec<&ComparedCell> = cells.iter().filter(|cell| cell.published.is_some()).collect();
    let rows = table.row_settings.iter().enumerate().map(|(at, name)| (name, Some(at)));
    let mut groups = Vec::new();
    for (setting, at) in rows.chain([(&table.column_setting, None)]) {
        let value = |cell: &ComparedCell| match at {
            Some(at) => cell.row.get(at).cloned().unwrap_or_default(),
            None => cell.column.clone(),
        };
        let values = Distinct::of(compared.iter().map(|cell| value(cell)));
        for one in values.iter().filter(|_| values.len() > 1) {
            let of_value = compared.iter().copied().filter(|cell| value(cell) == *one);
            let agreement = Agreement::of(of_value);
            groups.push(GroupAgreement { setting: setting.clone(), value: one.clone(), agreement });
        }
    }
    groups
}

/// One line per group.
pub(crate) fn lines(groups: &[GroupAgreement], digits: usize) -> Vec<Vec<String>> {
    let share = |within: usize, of: usize| format!("{within} of {of}");
    let line = |group: &GroupAgreement| {
        let Agreement { cells, within_one_std, of_std, within_two_standard_errors, of_errors, difference } =
            group.agreement;
        vec![
            format!("{} {}", group.setting, group.value),
            cells.to_string(),
            share(within_one_std, of_std),
            share(within_two_standard_errors, of_errors),
            difference.map_or_else(|| "–".to_owned(), |difference| signed(difference, digits)),
        ]
    };
    groups.iter().map(line).collect()
}
