//! Names to data sets. A `Source` knows how to open one data set; the catalogue lists them all and answers a
//! wrong name with the nearest right one. It opens only what the options point to and reads no environment.

use std::path::PathBuf;

use crate::cache::{CacheOutcome, Slot};
use crate::clique_planting::CliquePlanting;
use crate::cluster::Cluster;
use crate::cycles::Cycles;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::facts::facts;
use crate::features::FeatureChoice;
use crate::fingerprint;
use crate::images;
use crate::molhiv::Molhiv;
use crate::necklaces::Necklaces;
use crate::no_cycles::NoCycles;
use crate::pattern::Pattern;
use crate::progress::{Observer, nobody};
use crate::sphere_torus::SphereTorus;
use crate::splits::SplitRule;
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
            Err(bad_option(dataset, "graphs", graphs.to_string(), reason))
        })
    }

    /// The same for features: generated graphs have their own.
    pub(crate) fn refuse_features(&self, dataset: &str) -> Result<(), Error> {
        match self.features {
            FeatureChoice::AsPublished => Ok(()),
            other => {
                let reason = "generated graphs come with their own features";
                Err(bad_option(dataset, "features", format!("{other:?}"), reason))
            }
        }
    }
}

fn bad_option(dataset: &str, option: &'static str, value: String, reason: &str) -> Error {
    Error::BadOption { dataset: dataset.to_string(), option, value, reason: reason.to_string() }
}

/// One data set that can be opened.
pub trait Source: Send + Sync {
    /// The name in the catalogue.
    fn name(&self) -> &str;
    /// One line for people who choose.
    fn summary(&self) -> &str;
    /// How it is split; known without the data.
    fn split_rule(&self) -> SplitRule;
    /// Reads or generates it.
    fn open(&self, options: &OpenOptions) -> Result<Dataset, Error>;
    /// The same, and tells the observer how far it is where that takes long.
    fn open_observed(&self, options: &OpenOptions, _observer: Observer<'_>) -> Result<Dataset, Error> {
        self.open(options)
    }
    /// The files and folders that opening it would read; none for a generator.
    fn inputs(&self, _options: &OpenOptions) -> Vec<PathBuf> {
        Vec::new()
    }
}

static SOURCES: [&dyn Source; 23] = [
    &Cycles,
    &Necklaces,
    &NoCycles,
    &SphereTorus { dimension: 3 },
    &CliquePlanting,
    &Pattern,
    &Cluster,
    &tu::COLLAB,
    &tu::DD,
    &tu::ENZYMES,
    &tu::IMDB_BINARY,
    &tu::IMDB_MULTI,
    &tu::MUTAG,
    &tu::NCI1,
    &tu::NCI109,
    &tu::PROTEINS,
    &tu::PROTEINS_FULL,
    &tu::PTC_MR,
    &tu::REDDIT_BINARY,
    &tu::REDDIT_MULTI_5K,
    &Molhiv,
    &images::MNIST,
    &images::CIFAR10,
];

/// Every data set there is, in the order of the catalogue.
pub fn sources() -> &'static [&'static dyn Source] {
    &SOURCES
}

/// The source of this name, whatever its case.
pub fn find(name: &str) -> Result<&'static dyn Source, Error> {
    let found = SOURCES.iter().find(|source| source.name().eq_ignore_ascii_case(name));
    found.copied().ok_or_else(|| Error::UnknownDataset { name: name.to_string(), hint: hint_for(name) })
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
pub fn open_observed(name: &str, options: &OpenOptions, observer: Observer<'_>) -> Result<Opened, Error> {
    let resolved = resolve(name, options)?;
    let source = resolved.source();
    let Some(slot) = slot(source, options)? else {
        let dataset = source.open_observed(options, observer)?;
        return Ok(Opened { dataset, cache: CacheOutcome::Off });
    };
    let (dataset, cache) = slot.open_or_make(|| source.open_observed(options, observer))?;
    Ok(Opened { dataset, cache })
}

/// Whether everything that opening would read is there; a generated set needs nothing. Files are looked for,
/// not into.
pub fn is_available(name: &str, options: &OpenOptions) -> Result<bool, Error> {
    let resolved = resolve(name, options)?;
    let inputs = resolved.source().inputs(options);
    let generated = facts(name).is_some_and(|facts| facts.is_generated());
    Ok(generated || !inputs.is_empty() && inputs.iter().all(|input| input.exists()))
}

/// Whether a fast copy of exactly this data set lies in the cache folder, judged by its header.
pub fn is_cached(name: &str, options: &OpenOptions) -> Result<bool, Error> {
    Ok(slot(resolve(name, options)?.source(), options)?.is_some_and(|slot| slot.is_present()))
}

fn slot(source: &dyn Source, options: &OpenOptions) -> Result<Option<Slot>, Error> {
    let Some(folder) = &options.cache_dir else { return Ok(None) };
    let request = fingerprint::of_request(source.name(), options);
    let input = fingerprint::of_input(&request, options.data_dir.as_deref(), &source.inputs(options))?;
    Ok(Some(Slot::new(folder, source.name(), &request, input)))
}

/// A source of the catalogue, or one made for files that it does not know.
enum Resolved {
    Listed(&'static dyn Source),
    Unlisted(tu::Unlisted),
}

impl Resolved {
    fn source(&self) -> &dyn Source {
        match self {
            Resolved::Listed(source) => *source,
            Resolved::Unlisted(source) => source,
        }
    }
}

fn resolve(name: &str, options: &OpenOptions) -> Result<Resolved, Error> {
    find(name).map(Resolved::Listed).or_else(|unknown| {
        let found = tu::find_unlisted(name, options.data_dir.as_deref());
        found.map(Resolved::Unlisted).ok_or(unknown)
    })
}

fn hint_for(name: &str) -> String {
    let wanted = name.to_ascii_lowercase();
    let similarity = |known: &str| strsim::jaro_winkler(&wanted, &known.to_ascii_lowercase());
    let nearest =
        SOURCES.iter().map(|source| source.name()).max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let all: Vec<&str> = SOURCES.iter().map(|source| source.name()).collect();
    match nearest.filter(|known| similarity(known) > 0.8) {
        Some(known) => format!("did you mean `{known}`? there are {}", all.join(", ")),
        None => format!("there are {}", all.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_in_any_case_and_are_unique() {
        assert_eq!(find("NeckLaces").expect("known").name(), "necklaces");
        let mut names: Vec<String> =
            sources().iter().map(|source| source.name().to_ascii_lowercase()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), sources().len());
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_with_all() {
        let error = open("neckalces", &OpenOptions::default()).expect_err("unknown").to_string();
        assert!(
            error.starts_with("unknown data set `neckalces`\n\nhint: did you mean `necklaces`?"),
            "{error}"
        );
        assert!(sources().iter().all(|source| error.contains(source.name())), "{error}");
        let error = open("zzz", &OpenOptions::default()).expect_err("unknown").to_string();
        assert!(!error.contains("did you mean"), "{error}");
    }

    #[test]
    fn a_generated_data_set_carries_the_name_and_the_rule_of_its_source() {
        let options = OpenOptions { graphs: Some(12), ..OpenOptions::default() };
        for source in &sources()[..7] {
            let dataset = source.open(&options).expect("opens");
            assert_eq!((dataset.name(), dataset.split_rule()), (source.name(), source.split_rule()));
        }
    }

    #[test]
    fn absent_files_are_answered_with_every_place_and_the_download() {
        let options = OpenOptions { data_dir: Some(PathBuf::from("nowhere")), ..OpenOptions::default() };
        let error = open("mutag", &options).expect_err("no such folder").to_string();
        assert_eq!(
            error,
            "the files of MUTAG are missing: looked at nowhere/tu/MUTAG, nowhere/tu/MUTAG.zip, nowhere/MUTAG, \
             nowhere/MUTAG.zip\n\nhint: download https://www.chrsmrrs.com/graphkerneldatasets/MUTAG.zip into \
             nowhere/tu"
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
        assert!(is_available("unheard-of", &options).is_err());
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
