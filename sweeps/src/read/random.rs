//! The `random` block: a budget, a seed, and what is drawn. Bounds are checked against the table of settings.

use super::axes::ReadAxis;
use super::fields::{Fields, Result, below, entries, list, refuse, text, whole};
use super::part::Varied;
use super::values::{self, Names};
use crate::condition::Condition;
use crate::keys;
use crate::random::{Distribution, DrawnFrom, Law, Random};
use crate::settings::{Setting, ValueKind};
use crate::spec::MOST_FOLDS;
use crate::yaml::Node;

/// Reads `random`; what is drawn from distributions varies like an axis.
pub(super) fn random(node: &Node, path: &str, names: Names<'_>) -> Result<(Random, Vec<Varied>)> {
    let fields = Fields::read(node, path, keys::RANDOM_KEYS)?;
    let budget = fields.need("budget", "say how many draws, such as `budget: 50`")?;
    let budget = whole(budget, &fields.below("budget"), 1, MOST_FOLDS)?;
    let seed = fields.optional("seed", |node, path| whole(node, path, 0, u64::MAX))?.unwrap_or(0);
    let (source, varied) = match (fields.get("from"), fields.get("distributions")) {
        (Some(from), None) => {
            if text(from, &fields.below("from"))? != "grid" {
                return refuse(from.at, &fields.below("from"), "expected `grid`, or the key `distributions`");
            }
            (DrawnFrom::Grid, Vec::new())
        }
        (None, Some(node)) => {
            let (distributions, varied) = distributions(node, &fields.below("distributions"), names)?;
            (DrawnFrom::Distributions(distributions), varied)
        }
        _ => return refuse(node.at, path, "needs `from: grid` or `distributions`, one of them"),
    };
    Ok((Random { budget, seed, source }, varied))
}

fn distributions(node: &Node, path: &str, names: Names<'_>) -> Result<(Vec<Distribution>, Vec<Varied>)> {
    let entries = entries(node, path)?;
    if entries.is_empty() {
        return refuse(node.at, path, "is empty; draw something, such as `lr: {log_uniform: [1e-4, 1e-2]}`");
    }
    let (mut all, mut varied) = (Vec::new(), Vec::new());
    for (key, node) in entries {
        let setting = values::setting(key, path, names)?;
        let here = below(path, &key.text);
        all.push(Distribution { setting, law: law(node, &here, setting)? });
        varied.push(Varied { name: key.text.clone(), path: here, at: key.at });
    }
    Ok((all, varied))
}

fn law(node: &Node, path: &str, setting: &'static Setting) -> Result<Law> {
    let fields = Fields::read(node, path, keys::LAW)?;
    let mut written = fields.iter();
    let (Some((key, node)), None) = (written.next(), written.next()) else {
        return refuse(node.at, path, "needs one of `uniform`, `log_uniform` and `choice`");
    };
    let here = below(path, &key.text);
    let nodes = list(node, &here)?;
    let read =
        nodes.iter().enumerate().map(|(at, node)| values::value(node, &format!("{here}[{at}]"), setting));
    let drawn = read.collect::<Result<Vec<_>>>()?;
    if key.text == "choice" {
        let empty = drawn.is_empty();
        return if empty {
            refuse(node.at, &here, "has no values; give at least one")
        } else {
            Ok(Law::Choice(drawn))
        };
    }
    let numeric = matches!(setting.kind, ValueKind::Whole(..) | ValueKind::Real(..) | ValueKind::Position);
    let bounds: Vec<f64> = drawn.iter().filter_map(serde_json::Value::as_f64).collect();
    let bounds: Option<[f64; 2]> = bounds[..].try_into().ok();
    match (bounds, key.text.as_str()) {
        (Some([from, to]), "uniform") if numeric && from < to => Ok(Law::Uniform(from, to)),
        (Some([from, to]), "log_uniform") if numeric && 0.0 < from && from < to => {
            Ok(Law::LogUniform(from, to))
        }
        (_, "uniform") => refuse(node.at, &here, "needs two numbers, the lower first"),
        _ => refuse(node.at, &here, "needs two numbers above 0, the lower first"),
    }
}

/// Refuses draws of what an axis gives or a condition names: the count must be known before anything is drawn.
pub(super) fn check_drawn(
    drawn: &[Varied],
    axes: &[ReadAxis],
    exclude: &[Condition],
    fields: &Fields<'_>,
) -> Result<()> {
    for varied in drawn {
        if axes.iter().any(|axis| axis.axis.gives(&varied.name)) {
            return refuse(varied.at, &varied.path, "is on an axis too; draw it or list it");
        }
        let of_axes = axes.iter().flat_map(|read| read.axis.conditions());
        if of_axes.chain(exclude).any(|condition| condition.names().any(|name| name == varied.name)) {
            let message = format!(
                "is named by a `when` or an `exclude` of {}, which cannot depend on draws",
                block(fields)
            );
            return refuse(varied.at, &varied.path, message);
        }
    }
    Ok(())
}

fn block<'a>(fields: &Fields<'a>) -> &'a str {
    if fields.path.is_empty() { "the sweep" } else { fields.path }
}
