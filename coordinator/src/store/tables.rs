//! The tables of every store that speaks SQL, said once: columns in their order, what they hold, their rules, and which step
//! brought them. The schemas of both databases and their upgrades, copies, checks and the statements that write rows are
//! made from this. Forward only: what was released is never edited; what is new comes with a new step, at the end of its
//! table, because that is where databases add columns.

use togl_sweeps::race::Score;
use togl_sweeps::{FoldResult, identity};

use self::Kind::{Bytes, Fold, Free, Number, Row, Sweep, Text, Trial, Worker};
use super::StoreError;
use super::database::{self, Cell, Database};

/// The step that this program brings stores to.
pub(super) const LAST_STEP: u32 = RACING;

/// The step that brought who steered.
const STEERING: u32 = 7;

/// The step that brought what races know of results.
pub(super) const RACING: u32 = 8;

/// Which database is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Sqlite,
    Postgres,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The number of the row itself.
    Row,
    /// The number of a trial's row.
    Trial,
    /// The number of a fold's row.
    Fold,
    /// The number of a worker's row.
    Worker,
    /// The number of a sweep's row.
    Sweep,
    /// A number.
    Number,
    /// Text without surprises.
    Text,
    /// Text that somebody wrote freely: bytes in PostgreSQL, whose text cannot hold every string.
    Free,
    /// Bytes.
    Bytes,
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    rule: &'static str,
    since: u32,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    since: u32,
    pub(super) columns: &'static [Column],
    /// The columns that put its rows in order.
    pub(super) order: &'static str,
    /// What must hold beyond single columns.
    rules: &'static str,
    key: Key,
}

/// What a row of a table is known by.
#[derive(Debug)]
enum Key {
    /// Its number, or nothing.
    Number,
    /// The columns that put rows in order; SQLite keeps rows in that order and gives them no numbers.
    Ordered,
    /// The same columns, beside numbers that SQLite gives.
    Beside,
}

const PLAIN: Table = Table { name: "", since: 1, columns: &[], order: "id", rules: "", key: Key::Number };

const fn column(name: &'static str, kind: Kind, rule: &'static str) -> Column {
    Column { name, kind, rule, since: 1 }
}

const ID: Column = column("id", Row, "");

impl Column {
    const fn since(self, since: u32) -> Self {
        Self { since, ..self }
    }
}

const FOLD: Column = column("fold", Fold, "NOT NULL REFERENCES fold (id)");

/// All tables, those that others refer to first.
pub(super) static TABLES: [Table; 15] = [
    // Transactions are counted, so that a lost one is noticed.
    Table {
        name: "store",
        columns: &[
            column("incarnation", Number, "NOT NULL"),
            column("commits", Number, "NOT NULL DEFAULT 0").since(4),
        ],
        order: "incarnation",
        ..PLAIN
    },
    Table {
        name: "trial",
        columns: &[
            ID,
            column("trial", Bytes, "NOT NULL UNIQUE CHECK (length(trial) = 16)"),
            column("canonical", Text, "NOT NULL"),
            column("memory_floor", Number, "NOT NULL DEFAULT 0").since(2),
        ],
        ..PLAIN
    },
    // `seed` and `digest` hold the bits of unsigned numbers. `attempt`, `digest` and `score` are those of the result, for a start that
    // does not look at results; `class` and `message` belong to failed folds.
    Table {
        name: "fold",
        columns: &[
            ID,
            column("trial", Trial, "NOT NULL REFERENCES trial (id)"),
            column("split", Number, "NOT NULL"),
            column("seed", Number, "NOT NULL"),
            column("state", Text, "NOT NULL CHECK (state IN ('pending', 'leased', 'finished', 'failed'))"),
            column("attempt", Number, ""),
            column("class", Text, ""),
            column("message", Free, ""),
            column("forgiven", Number, "NOT NULL DEFAULT 0"),
            column("digest", Number, "").since(4),
            column("score", Text, "").since(RACING),
        ],
        rules: "UNIQUE (trial, split, seed)",
        ..PLAIN
    },
    // The one without a name has the folds of a sweep that is being submitted.
    Table {
        name: "sweep",
        columns: &[
            ID,
            column("name", Text, "NOT NULL UNIQUE"),
            column("place", Number, "NOT NULL"),
            column("yaml", Free, "NOT NULL"),
            column("priority", Number, "NOT NULL"),
            column("limits", Text, "NOT NULL"),
            column("state", Text, "NOT NULL"),
            column("resources", Text, "NOT NULL DEFAULT '{}'").since(2),
            column("note", Free, "").since(2),
        ],
        ..PLAIN
    },
    Table {
        name: "sweep_fold",
        columns: &[
            column("sweep", Sweep, "NOT NULL REFERENCES sweep (id)"),
            column("position", Number, "NOT NULL"),
            FOLD,
        ],
        order: "sweep, position",
        key: Key::Ordered,
        ..PLAIN
    },
    Table {
        name: "worker",
        columns: &[ID, column("name", Text, "NOT NULL"), column("host", Free, "NOT NULL")],
        rules: "UNIQUE (name, host)",
        ..PLAIN
    },
    // Every attempt that was ever issued. `ending` and `message` belong to those that brought no result. `at`, in milliseconds
    // since 1970, and `number` are its place in the history of the fold; 0 where there is a note.
    Table {
        name: "attempt",
        columns: &[
            FOLD,
            column("attempt", Number, "NOT NULL"),
            column("worker", Worker, "NOT NULL REFERENCES worker (id)"),
            column("ending", Text, ""),
            column("message", Free, ""),
            column("at", Number, "NOT NULL DEFAULT 0").since(6),
            column("number", Number, "NOT NULL DEFAULT 0").since(6),
        ],
        order: "fold, attempt",
        key: Key::Ordered,
        ..PLAIN
    },
    // The same for results; 0 also where the result was never the one that counts.
    Table {
        name: "result",
        columns: &[
            ID,
            column("fold", Fold, "NOT NULL"),
            column("attempt", Number, "NOT NULL"),
            column("kind", Text, "NOT NULL CHECK (kind IN ('accepted', 'replicate', 'conflict'))"),
            column("digest", Number, "NOT NULL"),
            column("body", Text, "NOT NULL"),
            column("at", Number, "NOT NULL DEFAULT 0").since(6),
            column("number", Number, "NOT NULL DEFAULT 0").since(6),
        ],
        rules: "UNIQUE (fold, kind, attempt), FOREIGN KEY (fold, attempt) REFERENCES attempt (fold, attempt)",
        ..PLAIN
    },
    // What each data set must be; `dissent` has the finished folds whose results come from other data.
    Table {
        name: "data_set",
        since: 2,
        columns: &[column("name", Free, "NOT NULL"), column("digest", Free, "NOT NULL")],
        order: "name",
        key: Key::Ordered,
        ..PLAIN
    },
    Table {
        name: "dissent",
        since: 2,
        columns: &[
            FOLD,
            column("data_set", Free, "NOT NULL REFERENCES data_set (name)"),
            column("digest", Free, "NOT NULL"),
        ],
        order: "fold",
        key: Key::Beside,
        ..PLAIN
    },
    // What happened to each fold and leaves no row elsewhere that says when. Rows are added and never changed.
    Table {
        name: "history",
        since: 3,
        columns: &[
            FOLD,
            column("number", Number, "NOT NULL"),
            column("at", Number, "NOT NULL"),
            column("event", Text, "NOT NULL"),
            column("attempt", Number, ""),
            column("detail", Free, "NOT NULL"),
        ],
        order: "fold, number",
        key: Key::Ordered,
        ..PLAIN
    },
    Table {
        name: "log",
        columns: &[
            column("fold", Fold, "NOT NULL"),
            column("attempt", Number, "NOT NULL"),
            column("text", Free, "NOT NULL"),
        ],
        order: "fold, attempt",
        rules: "FOREIGN KEY (fold, attempt) REFERENCES attempt (fold, attempt)",
        key: Key::Beside,
        ..PLAIN
    },
    // Workers that were drained and hosts that are kept out, for as long as they are.
    Table {
        name: "drain",
        since: 5,
        columns: &[column("worker", Free, "NOT NULL"), column("host", Free, "NOT NULL")],
        order: "worker",
        key: Key::Ordered,
        ..PLAIN
    },
    Table {
        name: "quarantine",
        since: 5,
        columns: &[column("host", Free, "NOT NULL"), column("reason", Free, "NOT NULL")],
        order: "host",
        key: Key::Ordered,
        ..PLAIN
    },
    // What people did, when and why, in order; a worker or a data set is in `about`. Rows are added and never changed.
    Table {
        name: "steering",
        since: STEERING,
        columns: &[
            column("number", Number, "NOT NULL"),
            column("at", Number, "NOT NULL"),
            column("who", Free, "NOT NULL"),
            column("act", Text, "NOT NULL"),
            column("sweep", Text, ""),
            column("about", Free, ""),
            column("detail", Free, "NOT NULL"),
            column("reason", Free, "NOT NULL"),
        ],
        order: "number",
        key: Key::Ordered,
        ..PLAIN
    },
];

/// What a step does when its tables and columns are there.
const AND_THEN: [(u32, &str); 4] = [
    (1, "CREATE UNIQUE INDEX one_accepted_result_a_fold ON result (fold) WHERE kind = 'accepted'"),
    (
        4,
        "UPDATE fold SET digest = (SELECT digest FROM result WHERE result.fold = fold.id AND result.kind = 'accepted')
         WHERE state = 'finished'",
    ),
    (4, "CREATE INDEX replicates ON result (fold, attempt, digest) WHERE kind = 'replicate'"),
    (STEERING, "CREATE INDEX steering_of_sweep ON steering (sweep, number)"),
];

/// The statements that bring a store from the step before to this one.
pub(super) fn step(step: u32, dialect: Dialect) -> String {
    let mut statements = Vec::new();
    for table in &TABLES {
        let new = table.columns.iter().filter(|column| column.since.max(table.since) == step);
        if table.since == step {
            statements.push(table.created(new, dialect));
        } else {
            let added =
                |column| format!("ALTER TABLE {} ADD COLUMN {}", table.name, defined(column, dialect));
            statements.extend(new.map(added));
        }
    }
    statements.extend(AND_THEN.iter().filter(|(when, _)| *when == step).map(|(_, sql)| (*sql).to_owned()));
    statements.join(";\n")
}

fn defined(Column { name, kind, rule, .. }: &Column, dialect: Dialect) -> String {
    format!("{name} {} {rule}", kind.defined(dialect))
}

impl Kind {
    /// What PostgreSQL calls it.
    pub(super) fn sent(self) -> &'static str {
        match self {
            Row => Number.defined(Dialect::Postgres),
            other => other.defined(Dialect::Postgres),
        }
    }

    fn defined(self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Row, Dialect::Sqlite) => "INTEGER PRIMARY KEY",
            (Row, Dialect::Postgres) => "BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY",
            (Trial | Fold | Worker | Sweep | Number, Dialect::Sqlite) => "INTEGER",
            (Trial | Fold | Worker | Sweep | Number, Dialect::Postgres) => "BIGINT",
            (Text, _) | (Free, Dialect::Sqlite) => "TEXT",
            (Bytes, Dialect::Sqlite) => "BLOB",
            (Bytes | Free, Dialect::Postgres) => "BYTEA",
        }
    }
}

impl Table {
    fn created<'a>(&self, columns: impl Iterator<Item = &'a Column>, dialect: Dialect) -> String {
        let mut lines: Vec<String> = columns.map(|column| defined(column, dialect)).collect();
        if !matches!(self.key, Key::Number) {
            lines.push(format!("PRIMARY KEY ({})", self.order));
        }
        lines.extend((!self.rules.is_empty()).then(|| self.rules.to_owned()));
        let options = match (dialect, &self.key) {
            (Dialect::Sqlite, Key::Ordered) => " STRICT, WITHOUT ROWID",
            (Dialect::Sqlite, Key::Number | Key::Beside) => " STRICT",
            (Dialect::Postgres, _) => "",
        };
        format!("CREATE TABLE {} (\n    {}\n){options}", self.name, lines.join(",\n    "))
    }

    /// Its columns as SQL.
    pub(super) fn list(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    /// The column that says to which fold a row belongs.
    pub(super) fn fold_column(&self) -> Option<&'static str> {
        let is_it = |column: &&Column| column.kind == Fold || (column.kind == Row && self.name == "fold");
        self.columns.iter().find(is_it).map(|column| column.name)
    }
}

/// Says of results of older stores what races know of them.
pub(super) fn score(on: &mut dyn Database) -> Result<(), StoreError> {
    let sql = "SELECT fold.id, result.body FROM fold JOIN result ON result.fold = fold.id AND result.kind = 'accepted'
               WHERE fold.state = 'finished'";
    let scored = |row: &database::Row<'_>| {
        let result = serde_json::from_str::<FoldResult>(row.get(1)?).ok();
        Ok((row.get::<i64>(0)?, result.map(|result| Score::of(&result).to_string())))
    };
    for (fold, score) in database::all(on, sql, &[], scored)? {
        let Some(score) = score else { continue }; // `togl check` says what is damaged
        on.run("UPDATE fold SET score = $1 WHERE id = $2", &[Cell::Text(&score), Cell::Number(fold)])?;
    }
    Ok(())
}

/// Gives trials whose data set was written in another case the identity that they have now. Folds that the trial of that
/// identity has already stay where they are.
pub(super) fn respell(on: &mut dyn Database) -> Result<(), StoreError> {
    let respelled = |row: &database::Row<'_>| Ok((row.get::<i64>(0)?, identity::respelled(row.get(1)?)));
    for (old, new) in database::all(on, "SELECT id, canonical FROM trial", &[], respelled)? {
        let Some((trial, canonical)) = new else { continue };
        let (old, trial) = (Cell::Number(old), Cell::Bytes(trial.as_bytes()));
        let sql = "UPDATE trial SET trial = $1, canonical = $2 WHERE id = $3
                   AND NOT EXISTS (SELECT 1 FROM trial AS twin WHERE twin.trial = $1)";
        if on.run(sql, &[trial, Cell::Text(&canonical), old])? == 0 {
            let sql =
                "UPDATE fold SET trial = twin.id FROM trial AS twin WHERE twin.trial = $1 AND fold.trial = $2
                       AND NOT EXISTS (SELECT 1 FROM fold AS other WHERE other.trial = twin.id
                                       AND other.split = fold.split AND other.seed = fold.seed)";
            on.run(sql, &[trial, old])?;
        }
    }
    Ok(())
}
