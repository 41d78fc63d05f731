//! Requirements of files that others wrote or a disk changed: read within limits, damage noticed, nothing taken on trust.

use std::path::Path;

use togl_sweeps::spec::TableSpec;
use togl_sweeps::trial::Backbone;

use super::tests::{awkward_frame, folder_with};
use super::*;
use crate::test_folds::{fold, frame, trial};

/// A file as another program would write it: the same rows, nothing of ours in its metadata.
fn written_elsewhere(frame: &FoldFrame, format: FileFormat) -> Vec<u8> {
    let (mut bytes, mut data) = (Vec::new(), frame.data().clone());
    match format {
        FileFormat::Parquet => ParquetWriter::new(&mut bytes).finish(&mut data).map(|_| ()).unwrap(),
        FileFormat::Arrow => IpcWriter::new(&mut bytes).finish(&mut data).unwrap(),
        FileFormat::Csv | FileFormat::Ndjson => write_as(format, &mut bytes, &mut data).unwrap(),
    }
    bytes
}

#[test]
fn a_file_that_another_program_wrote_is_read_and_marked() {
    let frame = awkward_frame();
    for (name, format) in [("f.parquet", FileFormat::Parquet), ("f.arrow", FileFormat::Arrow)] {
        let read = FoldFrame::read_bytes(written_elsewhere(&frame, format), Path::new(name)).unwrap();
        assert_eq!(read.data(), frame.data());
        let remark = format!("from {name}, which another program wrote: no digest tells of damage");
        assert_eq!(read.remark(), Some(remark.clone()));
        let table =
            crate::Table::make(&read, &TableSpec::default(), &crate::Plan::of_frame("x", &read).unwrap());
        assert!(table.unwrap().notes.contains(&remark), "{name}");
        let (_folder, ours) = folder_with(&frame, name);
        assert_eq!(FoldFrame::read(&ours).unwrap().remark(), None);
    }
    for (name, format) in [("f.csv", FileFormat::Csv), ("f.ndjson", FileFormat::Ndjson)] {
        let read = FoldFrame::read_bytes(written_elsewhere(&frame, format), Path::new(name)).unwrap();
        assert_eq!(read.remark(), None, "{name} could not carry a digest");
    }
}

#[test]
fn rows_that_do_not_have_the_digest_of_their_file_are_damage() {
    let frame = awkward_frame();
    let mut bytes = Vec::new();
    let other = KeyValueMetadata::from_static(vec![(digest::KEY.to_owned(), "0".repeat(64))]);
    ParquetWriter::new(&mut bytes)
        .with_key_value_metadata(Some(other))
        .finish(&mut frame.data().clone())
        .unwrap();
    let error = FoldFrame::read_bytes(bytes, Path::new("f.parquet")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read `f.parquet`: it is damaged: "), "{error}");
}

#[test]
fn a_small_file_that_says_it_is_huge_is_refused_before_it_is_unpacked() {
    let long = "a".repeat(8 << 20);
    let config = trial(&long, Backbone::Gcn, 2);
    let mut data = frame([fold(0, &config, 0, 0.5)]).data().clone();
    for format in [FileFormat::Parquet, FileFormat::Arrow] {
        let mut bytes = Vec::new();
        write_as(format, &mut bytes, &mut data).unwrap();
        let declared = match format {
            FileFormat::Parquet => {
                let mut reader = ParquetReader::new(Cursor::new(&bytes));
                Declared::by_parquet(&bytes, reader.get_metadata().unwrap()).unwrap()
            }
            _ => {
                let metadata = read_file_metadata(&mut Cursor::new(&bytes)).unwrap();
                Declared::by_arrow(&bytes, metadata.schema.len(), metadata.blocks.iter()).unwrap()
            }
        };
        assert!(bytes.len() < 1 << 20 && declared.bytes >= 8 << 20, "{format:?}: {declared:?}");
        declared.check(bytes.len()).unwrap();
        let larger = Declared { bytes: declared.bytes * 1000, ..declared };
        let error = larger.check(bytes.len()).unwrap_err().to_string();
        assert!(error.contains("at most"), "{error}");
    }
}

#[test]
fn a_few_lines_cannot_ask_for_a_field_of_values_that_fills_the_memory() {
    let columns: Vec<String> = (0..9_000).map(|n| format!("c{n}")).collect();
    let csv = format!("{}\n{}", columns.join(","), "\n".repeat(20_000));
    let ndjson: String = (0..20_000).map(|n| format!("{{\"c{}\":1}}\n", n % 9_000)).collect();
    for (name, text) in [("f.csv", csv), ("f.ndjson", ndjson)] {
        let error = FoldFrame::read_bytes(text.into_bytes(), Path::new(name)).unwrap_err().to_string();
        assert!(error.contains("it says that it holds 27") && error.contains("MiB of values"), "{error}");
    }
    let many: String = (0..10_001).map(|n| format!("{{\"c{n}\":1}}\n")).collect();
    let error = FoldFrame::read_bytes(many.into_bytes(), Path::new("f.ndjson")).unwrap_err().to_string();
    assert!(error.contains("10001 columns"), "{error}");
}

#[test]
fn a_pipe_or_a_device_is_no_file_of_folds() {
    let folder = tempfile::tempdir().unwrap();
    let device = folder.path().join("zero.csv");
    std::os::unix::fs::symlink("/dev/zero", &device).unwrap();
    let pipe = folder.path().join("pipe.parquet");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for path in [device, pipe] {
        let error = FoldFrame::read(&path).unwrap_err().to_string();
        assert!(error.ends_with("it is not a file, but a device or a pipe"), "{error}");
    }
}

/// A disk that is full after so many bytes.
struct FullDisk(usize);

impl Write for FullDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::Error::from_raw_os_error(28)) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_said_in_the_words_of_the_system() {
    for format in [FileFormat::Parquet, FileFormat::Arrow, FileFormat::Csv, FileFormat::Ndjson] {
        let said = write(format, &mut FullDisk(100), &mut awkward_frame().data().clone()).unwrap_err();
        assert_eq!(said.kind(), io::ErrorKind::StorageFull, "{format:?}: {said}");
    }
}
