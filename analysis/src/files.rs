//! Frames of folds in files: Parquet, Arrow IPC, CSV and NDJSON, told apart by the file's name. Writing is atomic;
//! reading checks the schema and words what does not fit. Owns no meaning of any column.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polars::prelude::{
    ArrowDataType, ArrowSchema, CompatLevel, DataFrame, PolarsError, PolarsResult, Schema,
};
use polars_io::prelude::*;

use crate::atomic::Staged;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::{impossible, ndjson, schema};

/// A file format for frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Apache Parquet: the one to keep, small and typed.
    Parquet,
    /// Arrow IPC (Feather version 2): typed as well, larger, and fast to map into memory elsewhere.
    Arrow,
    /// Comma-separated values with a header line.
    Csv,
    /// One JSON object a line.
    Ndjson,
}

impl Format {
    /// The format that a file's name promises.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        match extension.to_ascii_lowercase().as_str() {
            "parquet" | "pq" => Ok(Self::Parquet),
            "arrow" | "ipc" | "feather" => Ok(Self::Arrow),
            "csv" => Ok(Self::Csv),
            "ndjson" | "jsonl" => Ok(Self::Ndjson),
            _ => Err(Error::UnknownFormat { path: path.to_owned() }),
        }
    }
}

impl FoldFrame {
    /// Writes the frame in the format that the file's name promises; a reader never sees half of it.
    pub fn write(&self, path: &Path) -> Result<()> {
        self.stage(path)?.publish().map(|_| ())
    }

    /// Reads what [`FoldFrame::write`] wrote, or a file with the same columns from elsewhere.
    pub fn read(path: &Path) -> Result<Self> {
        let format = Format::of(path)?;
        let unreadable = |source| Error::io("cannot read", path, source);
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.is_dir() {
            return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
        }
        let refuse = |error| Error::bad_file(path, in_one_line(&error));
        let data = match format {
            Format::Parquet => read_parquet(file).map_err(refuse)?,
            Format::Arrow => read_arrow(file).map_err(|error| match error {
                PolarsError::IO { .. } => Error::bad_file(path, "it is no Arrow file, or cut off"),
                other => refuse(other),
            })?,
            Format::Csv => read_csv(file, path).map_err(refuse)?,
            Format::Ndjson => ndjson::read(BufReader::new(file), path)?,
        };
        let origin = format!("`{}`", path.display());
        if data.height() == 0 {
            return Err(Error::Empty { origin });
        }
        let data = schema::conform(&data, &origin)?;
        impossible::refuse_impossible(&data, &origin)?;
        Self::from_data(&data, &origin)
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
    pub(crate) fn stage(&self, path: &Path) -> Result<Staged> {
        let format = Format::of(path)?;
        Staged::write(path, |writer| {
            let written = write_as(format, writer, &mut self.data().clone());
            written.map_err(|error| Error::io("cannot write", path, std::io::Error::other(error)))
        })
    }
}

fn write_as(format: Format, writer: &mut impl Write, data: &mut DataFrame) -> PolarsResult<()> {
    match format {
        Format::Parquet => ParquetWriter::new(writer).finish(data).map(|_| ()),
        // The oldest layout of text, which every reader of Arrow knows.
        Format::Arrow => IpcWriter::new(writer)
            .with_compression(Some(IpcCompression::LZ4))
            .with_compat_level(CompatLevel::oldest())
            .finish(data),
        Format::Csv => CsvWriter::new(writer).finish(data),
        Format::Ndjson => JsonWriter::new(writer).with_json_format(JsonFormat::JsonLines).finish(data),
    }
}

fn read_parquet(file: File) -> PolarsResult<DataFrame> {
    let mut reader = ParquetReader::new(file);
    let schema = reader.schema()?;
    refuse_other_types(&schema)?;
    reader.finish()
}

fn read_arrow(file: File) -> PolarsResult<DataFrame> {
    let mut reader = IpcReader::new(file);
    let schema = reader.schema()?;
    refuse_other_types(&schema)?;
    reader.finish()
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

fn read_csv(file: File, path: &Path) -> PolarsResult<DataFrame> {
    let mut header = String::new();
    BufReader::new(File::open(path)?).read_line(&mut header)?;
    let names: Vec<&str> = header
        .trim_end()
        .split(',')
        .map(|name| name.trim_start_matches('\u{feff}').trim_matches('"'))
        .collect();
    CsvReadOptions::default()
        .with_schema_overwrite(Some(Arc::new(known_types(|name| names.contains(&name)))))
        .with_infer_schema_length(None)
        .into_reader_with_file_handle(file)
        .finish()
}

fn known_types(present: impl Fn(&str) -> bool) -> Schema {
    schema::columns()
        .filter(|spec| present(spec.name))
        .map(|spec| polars::prelude::Field::new(spec.name.into(), spec.kind.data_type()))
        .collect()
}

/// Polars explains in paragraphs that advise on its own options; the first line is what happened.
fn in_one_line(error: &PolarsError) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim_end_matches([':', '.']).to_owned()
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
