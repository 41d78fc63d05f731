//! From the text of a sweep file to a checked [`SweepSpec`]: every rule about the file and the wording of its errors
//! (line, column, key path, nearest known name). Points are counted before they are walked, and walked
//! once.

use super::spec::{Resources, SPEC_VERSION, SpecError, SweepSpec, TableSpec};
use crate::union::Union;
use crate::yaml;

mod axes;
mod blocks;
mod check;
mod fields;
mod others;
mod part;
mod program;
mod published;
mod random;
mod values;

use crate::keys;
use fields::{Fields, Result, list, one_or_many, refuse, text, whole};
use values::Names;

/// Grids that one union may have.
const MOST_PARTS: usize = 1000;

/// Reads and checks a sweep.
pub(crate) fn sweep(text: &str) -> std::result::Result<SweepSpec, SpecError> {
    let tree = yaml::parse(text)?;
    let (mut spec, read) = blocks_of(&tree).map_err(|first| others::beside(first, tree))?;
    check::size(&spec, &read)?;
    check::points(&mut spec, &read)?;
    check::race(&spec)?;
    check::halve(&spec)?;
    Ok(spec)
}

/// The priority of a file, where it can be read.
pub(crate) fn priority(text: &str) -> Option<i32> {
    let tree = yaml::parse(text).ok()?;
    let fields = Fields::read(&tree, "", keys::SWEEP).ok()?;
    fields.optional("priority", blocks::priority).ok()?
}

/// What the blocks of the file say, each by itself.
fn blocks_of(node: &yaml::Node) -> Result<(SweepSpec, Vec<part::ReadPart>)> {
    if !matches!(node.kind, yaml::NodeKind::Map(_)) {
        let message = "a sweep file is a mapping that begins with `version: 1`";
        return refuse(node.at, "", message);
    }
    let fields = Fields::read(node, "", keys::SWEEP)?;
    check_version(&fields)?;
    let program = program::of_file(&fields)?;
    let names = Names(program.as_ref());
    let read = parts(&fields, names)?;
    let limits = fields.optional("limits", blocks::limits)?.unwrap_or_default();
    let table = fields.optional("table", |node, path| blocks::table(node, path, names))?;
    let (table, selection) = table.unwrap_or((TableSpec::default(), None));
    let (splits, seeds) = folds(&fields, (&[0], &[0]))?;
    let spec = SweepSpec {
        name: name(&fields)?,
        description: fields.optional("description", text)?.unwrap_or_default(),
        grid: Union { parts: read.iter().map(|read| read.part.clone()).collect() },
        splits,
        seeds,
        limits,
        resources: fields.optional("resources", blocks::resources)?.unwrap_or_else(Resources::default),
        race: fields.optional("race", |node, path| blocks::race(node, path, names))?,
        halve: fields.optional("halve", |node, path| blocks::halve(node, path, names))?,
        priority: fields.optional("priority", blocks::priority)?.unwrap_or(0),
        table,
        selection,
        figures: many(&fields, "figure", |node, path| blocks::figure(node, path, names))?,
        published: many(&fields, "published", |node, path| published::published(node, path, names))?,
        trials: Vec::new(),
        program,
        parts_of: None,
    };
    Ok((spec, read))
}

fn check_version(fields: &Fields<'_>) -> Result<()> {
    let node = fields.need("version", "begin the file with `version: 1`")?;
    let version = whole(node, "version", 0, u64::MAX)?;
    if version != u64::from(SPEC_VERSION) {
        let message = format!("version {version} is not known; this program reads {SPEC_VERSION}");
        return refuse(node.at, "", message);
    }
    Ok(())
}

fn name(fields: &Fields<'_>) -> Result<crate::ids::SweepName> {
    let node = fields.need("name", "call the sweep something, such as `name: my-sweep`")?;
    text(node, "name")?
        .parse()
        .or_else(|error: crate::ids::IdError| refuse(node.at, "name", error.to_string()))
}

fn many<T>(fields: &Fields<'_>, key: &str, read: impl Fn(&yaml::Node, &str) -> Result<T>) -> Result<Vec<T>> {
    let Some(node) = fields.get(key) else { return Ok(Vec::new()) };
    one_or_many(node, key).into_iter().map(|(node, path)| read(node, &path)).collect()
}

/// Splits and seeds of a block, or those given.
fn folds(fields: &Fields<'_>, otherwise: (&[u32], &[u64])) -> Result<(Vec<u32>, Vec<u64>)> {
    let splits = fields.optional("splits", |node, path| values::whole_list(node, path, u32::MAX.into()))?;
    let splits = splits.map(|splits| splits.into_iter().map(|split| split as u32).collect());
    let seeds = fields.optional("seeds", |node, path| values::whole_list(node, path, u64::MAX))?;
    Ok((splits.unwrap_or_else(|| otherwise.0.to_vec()), seeds.unwrap_or_else(|| otherwise.1.to_vec())))
}

/// The grids of a file: its own, or those of its union.
fn parts(fields: &Fields<'_>, names: Names<'_>) -> Result<Vec<part::ReadPart>> {
    let base = fields.optional("base", |node, path| part::base(node, path, names))?.unwrap_or_default();
    let (splits, seeds) = folds(fields, (&[0], &[0]))?;
    let Some(union) = fields.get("union") else {
        return Ok(vec![part::part(fields, &[&base], (&splits, &seeds), names)?]);
    };
    for key in ["grid", "zip", "exclude", "random"] {
        if let Some(key) = fields.key(key) {
            let message = "stands beside `union`; move it into the grids of the union that need it";
            return refuse(key.at, &key.text, message);
        }
    }
    let nodes = list(union, "union")?;
    if nodes.is_empty() || nodes.len() > MOST_PARTS {
        let message = format!("expected 1 to {MOST_PARTS} grids, found {}", nodes.len());
        return refuse(union.at, "union", message);
    }
    let read = |(at, node): (usize, &yaml::Node)| {
        let path = format!("union[{at}]");
        let fields = Fields::read(node, &path, keys::PART)?;
        let own = fields.optional("base", |node, path| part::base(node, path, names))?.unwrap_or_default();
        part::part(&fields, &[&base, &own], (&splits, &seeds), names)
    };
    nodes.iter().enumerate().map(read).collect()
}
