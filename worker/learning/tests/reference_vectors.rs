//! Compares the crate with values of the published implementation: a few committed files always, the whole set where
//! it lies beside the project.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic like the tests themselves")]
#![expect(clippy::print_stdout, reason = "the figures are shown with --nocapture")]

use std::path::{Path, PathBuf};

use togl_learning::verify::reference_files;
use togl_learning::{CaseReport, Device, verify_file};

fn verify(folder: &Path) -> Vec<CaseReport> {
    togl_learning::use_threads(1);
    let files = reference_files(folder).unwrap();
    let reports: Vec<_> = files.iter().map(|file| verify_file(file, Device::Cpu).unwrap()).collect();
    for report in &reports {
        println!(
            "{:36} {:6} values, largest error {:.2e}, {:.3} of what is allowed ({})",
            report.case, report.values, report.largest_error, report.worst_share, report.worst_tensor
        );
    }
    let failed: Vec<_> =
        reports.iter().filter(|report| !report.passed()).map(|r| (&r.case, &r.failures)).collect();
    assert!(failed.is_empty(), "{failed:#?}");
    reports
}

#[test]
fn committed_reference_vectors_are_reproduced() {
    let reports = verify(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures"));
    assert_eq!(reports.len(), 3);
}

#[test]
fn all_reference_vectors_are_reproduced() {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/golden");
    if !folder.exists() {
        println!("skipped: no reference vectors beside the project");
        return;
    }
    assert_eq!(verify(&folder).len(), 23);
}
