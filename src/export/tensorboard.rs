//! Event files of TensorBoard: one a fold, each in a folder of its own, whole or not there, and the same bytes whenever they are
//! made of the same result. Owns the messages, which are those of TensorFlow's `event.proto` and `summary.proto` as far as they
//! are used here. TensorBoard shows scalars in single precision; the exact numbers stand in the text beside them.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use prost::Message;
use togl_analysis::FoldRow;
use togl_durable::{Draft, EVERYBODYS};

use super::{digest, ended, epoch, numbers, provenance, records, settings, started};

/// More runs than these make TensorBoard slow.
pub const COMFORTABLE: usize = 250;

/// The name that TensorBoard looks for has `tfevents` in it. Without a time, so that a newer result takes the place of an older.
const FILE: &str = "events.out.tfevents.togl";

/// What became of an export.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Files that were new or had another content.
    pub written: usize,
    /// Files that were there already.
    pub kept: usize,
}

/// Writes the files of these folds below `folder`.
pub fn write(folder: &Path, rows: &[FoldRow]) -> io::Result<Written> {
    let mut outcome = Written::default();
    for row in rows {
        let (path, bytes) = (folder.join(place(row)).join(FILE), file(row));
        if fs::read(&path).is_ok_and(|there| there == bytes) {
            outcome.kept += 1;
            continue;
        }
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        let mut draft = Draft::beside(&path, EVERYBODYS)?;
        draft.write_all(&bytes)?;
        draft.publish()?;
        outcome.written += 1;
    }
    Ok(outcome)
}

/// The run of a fold, which TensorBoard names after its folder. Its trial has so many digits that no two meet.
fn place(row: &FoldRow) -> PathBuf {
    let plain = |sign: char| if sign.is_ascii_alphanumeric() || "-._".contains(sign) { sign } else { '_' };
    let trial = row.fold.trial.to_string();
    let method: String = row.config.method().chars().map(plain).collect();
    let dataset: String = row.config.dataset.chars().map(plain).collect();
    PathBuf::from(format!("{dataset}-{method}-{}", &trial[..12]))
        .join(format!("split-{}-seed-{}", row.fold.split, row.fold.seed))
}

fn file(row: &FoldRow) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events(row) {
        records::push(&mut bytes, &event.encode_to_vec());
    }
    bytes
}

fn events(row: &FoldRow) -> Vec<Event> {
    let version = What::FileVersion("brain.Event:2".to_owned());
    let start = started(row) as f64 / 1_000.0;
    let mut events = vec![Event { wall_time: start, step: 0, what: Some(version) }];
    for at in &row.result.history {
        let values = epoch(at).into_iter().map(|(name, value)| Value::scalar(name, value)).collect();
        events.push(Event::summary(ended(row, at.epoch), at.epoch, values));
    }
    let end = row.result.epochs.saturating_sub(1);
    let said = |name: &str, lines: String| Value::text(name, format!("| | |\n|---|---|\n{lines}"));
    let lines = |pairs: Vec<(&str, String)>| -> String {
        pairs.into_iter().map(|(name, value)| format!("| {name} | {value} |\n")).collect()
    };
    let given = settings(&row.config);
    let given = given.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let exact = numbers(row).into_iter().map(|(name, value)| (name, value.to_string())).collect();
    let mut origin = provenance(row);
    origin.extend([("fold", row.fold.to_string()), ("result", digest(row))]);
    let mut values: Vec<Value> = numbers(row)
        .into_iter()
        .map(|(name, value)| Value::scalar(&format!("result/{name}"), value))
        .collect();
    values.extend([
        said("settings", lines(given)),
        said("result", lines(exact)),
        said("provenance", lines(origin)),
    ]);
    events.push(Event::summary(ended(row, end), row.result.best_epoch, values));
    events
}

#[derive(Clone, PartialEq, Message)]
struct Event {
    /// Seconds since 1970.
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(oneof = "What", tags = "3, 5")]
    what: Option<What>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    values: Vec<Value>,
}

#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(string, tag = "1")]
    tag: String,
    #[prost(message, optional, tag = "9")]
    metadata: Option<Metadata>,
    #[prost(oneof = "Held", tags = "2, 8")]
    held: Option<Held>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Held {
    #[prost(float, tag = "2")]
    Scalar(f32),
    #[prost(message, tag = "8")]
    Tensor(Tensor),
}

#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(message, optional, tag = "1")]
    plugin: Option<Plugin>,
    /// 2 is a tensor.
    #[prost(int32, tag = "4")]
    data_class: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Plugin {
    #[prost(string, tag = "1")]
    name: String,
}

#[derive(Clone, PartialEq, Message)]
struct Tensor {
    /// 7 is text.
    #[prost(int32, tag = "1")]
    kind: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Shape>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    texts: Vec<Vec<u8>>,
}

/// Of a single value: no dimensions.
#[derive(Clone, PartialEq, Message)]
struct Shape {}

impl Event {
    fn summary(milliseconds: u64, step: u32, values: Vec<Value>) -> Self {
        let what = Some(What::Summary(Summary { values }));
        Self { wall_time: milliseconds as f64 / 1_000.0, step: step.into(), what }
    }
}

impl Value {
    fn scalar(tag: &str, value: f64) -> Self {
        Self { tag: tag.to_owned(), metadata: None, held: Some(Held::Scalar(value as f32)) }
    }

    /// Markdown.
    fn text(tag: &str, text: String) -> Self {
        let plugin = Some(Plugin { name: "text".to_owned() });
        let tensor = Tensor { kind: 7, shape: Some(Shape {}), texts: vec![text.into_bytes()] };
        Self {
            tag: tag.to_owned(),
            metadata: Some(Metadata { plugin, data_class: 2 }),
            held: Some(Held::Tensor(tensor)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    /// A file with the events of `written`, as TensorFlow's own writer made it.
    const REFERENCE: &[u8] = include_bytes!("tests/events.out.tfevents.reference");

    /// What `tests/make_reference.py` writes.
    fn written() -> Vec<u8> {
        let version = What::FileVersion("brain.Event:2".to_owned());
        let values = vec![
            Value::scalar("validation/loss", 0.625),
            Value::text("settings", "| depth | 4 |".to_owned()),
        ];
        let mut bytes = Vec::new();
        for event in [
            Event { wall_time: 1_700_000_000.5, step: 0, what: Some(version) },
            Event::summary(1_700_000_001_250, 3, values),
        ] {
            records::push(&mut bytes, &event.encode_to_vec());
        }
        bytes
    }

    #[test]
    fn events_are_the_bytes_that_tensorboards_own_writer_makes() {
        assert_eq!(written(), REFERENCE);
    }

    #[test]
    fn files_are_written_once_and_again_only_for_another_result() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut rows = vec![row()];
        assert_eq!(write(folder.path(), &rows).expect("written"), Written { written: 1, kept: 0 });
        assert_eq!(write(folder.path(), &rows).expect("kept"), Written { written: 0, kept: 1 });
        rows[0].result.test.loss = 0.25;
        assert_eq!(write(folder.path(), &rows).expect("replaced"), Written { written: 1, kept: 0 });
        let run = folder.path().join(place(&rows[0]));
        assert_eq!(fs::read_dir(&run).expect("the run").count(), 1, "no draft and no second file is left");
        assert_eq!(fs::read(run.join(FILE)).expect("the file"), file(&rows[0]));
    }

    #[test]
    fn what_cannot_be_written_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let taken = folder.path().join("taken");
        fs::write(&taken, "").expect("a file");
        assert!(write(&taken, &[row()]).is_err());
    }
}
