//! Frames of folds in files: Parquet, Arrow IPC, CSV and NDJSON, told apart by the file's name. Writing is atomic;
//! reading keeps within limits, checks digest and schema, and words what does not fit. Owns no meaning of any column.

mod contained;
mod declared;
mod digest;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::{
    ArrowDataType, ArrowSchema, ChunkApply, CompatLevel, DataFrame, DataType, IntoColumn, PolarsError,
    PolarsResult, Schema,
};
use polars_arrow::io::ipc::read::read_file_metadata;
use polars_io::prelude::*;
use togl_durable::Draft;
use togl_sweeps::bounded;

use self::contained::contained;
pub(crate) use self::declared::Declared;
use crate::atomic;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::{impossible, ndjson, schema, spreadsheet};

/// A file format for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// Apache Parquet: the one to keep, small and typed.
    Parquet,
    /// Arrow IPC (Feather version 2): typed as well, larger, and fast to map into memory elsewhere.
    Arrow,
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object a line.
    Ndjson,
}

impl FileFormat {
    /// The format that a file's name promises.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Ok(Self::Parquet),
            "arrow" | "ipc" | "feather" => Ok(Self::Arrow),
            "csv" => Ok(Self::Csv),
            "ndjson" | "jsonl" => Ok(Self::Ndjson),
            _ => Err(Error::Unfit(format!(
                "cannot tell the format of `{}` from its name; use .parquet, .arrow, .csv or .ndjson",
                path.display()
            ))),
        }
    }
}

impl FoldFrame {
    /// Writes the frame in the format that the file's name promises; a reader never sees half of it.
    pub fn write(&self, path: &Path) -> Result<()> {
        atomic::publish(self.draft(path)?).map(drop)
    }

    /// Reads what [`FoldFrame::write`] wrote, or a file with the same columns from elsewhere.
    pub fn read(path: &Path) -> Result<Self> {
        FileFormat::of(path)?; // a name that says nothing is told before a file that is not there
        Self::read_bytes(contents(path)?, path)
    }

    /// Reads what stands in a file of this name.
    pub fn read_bytes(bytes: Vec<u8>, path: &Path) -> Result<Self> {
        let format = FileFormat::of(path)?;
        let damaged = || Err(Error::bad_file(path, in_one_line(&declared::contradictory())));
        contained(|| Self::understood(format, bytes, path)).unwrap_or_else(damaged)
    }

    fn understood(format: FileFormat, bytes: Vec<u8>, path: &Path) -> Result<Self> {
        let refuse = |error| Error::bad_file(path, in_one_line(&error));
        let (data, digest) = match format {
            FileFormat::Parquet => read_parquet(bytes).map_err(refuse)?,
            FileFormat::Arrow => read_arrow(bytes).map_err(|error| match error {
                PolarsError::IO { .. } => Error::bad_file(path, "it is no Arrow file, or cut off"),
                other => refuse(other),
            })?,
            FileFormat::Csv => (read_csv(bytes).map_err(refuse)?, None),
            FileFormat::Ndjson => (ndjson::read(&bytes, path)?, None),
        };
        let origin = format!("`{}`", path.display());
        if data.height() == 0 {
            return Err(Error::Empty { origin });
        }
        if let Some(digest) = &digest {
            digest::check(&data, digest).map_err(refuse)?;
        }
        let data = schema::conform(&data, &origin)?;
        impossible::refuse_impossible(&data, &origin)?;
        let frame = Self::from_data(&data, &origin)?;
        let could_have_one = matches!(format, FileFormat::Parquet | FileFormat::Arrow);
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(if could_have_one && digest.is_none() { frame.without_digest(name) } else { frame })
    }

    /// Reads several files as one frame, in the order given. A fold that is in two of them is refused with both
    /// named, because only a person knows which one to keep.
    pub fn read_all(paths: &[PathBuf]) -> Result<Self> {
        let frames: Vec<Self> = paths.iter().map(|path| Self::read(path)).collect::<Result<_>>()?;
        let keys: Vec<HashSet<String>> = match frames.as_slice() {
            [] | [_] => Vec::new(),
            several => several.iter().map(Self::written_keys).collect::<Result<_>>()?,
        };
        Self::concat(frames).map_err(|error| match error {
            Error::DuplicateFolds { folds } => {
                let holders = |fold: &String| {
                    let files = paths.iter().zip(&keys).filter(|(_, keys)| keys.contains(fold));
                    let names: Vec<String> = files.map(|(path, _)| path.display().to_string()).collect();
                    format!("{fold} ({})", names.join(" and "))
                };
                Error::DuplicateFolds { folds: folds.iter().map(holders).collect() }
            }
            other => other,
        })
    }

    fn written_keys(&self) -> Result<HashSet<String>> {
        Ok(self.keys()?.iter().map(ToString::to_string).collect())
    }

    /// Writes the frame beside `path`, to be published together with other files.
    pub(crate) fn draft(&self, path: &Path) -> Result<Draft> {
        draft(self.data(), path)
    }
}

/// Writes data beside `path` in the format that the file's name promises.
pub(crate) fn draft(data: &DataFrame, path: &Path) -> Result<Draft> {
    let format = FileFormat::of(path)?;
    atomic::draft(path, |writer| write(format, writer, &mut data.clone()))
}

/// The bytes of a file that is really one; devices and pipes may never end.
pub(crate) fn contents(path: &Path) -> Result<Vec<u8>> {
    let unreadable = |source| Error::io("cannot read", path, source);
    let kind = fs::metadata(path).map_err(unreadable)?;
    if kind.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    if !kind.is_file() {
        return Err(Error::bad_file(path, "it is not a file, but a device or a pipe"));
    }
    File::open(path).and_then(|file| bounded::bytes(file, bounded::TABLE)).map_err(unreadable)
}

fn write_as(format: FileFormat, writer: &mut impl Write, data: &mut DataFrame) -> PolarsResult<()> {
    match format {
        FileFormat::Parquet => {
            let digest = vec![(digest::KEY.to_owned(), digest::digest(data)?)];
            let writer = ParquetWriter::new(writer);
            let writer = writer.with_key_value_metadata(Some(KeyValueMetadata::from_static(digest)));
            writer.finish(data).map(|_| ())
        }
        FileFormat::Arrow => {
            let digest = [(digest::KEY.into(), digest::digest(data)?.into())];
            // The oldest layout of text, which every reader of Arrow knows.
            let mut writer = IpcWriter::new(writer)
                .with_compression(Some(IpcCompression::LZ4))
                .with_compat_level(CompatLevel::oldest());
            writer.set_custom_schema_metadata(Arc::new(digest.into_iter().collect()));
            writer.finish(data)
        }
        FileFormat::Csv => CsvWriter::new(writer).finish(&mut each_text(data, spreadsheet::guarded)?),
        FileFormat::Ndjson => JsonWriter::new(writer).with_json_format(JsonFormat::JsonLines).finish(data),
    }
}

/// The rows and the digest that the file carries, if it does.
fn read_parquet(bytes: Vec<u8>) -> PolarsResult<(DataFrame, Option<String>)> {
    Declared::check_account(&bytes)?;
    let mut reader = ParquetReader::new(Cursor::new(&bytes));
    let metadata = reader.get_metadata()?.clone();
    refuse_other_types(reader.schema()?.as_ref())?;
    Declared::by_parquet(&bytes, &metadata)?.check(bytes.len())?;
    let carried = metadata.key_value_metadata().iter().flatten().find(|pair| pair.key == digest::KEY);
    let digest = carried.and_then(|pair| pair.value.clone());
    Ok((reader.finish()?, digest))
}

/// The same for Arrow.
fn read_arrow(bytes: Vec<u8>) -> PolarsResult<(DataFrame, Option<String>)> {
    let metadata = read_file_metadata(&mut Cursor::new(&bytes))?;
    refuse_other_types(&metadata.schema)?;
    let blocks = metadata.dictionaries.iter().flatten().chain(&metadata.blocks);
    Declared::by_arrow(&bytes, metadata.schema.len(), blocks)?.check(bytes.len())?;
    let carried = metadata.custom_schema_metadata.as_ref().and_then(|pairs| pairs.get(digest::KEY));
    let digest = carried.map(ToString::to_string);
    Ok((IpcReader::new(Cursor::new(bytes)).finish()?, digest))
}

/// This build of Polars has only plain types and panics on others, so they are refused before it sees them.
fn refuse_other_types(schema: &ArrowSchema) -> PolarsResult<()> {
    let Some(field) = schema.iter_values().find(|field| !is_plain(field.dtype())) else { return Ok(()) };
    let reason =
        format!("column `{}` has the type {:?}; leave it out or make it text", field.name, field.dtype());
    Err(PolarsError::SchemaMismatch(reason.into()))
}

fn is_plain(kind: &ArrowDataType) -> bool {
    use ArrowDataType::{
        Boolean, Float32, Float64, Int32, Int64, LargeUtf8, Null, UInt32, UInt64, Utf8, Utf8View,
    };
    let plain = [Boolean, Float32, Float64, Int32, Int64, LargeUtf8, Null, UInt32, UInt64, Utf8, Utf8View];
    plain.contains(kind)
}

fn read_csv(bytes: Vec<u8>) -> PolarsResult<DataFrame> {
    let mut header = String::new();
    bytes.as_slice().read_line(&mut header)?;
    let names: Vec<&str> = header
        .trim_end()
        .split(',')
        .map(|name| name.trim_start_matches('\u{feff}').trim_matches('"'))
        .collect();
    let rows = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
    Declared { rows, columns: names.len() as u64, bytes: 0 }.check(bytes.len())?;
    let data = CsvReadOptions::default()
        .with_schema_overwrite(Some(Arc::new(known_types(|name| names.contains(&name)))))
        .with_infer_schema_length(None)
        .into_reader_with_file_handle(Cursor::new(bytes))
        .finish()?;
    each_text(&data, |text| spreadsheet::read_back(text).into())
}

/// The frame with every text and every column's name changed.
fn each_text(data: &DataFrame, change: impl Fn(&str) -> Cow<'_, str> + Copy) -> PolarsResult<DataFrame> {
    let columns = data.columns().iter().map(|column| {
        let column = match column.dtype() {
            DataType::String => column.str()?.apply_values(change).into_column(),
            _ => column.clone(),
        };
        let name = change(column.name()).into_owned();
        Ok(column.with_name(name.into()))
    });
    DataFrame::new(data.height(), columns.collect::<PolarsResult<_>>()?)
}

fn known_types(present: impl Fn(&str) -> bool) -> Schema {
    schema::columns()
        .filter(|spec| present(spec.name))
        .map(|spec| polars::prelude::Field::new(spec.name.into(), spec.kind.data_type()))
        .collect()
}

/// A writer that remembers what the system said: the library wraps it into words of its own.
struct Remembering<'a, W> {
    writer: &'a mut W,
    failed: Option<io::Error>,
}

impl<W: Write> Write for Remembering<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes).inspect_err(|error| {
            self.failed = error.raw_os_error().map(io::Error::from_raw_os_error);
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Writes a frame; what goes wrong is said in the words of the system where it said any.
fn write(format: FileFormat, writer: &mut impl Write, data: &mut DataFrame) -> io::Result<()> {
    let mut writer = Remembering { writer, failed: None };
    write_as(format, &mut writer, data)
        .map_err(|error| writer.failed.take().unwrap_or_else(|| io::Error::other(error)))
}

/// Polars explains in paragraphs that advise on its own options; the first line is what happened.
fn in_one_line(error: &PolarsError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches([':', '.']).to_owned()
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
