//! Columns that take little room, for frames that grow all day: what is the same in all rows is held once, and so is each
//! text, however many rows have it. Changes no value and no order.

use std::collections::HashMap;

use polars::prelude::{Column, DataFrame, DataType, IdxCa, IdxSize, NamedFrom, Scalar, Series};

use crate::columns::is_constant;
use crate::error::Result;

/// The rows of both, one below the other. A column that only one of them has is null in the rows of the other.
pub fn stacked(above: &DataFrame, below: &DataFrame) -> Result<DataFrame> {
    let more = below.columns().iter().filter(|column| above.column(column.name()).is_err());
    let names = above.columns().iter().chain(more).map(Column::name);
    let mut columns = Vec::with_capacity(below.width());
    for name in names {
        columns.push(match (above.column(name), below.column(name)) {
            (Ok(one), Ok(other)) => appended(one, other)?,
            (Ok(one), Err(_)) => appended(one, &nothing(one, below.height()))?,
            (Err(_), Ok(other)) => appended(&nothing(other, above.height()), other)?,
            (Err(error), Err(_)) => return Err(error.into()),
        });
    }
    Ok(DataFrame::new(above.height() + below.height(), columns)?)
}

fn nothing(like: &Column, rows: usize) -> Column {
    Column::full_null(like.name().clone(), rows, like.dtype())
}

/// A program may say numbers in one trial and words in another.
fn common(one: &Column, other: &Column) -> DataType {
    let numbers = |column: &Column| column.dtype().is_primitive_numeric();
    match (one.dtype(), other.dtype()) {
        (same, as_well) if same == as_well => same.clone(),
        _ if numbers(one) && numbers(other) => DataType::Float64,
        _ => DataType::String,
    }
}

fn appended(above: &Column, below: &Column) -> Result<Column> {
    match (above.len(), below.len()) {
        (_, 0) => return compact(above),
        (0, _) => return compact(below),
        _ => {}
    }
    let kind = common(above, below);
    let (above, below) = (compact(&above.cast(&kind)?)?, compact(&below.cast(&kind)?)?);
    let rows = above.len() + below.len();
    if let (Column::Scalar(one), Column::Scalar(other)) = (&above, &below)
        && one.scalar() == other.scalar()
    {
        return Ok(Column::new_scalar(above.name().clone(), one.scalar().clone(), rows));
    }
    if kind == DataType::String {
        return interned([&above, &below]);
    }
    let mut whole = above.as_materialized_series().clone();
    whole.append(below.as_materialized_series())?;
    Ok(whole.rechunk().into())
}

/// The same values in less room.
fn compact(column: &Column) -> Result<Column> {
    if matches!(column, Column::Scalar(_)) || column.is_empty() {
        return Ok(column.clone());
    }
    let column = if *column.dtype() == DataType::String { interned([column])? } else { column.clone() };
    if !is_one_value(&column)? {
        return Ok(column);
    }
    let value = Scalar::new(column.dtype().clone(), column.get(0)?.into_static());
    Ok(Column::new_scalar(column.name().clone(), value, column.len()))
}

fn is_one_value(column: &Column) -> Result<bool> {
    if *column.dtype() != DataType::Float64 {
        return is_constant(column);
    }
    let bits = |value: Option<f64>| value.map(f64::to_bits);
    let values = column.f64()?;
    let first = values.get(0).map(f64::to_bits);
    Ok(values.iter().all(|value| bits(value) == first))
}

/// Texts one below the other, each held once. Equal neighbours, as those of one trial are, are seen without a search.
fn interned<const N: usize>(parts: [&Column; N]) -> Result<Column> {
    let name = parts.first().map(|part| part.name().clone()).unwrap_or_default();
    let mut places: HashMap<Option<&str>, IdxSize> = HashMap::new();
    let (mut texts, mut rows): (Vec<Option<&str>>, Vec<IdxSize>) = (Vec::new(), Vec::new());
    let mut last: Option<(Option<&str>, IdxSize)> = None;
    for part in parts {
        for text in part.str()?.iter() {
            let place = match last {
                Some((same, place)) if same == text => place,
                _ => *places.entry(text).or_insert_with(|| {
                    texts.push(text);
                    (texts.len() - 1) as IdxSize
                }),
            };
            last = Some((text, place));
            rows.push(place);
        }
    }
    let texts = Series::new(name, texts);
    Ok(texts.take(&IdxCa::from_vec("row".into(), rows))?.into())
}

/// Bytes that a frame takes; texts that rows share count once.
#[cfg(test)]
pub fn bytes(data: &DataFrame) -> usize {
    let of = |column: &Column| match (column, column.dtype()) {
        (Column::Scalar(_), _) => 0,
        (_, DataType::String) => {
            let chunks = column.str().unwrap().downcast_iter();
            chunks.map(|chunk| 16 * chunk.len() + chunk.total_buffer_len()).sum()
        }
        (_, DataType::Boolean) => column.len() / 8,
        _ => 8 * column.len(),
    };
    data.columns().iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use polars::prelude::AnyValue;

    use super::*;

    fn is_null(value: &AnyValue<'_>) -> bool {
        matches!(value, AnyValue::Null)
    }

    fn frame(columns: Vec<Column>) -> DataFrame {
        DataFrame::new(columns[0].len(), columns).unwrap()
    }

    #[test]
    fn rows_are_the_same_in_less_room() {
        let long = "a text that is longer than twelve bytes";
        let part = |from: u64| {
            frame(vec![
                Column::new("n".into(), (from..from + 100).collect::<Vec<u64>>()),
                Column::new("text".into(), vec![long; 100]),
                Column::new(
                    "some".into(),
                    (0..100).map(|at| (at % 2 == 0).then_some(long)).collect::<Vec<_>>(),
                ),
                Column::new("x".into(), vec![0.5; 100]),
                Column::new("flag".into(), vec![true; 100]),
            ])
        };
        let both = stacked(&part(0), &part(100)).unwrap();
        assert_eq!(both, part(0).vstack(&part(100)).unwrap());
        assert!(bytes(&both) <= 200 * (8 + 16) + 2 * long.len(), "{}", bytes(&both));
        let changed = frame(vec![
            Column::new("n".into(), [1_u64]),
            Column::new("text".into(), ["other"]),
            Column::new("some".into(), [None::<&str>]),
            Column::new("x".into(), [f64::NAN]),
            Column::new("flag".into(), [false]),
        ]);
        let three = stacked(&both, &changed).unwrap();
        assert_eq!(three.head(Some(200)), both);
        assert_eq!(three.column("text").unwrap().get(200).unwrap(), AnyValue::String("other"));
        assert!(is_null(&three.column("some").unwrap().get(200).unwrap()));
    }

    #[test]
    fn what_only_one_part_has_is_unknown_in_the_other_and_kinds_meet() {
        let one = frame(vec![Column::new("a".into(), [1_u64]), Column::new("b".into(), ["x"])]);
        let other = frame(vec![Column::new("a".into(), [0.5]), Column::new("c".into(), [true])]);
        let both = stacked(&one, &other).unwrap();
        assert_eq!(both.column("a").unwrap().f64().unwrap().to_vec(), [Some(1.0), Some(0.5)]);
        assert!(
            is_null(&both.column("b").unwrap().get(1).unwrap())
                && is_null(&both.column("c").unwrap().get(0).unwrap())
        );
    }
}
