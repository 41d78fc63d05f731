//! One grid of a file: its base with presets, its axes in the order written, exclusions, splits and seeds, and the
//! places of all of it for later errors.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::axes::{self, ReadAxis};
use super::fields::{Fields, Result, entries, list, named, one_or_many, text};
use super::values::{self, Names};
use super::{folds, random};
use crate::condition::Condition;
use crate::grid::Grid;
use crate::presets::{self, Preset};
use crate::settings::{self, Setting};
use crate::trial::TrialConfig;
use crate::union::GridPart;
use crate::yaml::{LineColumn, Node};

/// `base`: presets, and settings that win over them.
#[derive(Default)]
pub(super) struct Base {
    preset: Option<&'static Preset>,
    settings: Vec<(&'static Setting, Value, LineColumn)>,
}

/// A setting that varies: its key, its path and where it stands.
#[derive(Clone)]
pub(super) struct Varied {
    pub name: String,
    pub path: String,
    pub at: LineColumn,
}

/// A grid and the places of its keys.
pub(super) struct ReadPart {
    pub part: GridPart,
    /// Path and place of the block itself.
    pub path: String,
    pub at: LineColumn,
    /// What varies: axes and draws.
    pub varied: Vec<Varied>,
    /// Settings of the base.
    pub fixed: HashMap<String, LineColumn>,
    /// Where `exclude` stands.
    pub exclude_at: LineColumn,
}

/// Reads a `base` block.
pub(super) fn base(node: &Node, path: &str, names: Names<'_>) -> Result<Base> {
    let mut base = Base::default();
    for (key, node) in entries(node, path)? {
        let below = super::fields::below(path, &key.text);
        if key.text == "preset" && names.0.is_none() {
            base.preset = Some(preset(node, &below)?);
            continue;
        }
        let setting = values::setting(key, path, names)?;
        base.settings.push((setting, values::value(node, &below, setting)?, node.at));
    }
    Ok(base)
}

/// A preset by name.
pub(super) fn preset(node: &Node, path: &str) -> Result<&'static Preset> {
    let name = text(node, path)?;
    named(presets::find(&name), node.at, path, "no preset", &name, presets::names())
}

/// Presets first, then the settings that the file names itself, outer before inner.
fn base_trial(bases: &[&Base], names: Names<'_>) -> TrialConfig {
    let program = names.0.map(|program| Box::new(program.trial()));
    let mut trial = TrialConfig { program, ..TrialConfig::default() };
    let presets = bases.iter().filter_map(|base| base.preset).flat_map(Preset::settings);
    for (name, value) in presets {
        if let Some(setting) = settings::find(name) {
            setting.set(&mut trial, &value);
        }
    }
    for (setting, value, _) in bases.iter().flat_map(|base| &base.settings) {
        setting.set(&mut trial, value);
    }
    trial
}

/// Reads one grid.
pub(super) fn part(
    fields: &Fields<'_>,
    bases: &[&Base],
    otherwise: (&[u32], &[u64]),
    names: Names<'_>,
) -> Result<ReadPart> {
    let own = bases.iter().flat_map(|base| &base.settings);
    let fixed: HashMap<String, LineColumn> =
        own.map(|(setting, _, at)| (setting.name.to_owned(), *at)).collect();
    let axes = all_axes(fields, fixed.keys().cloned().collect(), names)?;
    axes::check_order(&axes)?;
    let exclude = fields.optional("exclude", |node, path| exclusions(node, path, names))?.unwrap_or_default();
    let (random, drawn) = fields.optional("random", |node, path| random::random(node, path, names))?.unzip();
    let mut varied: Vec<Varied> = axes.iter().flat_map(|axis| axis.varied.clone()).collect();
    let drawn = drawn.unwrap_or_default();
    random::check_drawn(&drawn, &axes, &exclude, fields)?;
    varied.extend(drawn);
    let (splits, seeds) = folds(fields, otherwise)?;
    let axes = axes.into_iter().map(|axis| axis.axis).collect();
    let grid = Grid { base: base_trial(bases, names), axes, exclude };
    let part = GridPart { grid, random, splits, seeds };
    let exclude_at = fields.key("exclude").and_then(|key| key.at);
    Ok(ReadPart { part, path: fields.path.to_owned(), at: fields.at, varied, fixed, exclude_at })
}

/// The axes of `grid` and `zip`, in the order in which they are written.
fn all_axes(fields: &Fields<'_>, mut taken: HashSet<String>, names: Names<'_>) -> Result<Vec<ReadAxis>> {
    let mut all: Vec<ReadAxis> = Vec::new();
    for (key, node) in fields.iter() {
        let path = fields.below(&key.text);
        let read = match key.text.as_str() {
            "grid" => axes::grid(node, &path, &mut taken, names)?,
            "zip" => {
                let zips = one_or_many(node, &path).into_iter();
                zips.map(|(node, path)| axes::zip(node, &path, &mut taken, names)).collect::<Result<_>>()?
            }
            _ => continue,
        };
        all.extend(read);
    }
    Ok(all)
}

fn exclusions(node: &Node, path: &str, names: Names<'_>) -> Result<Vec<Condition>> {
    let nodes = list(node, path)?.iter().enumerate();
    nodes.map(|(at, node)| values::condition(node, &format!("{path}[{at}]"), names)).collect()
}
