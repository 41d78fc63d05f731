//! Takes a sweep out of a store that nobody serves, with everything that no other sweep has, and gives the room back. The only
//! place where results are ever removed; says beforehand how many.

use togl_sweeps::SweepName;

use super::address::StoreAddress;
use super::postgres::PostgresStore;
use super::sqlite::SqliteStore;
use super::{Readers, StoreError, unknown_sweep};

/// A sweep that may be deleted. The store is held until it is dropped, so that nothing changes while somebody thinks.
pub struct Deletion {
    store: Box<dyn Held + Send>,
    sweep: i64,
    /// Folds that only this sweep has; they go.
    pub folds: u64,
    /// Their results.
    pub results: u64,
    /// Folds that other sweeps have too; they stay.
    pub shared: u64,
}

/// How large a store was before and is now, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Freed {
    /// Before.
    pub before: u64,
    /// Now.
    pub after: u64,
}

/// A store that is held, and from which rows can go.
pub(super) trait Held {
    /// The number that a question is answered with; none if there is no row.
    fn number(&mut self, sql: &str) -> Result<Option<i64>, StoreError>;

    /// Bytes that it takes.
    fn size(&mut self) -> Result<u64, StoreError>;

    /// Carries out statements in one transaction, then gives back the room that they left.
    fn rewrite(&mut self, statements: &str) -> Result<(), StoreError>;
}

/// The folds that no other sweep has. Compared as wholes: there is no index by fold.
fn only_in(sweep: i64) -> String {
    format!(
        "SELECT fold FROM sweep_fold WHERE sweep = {sweep} EXCEPT SELECT fold FROM sweep_fold WHERE sweep <> {sweep}"
    )
}

impl Deletion {
    /// Holds the store and counts what would go.
    pub fn prepare(store: &StoreAddress, name: &SweepName) -> Result<Self, StoreError> {
        store.open_reader()?; // a store that is not there is not made
        let mut store: Box<dyn Held + Send> = match store {
            StoreAddress::Sqlite(path) => Box::new(SqliteStore::open(path)?),
            StoreAddress::Postgres(access) => Box::new(PostgresStore::open(access)?),
            StoreAddress::Memory => return Err(StoreError::InMemory("be opened twice")),
        };
        // Names hold no quotes.
        let sweep = store.number(&format!("SELECT id FROM sweep WHERE name = '{name}'"))?;
        let sweep = sweep.ok_or_else(|| unknown_sweep(name))?;
        let only = only_in(sweep);
        let mut count = |from: String| -> Result<u64, StoreError> {
            Ok(store.number(&format!("SELECT count(*) FROM {from}"))?.unwrap_or(0).cast_unsigned())
        };
        let folds = count(format!("({only}) AS gone"))?;
        let results = count(format!("result WHERE kind = 'accepted' AND fold IN ({only})"))?;
        let shared = count(format!("sweep_fold WHERE sweep = {sweep}"))? - folds;
        Ok(Self { store, sweep, folds, results, shared })
    }

    /// Deletes it.
    pub fn carry_out(mut self) -> Result<Freed, StoreError> {
        let before = self.store.size()?;
        self.store.rewrite(&statements(self.sweep))?;
        let after = self.store.size()?;
        Ok(Freed { before, after })
    }
}

/// Rows go before those they refer to. The index is for the checks of references, which would otherwise look at every row
/// of every sweep for each fold. The places of sweeps have no gaps: a start counts them.
fn statements(sweep: i64) -> String {
    let only = only_in(sweep);
    let mut sql = format!(
        "CREATE TEMPORARY TABLE gone AS {only};
         CREATE INDEX folds_of_sweeps ON sweep_fold (fold);
         DELETE FROM sweep_fold WHERE sweep = {sweep};
         DELETE FROM steering WHERE sweep = (SELECT name FROM sweep WHERE id = {sweep});
         UPDATE sweep SET place = place - 1 WHERE place > (SELECT place FROM sweep WHERE id = {sweep});
         DELETE FROM sweep WHERE id = {sweep};"
    );
    for table in ["log", "result", "history", "dissent", "attempt"] {
        sql += &format!("DELETE FROM {table} WHERE fold IN (SELECT fold FROM gone);");
    }
    sql + "DELETE FROM fold WHERE id IN (SELECT fold FROM gone);
           DELETE FROM trial WHERE NOT EXISTS (SELECT 1 FROM fold WHERE fold.trial = trial.id);
           DROP INDEX folds_of_sweeps;
           DROP TABLE gone"
}
