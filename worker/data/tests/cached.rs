//! The cache as callers see it: what the second opening gives, what makes a copy unusable, and that the data
//! folder is never written to.

use std::collections::BTreeMap;
use std::path::Path;

use tempfile::TempDir;
use togl_data::{CacheOutcome, Error, FeatureChoice, OpenOptions, Opened, is_cached, open, open_observed};

fn write_set(folder: &Path, name: &str) {
    std::fs::create_dir_all(folder).expect("folder");
    for (part, content) in [
        ("A", "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n"),
        ("graph_indicator", "1\n1\n1\n2\n2\n"),
        ("graph_labels", "1\n-1\n"),
    ] {
        std::fs::write(folder.join(format!("{name}_{part}.txt")), content).expect("file");
    }
}

struct World {
    folder: TempDir,
}

impl World {
    fn new() -> World {
        let folder = tempfile::tempdir().expect("temporary folder");
        write_set(&folder.path().join("data/tu/MUTAG"), "MUTAG");
        World { folder }
    }

    fn options(&self) -> OpenOptions {
        OpenOptions {
            data_dir: Some(self.folder.path().join("data")),
            cache_dir: Some(self.folder.path().join("cache")),
            ..OpenOptions::default()
        }
    }

    fn opened(&self, name: &str, options: &OpenOptions) -> Opened {
        open_observed(name, options, &|_| ()).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Every file below the data folder with its content.
    fn data_files(&self) -> BTreeMap<std::path::PathBuf, Vec<u8>> {
        let mut folders = vec![self.folder.path().join("data")];
        let mut files = BTreeMap::new();
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("folder") {
                let path = entry.expect("entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(path.clone(), std::fs::read(path).expect("file"));
                }
            }
        }
        files
    }
}

#[test]
fn the_second_opening_comes_from_the_cache_with_the_same_digest() {
    let world = World::new();
    let before = world.data_files();
    let first = world.opened("MUTAG", &world.options());
    assert_eq!(first.cache, CacheOutcome::Stored);
    assert!(is_cached("mutag", &world.options()).expect("readable"));
    let second = world.opened("mutag", &world.options());
    assert_eq!(second.cache, CacheOutcome::Hit);
    assert_eq!(second.dataset.digest(), first.dataset.digest());
    assert_eq!(second.dataset.split_rule(), first.dataset.split_rule());
    assert_eq!(world.data_files(), before, "the data folder is only read");
}

#[test]
fn without_a_cache_folder_nothing_is_stored() {
    let world = World::new();
    let options = OpenOptions { cache_dir: None, ..world.options() };
    assert_eq!(world.opened("MUTAG", &options).cache, CacheOutcome::Off);
    assert!(!is_cached("MUTAG", &options).expect("readable"));
    assert!(!world.folder.path().join("cache").exists());
}

#[test]
fn a_source_file_that_changed_between_runs_is_read_again() {
    let world = World::new();
    let first = world.opened("MUTAG", &world.options());
    // The same length, so that only the content tells.
    let labels = world.folder.path().join("data/tu/MUTAG/MUTAG_graph_labels.txt");
    std::fs::write(labels, "-1\n1\n").expect("file");
    let second = world.opened("MUTAG", &world.options());
    assert!(matches!(second.cache, CacheOutcome::Replaced(_)), "{:?}", second.cache);
    assert_ne!(second.dataset.digest(), first.dataset.digest());
    assert_eq!(world.opened("MUTAG", &world.options()).cache, CacheOutcome::Hit);
}

#[test]
fn every_choice_has_a_copy_of_its_own() {
    let world = World::new();
    let degrees = OpenOptions { features: FeatureChoice::DegreeNormalised, ..world.options() };
    world.opened("MUTAG", &world.options());
    assert_eq!(world.opened("MUTAG", &degrees).cache, CacheOutcome::Stored);
    assert_eq!(world.opened("MUTAG", &world.options()).cache, CacheOutcome::Hit);
    assert_eq!(world.opened("MUTAG", &degrees).cache, CacheOutcome::Hit);
}

#[test]
fn a_damaged_copy_is_replaced_without_a_word_to_the_caller() {
    let world = World::new();
    let first = world.opened("MUTAG", &world.options());
    for part in [2, 100_000] {
        for entry in std::fs::read_dir(world.folder.path().join("cache")).expect("folder") {
            let path = entry.expect("entry").path();
            let bytes = std::fs::read(&path).expect("file");
            std::fs::write(&path, &bytes[..bytes.len() / part]).expect("file");
        }
        let second = world.opened("MUTAG", &world.options());
        assert!(matches!(second.cache, CacheOutcome::Replaced(_)), "{:?}", second.cache);
        assert_eq!(second.dataset.digest(), first.dataset.digest());
    }
}

#[test]
fn generated_sets_are_cached_by_seed_and_size() {
    let world = World::new();
    let options = |data_seed, graphs| OpenOptions { data_seed, graphs: Some(graphs), ..world.options() };
    let first = world.opened("cycles", &options(1, 20));
    assert_eq!(world.opened("cycles", &options(1, 20)).cache, CacheOutcome::Hit);
    assert_eq!(world.opened("cycles", &options(2, 20)).cache, CacheOutcome::Stored);
    assert_eq!(world.opened("cycles", &options(1, 21)).cache, CacheOutcome::Stored);
    assert_eq!(world.opened("cycles", &options(1, 20)).dataset.digest(), first.dataset.digest());
}

#[test]
fn missing_files_are_an_error_even_where_a_copy_was_kept() {
    let world = World::new();
    world.opened("MUTAG", &world.options());
    std::fs::remove_dir_all(world.folder.path().join("data/tu/MUTAG")).expect("folder");
    assert!(matches!(open("MUTAG", &world.options()), Err(Error::MissingFiles { .. })));
}

#[test]
fn a_set_that_the_catalogue_does_not_know_opens_by_its_name() {
    let world = World::new();
    write_set(&world.folder.path().join("data/tu/HOME-MADE"), "HOME-MADE");
    let opened = world.opened("HOME-MADE", &world.options());
    assert_eq!((opened.dataset.name(), opened.dataset.graph_count()), ("HOME-MADE", 2));
    assert_eq!(world.opened("HOME-MADE", &world.options()).cache, CacheOutcome::Hit);
    for unknown in ["tu", "absent", "../tu/HOME-MADE", ""] {
        assert!(matches!(open(unknown, &world.options()), Err(Error::UnknownDataset { .. })), "{unknown:?}");
    }
}

#[test]
fn a_data_set_in_use_does_not_notice_that_its_copy_is_replaced_or_removed() {
    let world = World::new();
    world.opened("MUTAG", &world.options());
    let mapped = world.opened("MUTAG", &world.options());
    assert_eq!(mapped.cache, CacheOutcome::Hit);
    let before: Vec<Vec<u32>> = mapped.dataset.graphs().map(|graph| graph.targets.to_vec()).collect();
    let edges = world.folder.path().join("data/tu/MUTAG/MUTAG_A.txt");
    std::fs::write(edges, "1, 2\n2, 1\n4, 5\n5, 4\n").expect("file");
    let replaced = world.opened("MUTAG", &world.options());
    assert!(matches!(replaced.cache, CacheOutcome::Replaced(_)), "{:?}", replaced.cache);
    std::fs::remove_dir_all(world.folder.path().join("cache")).expect("folder");
    let after: Vec<Vec<u32>> = mapped.dataset.graphs().map(|graph| graph.targets.to_vec()).collect();
    assert_eq!(before, after);
}
