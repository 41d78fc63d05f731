//! Where the files of each data set are published, and where they belong in a data folder. Addresses only:
//! nothing is downloaded here.

use std::path::PathBuf;

use crate::catalogue::find;
use crate::error::Error;
use crate::facts::DatasetReader;
use crate::splits::SplitRule;
use crate::tu;

const SPLITS_SITE: &str =
    "https://raw.githubusercontent.com/graphdeeplearning/benchmarking-gnns/master/data/TUs";

/// One file that can be downloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its address.
    pub url: String,
    /// Its place in a data folder.
    pub path: PathBuf,
    /// Its content, where that is known.
    pub sha256: Option<&'static str>,
}

/// The files of a data set; none for a generated one. A name that the catalogue does not know is taken for a
/// set of the TU collection, which has many more.
pub fn origins(name: &str) -> Result<Vec<Origin>, Error> {
    let facts = match find(name) {
        Ok(facts) => facts,
        Err(_) if tu::is_plain_name(name) => return Ok(vec![tu_archive(name)]),
        Err(unknown) => return Err(unknown),
    };
    let (name, mut files) = (facts.name, Vec::new());
    if matches!(facts.reader, DatasetReader::Tu) {
        files.push(tu_archive(name));
        if matches!(facts.split_rule, SplitRule::Published { .. }) {
            let index = |part| origin(SPLITS_SITE, &format!("{name}_{part}.index"), "splits", None);
            files.extend(["train", "val", "test"].map(index));
        }
    }
    let listed = facts.files.iter().map(|(site, folder, file, sha256)| origin(site, file, folder, *sha256));
    files.extend(listed);
    Ok(files)
}

/// How to get the files of a data set that is not there: what every error about missing files says.
pub(crate) fn how_to_get(name: &str) -> String {
    let urls: Vec<String> = origins(name).unwrap_or_default().into_iter().map(|origin| origin.url).collect();
    format!(
        "get them with `togl data fetch {name}`; without a network, download {} elsewhere and use \
         `togl data fetch {name} --from DIR`",
        urls.join(" ")
    )
}

fn tu_archive(name: &str) -> Origin {
    origin(tu::DOWNLOAD_SITE, &format!("{name}.zip"), "tu", None)
}

fn origin(site: &str, file: &str, folder: &str, sha256: Option<&'static str>) -> Origin {
    Origin { url: format!("{site}/{file}"), path: PathBuf::from(folder).join(file), sha256 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::sources;

    #[test]
    fn sets_with_published_folds_come_with_their_index_files() {
        let paths: Vec<_> = origins("dd").expect("known").into_iter().map(|origin| origin.path).collect();
        let expected = ["tu/DD.zip", "splits/DD_train.index", "splits/DD_val.index", "splits/DD_test.index"];
        assert_eq!(paths, expected.map(PathBuf::from));
        assert_eq!(origins("MUTAG").expect("known").len(), 1);
        assert_eq!(origins("mnist").expect("known").len(), 4);
        assert_eq!(origins("cycles").expect("known"), []);
    }

    #[test]
    fn every_listed_set_is_generated_or_has_an_address() {
        for source in sources() {
            let generated = crate::facts::facts(source.name).is_some_and(|facts| facts.is_generated());
            let files = origins(source.name).expect("listed");
            assert_eq!(files.is_empty(), generated, "{}", source.name);
            assert!(files.iter().all(|file| file.path.is_relative() && file.url.starts_with("http")));
        }
    }

    #[test]
    fn an_unlisted_name_is_looked_for_in_the_collection_but_no_path_is_made_of_it() {
        let url = &origins("AIDS").expect("plain")[0].url;
        assert_eq!(url, "https://www.chrsmrrs.com/graphkerneldatasets/AIDS.zip");
        for name in ["../etc", "a/b", "", ".hidden"] {
            assert!(matches!(origins(name), Err(Error::UnknownDataset { .. })), "{name:?}");
        }
    }
}
