//! Settings given on the command line, put into the text of a sweep file. What comes out is the file of a sweep of its own,
//! which says in full what is trained; the file it was made from stays as it is. Owns where an override goes; what the new
//! text means is checked by `read`, as for any file.

use crate::nearest;
use crate::settings::{self, Setting};
use crate::spec::SpecError;
use crate::visible::visible_in_line;
use crate::yaml::{self, Key, Node, NodeKind};

/// Keys that can be given besides settings.
const OTHERS: [&str; 4] = ["preset", "splits", "seeds", "priority"];

/// The longest name of a sweep.
const LONGEST_NAME: usize = 64;

/// `KEY=VALUE`, or `KEY=VALUE,VALUE,...` for one trial each.
#[derive(Debug, Clone)]
pub struct Override {
    key: String,
    values: Vec<Node>,
    /// As typed.
    text: String,
}

impl Override {
    /// Whether this is meant as an override rather than as the name of a file.
    pub fn is_meant(text: &str) -> bool {
        let is_key = |key: &str| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        };
        text.split_once('=').is_some_and(|(key, _)| is_key(key))
    }

    /// Reads an override; says what is wrong with it. A program may have declared settings of its own.
    pub fn parse(text: &str, declared: &[&'static Setting]) -> Result<Self, String> {
        let (key, values) = text.split_once('=').ok_or_else(|| format!("`{text}` is not KEY=VALUE"))?;
        let setting = declared.iter().copied().find(|own| own.name == key).or_else(|| settings::find(key));
        if setting.is_none() && !OTHERS.contains(&key) {
            return Err(format!(
                "no setting `{key}`; {}",
                nearest::hint(
                    key,
                    declared.iter().map(|own| own.name).chain(settings::names()).chain(OTHERS)
                )
            ));
        }
        let inside = values.strip_prefix('[').and_then(|values| values.strip_suffix(']')).unwrap_or(values);
        let mut read = Vec::new();
        for value in inside.split(',') {
            let node = yaml::parse(value).ok().filter(|node| !matches!(node.kind, NodeKind::Null));
            let scalar = node.as_ref().and_then(Node::scalar);
            let (Some(node), Some(scalar)) = (node, scalar) else {
                return Err(format!("`{text}` lacks a value; write {key}=VALUE or {key}=VALUE,VALUE"));
            };
            if let Some(setting) = setting {
                setting.check(&scalar).map_err(|error| format!("{key}: {}", error.reason))?;
            }
            read.push(node);
        }
        Ok(Self { key: key.to_owned(), values: read, text: text.to_owned() })
    }

    fn apply(&self, sweep: &mut Node) {
        let list = Node { at: None, kind: NodeKind::List(self.values.clone()) };
        take_out(sweep, &self.key);
        each_grid(sweep, &mut |grid| take_out(grid, &self.key));
        match (self.key.as_str(), self.values.as_slice()) {
            ("splits" | "seeds", _) => set(sweep, &self.key, list),
            ("priority", [one]) => set(sweep, &self.key, one.clone()),
            (_, [one]) => set_below(sweep, "base", &self.key, one.clone()),
            _ => each_grid(sweep, &mut |grid| set_below(grid, "grid", &self.key, list.clone())),
        }
    }
}

/// The text of the sweep that a file makes together with these overrides, under a name of its own. `file` is for people.
pub fn overridden(
    text: &str,
    overrides: &[Override],
    name: Option<&str>,
    file: &str,
) -> Result<String, SpecError> {
    let mut sweep = yaml::parse(text)?;
    let old = entry(&mut sweep, "name").and_then(|name| name.scalar());
    let old = old.as_ref().and_then(|name| name.as_str()).unwrap_or("sweep").to_owned();
    overrides.iter().for_each(|given| given.apply(&mut sweep));
    let name = name.map_or_else(|| own_name(&old, overrides), str::to_owned);
    set(&mut sweep, "name", Node { at: None, kind: NodeKind::Text(name) });
    let given: Vec<&str> = overrides.iter().map(|given| given.text.as_str()).collect();
    let mut written = visible_in_line(&format!("# {file} with {}", given.join(" "))).into_owned() + "\n";
    write_lines(&sweep, 0, &mut written);
    Ok(written)
}

/// `NAME+depth=4`; shortened with a digest where that is too long for a name.
fn own_name(old: &str, overrides: &[Override]) -> String {
    let given: String =
        overrides.iter().map(|given| format!("+{}", given.text.to_ascii_lowercase())).collect();
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.+=,".contains(c);
    let given: String = given.chars().map(|c| if fits(c) { c } else { '-' }).collect();
    if old.len() + given.len() <= LONGEST_NAME {
        return format!("{old}{given}");
    }
    let digest = blake3::hash(given.as_bytes()).to_hex();
    let kept: String = old.chars().take(LONGEST_NAME - 9).collect();
    format!("{kept}+{}", &digest[..8])
}

/// Does something to each grid of a union, or to the sweep itself where it has none.
fn each_grid(sweep: &mut Node, act: &mut impl FnMut(&mut Node)) {
    match entry(sweep, "union").map(|union| &mut union.kind) {
        Some(NodeKind::List(grids)) => grids.iter_mut().for_each(act),
        _ => act(sweep),
    }
}

fn entry<'a>(block: &'a mut Node, key: &str) -> Option<&'a mut Node> {
    let NodeKind::Map(entries) = &mut block.kind else { return None };
    entries.iter_mut().find(|(known, _)| known.text == key).map(|(_, node)| node)
}

fn set(block: &mut Node, key: &str, value: Node) {
    if !matches!(block.kind, NodeKind::Map(_)) {
        block.kind = NodeKind::Map(Vec::new()); // an empty block is nothing in YAML
    }
    match entry(block, key) {
        Some(old) => *old = value,
        None => {
            if let NodeKind::Map(entries) = &mut block.kind {
                entries.push((Key { at: None, text: key.to_owned() }, value));
            }
        }
    }
}

/// Sets a key inside of a block, which is made if it is not there.
fn set_below(part: &mut Node, block: &str, key: &str, value: Node) {
    if entry(part, block).is_none() {
        set(part, block, Node { at: None, kind: NodeKind::Map(Vec::new()) });
    }
    if let Some(block) = entry(part, block) {
        set(block, key, value);
    }
}

/// Takes a key out of a block; gives whether nothing is left of it.
fn remove(block: &mut Node, key: &str) -> bool {
    let NodeKind::Map(entries) = &mut block.kind else { return false };
    entries.retain(|(known, _)| known.text != key);
    entries.iter().all(|(known, _)| known.text == "when")
}

/// Takes a setting out of wherever a grid has it: its base, an axis, a zip, a distribution. What is empty then goes too.
fn take_out(part: &mut Node, key: &str) {
    remove(part, key);
    for block in ["base", "grid"] {
        if entry(part, block).is_some_and(|block| remove(block, key)) {
            remove(part, block);
        }
    }
    let zips_empty = entry(part, "zip").is_some_and(|zip| match &mut zip.kind {
        NodeKind::List(zips) => {
            zips.retain_mut(|zip| !remove(zip, key));
            zips.is_empty()
        }
        _ => remove(zip, key),
    });
    if zips_empty {
        remove(part, "zip");
    }
    let draws = entry(part, "random").and_then(|random| entry(random, "distributions"));
    if draws.is_some_and(|distributions| remove(distributions, key)) {
        remove(part, "random");
    }
}

/// A mapping as lines; what is inside of lists stays on its line.
fn write_lines(node: &Node, indent: usize, out: &mut String) {
    let NodeKind::Map(entries) = &node.kind else { return };
    for (key, value) in entries {
        out.push_str(&format!("{:indent$}{}:", "", plain(&key.text)));
        match &value.kind {
            NodeKind::Map(inner) if !inner.is_empty() => {
                out.push('\n');
                write_lines(value, indent + 2, out);
            }
            _ => out.push_str(&format!(" {}\n", on_one_line(value))),
        }
    }
}

fn on_one_line(node: &Node) -> String {
    match &node.kind {
        NodeKind::Null => "null".to_owned(),
        NodeKind::Flag(flag) => flag.to_string(),
        NodeKind::Number(number) => number.to_string(),
        NodeKind::Text(text) => plain(text),
        NodeKind::List(nodes) => {
            format!("[{}]", nodes.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        NodeKind::Map(entries) => {
            let entry = |(key, node): &(Key, Node)| format!("{}: {}", plain(&key.text), on_one_line(node));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Text as it is where YAML takes it for text, else in the quotes of JSON, which YAML knows too.
fn plain(text: &str) -> String {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic()) && text.chars().all(inner);
    let means_more = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf", "nan"];
    if is_word && !means_more.contains(&text.to_ascii_lowercase().as_str()) {
        return text.to_owned();
    }
    serde_json::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SweepSpec;

    fn made(yaml: &str, given: &[&str]) -> SweepSpec {
        let given: Vec<Override> = given.iter().map(|text| Override::parse(text, &[]).unwrap()).collect();
        let text = overridden(yaml, &given, None, "x.yaml").unwrap();
        SweepSpec::parse(&text).unwrap_or_else(|error| panic!("{error} in\n{text}"))
    }

    fn settings(spec: &SweepSpec) -> Vec<(u32, f64)> {
        spec.trials.iter().map(|trial| (trial.config.depth, trial.config.lr)).collect()
    }

    const GRID: &str =
        "version: 1\nname: x\nbase: {dataset: cycles, lr: 0.5}\ngrid: {depth: [1, 2]}\nsplits: [0, 1]\n";

    #[test]
    fn one_value_is_fixed_and_several_are_an_axis_of_a_sweep_of_its_own() {
        let spec = made(GRID, &["depth=4", "lr=1e-3,1e-2", "seeds=3"]);
        assert_eq!(settings(&spec), [(4, 1e-3), (4, 1e-2)]);
        assert_eq!((spec.splits.as_slice(), spec.seeds.as_slice()), (&[0, 1][..], &[3][..]));
        assert_eq!(spec.name.as_str(), "x+depth=4+lr=1e-3,1e-2+seeds=3");
        assert_eq!(settings(&SweepSpec::parse(GRID).unwrap()).len(), 2, "the file is as it was");
    }

    #[test]
    fn the_recorded_text_tells_what_is_run() {
        let given = [Override::parse("depth=4", &[]).unwrap()];
        insta::assert_snapshot!(overridden(GRID, &given, Some("mine"), "a\nb.yaml").unwrap(), @r"
        # a\nb.yaml with depth=4
        version: 1
        name: mine
        base:
          dataset: cycles
          lr: 0.5
          depth: 4
        splits: [0, 1]
        ");
    }

    #[test]
    fn unions_zips_and_draws_give_way() {
        let union = "version: 1\nname: u\nbase: {dataset: cycles}\nunion:\n- base: {depth: 1}\n- grid: {depth: [2, 3]}\n  base: {lr: 0.25}\n";
        assert_eq!(settings(&made(union, &["depth=5"])).len(), 2);
        let two = settings(&made(union, &["depth=5,6"]));
        assert_eq!(two.iter().map(|(depth, _)| *depth).collect::<Vec<_>>(), [5, 6, 5, 6]);
        let zip = "version: 1\nname: z\nbase: {dataset: cycles}\nzip: {depth: [1, 2], lr: [0.1, 0.2]}\n";
        assert_eq!(settings(&made(zip, &["depth=7"])), [(7, 0.1), (7, 0.2)]);
        let random = "version: 1\nname: r\nbase: {dataset: cycles}\nrandom: {budget: 3, seed: 1, distributions: {lr: {log_uniform: [0.001, 0.1]}}}\n";
        assert_eq!(settings(&made(random, &["lr=0.5"])), [(settings(&made(random, &["lr=0.5"]))[0].0, 0.5)]);
    }

    #[test]
    fn what_is_no_setting_or_does_not_fit_is_said() {
        let said = |text: &str| Override::parse(text, &[]).unwrap_err();
        assert_eq!(said("dpeth=4"), "no setting `dpeth`; did you mean `depth`?");
        assert_eq!(said("depth=99"), "depth: 99 is not in 0..=64");
        assert_eq!(said("depth=2,,4"), "`depth=2,,4` lacks a value; write depth=VALUE or depth=VALUE,VALUE");
        assert_eq!(said("model=gni"), "model: `gni` does not fit; did you mean `gin`?");
        assert!(Override::is_meant("depth=4") && !Override::is_meant("sweeps/a=b.yaml"));
    }

    #[test]
    fn a_long_name_is_shortened_and_stays_its_own() {
        let given = |text: &str| made(GRID, &[text]).name.to_string();
        let (a, b) = (
            given("weight_decay=0.001,0.002,0.003,0.004,0.005,0.006,0.007,0.008"),
            given("weight_decay=0.001,0.002,0.003,0.004,0.005,0.006,0.007,0.009"),
        );
        assert!(a.len() <= 64 && a.starts_with("x+") && a != b, "{a} {b}");
        assert_eq!(given("dataset=MUTAG"), "x+dataset=mutag");
    }
}
