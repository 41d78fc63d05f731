//! A PostgreSQL store as the source or the target of a copy.

use ::postgres::Transaction;
use ::postgres::types::ToSql;

use super::super::database::{Database, Postgres, Value};
use super::super::postgres::{self, PostgresAccess, PostgresStore};
use super::super::tables::{Kind, TABLES, Table};
use super::super::{StoreError, impossible};
use super::{Row, Source, StoreSummary, Target};

struct Tables<'a, 'b> {
    transaction: &'a mut Transaction<'b>,
    holder: i64,
}

impl Source for Tables<'_, '_> {
    fn database(&mut self) -> Box<dyn Database + '_> {
        Box::new(Postgres(self.transaction))
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
                self.transaction.execute(sql, &[&incarnation, &commits, &self.holder])?;
            }
            return Ok(());
        }
        let arrays =
            table.columns.iter().zip(1..).map(|(column, at)| format!("${at}::{}[]", column.kind.sent()));
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        let sql = format!("INSERT INTO {} ({}) SELECT * FROM unnest({arrays})", table.name, table.list());
        let mut columns: Vec<Vec<Value>> = table.columns.iter().map(|_| Vec::new()).collect();
        for row in rows {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        let values: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| column as _).collect();
        self.transaction.execute(&sql, &values)?;
        Ok(())
    }
}

/// Reads a store in one transaction.
pub(super) fn read<T: Send>(
    access: &PostgresAccess,
    work: impl FnOnce(&mut dyn Source) -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    let reader = postgres::open_read_only(access)?;
    reader.read(|client| {
        let mut transaction = postgres::one_state(client)?;
        Ok(work(&mut Tables { transaction: &mut transaction, holder: 0 })?)
    })
}

/// Fills a store in one transaction, all or nothing. What is there must be empty, unless it may be given up.
pub(super) fn fill(
    store: &mut PostgresStore,
    (replace, hint): (bool, &'static str),
    fill: impl FnOnce(&mut dyn Target) -> Result<StoreSummary, StoreError> + Send,
) -> Result<StoreSummary, StoreError> {
    let (place, holder) = (store.address().to_owned(), store.holder());
    store.link().with(|client| {
        let mut transaction = client.transaction()?;
        let sql = "SELECT EXISTS (SELECT FROM sweep) OR EXISTS (SELECT FROM trial)";
        let filled: bool = transaction.query_one(sql, &[])?.try_get(0)?;
        if filled && !replace {
            return Err(StoreError::NotEmpty { place, hint }.into());
        }
        for table in TABLES.iter().rev().filter(|table| table.name != "store") {
            transaction.batch_execute(&format!("DELETE FROM {}", table.name))?;
        }
        let summary = fill(&mut Tables { transaction: &mut transaction, holder })?;
        for table in TABLES.iter().filter(|table| table.columns[0].kind == Kind::Row) {
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
