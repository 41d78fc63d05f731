//! What only a file can do: be locked, foreign, newer, damaged, unreachable, or read by another process.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::store::ResultQuery;
use crate::store::contract::{fill, filled_sqlite, fold, impossible_fact, sweep};

fn place() -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("store.sqlite");
    (folder, path)
}

/// A connection that anybody could open, with the checksums of pages kept right.
fn raw(path: &Path) -> Connection {
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
    let state =
        Change::SweepStateSet { sweep: sweep("s"), state: togl_scheduler::SweepState::Paused, note: None };
    let error = store.commit(&[state, impossible_fact()]).unwrap_err();
    assert!(error.to_string().contains("impossible fold"), "{error}");
    assert_eq!(store.load().unwrap(), before);
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

/// The first version, whose pages had no checksums, with one finished fold in it.
fn old_store(path: &Path) {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "application_id", schema::APPLICATION_ID).unwrap();
    let version = "CREATE TABLE schema_version (version INTEGER NOT NULL PRIMARY KEY) STRICT;
                   INSERT INTO schema_version VALUES (1);";
    connection.execute_batch(&format!("{version}{}", schema::FIRST)).unwrap();
    let result = togl_sweeps::result::example(0.25);
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
    let limits = serde_json::to_string(&togl_sweeps::spec::Limits::default()).unwrap();
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

/// Everything that a store says, or why it says nothing.
fn everything(store: &SqliteStore) -> Result<(Snapshot, ResultPage, Vec<LogPiece>), StoreError> {
    let reader = store.reader()?;
    let query = ResultQuery { limit: u64::MAX, ..ResultQuery::accepted(sweep("s")) };
    Ok((store.load()?, reader.results(&query)?, reader.log(&fold(0))?))
}

/// A store and its log as a killed process leaves them, with more in the log than in the file.
struct Killed {
    folder: TempDir,
    file: Vec<u8>,
    log: Vec<u8>,
    count: Vec<u8>,
    expected: (Snapshot, ResultPage, Vec<LogPiece>),
}

impl Killed {
    fn new() -> Self {
        let (folder, path) = place();
        filled_sqlite(&path, 40);
        let mut store = SqliteStore::open(&path).unwrap();
        let piece = LogPiece { fold: fold(0), attempt: togl_sweeps::Attempt(1), text: "said\n".to_owned() };
        store.append_log(&[piece]).unwrap();
        for state in [togl_scheduler::SweepState::Paused, togl_scheduler::SweepState::Active] {
            store.commit(&[Change::SweepStateSet { sweep: sweep("s"), state, note: None }]).unwrap();
        }
        let expected = everything(&store).unwrap();
        let read = |ending| fs::read(beside(&path, ending)).unwrap();
        Self { file: read(""), log: read("-wal"), count: read("-commits"), expected, folder }
    }

    /// Opens what is left after something happened to it. Whether it was refused; panics if it says something wrong.
    fn is_refused(&self, file: &[u8], log: Option<&[u8]>, what: &str) -> bool {
        let path = self.folder.path().join("left");
        for (ending, bytes) in
            [("", Some(file)), ("-wal", log), ("-commits", Some(&self.count)), ("-shm", None)]
        {
            match bytes {
                Some(bytes) => fs::write(beside(&path, ending), bytes).unwrap(),
                None => _ = fs::remove_file(beside(&path, ending)),
            }
        }
        match SqliteStore::open(&path) {
            Ok(store) => match everything(&store) {
                Ok(found) => assert!(found == self.expected, "{what}: wrong content"),
                Err(error) => {
                    assert!(is_clear(&error), "{what}: {error}");
                    return true;
                }
            },
            Err(error) => {
                assert!(is_clear(&error), "{what}: {error}");
                assert!(fs::read(&path).unwrap() == file, "{what}: the file was touched");
                if let Some(log) = log.filter(|log| !log.is_empty()) {
                    assert!(fs::read(beside(&path, "-wal")).unwrap() == log, "{what}: the log was touched");
                }
                return true;
            }
        }
        false
    }
}

/// Whether an error says what is wrong with the file.
fn is_clear(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Corrupt { .. }
            | StoreError::Foreign { .. }
            | StoreError::Newer { .. }
            | StoreError::Impossible { .. }
    )
}

/// Repeatable places in `0..length`.
fn places(seed: u64, length: usize, count: usize) -> impl Iterator<Item = usize> {
    let mut history = crate::store::contract::History::new(seed);
    std::iter::repeat_with(move || history.draw(length as u64) as usize).take(count)
}

#[test]
fn a_flipped_bit_in_the_file_is_refused_or_mended_but_never_believed() {
    let killed = Killed::new();
    // Without a log: everything is in the file.
    let path = killed.folder.path().join("store.sqlite");
    Box::new(SqliteStore::open(&path).unwrap()).close().unwrap();
    let whole = fs::read(&path).unwrap();
    assert!(!killed.is_refused(&whole, None, "untouched"));
    let seed = 11;
    let mut refused = 0;
    let header = (0..100).step_by(3);
    for at in header.chain(places(seed, whole.len(), 200)) {
        let mut file = whole.clone();
        file[at] ^= 1 << (at % 8);
        refused += usize::from(killed.is_refused(&file, None, &format!("seed {seed}, byte {at}")));
    }
    assert!(refused > 200, "every page of this store is read, so nearly every flip is noticed: {refused}");
}

#[test]
fn a_cut_file_is_refused_or_whole_but_never_wrong() {
    let killed = Killed::new();
    let path = killed.folder.path().join("store.sqlite");
    Box::new(SqliteStore::open(&path).unwrap()).close().unwrap();
    let whole = fs::read(&path).unwrap();
    for length in places(12, whole.len(), 60).map(|length| length.max(1)) {
        assert!(killed.is_refused(&whole[..length], None, &format!("cut at {length}")));
    }
}

#[test]
fn a_damaged_cut_or_missing_log_is_noticed() {
    let killed = Killed::new();
    let Killed { file, log, .. } = &killed;
    assert!(log.len() > 3 * 4_096, "{}", log.len());
    assert!(!killed.is_refused(file, Some(log), "untouched"));
    assert!(killed.is_refused(file, None, "missing"), "the log holds commits that the file does not");
    assert!(killed.is_refused(file, Some(b""), "emptied"));
    for at in (0..32).chain(places(13, log.len(), 120)) {
        let mut bad = log.clone();
        bad[at] ^= 1 << (at % 8);
        killed.is_refused(file, Some(&bad), &format!("bit of byte {at}"));
    }
    for length in places(14, log.len(), 60) {
        assert!(killed.is_refused(file, Some(&log[..length]), &format!("log cut at {length}")));
    }
}

#[test]
fn a_file_torn_by_a_crash_is_mended_from_its_log() {
    let killed = Killed::new();
    let Killed { file, log, .. } = &killed;
    // A page that is in the log; half of it reached the file before the power was gone.
    let page = u32::from_be_bytes(log[32..36].try_into().unwrap()) as usize - 1;
    let mut torn = file.clone();
    torn[page * 4_096 + 200..page * 4_096 + 600].fill(0xaa);
    assert!(!killed.is_refused(&torn, Some(log), "torn"), "SQLite takes the page from the log");
}

#[test]
fn an_old_copy_put_in_place_by_hand_is_refused_with_a_way_out() {
    let (_folder, path) = place();
    filled_sqlite(&path, 2);
    let old = fs::read(&path).unwrap();
    let mut store = SqliteStore::open(&path).unwrap();
    store
        .commit(&[Change::SweepStateSet {
            sweep: sweep("s"),
            state: togl_scheduler::SweepState::Paused,
            note: None,
        }])
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
fn values_that_cannot_be_are_errors_and_never_panics() {
    let (_folder, path) = place();
    filled_sqlite(&path, 6);
    let whole = fs::read(&path).unwrap();
    let values = ["-1", "9223372036854775807", "'x'", "x'00'", "NULL"];
    let (mut seed, mut noticed) = (17, 0);
    for table in &crate::store::copy::TABLES {
        for (column, _) in table.columns {
            for value in values {
                seed += 1;
                fs::write(&path, &whole).unwrap();
                let mut history = crate::store::contract::History::new(seed);
                let skip = history.draw(6);
                let connection = raw(&path);
                connection
                    .execute_batch("PRAGMA foreign_keys = OFF; PRAGMA ignore_check_constraints = ON")
                    .unwrap();
                let row = format!(
                    "SELECT {column} FROM {0} LIMIT 1 OFFSET {skip} % (SELECT max(1, count(*)) FROM {0})",
                    table.name
                );
                let sql = format!(
                    "UPDATE OR IGNORE {} SET {column} = {value} WHERE {column} IS ({row})",
                    table.name
                );
                let changed = connection.execute_batch(&sql).is_ok();
                drop(connection);
                let read = open_read_only(&path).and_then(|reader| {
                    read::load(&reader.connection)?;
                    reader.results(&ResultQuery::accepted(sweep("s")))?;
                    reader.log(&fold(0))
                });
                noticed += usize::from(changed && read.is_err());
            }
        }
    }
    assert!(noticed > 15, "many such values are noticed: {noticed}");
}

#[test]
fn what_a_crash_left_in_the_log_is_not_lost() {
    let (folder, path) = place();
    let store = SqliteStore::open(&path).unwrap();
    let expected = fill(Box::new(store), 50, |_store| {
        // What a killed process leaves behind: the file and its log, as they are now.
        for ending in ["", "-wal"] {
            fs::copy(beside(&path, ending), beside(&folder.path().join("crashed"), ending)).unwrap();
        }
    });
    assert_eq!(SqliteStore::open(&folder.path().join("crashed")).unwrap().load().unwrap(), expected);
}

#[test]
fn a_store_that_was_edited_around_its_checksums_is_refused() {
    let (_folder, path) = place();
    filled_sqlite(&path, 1);
    Connection::open(&path).unwrap().execute_batch("UPDATE sweep SET priority = 99").unwrap();
    let error = SqliteStore::open(&path).and_then(|store| store.load()).unwrap_err();
    assert!(error.to_string().contains("a page does not fit its checksum"), "{error}");
}

#[test]
fn a_result_whose_numbers_were_changed_is_not_shown() {
    let (_folder, path) = place();
    filled_sqlite(&path, 1);
    let forge = "UPDATE result SET body = replace(body, '\"accuracy\":0.0', '\"accuracy\":1.0')";
    raw(&path).execute_batch(forge).unwrap();
    let reader = open_read_only(&path).unwrap();
    let error = reader.results(&ResultQuery::accepted(sweep("s"))).unwrap_err();
    let expected = format!("the numbers of fold {} do not fit their digest", fold(0));
    assert!(error.to_string().contains(&expected), "{error}");
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
