//! A digest of the rows of a frame, which our own Parquet and Arrow files carry in their metadata, so that a bit that a disk
//! changed is noticed. It is over what the rows say and not over bytes: another program that writes the same rows anew and
//! keeps the metadata keeps it true.

use blake3::{Hash, Hasher};
use polars::prelude::{Column, DataFrame, DataType, PolarsError, PolarsResult};

use super::declared::contradictory;

/// Under which key files carry it.
pub const KEY: &str = "togl.digest";

/// The digest of names, types and values, in their order.
pub fn digest(data: &DataFrame) -> PolarsResult<String> {
    let mut whole = Hasher::new();
    whole.update(b"togl folds 1");
    for column in data.columns() {
        whole.update(of_column(column)?.as_bytes());
    }
    Ok(whole.finalize().to_hex().to_string())
}

/// Refuses rows that are not those which the file was written with.
pub fn check(data: &DataFrame, carried: &str) -> PolarsResult<()> {
    if digest(data)? == carried { Ok(()) } else { Err(contradictory()) }
}

fn of_column(column: &Column) -> PolarsResult<Hash> {
    let mut values = Values::default();
    values.text(column.name());
    values.text(&column.dtype().to_string());
    macro_rules! numbers {
        ($numbers:expr) => {
            $numbers
                .iter()
                .for_each(|number| values.value(number, |values, n| values.bytes(&n.to_le_bytes())))
        };
    }
    match column.dtype() {
        DataType::String => column.str()?.iter().for_each(|text| values.value(text, Values::text)),
        DataType::Boolean => column
            .bool()?
            .iter()
            .for_each(|flag| values.value(flag, |values, flag| values.bytes(&[u8::from(flag)]))),
        DataType::Int32 => numbers!(column.i32()?),
        DataType::Int64 => numbers!(column.i64()?),
        DataType::UInt32 => numbers!(column.u32()?),
        DataType::UInt64 => numbers!(column.u64()?),
        DataType::Float32 => numbers!(column.f32()?),
        DataType::Float64 => numbers!(column.f64()?),
        DataType::Null => values.bytes(&(column.len() as u64).to_le_bytes()),
        other => {
            return Err(PolarsError::SchemaMismatch(
                format!("`{}` has the type {other}", column.name()).into(),
            ));
        }
    }
    Ok(values.end())
}

/// Values on their way into a hash, gathered because a hash takes many bytes faster than few.
#[derive(Default)]
struct Values {
    hasher: Hasher,
    waiting: Vec<u8>,
}

impl Values {
    fn value<T>(&mut self, value: Option<T>, add: impl FnOnce(&mut Self, T)) {
        self.bytes(&[u8::from(value.is_some())]);
        if let Some(value) = value {
            add(self, value);
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes(&(text.len() as u64).to_le_bytes());
        self.bytes(text.as_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= 1 << 16 {
            self.hasher.update(&self.waiting);
            self.waiting.clear();
        }
    }

    fn end(mut self) -> Hash {
        self.hasher.update(&self.waiting);
        self.hasher.finalize()
    }
}
