//! What only a file can do: be locked, foreign, newer, older, unreachable, or read by another process. What happens when
//! it is damaged is in `damage`, when somebody else touches it in `held`.

#[path = "sqlite_damage_tests.rs"]
mod damage;
#[path = "sqlite_held_tests.rs"]
mod held;

use std::fs;

use rusqlite::params;
use tempfile::TempDir;
use togl_scheduler::{FoldChange, SweepChange};
use togl_sweeps::{Attempt, FoldKey, FoldResult, SweepSpec};

use super::*;
use crate::store::contract::{filled_sqlite, fold, impossible_fact, sweep};
use crate::store::queries;
use crate::store::tables::{self, Dialect};
use crate::store::{FoldFilter, FoldQuery, Reader, ResultQuery};

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.sqlite");
    (folder, path)
}

/// A connection that anybody could open, with the checksums of pages kept right.
pub(crate) fn raw(path: &Path) -> Connection {
    pages::open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap()
}

fn refused(path: &Path) -> StoreError {
    SqliteStore::open(path).map(|_| ()).unwrap_err()
}

#[test]
fn a_second_coordinator_is_kept_away_and_told_who_is_first() {
    let (_folder, path) = place();
    let first = SqliteStore::open(&path).unwrap();
    let message = refused(&path).to_string();
    let pid = std::process::id();
    assert!(message.starts_with(&format!("another coordinator (pid {pid}) is using ")), "{message}");
    drop(first);
    SqliteStore::open(&path).unwrap();
}

#[test]
fn results_can_be_read_while_a_coordinator_serves_and_after_it_stopped() {
    let (_folder, path) = place();
    filled_sqlite(&path, 4);
    let serving = SqliteStore::open(&path).unwrap();
    let query = ResultQuery::accepted(sweep("s"));
    assert_eq!(open_read_only(&path).unwrap().results(&query).unwrap().rows.len(), 2);
    Box::new(serving).close().unwrap();
    let reader = open_read_only(&path).unwrap();
    assert_eq!(reader.results(&query).unwrap().rows.len(), 2);
    SqliteStore::open(&path).expect("a reader does not keep a coordinator away");
}

/// Once `dd` and `DD` were two trials. Whatever the case, the folds of a store of that time are found, and none is lost
/// where both have some.
#[test]
fn folds_of_a_data_set_in_another_case_are_found_under_its_one_spelling() {
    let spelled = |name: &str| {
        let canonical = format!("{{\"canonical\":1,\"dataset\":\"{name}\",\"numerics\":1}}");
        (togl_sweeps::TrialConfig::from_canonical(&canonical).unwrap().id(), canonical)
    };
    let ((old, old_text), (new, _)) = (spelled("dd"), spelled("DD"));
    let sweep = SweepSpec::parse("version: 1\nname: x\nbase: {dataset: dd}\n").unwrap();
    assert_eq!(sweep.trials[0].id, new);
    let (_folder, path) = place();
    filled_sqlite(&path, 4);
    let rename = "UPDATE trial SET trial = ?1, canonical = ?2";
    raw(&path).execute(rename, params![old.as_bytes(), old_text]).unwrap();
    let folds = |trial| {
        let loaded = SqliteStore::open(&path).unwrap().load().unwrap();
        loaded.folds.keys().filter(|fold| fold.trial == trial).count()
    };
    assert_eq!((folds(new), folds(old)), (4, 0));
    let twin = "INSERT INTO trial (id, trial, canonical) VALUES (99, ?1, ?2)";
    raw(&path).execute(twin, params![old.as_bytes(), old_text]).unwrap();
    let both =
        "INSERT INTO fold (trial, split, seed, state) SELECT 99, split, seed, 'pending' FROM fold LIMIT 1";
    raw(&path).execute(both, []).unwrap();
    raw(&path).execute("UPDATE fold SET trial = 99 WHERE split = 3", []).unwrap();
    assert_eq!((folds(new), folds(old)), (4, 1), "the one that both have stays");
}

#[test]
fn no_page_looks_at_all_rows_of_a_table() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    let query = FoldQuery { sweep: sweep("s"), filter: FoldFilter::default(), from: 5, skip: 0, limit: 10 };
    let folds = queries::folds(&query, 1, Dialect::Sqlite).sql;
    for sql in [queries::RESULTS, queries::RESULT_OF, queries::MORE, queries::BETWEEN, &folds] {
        let mut plan = store.connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let (mut rows, mut steps) = (plan.raw_query(), Vec::<String>::new()); // plans need no values
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get(3).unwrap());
        }
        assert!(
            !steps.is_empty()
                && steps.iter().all(|step| !step.starts_with("SCAN ") || step == "SCAN CONSTANT ROW"),
            "{steps:#?}"
        );
    }
}

#[test]
fn every_commit_is_flushed_and_the_file_is_in_wal_mode() {
    let (_folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    let pragma = |name| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((pragma("synchronous"), pragma("foreign_keys")), (2, 1));
    let mode: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!(mode, "wal");
}

#[test]
fn a_transaction_is_kept_whole_or_not_at_all() {
    let (_folder, path) = place();
    let before = filled_sqlite(&path, 2);
    let mut store = SqliteStore::open(&path).unwrap();
    let state = Change::Sweep(SweepChange::StateSet {
        sweep: sweep("s"),
        state: togl_scheduler::SweepState::Paused,
        note: None,
    });
    let error = store.commit(&[state, impossible_fact()]).unwrap_err();
    assert!(error.to_string().contains("impossible fold"), "{error}");
    assert_eq!(store.load().unwrap(), before);
}

#[test]
fn a_full_disk_is_called_so_and_keeps_what_was_acknowledged() {
    let (_folder, path) = place();
    let before = filled_sqlite(&path, 2);
    let mut store = SqliteStore::open(&path).unwrap();
    store.connection.pragma_update(None, "max_page_count", 1).unwrap(); // no page more than there are
    let note = Some("long".repeat(10_000).into());
    let state = togl_scheduler::SweepState::Paused;
    let pause = Change::Sweep(SweepChange::StateSet { sweep: sweep("s"), state, note });
    let error = store.commit(&[pause]).unwrap_err();
    assert!(error.is_full(), "{error}");
    assert_eq!(store.load().unwrap(), before);
}

#[test]
fn output_that_cannot_be_kept_does_not_cost_a_decision() {
    let (_folder, path) = place();
    filled_sqlite(&path, 2);
    let mut store = SqliteStore::open(&path).unwrap();
    let full = "CREATE TEMP TRIGGER full BEFORE INSERT ON log BEGIN SELECT RAISE(ABORT, 'full'); END";
    store.connection.execute_batch(full).unwrap();
    let (state, note) = (togl_scheduler::SweepState::Paused, None);
    let pause = Change::Sweep(SweepChange::StateSet { sweep: sweep("s"), state, note });
    let piece = LogPiece { fold: fold(0), attempt: Attempt(1), text: "lost\n".to_owned() };
    store.commit_with_log(&[pause], &[piece]).unwrap();
    assert_eq!(store.reader().unwrap().sweeps().unwrap()[0].state, state);
}

#[test]
fn a_file_that_is_not_a_store_is_refused_and_untouched() {
    let (folder, path) = place();
    let other = folder.path().join("other.sqlite");
    Connection::open(&other).unwrap().execute_batch("CREATE TABLE photos (name TEXT)").unwrap();
    for contents in [b"dear diary".to_vec(), vec![0; 5_000], fs::read(&other).unwrap()] {
        fs::write(&path, &contents).unwrap();
        let error = refused(&path);
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
        assert!(matches!(open_read_only(&path), Err(StoreError::Foreign { .. })));
        assert_eq!(fs::read(&path).unwrap(), contents);
    }
    assert!(matches!(refused(folder.path()), StoreError::Foreign { .. }), "a folder is no store either");
}

#[test]
fn a_store_of_a_newer_program_is_refused_and_untouched() {
    let (_folder, path) = place();
    filled_sqlite(&path, 2);
    raw(&path).execute_batch("INSERT INTO schema_version VALUES (99)").unwrap();
    let contents = fs::read(&path).unwrap();
    let error = refused(&path);
    assert!(matches!(error, StoreError::Newer { found: 99, .. }), "{error}");
    assert!(matches!(open_read_only(&path), Err(StoreError::Newer { .. })));
    assert_eq!(fs::read(&path).unwrap(), contents);
}

/// What a released program did to come to this step.
fn released(step: usize) -> &'static str {
    include_str!("released/sqlite.sql").split("-- STEP").nth(step).unwrap().split_once('\n').unwrap().1
}

/// The tables of a database as SQLite understands them: columns, keys, references, indices, options.
fn understood(connection: &Connection) -> Vec<String> {
    let mut lines = Vec::new();
    let questions = [
        "SELECT t.name || ' ' || t.wr || t.strict || ' ' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\"
             || ' ' || coalesce(c.dflt_value, '') || ' ' || c.pk
         FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c WHERE t.schema = 'main' ORDER BY 1",
        "SELECT t.name || ' -> ' || f.\"table\" || ' ' || f.\"from\" || ' ' || f.\"to\" || ' ' || f.seq
         FROM pragma_table_list AS t, pragma_foreign_key_list(t.name) AS f WHERE t.schema = 'main' ORDER BY 1",
        "SELECT t.name || ' ' || i.\"unique\" || i.origin || i.partial || ' ' || group_concat(c.name)
         FROM pragma_table_list AS t, pragma_index_list(t.name) AS i, pragma_index_info(i.name) AS c
         WHERE t.schema = 'main' GROUP BY t.name, i.name ORDER BY 1",
        "SELECT name || ' ' || sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY 1",
    ];
    for question in questions {
        let mut statement = connection.prepare(question).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        lines.extend(rows.map(Result::unwrap).filter(|line| !line.starts_with("sqlite_")));
    }
    lines
}

#[test]
fn every_step_makes_the_tables_that_it_made_when_it_was_released() {
    for upgraded in 0..tables::LAST_STEP as usize {
        let [today, before] = [(); 2].map(|()| Connection::open_in_memory().unwrap());
        for step in 1..=tables::LAST_STEP as usize {
            let made = tables::step(step as u32, Dialect::Sqlite);
            before.execute_batch(released(step)).unwrap();
            today.execute_batch(if step <= upgraded { released(step) } else { &made }).unwrap();
            assert_eq!(understood(&today), understood(&before), "step {step} after {upgraded}");
        }
        let checks = "SELECT count(*) FROM sqlite_schema WHERE sql LIKE '%CHECK (state IN (''pending'', ''leased'', ''finished'', ''failed''))%'
                      OR sql LIKE '%CHECK (kind IN (''accepted'', ''replicate'', ''conflict''))%' OR sql LIKE '%CHECK (length(trial) = 16)%'";
        assert_eq!(today.query_row(checks, [], |row| row.get::<_, i64>(0)).unwrap(), 3);
    }
}

/// The first version, whose pages had no checksums, with one finished fold in it. Its result was accepted before results
/// that contradict themselves were refused.
pub(crate) fn old_store(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    let version = "CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY) STRICT;
                   INSERT INTO schema_version VALUES (1);";
    connection.execute_batch(&format!("{version}{}", released(1))).unwrap();
    let result = FoldResult { best_epoch: 99, ..togl_sweeps::result::example(0.25) };
    assert!(result.clone().check().is_err());
    let (body, digest) = (serde_json::to_string(&result).unwrap(), togl_scheduler::Digest::of(&result));
    let trial = fold(0).trial;
    connection.execute("INSERT INTO trial VALUES (1, ?1, '{}')", [trial.as_bytes()]).unwrap();
    connection
        .execute_batch(
            "INSERT INTO fold VALUES (1, 1, 0, -1, 'finished', 1, NULL, NULL, 0);
             INSERT INTO worker VALUES (1, 'w', 'host');
             INSERT INTO attempt VALUES (1, 1, 1, NULL, NULL);",
        )
        .unwrap();
    let limits = serde_json::to_string(&togl_sweeps::spec::SweepLimits::default()).unwrap();
    connection.execute("INSERT INTO sweep VALUES (1, 's', 0, 'name: s', 0, ?1, 'active')", [limits]).unwrap();
    connection.execute("INSERT INTO sweep_fold VALUES (1, 0, 1)", []).unwrap();
    let sql = "INSERT INTO result VALUES (1, 1, 1, 'accepted', ?1, ?2)";
    connection.execute(sql, rusqlite::params![digest.0.cast_signed(), body]).unwrap();
}

#[test]
fn an_older_store_is_brought_up_to_date_and_gets_checksums() {
    let (_folder, path) = place();
    old_store(&path);
    let incarnation = schema::identity(&Connection::open(&path).unwrap()).unwrap().0;
    assert!(schema::is_unchecked(&path).unwrap());
    let results =
        |reader: &dyn Reader| reader.results(&ResultQuery::accepted(sweep("s"))).unwrap().rows.len();
    assert_eq!(results(&open_read_only(&path).unwrap()), 1, "who only reads takes it as it is");
    for _ in 0..2 {
        let store = SqliteStore::open(&path).unwrap();
        assert_eq!(store.incarnation(), incarnation);
        let snapshot = store.load().unwrap();
        assert_eq!((snapshot.folds.len(), snapshot.sweeps.len()), (1, 1));
        let rows = store.reader().unwrap().results(&ResultQuery::accepted(sweep("s"))).unwrap().rows;
        assert_eq!(rows[0].result.test.accuracy, 0.25);
        assert!(!schema::is_unchecked(&path).unwrap());
    }
}

#[test]
fn a_history_that_an_older_version_noted_goes_on_in_order_and_nothing_is_told_twice() {
    let (_folder, path) = place();
    old_store(&path);
    let mut store = SqliteStore::open(&path).unwrap();
    let notes =
        "INSERT INTO history VALUES (1, 1, 5, 'submitted', NULL, ''), (1, 2, 6, 'leased', 1, 'on host'),
                     (1, 3, 7, 'accepted', 1, '')";
    store.connection.execute_batch(notes).unwrap();
    store.held.check_written(&store.connection).unwrap(); // it was us
    let fold = FoldKey { seed: u64::MAX, ..fold(0) };
    let (attempt, worker, host) = (Attempt(2), "w2".parse().unwrap(), "there".to_owned());
    store
        .commit(&[
            Change::Fold(fold, FoldChange::SetAside),
            Change::Fold(fold, FoldChange::Issued { attempt, worker, host }),
        ])
        .unwrap();
    let told = store.reader().unwrap().history(&fold).unwrap();
    let told: Vec<_> = told.iter().map(|one| (one.event.as_str(), one.detail.as_str())).collect();
    let aside = ("set-aside", "its result comes from other data");
    assert_eq!(
        told,
        [("submitted", ""), ("leased", "on host"), ("accepted", ""), aside, ("leased", "on there")]
    );
}

#[test]
fn an_old_copy_put_in_place_by_hand_is_refused_with_a_way_out() {
    let (_folder, path) = place();
    filled_sqlite(&path, 2);
    let old = fs::read(&path).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    store
        .commit(&[Change::Sweep(SweepChange::StateSet {
            sweep: sweep("s"),
            state: togl_scheduler::SweepState::Paused,
            note: None,
        })])
        .unwrap();
    Box::new(store).close().unwrap();
    fs::write(&path, &old).unwrap();
    for message in [refused(&path).to_string(), open_read_only(&path).unwrap_err().to_string()] {
        assert!(message.contains("its last 1 transactions are missing"), "{message}");
        assert!(message.contains("togl restore") && message.contains("store.sqlite-commits"), "{message}");
    }
    fs::remove_file(beside(&path, "-commits")).unwrap();
    SqliteStore::open(&path).unwrap();
}

#[test]
fn a_store_that_is_gone_or_empty_is_not_silently_begun_anew() {
    let (_folder, path) = place();
    filled_sqlite(&path, 2);
    let ways: [fn(&Path); 2] = [|path| fs::write(path, "").unwrap(), |path| fs::remove_file(path).unwrap()];
    for way in ways {
        way(&path);
        let message = refused(&path).to_string();
        assert!(message.contains("it is empty or gone, and there were"), "{message}");
        assert!(
            message.contains("to begin anew, remove") && message.contains("store.sqlite-commits"),
            "{message}"
        );
    }
    fs::remove_file(beside(&path, "-commits")).unwrap();
    assert_eq!(SqliteStore::open(&path).unwrap().load().unwrap().sweeps.len(), 0);
}

#[test]
fn a_store_in_a_folder_that_cannot_be_written_is_read_but_not_served() {
    let Some(sealed) = SealedFolder::new() else { return };
    let path = sealed.path.join("store.sqlite");
    let error = refused(&path);
    assert!(matches!(error, StoreError::NotWritable { .. }), "{error}");
    assert!(error.to_string().contains("check its owner and permissions"), "{error}");
    assert_eq!(open_read_only(&path).unwrap().sweeps().unwrap().len(), 1);
}

/// A folder with a store in it on a file system that is mounted read-only.
struct SealedFolder {
    _folder: TempDir,
    path: PathBuf,
}

impl SealedFolder {
    fn new() -> Option<Self> {
        let (folder, path) = place();
        filled_sqlite(&path, 1);
        let target = folder.path().join("sealed");
        fs::create_dir(&target).unwrap();
        let mount = |arguments: &[&str]| {
            let done = std::process::Command::new("mount").args(arguments).arg(&target).output();
            done.is_ok_and(|output| output.status.success())
        };
        let sealed = mount(&["--bind", folder.path().to_str().unwrap()]) && mount(&["-o", "remount,bind,ro"]);
        if !sealed {
            eprintln!("skipped: this user cannot mount a read-only file system");
            return None;
        }
        Some(Self { _folder: folder, path: target })
    }
}

impl Drop for SealedFolder {
    fn drop(&mut self) {
        _ = std::process::Command::new("umount").arg(&self.path).output();
    }
}

#[test]
fn a_half_made_store_is_made_anew() {
    let (_folder, path) = place();
    fs::write(beside(&path, ".new"), b"half").unwrap();
    fs::write(&path, b"").unwrap();
    SqliteStore::open(&path).unwrap();
    assert!(!beside(&path, ".new").exists());
}

#[test]
fn places_where_no_store_can_be_are_named_with_a_hint() {
    let (folder, path) = place();
    let nowhere = folder.path().join("not/there/store.sqlite");
    let message = refused(&nowhere).to_string();
    assert!(
        message.ends_with("not/there does not exist; create the folder, or choose another with `--state`")
    );
    assert!(matches!(open_read_only(&path), Err(StoreError::Missing { .. })));
    fs::create_dir(beside(&path, ".lock")).unwrap();
    let message = refused(&path).to_string();
    assert!(message.starts_with(&format!("cannot write to {}", path.display())), "{message}");
}
