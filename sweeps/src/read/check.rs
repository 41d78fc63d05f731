//! What can be said only about the whole: the size of a sweep, points that cannot be built, axes without any effect.
//! Size is checked before a single point is made; points are made once.

use std::collections::{HashMap, HashSet};

use super::fields::{Result, refuse};
use super::part::ReadPart;
use super::values::Names;
use crate::baselines;
use crate::grid::PointError;
use crate::ids::TrialId;
use crate::race::groups;
use crate::random::{DrawnFrom, Random};
use crate::settings::Setting;
use crate::spec::{PlannedTrial, SpecError, SweepSpec};
use crate::trial::TrialConfig;
use crate::union::GridPart;

/// Combinations that all grids may have before conditions and exclusions, times exclusions (the first few are cheap):
/// those are walked.
const MOST_COMBINATIONS: u128 = 20_000_000;

/// Kinds of points that conditions may tell apart, times conditions: those are counted.
const MOST_KINDS: u128 = 4_000_000;

/// Refuses a sweep with more folds than its limit, and one that would take for ever to count or to walk.
pub(super) fn size(spec: &SweepSpec, parts: &[ReadPart]) -> Result<()> {
    let most_kinds = |part: &GridPart| part.grid.counting_steps();
    let message = "`when` and `exclude` name too many values of too many axes to be counted";
    within(parts, most_kinds, MOST_KINDS, message)?;
    folds(spec, parts)?;
    within(
        parts,
        walked,
        MOST_COMBINATIONS,
        "the axes have too many combinations before `when` and `exclude`",
    )
}

/// Refuses the part with which a sum over all parts becomes too large.
fn within(parts: &[ReadPart], of: impl Fn(&GridPart) -> u128, most: u128, message: &str) -> Result<()> {
    let mut sum: u128 = 0;
    for read in parts {
        sum = sum.saturating_add(of(&read.part));
        if sum > most {
            let message = format!("{message} ({sum}, more than {most}); say the same with `union`");
            return refuse(read.at, &read.path, message);
        }
    }
    Ok(())
}

/// Combinations that are looked at to find the points of a part.
fn walked(part: &GridPart) -> u128 {
    let (points, combinations) = (part.grid.count().max(1), part.grid.combinations());
    let combinations = combinations.saturating_mul((part.grid.exclude.len() / 8 + 1) as u128);
    match &part.random {
        None => combinations,
        Some(Random { budget, source: DrawnFrom::Grid, .. }) => {
            u128::from(*budget).min(points).saturating_mul(combinations / points)
        }
        Some(Random { budget, .. }) => combinations.saturating_mul((*budget).into()),
    }
}

fn folds(spec: &SweepSpec, parts: &[ReadPart]) -> Result<()> {
    let (folds, most) = (spec.count_folds(), spec.limits.max_folds);
    if folds <= most.into() {
        return Ok(());
    }
    let shape = match parts {
        [one] => format!(
            "{} grid points x {} splits x {} seeds{}",
            one.part.count(),
            one.part.splits.len(),
            one.part.seeds.len(),
            spec.halve.as_ref().map_or_else(String::new, |halve| format!(" x {} rungs", halve.rungs.len()))
        ),
        several => format!("{} grid points in {} grids", spec.grid.count(), several.len()),
    };
    let message = format!(
        "the sweep has {folds} folds ({shape}), more than limits.max_folds = {most}; shorten an axis, or raise \
         `limits: {{max_folds: ...}}` if it is meant"
    );
    Err(SpecError::new(None, message))
}

/// Makes the trials of all points: each can be built, and every axis has an effect somewhere. Remembers which grids hold
/// a trial, where they differ in splits or seeds.
pub(super) fn points(spec: &mut SweepSpec, parts: &[ReadPart]) -> Result<()> {
    let mut parts_of: Option<HashMap<TrialId, Vec<usize>>> = (!spec.grid.is_uniform()).then(HashMap::new);
    let (mut seen, mut position) = (HashSet::new(), 0);
    for (place, read) in parts.iter().enumerate() {
        if read.part.count() == 0 {
            return refuse(read.exclude_at, &read.path, "`exclude` leaves no point of the grid");
        }
        let known = |name: &str| Names(spec.program.as_ref()).find(name);
        let mut idle: Vec<(&Setting, usize)> = Vec::new();
        for (at, varied) in read.varied.iter().enumerate() {
            idle.extend(known(&varied.name).map(|setting| (setting, at)));
        }
        for point in read.part.points() {
            let config = point.map_err(|error| misfit(&error, read))?;
            splits(read, &config)?;
            idle.retain(|(setting, _)| !setting.needs.hold(&config));
            for config in on_rungs(spec, read, config)? {
                let id = config.id();
                if let Some(parts_of) = &mut parts_of {
                    let holders = parts_of.entry(id).or_default();
                    if holders.last() != Some(&place) {
                        holders.push(place);
                    }
                }
                if seen.insert(id) {
                    spec.trials.push(PlannedTrial { position, config, id });
                }
                position += 1;
            }
        }
        if let Some((setting, at)) = idle.first() {
            let varied = &read.varied[*at];
            let message = format!("has no effect in any point; it needs {}", setting.needs.words);
            return refuse(varied.at, &varied.path, message);
        }
    }
    spec.parts_of = parts_of;
    Ok(())
}

/// The trials of a point: one, or one for each rung of a halving.
fn on_rungs(spec: &SweepSpec, read: &ReadPart, config: TrialConfig) -> Result<Vec<TrialConfig>> {
    let Some(halve) = &spec.halve else { return Ok(vec![config]) };
    let Some(setting) = Names(spec.program.as_ref()).find(halve.over) else { return Ok(vec![config]) };
    if let Some(varied) = read.varied.iter().find(|varied| varied.name == setting.name) {
        let message = "is what `halve` grows from rung to rung; take it out of what varies";
        return refuse(varied.at, &varied.path, message);
    }
    if !setting.needs.hold(&config) {
        let (over, needs) = (setting.name, setting.needs.words);
        let message = format!("halve: `{over}` has no effect in some points; it needs {needs}");
        return Err(SpecError::new(None, message));
    }
    halve.trials(setting, &config).map_err(|error| SpecError::new(None, format!("halve: {error}")))
}

/// Refuses a halving in which nobody could ever be stopped.
pub(super) fn halve(spec: &SweepSpec) -> Result<()> {
    let Some(halve) = &spec.halve else { return Ok(()) };
    let refuse = |message: String| Err(SpecError::new(None, format!("halve: {message}")));
    if spec.race.is_some() {
        return refuse("a sweep has `race` or `halve`, not both".to_owned());
    }
    if halve.among.iter().any(|name| name == halve.over) {
        return refuse(format!("`{}` grows from rung to rung; take it out of `among`", halve.over));
    }
    let groups = halve.of(spec).groups;
    if groups.iter().all(|group| group.trials.len() < 2) {
        let among = halve.among.join(", ");
        let message = "name the settings of the axes in `among`";
        return refuse(format!("no two trials differ only in {among}; {message}"));
    }
    if groups.iter().all(|group| halve.keep.of(group.trials.len()) == group.trials.len()) {
        return refuse(format!("{} of such small groups are all of them; give `keep` less", halve.keep));
    }
    Ok(())
}

/// Refuses a race in which nobody could ever be stopped.
pub(super) fn race(spec: &SweepSpec) -> Result<()> {
    let Some(race) = &spec.race else { return Ok(()) };
    let refuse = |message: String| Err(SpecError::new(None, format!("race: {message}")));
    let one = |trial: &PlannedTrial| {
        spec.folds_of(trial.id).map(|fold| fold.split).collect::<HashSet<_>>().len() < 2
    };
    if spec.trials.iter().all(one) {
        return refuse("on one split nothing can be stopped; give `splits` several".to_owned());
    }
    let groups = groups(spec, &race.among);
    if groups.is_empty() {
        let among = race.among.join(", ");
        return refuse(format!(
            "no two trials differ only in {among}; name the settings of the axes in `among`"
        ));
    }
    let most = groups.iter().map(|group| group.splits.len()).max().unwrap_or_default();
    if race.after as usize >= most {
        let after = race.after;
        return refuse(format!("after {after} of {most} splits nothing is left to stop; give `after` less"));
    }
    Ok(())
}

/// Refuses a point that is to be trained on a split which it is known not to have.
fn splits(read: &ReadPart, trial: &TrialConfig) -> Result<()> {
    let highest = read.part.splits.iter().max().copied().unwrap_or_default();
    let outcome = baselines::check_split(trial, highest);
    outcome.map_err(|source| misfit(&read.part.grid.misfit(trial, source), read))
}

/// A point that cannot be built, at the place of the setting that is to blame.
fn misfit(error: &PointError, read: &ReadPart) -> SpecError {
    let name = &error.source.name;
    let varied = read.varied.iter().find(|varied| varied.name == *name);
    let at = varied.map(|varied| varied.at).or_else(|| read.fixed.get(name).copied()).flatten();
    SpecError::new(at.or(read.at.filter(|_| !read.path.is_empty())), error.to_string())
}
