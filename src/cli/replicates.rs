//! `togl replicates [SWEEP]`: folds that were trained more than once, and whether the numbers agree. A free check of
//! reproducibility: nothing here is ever counted in a table.

use serde::Serialize;
use togl_coordinator::store::reading::{Fact, Wanted};
use togl_coordinator::store::replicates;

use crate::facts::sweep_name;
use crate::output::{self, ListFormat, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// List results of further attempts with what they say differently
#[derive(Debug, clap::Args)]
pub struct Replicates {
    /// Name of the sweep; all of them if none is given
    sweep: Option<String>,
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

#[derive(Serialize)]
struct Replicate {
    fold: String,
    kind: String,
    attempt: u32,
    worker: String,
    processor: String,
    accepted_attempt: u32,
    accepted_processor: String,
    agrees: bool,
    largest_difference: f64,
    differences: Vec<Difference>,
}

#[derive(Serialize)]
struct Difference {
    field: String,
    accepted: String,
    other: String,
    distance: f64,
}

impl From<replicates::Replicate> for Replicate {
    fn from(r: replicates::Replicate) -> Self {
        let accepted_attempt = r.counted.as_ref().map_or(0, |counted| counted.attempt.0);
        let (accepted_processor, differences) =
            r.counted.map(|counted| (counted.processor, counted.differences)).unwrap_or_default();
        let differences = differences.into_iter().map(|d| Difference {
            field: d.field,
            accepted: d.accepted,
            other: d.other,
            distance: d.distance,
        });
        let differences: Vec<_> = differences.collect();
        Self {
            fold: r.fold.to_string(),
            kind: r.kind.as_str().to_owned(),
            attempt: r.attempt.0,
            worker: r.worker.to_string(),
            processor: r.processor,
            accepted_attempt,
            accepted_processor,
            agrees: differences.is_empty() && accepted_attempt > 0,
            largest_difference: differences.iter().map(|d| d.distance).fold(0.0, f64::max),
            differences,
        }
    }
}

impl Replicate {
    /// On what both were trained: two kinds of processors may disagree in the last digits, one may not.
    fn processors(&self) -> String {
        let known =
            |processor: &str| if processor.is_empty() { "?".to_owned() } else { processor.to_owned() };
        match (known(&self.accepted_processor), known(&self.processor)) {
            (one, other) if one == other => one,
            (counted, other) => format!("{counted}, {other}"),
        }
    }
}

impl ListRow for Replicate {
    const COLUMNS: &'static [&'static str] =
        &["FOLD", "KIND", "ATTEMPT", "COUNTED", "WORKER", "PROCESSORS", "AGREES", "LARGEST", "DIFFERS IN"];
    const ALSO: &'static [&'static str] =
        &["processor", "accepted_attempt", "accepted_processor", "largest_difference", "differences"];

    fn cells(&self) -> Vec<String> {
        let fields: Vec<&str> = self.differences.iter().map(|d| d.field.as_str()).collect();
        vec![
            self.fold.clone(),
            self.kind.clone(),
            self.attempt.to_string(),
            self.accepted_attempt.to_string(),
            self.worker.clone(),
            self.processors(),
            if self.agrees { "yes" } else { "no" }.to_owned(),
            format!("{:.3e}", self.largest_difference),
            fields.join(" "),
        ]
    }
}

impl Replicates {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let sweep = self.sweep.as_deref().map(sweep_name).transpose()?;
        let wanted = Wanted { sweep, replicates: true, ..Wanted::default() };
        let mut rows: Vec<Replicate> = Vec::new();
        let mut take = |fact| {
            if let Fact::Replicate(row) = fact {
                rows.push((*row).into());
            }
            Ok(())
        };
        self.target.facts().await?.read(wanted, &mut take).await?;
        if self.listing.format == ListFormat::Human {
            let agree = rows.iter().filter(|row| row.agrees).count();
            eprintln!("{} further results, {agree} of them with the same numbers", rows.len());
            if rows.is_empty() {
                return Ok(());
            }
        }
        output::list(&rows, &self.listing)
    }
}

#[cfg(test)]
mod tests {
    use togl_coordinator::store::ResultKind;
    use togl_coordinator::store::replicates::Counted;
    use togl_sweeps::{Attempt, FoldKey, TrialId};

    use super::*;

    #[test]
    fn the_largest_difference_and_the_fields_are_named() {
        let differ = |field: &str, distance| {
            let (accepted, other) = (String::new(), String::new());
            replicates::Difference { field: field.to_owned(), accepted, other, distance }
        };
        let of = |counted| replicates::Replicate {
            fold: FoldKey { trial: TrialId::from_bytes([7; 16]), split: 0, seed: 0 },
            trial: String::new(),
            attempt: Attempt(1),
            worker: "w".parse().unwrap(),
            kind: ResultKind::Replicate,
            test_accuracy: 0.5,
            processor: "avx2".to_owned(),
            counted,
        };
        let counted = |differences| {
            let processor = "avx512".to_owned();
            Some(Counted { attempt: Attempt(2), test_accuracy: 0.5, processor, differences })
        };
        let differing = of(counted(vec![differ("test.loss", 0.125), differ("epochs", 3.0)]));
        assert_eq!(
            Replicate::from(differing).cells()[5..],
            ["avx512, avx2", "no", "3.000e0", "test.loss epochs"]
        );
        assert!(Replicate::from(of(counted(Vec::new()))).agrees);
        assert!(!Replicate::from(of(None)).agrees, "there is nothing to agree with");
    }
}
