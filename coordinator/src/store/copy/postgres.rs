//! A PostgreSQL store as the source or the target of a copy.

use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::types::ToSql;
use ::postgres::{IsolationLevel, Transaction};

use super::super::postgres::{self, Access, Failed, PostgresStore};
use super::super::{StoreError, impossible};
use super::{Kind, Row, Source, Summary, TABLES, Table, Take, Target, Value};

/// What may be there before.
pub(super) enum Rule {
    /// Nothing; otherwise this is what to do.
    Empty(&'static str),
    /// Anything; it is given up.
    Replace,
}

struct Tables<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    holder: i64,
}

/// What went wrong, for who does not care whether the connection broke.
fn plain(error: impl Into<Failed>) -> StoreError {
    match error.into() {
        Failed::Lost(error) | Failed::Refused(error) => error,
    }
}

impl Source for Tables<'_, '_> {
    fn each(&mut self, table: &Table, take: Take<'_>) -> Result<(), StoreError> {
        let there = "SELECT to_regclass($1::text) IS NOT NULL";
        let there = self.transaction.query_one(there, &[&table.name]).map_err(plain)?;
        if !there.try_get(0).map_err(plain)? {
            return Ok(());
        }
        let sql = format!("SELECT {} FROM {} ORDER BY {}", table.list(), table.name, table.order);
        let mut rows = self.transaction.query_raw(&sql, std::iter::empty::<i64>()).map_err(plain)?;
        while let Some(row) = rows.next().map_err(plain)? {
            let cells = table.columns.iter().enumerate();
            let row: Result<Row, StoreError> =
                cells.map(|(index, (_, kind))| value(&row, index, *kind)).collect();
            take(row?)?;
        }
        Ok(())
    }
}

fn value(row: &::postgres::Row, index: usize, kind: Kind) -> Result<Value, StoreError> {
    let found = match kind {
        Kind::Number => row.try_get::<_, Option<i64>>(index).map_err(plain)?.map(Value::Number),
        Kind::Text => row.try_get::<_, Option<String>>(index).map_err(plain)?.map(Value::Text),
        Kind::Bytes => row.try_get::<_, Option<Vec<u8>>>(index).map_err(plain)?.map(Value::Bytes),
        Kind::Free => {
            let bytes = row.try_get::<_, Option<Vec<u8>>>(index).map_err(plain)?;
            let text = bytes.map(String::from_utf8).transpose().map_err(|error| impossible("text", error))?;
            text.map(Value::Text)
        }
    };
    Ok(found.unwrap_or(Value::Null))
}

/// One column of many rows, as an array.
fn column(rows: &[Row], index: usize, kind: Kind) -> Box<dyn ToSql + Sync + Send + '_> {
    let cells = rows.iter().map(move |row| row.get(index).unwrap_or(&Value::Null));
    match kind {
        Kind::Number => {
            let number = |cell: &Value| if let Value::Number(number) = cell { Some(*number) } else { None };
            Box::new(cells.map(number).collect::<Vec<_>>())
        }
        Kind::Text => {
            let text = |cell: &'_ Value| if let Value::Text(text) = cell { Some(text.clone()) } else { None };
            Box::new(cells.map(text).collect::<Vec<_>>())
        }
        Kind::Free | Kind::Bytes => {
            let bytes = |cell: &'_ Value| match cell {
                Value::Text(text) => Some(text.clone().into_bytes()),
                Value::Bytes(bytes) => Some(bytes.clone()),
                Value::Null | Value::Number(_) => None,
            };
            Box::new(cells.map(bytes).collect::<Vec<_>>())
        }
    }
}

impl Target for Tables<'_, '_> {
    fn put(&mut self, table: &Table, rows: Vec<Row>) -> Result<(), StoreError> {
        if table.name == "store" {
            // The row is there since the store was made, and says who has the store.
            let sql = "UPDATE store SET incarnation = $1, commits = $2, holder = $3";
            for row in rows {
                let [Value::Number(incarnation), Value::Number(commits)] = row[..] else {
                    return Err(impossible("store", "its row is not two numbers"));
                };
                self.transaction.execute(sql, &[&incarnation, &commits, &self.holder]).map_err(plain)?;
            }
            return Ok(());
        }
        let arrays = table.columns.iter().zip(1..).map(|((_, kind), place)| match kind {
            Kind::Number => format!("${place}::bigint[]"),
            Kind::Text => format!("${place}::text[]"),
            Kind::Free | Kind::Bytes => format!("${place}::bytea[]"),
        });
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO {} ({}) SELECT * FROM unnest({arrays})", table.name, table.list());
        let columns = table.columns.iter().enumerate().map(|(index, (_, kind))| column(&rows, index, *kind));
        let columns: Vec<_> = columns.collect();
        let values: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
        self.transaction.execute(&sql, &values).map_err(plain)?;
        Ok(())
    }
}

/// Reads a store in one transaction.
pub(super) fn read<T: Send>(
    access: &Access,
    work: impl FnOnce(&mut dyn Source) -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    let reader = postgres::open_read_only(access)?;
    reader.read(|client| {
        let mut transaction = client
            .build_transaction()
            .isolation_level(IsolationLevel::RepeatableRead)
            .read_only(true)
            .start()?;
        Ok(work(&mut Tables { transaction: &mut transaction, holder: 0 })?)
    })
}

/// Fills a store in one transaction, all or nothing.
pub(super) fn fill(
    store: &mut PostgresStore,
    rule: Rule,
    fill: impl FnOnce(&mut dyn Target) -> Result<Summary, StoreError> + Send,
) -> Result<Summary, StoreError> {
    let (place, holder) = (store.address().to_owned(), store.holder());
    store.link().with(|client| {
        let mut transaction = client.transaction()?;
        let sql = "SELECT EXISTS (SELECT FROM sweep) OR EXISTS (SELECT FROM trial)";
        let filled: bool = transaction.query_one(sql, &[])?.try_get(0)?;
        if let (true, Rule::Empty(hint)) = (filled, rule) {
            return Err(StoreError::NotEmpty { place, hint }.into());
        }
        for table in TABLES.iter().rev().filter(|table| table.name != "store") {
            transaction.batch_execute(&format!("DELETE FROM {}", table.name))?;
        }
        let summary = fill(&mut Tables { transaction: &mut transaction, holder })?;
        for table in TABLES.iter().filter(|table| table.columns[0].0 == "id") {
            let sql = format!(
                "SELECT setval(pg_get_serial_sequence('{0}', 'id'), coalesce(max(id), 0) + 1, false) FROM {0}",
                table.name
            );
            transaction.execute(&sql, &[])?;
        }
        crate::crash::point("fill-written");
        transaction.commit()?;
        crate::crash::point("filled");
        Ok(summary)
    })
}
