-- The steps that released programs took to make a store in SQLite, as they took them. Never edited: tests compare what is
-- made today with them, and make stores of before from them.
-- STEP 1
CREATE TABLE store (incarnation INTEGER NOT NULL) STRICT;
INSERT INTO store VALUES (random());

CREATE TABLE trial (
    id INTEGER PRIMARY KEY,
    trial BLOB NOT NULL UNIQUE CHECK (length(trial) = 16),
    canonical TEXT NOT NULL
) STRICT;

-- `seed` holds the bits of an unsigned number. `attempt` is that of the result, `class` and `message` belong
-- to failed folds.
CREATE TABLE fold (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trial (id),
    split INTEGER NOT NULL,
    seed INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'leased', 'finished', 'failed')),
    attempt INTEGER,
    class TEXT,
    message TEXT,
    forgiven INTEGER NOT NULL DEFAULT 0,
    UNIQUE (trial, split, seed)
) STRICT;

CREATE TABLE sweep (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    place INTEGER NOT NULL,
    yaml TEXT NOT NULL,
    priority INTEGER NOT NULL,
    limits TEXT NOT NULL,
    state TEXT NOT NULL
) STRICT;

CREATE TABLE sweep_fold (
    sweep INTEGER NOT NULL REFERENCES sweep (id),
    position INTEGER NOT NULL,
    fold INTEGER NOT NULL REFERENCES fold (id),
    PRIMARY KEY (sweep, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE worker (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    UNIQUE (name, host)
) STRICT;

-- Every attempt that was ever issued. `ending` and `message` belong to those that brought no result.
CREATE TABLE attempt (
    fold INTEGER NOT NULL REFERENCES fold (id),
    attempt INTEGER NOT NULL,
    worker INTEGER NOT NULL REFERENCES worker (id),
    ending TEXT,
    message TEXT,
    PRIMARY KEY (fold, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE result (
    id INTEGER PRIMARY KEY,
    fold INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('accepted', 'replicate', 'conflict')),
    digest INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (fold, kind, attempt),
    FOREIGN KEY (fold, attempt) REFERENCES attempt (fold, attempt)
) STRICT;
CREATE UNIQUE INDEX one_accepted_result_a_fold ON result (fold) WHERE kind = 'accepted';

CREATE TABLE log (
    fold INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    text TEXT NOT NULL,
    PRIMARY KEY (fold, attempt),
    FOREIGN KEY (fold, attempt) REFERENCES attempt (fold, attempt)
) STRICT;
-- STEP 2
ALTER TABLE sweep ADD COLUMN resources TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sweep ADD COLUMN note TEXT;
ALTER TABLE trial ADD COLUMN memory_floor INTEGER NOT NULL DEFAULT 0;

-- What each data set must be; `dissent` has the finished folds whose results come from other data.
CREATE TABLE data_set (
    name TEXT NOT NULL PRIMARY KEY,
    digest TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dissent (
    fold INTEGER NOT NULL PRIMARY KEY REFERENCES fold (id),
    data_set TEXT NOT NULL REFERENCES data_set (name),
    digest TEXT NOT NULL
) STRICT;
-- STEP 3
CREATE TABLE history (
    fold INTEGER NOT NULL REFERENCES fold (id),
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    attempt INTEGER,
    detail TEXT NOT NULL,
    PRIMARY KEY (fold, number)
) STRICT, WITHOUT ROWID;
-- STEP 4
ALTER TABLE store ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE fold ADD COLUMN digest INTEGER;
UPDATE fold SET digest = (SELECT digest FROM result WHERE result.fold = fold.id AND result.kind = 'accepted')
    WHERE state = 'finished';
CREATE INDEX replicates ON result (fold, attempt, digest) WHERE kind = 'replicate';
-- STEP 5
CREATE TABLE drain (
    worker TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE quarantine (
    host TEXT NOT NULL PRIMARY KEY,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- STEP 6
ALTER TABLE attempt ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
ALTER TABLE result ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE result ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
-- STEP 7
CREATE TABLE steering (
    number INTEGER NOT NULL PRIMARY KEY,
    at INTEGER NOT NULL,
    who TEXT NOT NULL,
    act TEXT NOT NULL,
    sweep TEXT,
    about TEXT,
    detail TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX steering_of_sweep ON steering (sweep, number);
-- STEP 8
ALTER TABLE fold ADD COLUMN score TEXT;
