//! The list of verbs as `togl --help` shows it: by what one wants to do. Owns the groups; a verb's own words stay where it is
//! declared. Parses nothing itself.

use clap::{Command, CommandFactory, FromArgMatches};

use super::{Instead, Togl, context, examples, shell};
use crate::contexts::Contexts;

/// What one wants to do, and the verbs for it, the most used first.
const GROUPS: &[(&str, &[&str])] = &[
    ("Run sweeps", &["run", "init", "plan", "serve", "submit", "worker", "hosts", "slurm"]),
    (
        "Look",
        &["sweeps", "status", "watch", "web", "folds", "workers", "demand", "explain", "logs", "history"],
    ),
    ("Steer", &["pause", "resume", "retry", "cancel", "archive", "prioritise", "delete"]),
    (
        "Make tables and figures",
        &["table", "best", "race", "plot", "report", "replicates", "export", "import"],
    ),
    ("Data sets", &["data", "disputes", "settle", "expressivity"]),
    (
        "Look after the store, its users and your settings",
        &["backup", "restore", "migrate", "check", "health", "token", "notify", "context"],
    ),
    ("Others", &["schema", "hash", "completions", "man", "bench", "version", "help"]),
];

/// The grammar, with its verbs in groups and their examples.
pub(super) fn command() -> Command {
    let mut command = Togl::command();
    command.build(); // only then `help` is one of the verbs
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\nOptions:\n{{options}}{{after-help}}",
        listed(&command)
    );
    examples::under(Togl::command(), "").help_template(template)
}

/// The arguments of this process, or what is to be said instead.
pub(super) fn parse() -> Result<Togl, Instead> {
    if shell::completed()? {
        return Err(Instead::Completed);
    }
    let mut command = command();
    let mut matches = command.try_get_matches_from_mut(std::env::args_os())?;
    if let Some(context) = context::meant(&command, &matches, Contexts::place().as_deref())? {
        command = context::with(self::command(), &context);
        matches = command.try_get_matches_from_mut(std::env::args_os())?;
    }
    Ok(Togl::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?)
}

fn listed(command: &Command) -> String {
    let width = GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(|verb| verb.len()).max().unwrap_or(0);
    let row = |verb: &&str| {
        let about = command.find_subcommand(verb).and_then(Command::get_about);
        format!("  {verb:width$}  {}\n", about.map(ToString::to_string).unwrap_or_default())
    };
    let group = |(title, verbs): &(&str, &[&str])| {
        format!("\n{title}:\n{}", verbs.iter().map(row).collect::<String>())
    };
    GROUPS.iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_is_in_one_group_and_no_group_has_others() {
        let mut declared = Togl::command();
        declared.build();
        let shown = declared.get_subcommands().filter(|verb| !verb.is_hide_set());
        let mut shown: Vec<_> = shown.map(|verb| verb.get_name().to_owned()).collect();
        let mut listed: Vec<_> =
            GROUPS.iter().flat_map(|(_, verbs)| *verbs).map(ToString::to_string).collect();
        shown.sort();
        listed.sort();
        assert_eq!(listed, shown);
    }
}
