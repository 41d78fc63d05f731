//! The keys of a sweep file, block by block, with a sentence each. The reader refuses what is not here and the JSON
//! schema describes what is. Settings have a table of their own.

/// A key of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyInfo {
    pub name: &'static str,
    pub about: &'static str,
}

/// The keys of one block.
pub(crate) type Block = &'static [KeyInfo];

const fn key(name: &'static str, about: &'static str) -> KeyInfo {
    KeyInfo { name, about }
}

/// The names of a block.
pub(crate) fn names(block: Block) -> impl Iterator<Item = &'static str> + Clone {
    block.iter().map(|key| key.name)
}

const BASE: KeyInfo = key("base", "settings that all points share; `preset` names a set of them");
const GRID: KeyInfo = key("grid", "axes; every combination is a point");
const ZIP: KeyInfo = key("zip", "axes that move together: a mapping, or a list of mappings");
const EXCLUDE: KeyInfo = key("exclude", "partial settings; points that match one are left out");
const RANDOM: KeyInfo = key("random", "a seeded sample instead of all points");
const SPLITS: KeyInfo = key("splits", "folds of the data set, or split seeds");
const SEEDS: KeyInfo = key("seeds", "training seeds");

/// The file itself.
pub(crate) const SWEEP: Block = &[
    key("version", "version of this language"),
    key("name", "what people call the sweep: 1 to 64 of a-z, 0-9, `-`, `_` and `.`"),
    key("description", "a sentence for people"),
    BASE,
    GRID,
    ZIP,
    EXCLUDE,
    RANDOM,
    key("union", "several grids in one sweep, each with its own keys"),
    SPLITS,
    SEEDS,
    key("limits", "guards"),
    key("resources", "what a fold needs"),
    key("priority", "higher runs first"),
    key("table", "the table at the end"),
    key("figure", "the figures at the end: a mapping, or a list of mappings"),
    key("published", "numbers from print for comparison: a mapping, or a list of mappings"),
];

/// One grid of a union.
pub(crate) const PART: Block = &[BASE, GRID, ZIP, EXCLUDE, RANDOM, SPLITS, SEEDS];

/// An axis that is not a plain list.
pub(crate) const AXIS: Block = &[
    key("values", "the values, in order"),
    key("from", "first value of a range"),
    key("to", "last value of a range, included where a step reaches it"),
    key("step", "distance of neighbours; 1 for whole numbers if left out"),
    key("factor", "ratio of neighbours"),
    key("count", "so many values at equal ratios, both ends included"),
    key("when", "the axis exists only where these settings hold"),
];

/// A value of an axis with a condition.
pub(crate) const VALUE: Block =
    &[key("value", "the value"), key("when", "the value exists only where these settings hold")];

/// A range of whole numbers.
pub(crate) const RANGE: Block = &[
    key("from", "first number"),
    key("to", "last number, included"),
    key("step", "distance; 1 if left out"),
];

/// `random`.
pub(crate) const RANDOM_KEYS: Block = &[
    key("budget", "how many draws; raise it later to add some"),
    key("seed", "what the draws depend on"),
    key("from", "`grid`: draw points of the grid, none twice"),
    key("distributions", "draw these settings, for every point of the grid"),
];

/// One distribution.
pub(crate) const LAW: Block = &[
    key("uniform", "two bounds; every number between is as likely"),
    key("log_uniform", "two bounds; every order of magnitude between is as likely"),
    key("choice", "a list; every value is as likely"),
];

/// `limits`.
pub(crate) const LIMITS: Block = &[
    key("max_folds", "a larger sweep is refused: a guard against accidents"),
    key("attempts", "attempts of one fold, whatever the reason but preemption"),
    key("fold_seconds", "seconds that one attempt may train"),
];

/// `resources`.
pub(crate) const RESOURCES: Block =
    &[key("device", "kind of device"), key("memory", "memory on it, such as `8 GiB`")];

/// `table`.
pub(crate) const TABLE: Block = &[
    key("rows", "settings, or `method`, that make a row"),
    key("columns", "the setting that makes the columns"),
    key("metric", "what is averaged"),
    key("group", "the setting of which each value has a common header over its columns"),
    key("filter", "only trials with these settings are in the table"),
    key("select", "a choice by validation before the table is made"),
    key("labels", "what is printed for a setting (a text) or for its values (a mapping)"),
    key("order", "values of settings in the order in which rows and columns stand; others follow"),
    key("decimals", "digits after the decimal point"),
    key("caption", "what is printed above it instead of the name of the sweep"),
    key("label", "what a LaTeX paper refers to it by, such as `tab:depth`"),
];

/// `table.select`.
pub(crate) const SELECT: Block = &[
    key("among", "the settings that are chosen among; with `per: config` all that no row or column names"),
    key("by", "the validation metric that decides"),
    key("per", "`split`: anew in each split; `config`: once, by the mean over all splits"),
];

/// `figure`.
pub(crate) const FIGURE: Block = &[
    key("title", "a sentence above it"),
    key("x", "the setting along the axis"),
    key("metric", "what is averaged"),
    key("lines", "settings, or `method`, that make a line"),
    key("panels", "the setting of which each value has its own panel"),
];

/// `published`.
pub(crate) const PUBLISHED: Block = &[
    key("table", "what the paper calls it; the program knows the numbers of its tables"),
    key("metric", "what the numbers are"),
    key("methods", "printed row labels and the settings that they mean"),
    key("datasets", "printed names of data sets and ours, where they differ"),
    key("columns", "what the entries of a cell are; not needed for a table of the paper"),
    key("cells", "one list for each printed number; not needed for a table of the paper"),
];

/// What a printed cell can say.
pub(crate) const CELL: &[&str] = &["method", "dataset", "depth", "position", "mean", "std", "cited"];
