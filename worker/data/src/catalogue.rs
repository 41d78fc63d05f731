//! Names to data sets: finds the row of a name, opens what it stands for, and answers a wrong name with the nearest
//! right one. It opens only what the options point to and reads no environment.

use std::path::{Path, PathBuf};

use togl_sweeps::nearest::nearest;

use crate::cache::{CacheOutcome, CacheSlot};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::facts::{DatasetFacts, FACTS, UNLISTED, facts};
use crate::features::FeatureChoice;
use crate::fingerprint;
use crate::progress::{DataObserver, nobody};
use crate::splits::SplitError;
use crate::tu;

/// What a caller may choose when opening a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenOptions {
    /// The folder that holds downloaded data; generators do not need it.
    pub data_dir: Option<PathBuf>,
    /// Seed of the generators.
    pub data_seed: u64,
    /// Number of graphs to generate; the source's own number where absent.
    pub graphs: Option<usize>,
    /// Node features of data read from files; generators have their own.
    pub features: FeatureChoice,
    /// The folder for copies that load fast; no copies where absent. Never the data folder: that is only
    /// read.
    pub cache_dir: Option<PathBuf>,
}

impl OpenOptions {
    /// A choice that would be ignored is an error: files hold as many graphs as they hold.
    pub(crate) fn refuse_graphs(&self, dataset: &str) -> Result<(), Error> {
        self.graphs.map_or(Ok(()), |graphs| {
            let reason = "its graphs are read from files, all of them";
            Err(Error::bad_option(dataset, "graphs", graphs, reason))
        })
    }

    /// The same for features: generated graphs have their own.
    pub(crate) fn refuse_features(&self, dataset: &str) -> Result<(), Error> {
        match self.features {
            FeatureChoice::AsPublished => Ok(()),
            other => {
                let reason = "generated graphs come with their own features";
                Err(Error::bad_option(dataset, "features", format!("{other:?}"), reason))
            }
        }
    }
}

/// Every data set there is, in the order of the catalogue.
pub fn sources() -> &'static [DatasetFacts] {
    &FACTS
}

/// The data set of this name, whatever its case.
pub fn find(name: &str) -> Result<&'static DatasetFacts, Error> {
    facts(name).ok_or_else(|| unknown(name, &[], Vec::new()))
}

fn unknown(name: &str, present: &[String], looked_at: Vec<PathBuf>) -> Error {
    let listed = FACTS.iter().map(|facts| facts.name);
    let known: Vec<&str> = listed.chain(present.iter().map(String::as_str)).collect();
    let all = format!("there are {}", known.join(", "));
    let hint = match nearest(name, known) {
        Some(nearest) => format!("did you mean `{nearest}`? {all}"),
        None => all,
    };
    Error::UnknownDataset { name: name.to_string(), looked_at, hint }
}

/// A data set, and what the cache did for it.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The data set.
    pub dataset: Dataset,
    /// Whether it came from the cache or is in it now.
    pub cache: CacheOutcome,
}

/// Opens the data set of this name, from its cached copy where there is a good one. A name that the catalogue
/// does not know is looked for in the data folder, as a set in the format of the TU collection.
pub fn open(name: &str, options: &OpenOptions) -> Result<Dataset, Error> {
    open_observed(name, options, &nobody).map(|opened| opened.dataset)
}

/// The same; the observer hears how far long work is, and the result says what the cache did.
pub fn open_observed(name: &str, options: &OpenOptions, observer: DataObserver<'_>) -> Result<Opened, Error> {
    let (name, facts) = resolve(name, options)?;
    let Some(slot) = slot(name, facts, options)? else {
        let dataset = facts.open(name, options, observer)?;
        return Ok(Opened { dataset, cache: CacheOutcome::Off });
    };
    let (dataset, cache) = slot.open_or_make(|| facts.open(name, options, observer))?;
    Ok(Opened { dataset, cache })
}

/// Whether everything that opening would read is there; a generated set needs nothing. Files are looked for,
/// not into.
pub fn is_available(name: &str, options: &OpenOptions) -> Result<bool, Error> {
    let (name, facts) = resolve(name, options)?;
    let inputs = facts.inputs(name, options);
    Ok(facts.is_generated() || !inputs.is_empty() && inputs.iter().all(|input| input.exists()))
}

/// Whether a fast copy of exactly this data set lies in the cache folder, judged by its header.
pub fn is_cached(name: &str, options: &OpenOptions) -> Result<bool, Error> {
    let (name, facts) = resolve(name, options)?;
    Ok(slot(name, facts, options)?.is_some_and(|slot| slot.is_present()))
}

fn slot(name: &str, facts: &DatasetFacts, options: &OpenOptions) -> Result<Option<CacheSlot>, Error> {
    let Some(folder) = &options.cache_dir else { return Ok(None) };
    let request = fingerprint::of_request(name, options);
    let input = fingerprint::of_input(&request, options.data_dir.as_deref(), &facts.inputs(name, options))?;
    Ok(Some(CacheSlot::new(folder, name, &request, input)))
}

/// The name of a data set as it is spelt, and its row, or the one for files that have none.
fn resolve<'a>(name: &'a str, options: &OpenOptions) -> Result<(&'a str, &'static DatasetFacts), Error> {
    known_or_present(name, options.data_dir.as_deref())?;
    Ok(facts(name).map_or((name, &UNLISTED), |facts| (facts.name, facts)))
}

/// Refuses a name that nothing can be opened under: neither the catalogue nor the data folder has it.
pub fn known_or_present(name: &str, data_dir: Option<&Path>) -> Result<(), Error> {
    if let Some(facts) = facts(name) {
        return refuse_two_meanings(name, facts, data_dir);
    }
    if tu::is_present(name, data_dir) {
        return Ok(());
    }
    if let Some(refusal) = tu::refusal(name, data_dir) {
        return Err(refusal);
    }
    let looked_at = if tu::is_plain_name(name) { tu::places(name, data_dir) } else { Vec::new() };
    Err(unknown(name, &data_dir.map(tu::unlisted).unwrap_or_default(), looked_at))
}

/// Refuses a split that a data set does not have, as far as its rule is known here.
pub fn check_split(name: &str, split: u64, data_dir: Option<&Path>) -> Result<(), Error> {
    let facts = facts(name).or_else(|| tu::is_present(name, data_dir).then_some(&UNLISTED));
    match facts.map(|facts| facts.split_rule.valid_splits()).filter(|valid| !valid.contains(split)) {
        None => Ok(()),
        Some(valid) => Err(SplitError::OutOfRange { dataset: name.to_string(), split, valid }.into()),
    }
}

/// A set in the data folder that is called like a generated one would never be read, and nobody would notice.
fn refuse_two_meanings(asked: &str, facts: &DatasetFacts, data_dir: Option<&Path>) -> Result<(), Error> {
    let generated = facts.name;
    if !facts.is_generated() {
        return Ok(());
    }
    match [asked, generated].into_iter().find_map(|name| tu::found(name, data_dir)) {
        Some(place) => Err(Error::Damaged {
            file: place.display().to_string(),
            problem: format!(
                "it is called like the generated data set `{generated}`; rename it or move it away"
            ),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tu::unlisted;

    #[test]
    fn names_match_in_any_case_and_are_unique() {
        assert!(find("NeckLaces").is_ok_and(|source| source.name == "necklaces"));
        let mut names: Vec<String> =
            sources().iter().map(|source| source.name.to_ascii_lowercase()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), sources().len());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_with_all() {
        let error = open("neckalces", &OpenOptions::default()).expect_err("unknown");
        assert_eq!(error.to_string(), "unknown data set `neckalces`");
        let hint = error.hint().expect("the nearest");
        assert!(hint.starts_with("did you mean `necklaces`?"), "{hint}");
        assert!(sources().iter().all(|source| hint.contains(source.name)), "{hint}");
        let hint = open("zzz", &OpenOptions::default()).expect_err("unknown").hint().expect("all");
        assert!(!hint.contains("did you mean"), "{hint}");
    }

    #[test]
    fn a_generated_data_set_carries_the_name_and_the_rule_of_its_source() {
        let options = OpenOptions { graphs: Some(12), ..OpenOptions::default() };
        for source in &sources()[..7] {
            let dataset = open(source.name, &options).expect("opens");
            assert_eq!((dataset.name(), dataset.split_rule()), (source.name, source.split_rule));
        }
    }

    #[test]
    fn absent_files_are_answered_with_every_place_and_the_download() {
        let options = OpenOptions { data_dir: Some(PathBuf::from("nowhere")), ..OpenOptions::default() };
        let error = open("mutag", &options).expect_err("no such folder");
        assert_eq!(
            error.to_string(),
            "the files of MUTAG are missing: looked at nowhere/tu/MUTAG, nowhere/tu/MUTAG.zip, nowhere/MUTAG, \
             nowhere/MUTAG.zip"
        );
        assert_eq!(
            error.hint().expect("the download"),
            "get them with `togl data fetch MUTAG`; without a network, download \
             https://www.chrsmrrs.com/graphkerneldatasets/MUTAG.zip elsewhere and use `togl data fetch MUTAG \
             --from DIR`"
        );
        let error = open("mutag", &OpenOptions::default()).expect_err("no folder").to_string();
        assert!(error.contains("no folder (none was given)"), "{error}");
    }

    #[test]
    fn a_set_is_available_when_all_its_files_are_there() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let options = OpenOptions { data_dir: Some(folder.path().to_path_buf()), ..OpenOptions::default() };
        let available = |name| is_available(name, &options).expect("listed");
        assert!(available("cycles") && !available("DD") && !available("mnist") && !available("ogbg-molhiv"));
        std::fs::write(folder.path().join("DD.zip"), "").expect("file");
        assert!(!available("DD"), "its folds are missing");
        std::fs::create_dir(folder.path().join("splits")).expect("folder");
        for part in ["train", "val", "test"] {
            std::fs::write(folder.path().join(format!("splits/DD_{part}.index")), "").expect("file");
        }
        assert!(available("dd"));
        for empty in ["tu/MUTAG", "mnist", "ogbg_molhiv", "cifar10"] {
            std::fs::create_dir_all(folder.path().join(empty)).expect("folder");
        }
        for name in ["MUTAG", "mnist", "ogbg-molhiv", "cifar10"] {
            assert!(!available(name), "an empty folder is not {name}");
        }
        for part in ["train-images-idx3", "train-labels-idx1", "t10k-images-idx3"] {
            std::fs::write(folder.path().join(format!("mnist/{part}-ubyte.gz")), "").expect("file");
        }
        assert!(!available("mnist"), "one of four files is missing");
        std::fs::write(folder.path().join("mnist/t10k-labels-idx1-ubyte"), "").expect("file");
        assert!(available("mnist"));
        assert!(is_available("unheard-of", &options).is_err());
    }

    #[test]
    fn sets_that_only_the_data_folder_has_are_known_too() {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (place, name) in [("tu/HOME-MADE", "HOME-MADE"), ("other", "other"), ("tu/MUTAG", "MUTAG")] {
            std::fs::create_dir_all(folder.path().join(place)).expect("folder");
            std::fs::write(folder.path().join(place).join(format!("{name}_A.txt")), "1, 2\n").expect("file");
        }
        std::fs::create_dir_all(folder.path().join("tu/no-edges")).expect("folder");
        std::fs::write(folder.path().join("no-archive.zip"), "text").expect("file");
        assert_eq!(unlisted(folder.path()), ["HOME-MADE", "other"]);
        assert_eq!(unlisted(&folder.path().join("nowhere")), Vec::<String>::new());
        let known = |name| known_or_present(name, Some(folder.path()));
        assert!(known("HOME-MADE").is_ok() && known("other").is_ok() && known("dd").is_ok());
        let error = known("HOME-MDAE").expect_err("unknown").hint().expect("the nearest");
        assert!(error.contains("did you mean `HOME-MADE`? there are cycles, "), "{error}");
        assert!(error.ends_with(", other"), "{error}");
        let refused = |name| known(name).expect_err("cannot be read").to_string();
        assert!(refused("no-edges").ends_with("tu/no-edges: it holds no no-edges_A.txt"));
        assert!(refused("no-archive").contains("no-archive.zip"), "{}", refused("no-archive"));
        for name in ["with space", "Straße"] {
            std::fs::create_dir(folder.path().join(name)).expect("folder");
            assert!(refused(name).contains("are made of English letters"), "{}", refused(name));
        }
        for name in ["..", "tu/HOME-MADE", "", "."] {
            assert!(refused(name).starts_with("unknown data set"), "{}", refused(name));
        }
        let error = known_or_present("HOME-MADE", None).expect_err("no folder").to_string();
        assert!(error.starts_with("unknown data set `HOME-MADE`"), "{error}");
    }

    #[test]
    fn a_set_that_is_called_like_a_generated_one_is_not_silently_replaced_by_it() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let options = OpenOptions { data_dir: Some(folder.path().to_path_buf()), ..OpenOptions::default() };
        assert!(open("cycles", &options).is_ok());
        std::fs::create_dir_all(folder.path().join("tu/Cycles")).expect("folder");
        assert!(open("Cycles", &options).is_ok(), "an empty folder is no set");
        std::fs::write(folder.path().join("tu/Cycles/Cycles_A.txt"), "1, 2\n").expect("file");
        let error = open("Cycles", &options).expect_err("two meanings").to_string();
        assert!(error.ends_with(
            "Cycles: it is called like the generated data set `cycles`; rename it or move it away"
        ));
        assert_eq!(unlisted(folder.path()), Vec::<String>::new());
    }

    #[test]
    fn features_cannot_be_chosen_for_generated_graphs() {
        let options = OpenOptions { features: FeatureChoice::Constant, ..OpenOptions::default() };
        let error = open("cycles", &options).expect_err("features are generated").to_string();
        assert!(error.starts_with("features Constant cannot be used for cycles"), "{error}");
    }

    #[test]
    fn the_number_of_graphs_cannot_be_chosen_for_files() {
        let options = OpenOptions { graphs: Some(10), ..OpenOptions::default() };
        for name in ["DD", "ogbg-molhiv"] {
            let error = open(name, &options).expect_err("all graphs are read").to_string();
            assert!(error.starts_with(&format!("graphs 10 cannot be used for {name}")), "{error}");
        }
    }
}
