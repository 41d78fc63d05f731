//! `togl replicates [SWEEP]`: folds that were trained more than once, and whether the numbers agree. A free check of
//! reproducibility: nothing here is ever counted in a table.

use std::process::ExitCode;

use serde::Serialize;
use togl_proto::wire;

use super::Outcome;
use crate::output::{self, Format, Row};
use crate::remote::{self, Target};

/// List results of further attempts with what they say differently
#[derive(Debug, clap::Args)]
pub struct Replicates {
    /// Name of the sweep; all of them if none is given
    sweep: Option<String>,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

#[derive(Serialize)]
struct Replicate {
    fold: String,
    kind: String,
    attempt: u32,
    worker: String,
    accepted_attempt: u32,
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

impl From<wire::Replicate> for Replicate {
    fn from(r: wire::Replicate) -> Self {
        let differences = r.differences.into_iter().map(|d| Difference {
            field: d.field,
            accepted: d.accepted,
            other: d.other,
            distance: d.distance,
        });
        let differences: Vec<_> = differences.collect();
        Self {
            fold: remote::fold_text(r.fold.as_ref()),
            kind: r.kind,
            attempt: r.attempt,
            worker: r.worker,
            accepted_attempt: r.accepted_attempt,
            agrees: differences.is_empty() && r.accepted_attempt > 0,
            largest_difference: differences.iter().map(|d| d.distance).fold(0.0, f64::max),
            differences,
        }
    }
}

impl Row for Replicate {
    const COLUMNS: &'static [&'static str] =
        &["FOLD", "KIND", "ATTEMPT", "COUNTED", "WORKER", "AGREES", "LARGEST", "DIFFERS IN"];

    fn cells(&self) -> Vec<String> {
        let fields: Vec<&str> = self.differences.iter().map(|d| d.field.as_str()).collect();
        vec![
            self.fold.clone(),
            self.kind.clone(),
            self.attempt.to_string(),
            self.accepted_attempt.to_string(),
            self.worker.clone(),
            if self.agrees { "yes" } else { "no" }.to_owned(),
            format!("{:.3e}", self.largest_difference),
            fields.join(" "),
        ]
    }
}

impl Replicates {
    pub(super) async fn run(self) -> Outcome {
        let mut client = self.target.connect().await?;
        let request = wire::ListReplicatesRequest { sweep: self.sweep.unwrap_or_default() };
        let mut stream = client.list_replicates(request).await.map_err(remote::refused)?.into_inner();
        let mut rows: Vec<Replicate> = Vec::new();
        while let Some(row) = stream.message().await.map_err(remote::refused)? {
            rows.push(row.into());
        }
        if self.format == Format::Human {
            let agree = rows.iter().filter(|row| row.agrees).count();
            eprintln!("{} further results, {agree} of them with the same numbers", rows.len());
            if rows.is_empty() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        output::list(&rows, self.format)?;
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_and_the_fields_are_named() {
        let differ = |field: &str, distance| wire::Difference {
            field: field.to_owned(),
            distance,
            ..Default::default()
        };
        let wire = wire::Replicate {
            accepted_attempt: 2,
            attempt: 1,
            differences: vec![differ("test.loss", 0.125), differ("epochs", 3.0)],
            ..Default::default()
        };
        let cells = Replicate::from(wire).cells();
        assert_eq!(cells[5..], ["no", "3.000e0", "test.loss epochs"]);
        let same = Replicate::from(wire::Replicate { accepted_attempt: 1, ..Default::default() });
        assert!(same.agrees);
        assert!(!Replicate::from(wire::Replicate::default()).agrees, "there is nothing to agree with");
    }
}
