//! A data set's files, whether they lie in a folder or in the archive as distributed, read one at a time and
//! never unpacked to disk. It owns the limits that keep a hostile archive from filling the memory; what the
//! lines mean is none of its business.

use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use zip::ZipArchive;

use crate::error::Error;
use crate::lines::Lines;

/// How much a file may hold before it is taken for a mistake or an attack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadLimits {
    /// Bytes of one file after decompression.
    pub(crate) file_bytes: u64,
    /// Bytes of one line.
    pub(crate) line_bytes: u64,
}

impl Default for ReadLimits {
    /// The largest file of the benchmark collections has well under one gigabyte.
    fn default() -> ReadLimits {
        ReadLimits { file_bytes: 2 << 30, line_bytes: 1 << 20 }
    }
}

/// A folder, or a zip archive, of text files.
pub(crate) struct FileSet {
    path: PathBuf,
    container: Container,
    limits: ReadLimits,
}

enum Container {
    Folder,
    Memory(Vec<(String, Vec<u8>)>),
    Archive { archive: Box<ZipArchive<BufReader<File>>>, names: Vec<String> },
}

impl FileSet {
    /// The first of these places that exists; a place that is a file is taken for an archive.
    pub(crate) fn open_first(places: &[PathBuf]) -> Result<Option<FileSet>, Error> {
        for place in places {
            if place.is_dir() {
                let (path, limits) = (place.clone(), ReadLimits::default());
                return Ok(Some(FileSet { path, container: Container::Folder, limits }));
            }
            if place.try_exists().unwrap_or(false) {
                return FileSet::open_archive(place).map(Some);
            }
        }
        Ok(None)
    }

    /// Files that are no files: names and contents.
    pub(crate) fn in_memory(files: Vec<(String, Vec<u8>)>) -> FileSet {
        let path = PathBuf::from("memory");
        FileSet { path, container: Container::Memory(files), limits: ReadLimits::default() }
    }

    fn open_archive(path: &Path) -> Result<FileSet, Error> {
        let refused = |source| Error::Read { path: path.to_path_buf(), source };
        let file = open(path)?.ok_or_else(|| refused(ErrorKind::NotFound.into()))?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|error| refused(error.into()))?;
        let names = archive.file_names_raw().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        let container = Container::Archive { archive: Box::new(archive), names };
        Ok(FileSet { path: path.to_path_buf(), container, limits: ReadLimits::default() })
    }

    #[cfg(test)]
    pub(crate) fn with_limits(self, limits: ReadLimits) -> FileSet {
        FileSet { limits, ..self }
    }

    /// The lines of a file, in any folder of an archive; nothing where there is no such file. A file that is
    /// compressed by itself (`name.gz`) counts as the file.
    pub(crate) fn lines(&mut self, name: &str) -> Result<Option<Lines<'_>>, Error> {
        let limits = self.limits;
        let opened = self.open(name)?;
        Ok(opened.map(|OpenFile { reader, shown, path, .. }| Lines::new(reader, shown, path, limits)))
    }

    /// The same file as bytes.
    pub(crate) fn open(&mut self, name: &str) -> Result<Option<OpenFile<'_>>, Error> {
        match self.container {
            Container::Folder => self.open_in_folder(name),
            Container::Memory(_) => Ok(self.open_in_memory(name)),
            Container::Archive { .. } => self.open_in_archive(name),
        }
    }

    /// The bytes of a file without which the data set cannot be read.
    pub(crate) fn required(&mut self, dataset: &str, name: &str) -> Result<OpenFile<'_>, Error> {
        let missing = self.missing(dataset, name);
        self.open(name)?.ok_or(missing)
    }

    /// The lines of a file without which the data set cannot be read.
    pub(crate) fn required_lines(&mut self, dataset: &str, name: &str) -> Result<Lines<'_>, Error> {
        let missing = self.missing(dataset, name);
        self.lines(name)?.ok_or(missing)
    }

    fn missing(&self, dataset: &str, name: &str) -> Error {
        Error::MissingFiles {
            dataset: dataset.to_string(),
            looked_at: vec![self.path.join(name)],
            hint: "the folder or archive is incomplete; fetch it again".to_string(),
        }
    }

    fn open_in_folder(&self, name: &str) -> Result<Option<OpenFile<'_>>, Error> {
        for candidate in [name.to_string(), format!("{name}.gz")] {
            let path = self.path.join(&candidate);
            if let Some(file) = open(&path)? {
                let shown = path.display().to_string();
                return Ok(Some(OpenFile::new(plain(file, &candidate), shown, path)));
            }
        }
        Ok(None)
    }

    fn open_in_memory(&self, name: &str) -> Option<OpenFile<'_>> {
        let Container::Memory(files) = &self.container else { return None };
        let (_, content) = files.iter().find(|(file, _)| file == name)?;
        Some(OpenFile::new(Box::new(content.as_slice()), name.to_string(), self.path.join(name)))
    }

    fn open_in_archive(&mut self, name: &str) -> Result<Option<OpenFile<'_>>, Error> {
        let Container::Archive { archive, names } = &mut self.container else { return Ok(None) };
        let wanted = [name.to_string(), format!("{name}.gz")];
        let places = |wanted: &String| -> Vec<usize> {
            (0..names.len()).filter(|position| is_member(&names[*position], wanted)).collect()
        };
        let found = wanted.iter().map(places).find(|places| !places.is_empty()).unwrap_or_default();
        let Some(&position) = found.first() else { return Ok(None) };
        if let Some(other) = found.get(1) {
            let problem =
                format!("it holds both {} and {}; keep one of them", names[position], names[*other]);
            return Err(Error::Damaged { file: self.path.display().to_string(), problem });
        }
        let shown = format!("{} ({})", self.path.display(), names[position]);
        let member = archive
            .by_index(position)
            .map_err(|error| Error::Read { path: self.path.clone(), source: error.into() })?;
        // The declared size is a claim; `Lines` counts what really comes.
        if member.size() > self.limits.file_bytes {
            return Err(Error::TooLarge { file: shown, limit: self.limits.file_bytes });
        }
        Ok(Some(OpenFile::new(plain(member, &names[position]), shown, self.path.clone())))
    }
}

/// A file that is really one, if it is there: a pipe would make everybody wait, and a device may never end.
pub(crate) fn open(path: &Path) -> Result<Option<File>, Error> {
    let refused = |source| Error::Read { path: path.to_path_buf(), source };
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() || found.is_dir() => File::open(path).map(Some).map_err(refused),
        Ok(_) => {
            let problem = "this is not a file, but a device or a pipe".to_string();
            Err(Error::Damaged { file: path.display().to_string(), problem })
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(refused(source)),
    }
}

/// One file, read from its start.
pub(crate) struct OpenFile<'a> {
    reader: Box<dyn Read + 'a>,
    /// How errors call it.
    pub(crate) shown: String,
    path: PathBuf,
}

impl<'a> OpenFile<'a> {
    pub(crate) fn new(reader: Box<dyn Read + 'a>, shown: String, path: PathBuf) -> OpenFile<'a> {
        OpenFile { reader, shown, path }
    }

    /// Up to `most` further bytes, fewer at the end of the file. Memory is taken as they come, so a wrong
    /// number does no harm.
    pub(crate) fn up_to(&mut self, most: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(most as u64).read_to_end(&mut bytes);
        read.map(|_| bytes).map_err(|source| Error::Read { path: self.path.clone(), source })
    }

    /// Exactly this many further bytes.
    pub(crate) fn exactly(&mut self, count: usize, what: &str) -> Result<Vec<u8>, Error> {
        let bytes = self.up_to(count)?;
        if bytes.len() == count {
            return Ok(bytes);
        }
        Err(self.damaged(format!("the file ends after {} of {count} bytes of its {what}", bytes.len())))
    }

    /// What is wrong with the file.
    pub(crate) fn damaged(&self, problem: String) -> Error {
        Error::Damaged { file: self.shown.clone(), problem }
    }
}

fn is_member(member: &str, wanted: &str) -> bool {
    member.strip_suffix(wanted).is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
}

fn plain<'a>(reader: impl Read + 'a, name: &str) -> Box<dyn Read + 'a> {
    if name.ends_with(".gz") { Box::new(GzDecoder::new(reader)) } else { Box::new(reader) }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::Write;

    use super::*;

    /// Writes an archive whose members have these names and contents.
    pub(crate) fn write_archive(path: &Path, members: &[(&str, &[u8])]) {
        let mut writer = zip::ZipWriter::new(File::create(path).expect("temporary file"));
        for (name, content) in members {
            let options = zip::write::SimpleFileOptions::default();
            writer.start_file(*name, options).expect("member");
            writer.write_all(content).expect("content");
        }
        writer.finish().expect("archive");
    }

    fn first_line(files: &mut FileSet, name: &str) -> Option<String> {
        let mut lines = files.lines(name).expect("readable")?;
        lines.advance().expect("a line").then(|| String::from_utf8_lossy(lines.text()).into_owned())
    }

    #[test]
    fn a_folder_and_an_archive_hold_the_same_files() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let unpacked = folder.path().join("X");
        std::fs::create_dir(&unpacked).expect("folder");
        std::fs::write(unpacked.join("X_A.txt"), "1, 2\n").expect("file");
        let packed = folder.path().join("X.zip");
        write_archive(&packed, &[("X/other_X_A.txt", b"9, 9\n"), ("X/X_A.txt", b"1, 2\n")]);
        for place in [unpacked, packed] {
            let places = [folder.path().join("absent"), place];
            let mut files = FileSet::open_first(&places).expect("readable").expect("found");
            assert_eq!(first_line(&mut files, "X_A.txt").as_deref(), Some("1, 2"));
            assert_eq!(first_line(&mut files, "X_B.txt"), None);
        }
    }

    #[test]
    fn a_member_that_is_compressed_by_itself_is_found_under_its_plain_name() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("set.zip");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"7\n").expect("in memory");
        write_archive(&path, &[("hiv/raw/labels.csv.gz", &encoder.finish().expect("in memory"))]);
        let mut files = FileSet::open_first(&[path]).expect("readable").expect("found");
        assert_eq!(first_line(&mut files, "raw/labels.csv").as_deref(), Some("7"));
    }

    #[test]
    fn an_archive_that_swells_beyond_the_limit_is_refused() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("bomb.zip");
        write_archive(&path, &[("bomb.txt", &vec![b'0'; 1 << 20])]);
        let limits = ReadLimits { file_bytes: 1 << 16, line_bytes: 1 << 10 };
        let mut files = FileSet::open_first(&[path]).expect("readable").expect("found").with_limits(limits);
        let Err(error) = files.lines("bomb.txt") else { panic!("a bomb was opened") };
        assert!(error.to_string().contains("more than 65536 bytes"), "{error}");
    }

    #[test]
    fn a_damaged_archive_is_an_error_not_other_content() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("X.zip");
        let content: String = (0..2000).map(|number| format!("{number}\n")).collect();
        write_archive(&path, &[("X_A.txt", content.as_bytes())]);
        let sound = std::fs::read(&path).expect("archive");
        let read_all = |bytes: &[u8]| -> Result<Vec<i64>, Error> {
            std::fs::write(&path, bytes).expect("temporary file");
            let mut files = FileSet::open_first(std::slice::from_ref(&path))?.expect("found");
            files.required_lines("X", "X_A.txt")?.integers(2000, "lines")
        };
        assert_eq!(read_all(&sound).expect("sound").len(), 2000);
        let mut flipped = sound.clone();
        flipped[sound.len() / 2] ^= 0x10;
        assert!(read_all(&flipped).is_err(), "a flipped bit");
        assert!(read_all(&sound[..sound.len() / 2]).is_err(), "half of the archive");
    }

    #[test]
    fn a_file_that_is_no_archive_is_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("X.zip");
        std::fs::write(&path, "<html>not found</html>").expect("file");
        let Err(error) = FileSet::open_first(&[path]) else { panic!("html was opened") };
        assert!(error.to_string().contains("X.zip"), "{error}");
    }
}
