//! How rows are written: statements as descriptions, and the SQL that each database makes of them. SQLite carries one out row
//! by row and has looked up which rows are meant; PostgreSQL does it for many rows at once and finds them by joins. Which
//! facts take which statements is said in `writes`.

use std::sync::OnceLock;

use togl_sweeps::{FoldKey, TrialId, WorkerId};

use super::database::Cell;
use super::tables::{Kind, TABLES};

/// A value for a statement. The number of a row elsewhere is given by what that row is about.
#[derive(Debug, Clone, Copy)]
pub(super) enum Given<'a> {
    Plain(Cell<'a>),
    Trial(&'a TrialId),
    Fold(&'a FoldKey),
    /// With its host; made if it is new.
    Worker(&'a WorkerId, &'a str),
    /// By name.
    Sweep(&'a str),
}

/// What is done with a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    /// It is new.
    Insert,
    /// It is added, unless there is one of its key.
    InsertNew,
    /// It is added, or takes the place of the one of its key.
    Replace,
    /// It is there and changes.
    Update,
    /// It goes, if it is there.
    Delete,
}

/// A statement. Its values are those of the columns in `by`, then those of the columns in `set`.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) verb: Verb,
    pub(super) table: &'static str,
    /// What the row is found by.
    pub(super) by: &'static [&'static str],
    set: &'static [&'static str],
    /// What is set to something that is not given, and what else must hold of the row.
    fixed: (&'static str, &'static str),
    /// What is missing when there is no such row.
    pub(super) what: &'static str,
    /// What follows with the same values.
    pub(super) then: Option<&'static Self>,
    sqlite: OnceLock<String>,
    postgres: OnceLock<String>,
}

type Names = &'static [&'static str];

impl Statement {
    const fn new(verb: Verb, table: &'static str, by: Names, set: Names, what: &'static str) -> Self {
        Self {
            verb,
            table,
            by,
            set,
            fixed: ("", ""),
            what,
            then: None,
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
        }
    }

    /// A new row; `what` it refers to must be there.
    pub(super) const fn insert(table: &'static str, set: Names, what: &'static str) -> Self {
        Self::new(Verb::Insert, table, &[], set, what)
    }

    /// A row that is added unless there is one of its key.
    pub(super) const fn insert_new(table: &'static str, by: Names, set: Names) -> Self {
        Self::new(Verb::InsertNew, table, by, set, table)
    }

    /// A row that is added, or takes the place of the one of its key.
    pub(super) const fn replace(table: &'static str, by: Names, set: Names) -> Self {
        Self::new(Verb::Replace, table, by, set, table)
    }

    /// A row that is there and changes.
    pub(super) const fn update(table: &'static str, by: Names, set: Names) -> Self {
        Self::new(Verb::Update, table, by, set, table)
    }

    /// A row that goes.
    pub(super) const fn delete(table: &'static str, by: Names) -> Self {
        Self::new(Verb::Delete, table, by, &[], table)
    }

    /// The same, with what is set without being given, of rows of which `only` holds.
    pub(super) const fn fixed(mut self, set: &'static str, only: &'static str) -> Self {
        self.fixed = (set, only);
        self
    }

    /// The same, with another word for what is missing when there is no such row.
    pub(super) const fn of(mut self, what: &'static str) -> Self {
        self.what = what;
        self
    }

    /// The same, with what follows.
    pub(super) const fn then(mut self, next: &'static Self) -> Self {
        self.then = Some(next);
        self
    }

    /// Whether what it does depends on what was done before it, so that it cannot change places with others.
    pub(super) fn is_alone(&self) -> bool {
        match self.verb {
            Verb::Insert | Verb::InsertNew => false,
            Verb::Update => !self.fixed.0.is_empty(),
            Verb::Replace | Verb::Delete => true,
        }
    }

    /// Its place among others that can: new rows come first, those that others refer to before them.
    pub(super) fn rank(&self) -> (bool, Option<usize>) {
        (self.verb == Verb::Update, TABLES.iter().position(|table| table.name == self.table))
    }

    fn columns(&self) -> impl Iterator<Item = &'static str> {
        self.by.iter().chain(self.set).copied()
    }

    /// What the columns hold whose values are given. What is no column but is compared with is a number.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        let columns = TABLES.iter().filter(|table| table.name == self.table).flat_map(|table| table.columns);
        self.columns().map(move |name| match columns.clone().find(|column| column.name == name) {
            Some(column) if column.kind == Kind::Row => Kind::Fold, // the only rows that are found by their numbers
            Some(column) => column.kind,
            None => Kind::Number,
        })
    }

    /// For SQLite, where a row elsewhere is given by its number.
    pub(super) fn sqlite(&self) -> &str {
        self.sqlite.get_or_init(|| {
            let values: Vec<String> = self.columns().zip(1..).map(|(_, place)| format!("?{place}")).collect();
            match self.verb {
                Verb::Insert | Verb::InsertNew | Verb::Replace => {
                    self.inserted(&format!("VALUES ({})", values.join(", ")))
                }
                Verb::Update => {
                    format!("UPDATE {} {} {}", self.table, self.changed(&values), self.found(&values))
                }
                Verb::Delete => format!("DELETE FROM {} {}", self.table, self.found(&values)),
            }
        })
    }

    /// For PostgreSQL, where each value is an array with one element a row, and what a row elsewhere is about is given.
    pub(super) fn postgres(&self) -> &str {
        self.postgres.get_or_init(|| {
            let mut arrays = Arrays::default();
            let values: Vec<String> = self.kinds().map(|kind| arrays.value(kind)).collect();
            let from = arrays.text();
            match self.verb {
                Verb::Insert | Verb::InsertNew | Verb::Replace => {
                    self.inserted(&format!("SELECT {} FROM {from} ORDER BY u.place", values.join(", ")))
                }
                Verb::Update => {
                    let (changed, found) = (self.changed(&values), self.found(&values));
                    format!("UPDATE {} {changed} FROM {from} {found}", self.table)
                }
                Verb::Delete => format!("DELETE FROM {} USING {from} {}", self.table, self.found(&values)),
            }
        })
    }

    fn inserted(&self, values: &str) -> String {
        let columns = self.columns().collect::<Vec<_>>().join(", ");
        let conflict = match self.verb {
            Verb::InsertNew => format!("ON CONFLICT ({}) DO NOTHING", self.by.join(", ")),
            Verb::Replace => {
                let set: Vec<String> =
                    self.set.iter().map(|name| format!("{name} = excluded.{name}")).collect();
                format!("ON CONFLICT ({}) DO UPDATE SET {}", self.by.join(", "), set.join(", "))
            }
            Verb::Insert | Verb::Update | Verb::Delete => String::new(),
        };
        format!("INSERT INTO {} ({columns}) {values} {conflict}", self.table)
    }

    fn changed(&self, values: &[String]) -> String {
        let given =
            self.set.iter().zip(&values[self.by.len()..]).map(|(name, value)| format!("{name} = {value}"));
        let fixed = (!self.fixed.0.is_empty()).then(|| self.fixed.0.to_owned());
        format!("SET {}", given.chain(fixed).collect::<Vec<_>>().join(", "))
    }

    fn found(&self, values: &[String]) -> String {
        let qualified = |name: &str| match name.starts_with('(') {
            true => name.to_owned(),
            false => format!("{}.{name}", self.table),
        };
        let given = self.by.iter().zip(values).map(|(name, value)| format!("{} = {value}", qualified(name)));
        let fixed = (!self.fixed.1.is_empty()).then(|| self.fixed.1.to_owned());
        format!("WHERE {}", given.chain(fixed).collect::<Vec<_>>().join(" AND "))
    }
}

/// The arrays of a statement as rows called `u`, joined with the rows elsewhere that they are about.
#[derive(Default)]
struct Arrays {
    arrays: Vec<&'static str>,
    joins: String,
}

impl Arrays {
    /// Adds a value; how it is called.
    fn value(&mut self, kind: Kind) -> String {
        let at = self.arrays.len();
        self.arrays.extend(sent(kind));
        let (joined, by): (&str, &[&str]) = match kind {
            Kind::Row | Kind::Number | Kind::Text | Kind::Free | Kind::Bytes => return format!("u.c{at}"),
            Kind::Trial => ("trial", &["trial"]),
            Kind::Worker => ("worker", &["name", "host"]),
            Kind::Sweep => ("sweep", &["name"]),
            Kind::Fold => {
                self.joins += &format!(" JOIN trial AS t{at} ON t{at}.trial = u.c{at}");
                let (split, seed) = (at + 1, at + 2);
                self.joins += &format!(
                    " JOIN fold AS r{at} ON r{at}.trial = t{at}.id AND r{at}.split = u.c{split} AND r{at}.seed = u.c{seed}"
                );
                return format!("r{at}.id");
            }
        };
        let by: Vec<String> =
            by.iter().zip(at..).map(|(name, place)| format!("r{at}.{name} = u.c{place}")).collect();
        self.joins += &format!(" JOIN {joined} AS r{at} ON {}", by.join(" AND "));
        format!("r{at}.id")
    }

    fn text(self) -> String {
        let arrays: Vec<String> =
            self.arrays.iter().zip(1..).map(|(kind, place)| format!("${place}::{kind}[]")).collect();
        let names: Vec<String> = (0..arrays.len()).map(|at| format!("c{at}")).collect();
        let (arrays, names) = (arrays.join(", "), names.join(", "));
        format!("unnest({arrays}) WITH ORDINALITY AS u ({names}, place){}", self.joins)
    }
}

/// What PostgreSQL is sent for a column of this kind.
fn sent(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Row | Kind::Number => &["bigint"],
        Kind::Text | Kind::Sweep => &["text"],
        Kind::Free | Kind::Bytes | Kind::Trial => &["bytea"],
        Kind::Fold => &["bytea", "bigint", "bigint"],
        Kind::Worker => &["text", "bytea"],
    }
}
