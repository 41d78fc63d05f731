//! Bad sweep files and what is said about them: place, key path, what is wrong, what would be right. The messages are
//! pinned, because they are what a user reads most.

use std::fs;

use togl_sweeps::SweepSpec;

mod files;

#[test]
fn every_bad_file_is_refused_with_a_message_that_helps() {
    let line = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().display().to_string();
        let error = SweepSpec::parse(&fs::read_to_string(path).unwrap()).err();
        let message = error.unwrap_or_else(|| panic!("{name} was accepted")).to_string();
        format!("{name}\n    {}\n", message.replace('\n', "\n    "))
    };
    let said: String = files::bad().iter().map(line).collect();
    insta::assert_snapshot!("bad_files", said);
}
