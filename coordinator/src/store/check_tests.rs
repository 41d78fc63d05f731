//! What is damaged is named: which table, whose fold. What is whole is not accused.

use std::fs;

use tempfile::TempDir;
use togl_scheduler::{Change, SweepChange, SweepState};

use super::*;
use crate::store::contract::{filled_sqlite, fold, sweep};
use crate::store::postgres_server::Server;
use crate::store::sqlite::tests::raw;

/// A store in a file, closed, with so many results.
fn filled(results: u32) -> (TempDir, StoreAddress) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.sqlite");
    filled_sqlite(&path, results);
    (folder, StoreAddress::Sqlite(path))
}

fn path(address: &StoreAddress) -> &std::path::Path {
    match address {
        StoreAddress::Sqlite(path) => path,
        other => panic!("{other}"),
    }
}

fn lines(checked: &Checked) -> Vec<String> {
    checked.damage.iter().map(Damage::to_string).collect()
}

#[test]
fn a_whole_store_is_found_whole_also_while_it_is_served() {
    let (_folder, address) = filled(40);
    let checked = check(&address).unwrap();
    assert!(checked.is_whole() && checked.rows > 100, "{checked:?}");
    let mut store = address.open().unwrap();
    let pause =
        Change::Sweep(SweepChange::StateSet { sweep: sweep("s"), state: SweepState::Paused, note: None });
    store.commit(&[pause]).unwrap();
    assert!(check(&address).unwrap().is_whole());
    assert!(check_quietly(&address, &mut || true).unwrap().is_whole());
    assert!(check(&StoreAddress::Memory).is_err());
}

#[test]
fn every_damaged_page_is_found_with_the_tables_and_folds_it_belongs_to() {
    let (_folder, address) = filled(40);
    let whole = fs::read(path(&address)).unwrap();
    let (mut tables, mut folds) = (HashSet::new(), 0);
    for page in 0..whole.len() / 4_096 {
        let mut file = whole.clone();
        file[page * 4_096 + 2_000] ^= 4;
        fs::write(path(&address), &file).unwrap();
        let checked = check(&address).unwrap();
        assert!(!checked.is_whole(), "page {page}");
        assert!(!check_quietly(&address, &mut || true).unwrap().is_whole(), "page {page}");
        tables.extend(checked.damage.iter().filter_map(|damage| damage.table));
        folds += checked.damage.iter().filter(|damage| damage.fold.is_some()).count();
    }
    for table in ["result", "fold", "trial", "sweep", "attempt"] {
        assert!(tables.contains(table), "{table} of {tables:?}");
    }
    assert!(folds >= 20, "the folds of a damaged page are named: {folds}");
}

#[test]
fn changed_numbers_and_missing_rows_are_named_with_their_folds() {
    for (forge, said) in [
        (
            "UPDATE result SET body = replace(body, '\"accuracy\":0.0', '\"accuracy\":1.0')",
            format!("result, fold {0}: the numbers of fold {0} do not fit their digest", fold(0)),
        ),
        ("DELETE FROM result", format!("result, fold {}: the fold is finished and has no result", fold(0))),
        (
            "UPDATE fold SET digest = 7 WHERE state = 'finished'",
            format!("result, fold {}: it is not the result that the fold was finished with", fold(0)),
        ),
        ("DELETE FROM trial", "fold: the trial of row 1 is not there".to_owned()),
        ("DELETE FROM fold", "attempt: a row belongs to fold number 1, which is not there".to_owned()),
    ] {
        let (_folder, address) = filled(1);
        let connection = raw(path(&address));
        connection.execute_batch(&format!("PRAGMA foreign_keys = OFF; {forge}")).unwrap();
        connection.close().unwrap();
        let found = lines(&check(&address).unwrap());
        assert!(found.contains(&said), "{forge}: {found:?}");
    }
}

#[test]
fn an_index_that_does_not_fit_its_table_is_found() {
    let (_folder, address) = filled(4);
    let connection = raw(path(&address));
    let edit = "PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, 'accepted', 'replicate')
                    WHERE name = 'one_accepted_result_a_fold'";
    connection.execute_batch(edit).unwrap();
    connection.close().unwrap();
    let found = lines(&check(&address).unwrap());
    assert!(found.iter().any(|line| line.contains("one_accepted_result_a_fold")), "{found:?}");
}

#[test]
fn a_check_that_is_told_to_stop_stops() {
    let (_folder, address) = filled(40);
    let mut asked = 0;
    let checked = check_quietly(&address, &mut || {
        asked += 1;
        false
    });
    assert!(checked.unwrap().is_whole() && asked == 1, "{asked}");
}

#[test]
fn a_store_in_postgres_is_checked_row_by_row() {
    let Some(server) = Server::quick() else { return };
    let config = server.database();
    let address = StoreAddress::Postgres(Box::new(config.clone()));
    crate::store::contract::fill(address.open().unwrap(), 6, |_| {});
    assert!(check(&address).unwrap().is_whole());
    let forge = "UPDATE togl.result SET body = replace(body, '\"accuracy\":0.0', '\"accuracy\":1.0')";
    config.connect(::postgres::NoTls).unwrap().batch_execute(forge).unwrap();
    let said = format!("result, fold {0}: the numbers of fold {0} do not fit their digest", fold(0));
    for checked in [check(&address), check_quietly(&address, &mut || true)] {
        let found = lines(&checked.unwrap());
        assert!(found.contains(&said), "{found:?}");
    }
}
