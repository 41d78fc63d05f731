//! Examples of verbs: what stands under their help. A verb may have its own where it is declared; these are for those that have
//! none there. A test parses every one of them.

use clap::Command;

/// The words of a verb, and lines that somebody could type.
const EXAMPLES: &[(&str, &str)] = &[
    ("archive", "togl archive depth-2024 --reason 'superseded by depth-2025'"),
    ("backup", "togl backup store-before-upgrade.sqlite"),
    ("bench dispatch", "togl bench dispatch --folds 10000 --workers 20 --slots 8"),
    ("bench requeue", "togl bench requeue --times 20"),
    ("best", "togl best zinc-depth --top 5\ntogl best zinc-depth --filter method=GCN --format csv"),
    ("cancel", "togl cancel zinc-depth --reason 'wrong learning rate'"),
    ("check", "togl check\ntogl check --store postgres://togl@db/togl --format json"),
    ("context add", "togl context add lab gpu-head:7447 --token-file lab.token"),
    ("context list", "togl context list"),
    ("context remove", "togl context remove lab"),
    ("context use", "togl context use lab\ntogl context use --none"),
    ("data check", "togl data check MUTAG"),
    ("data fetch", "togl data fetch MUTAG DD\ntogl data fetch ZINC --from /media/stick"),
    ("data list", "togl data list\ntogl data list --fields name,graphs,licence"),
    ("data path", "togl data path MUTAG"),
    ("data show", "togl data show MUTAG 7 > graph.svg"),
    ("delete", "togl delete first-try"),
    ("demand", "togl demand\ntogl demand --format json"),
    ("disputes", "togl disputes"),
    ("explain", "togl explain 2f9c/3/0"),
    ("export mlflow", "togl export mlflow zinc-depth --to http://127.0.0.1:5000"),
    ("export tensorboard", "togl export tensorboard zinc-depth --out runs --filter model=gcn"),
    ("export wandb-csv", "togl export wandb-csv zinc-depth --out runs.csv"),
    ("expressivity", "togl expressivity reg3_n12.g6\ntogl expressivity reg3_n12.g6 --complement"),
    (
        "folds",
        "togl folds zinc-depth --in failed\ntogl folds zinc-depth --fields fold,value,worker --format csv",
    ),
    ("hash", "togl hash sweep.yaml\ntogl hash sweep.yaml --explain 0 1"),
    ("health", "togl health\ntogl health --coordinator gpu-head:7447 --token-file viewer.token"),
    ("help", "togl help run"),
    ("history", "togl history 2f9c/3/0\ntogl history zinc-depth"),
    ("hosts", "togl hosts hosts.yaml"),
    ("hosts down", "togl hosts down hosts.yaml"),
    ("hosts status", "togl hosts status hosts.yaml --format json"),
    ("hosts up", "togl hosts up hosts.yaml"),
    (
        "import folds",
        "togl import folds tables/depth/folds.parquet --sweep depth --reason 'trained on the other machine'",
    ),
    ("import store", "togl import store store-of-last-week.sqlite"),
    ("import wandb", "togl import wandb runs.csv --out runs.parquet"),
    ("init", "togl init --program train.py"),
    ("logs", "togl logs 2f9c/3/0\ntogl logs -f 2f9c/3/0"),
    ("migrate", "togl migrate --to postgres://togl@db/togl"),
    ("notify test", "togl notify test notify.yaml\ntogl notify test notify.yaml --webhook chat"),
    ("pause", "togl pause zinc-depth --reason 'the cluster is needed until Monday'"),
    ("plan", "togl plan sweep.yaml\ntogl plan sweep.yaml depth=2,4,8 --calibrate"),
    (
        "plot",
        "togl plot zinc-depth --out depth.pdf\ntogl plot zinc-depth --figure learning-curves --out curves.svg",
    ),
    ("prioritise", "togl prioritise zinc-depth 10\ntogl prioritise background -5"),
    ("race", "togl race zinc-search\ntogl race zinc-search --replay --among lr,hidden_dim"),
    ("replicates", "togl replicates zinc-depth"),
    ("report", "togl report zinc-depth --out zinc-depth.html"),
    ("restore", "togl restore store-before-upgrade.sqlite --replace"),
    ("resume", "togl resume zinc-depth"),
    ("retry", "togl retry zinc-depth --reason 'the disk of gpu-3 is mended'"),
    ("run", "togl run sweeps/quickstart.yaml\ntogl run sweep.yaml depth=4 lr=1e-3,1e-2 --slots 2"),
    ("schema", "togl schema > sweep.schema.json"),
    (
        "serve",
        "togl serve\ntogl serve --listen 0.0.0.0:7447 --host gpu-head.example\ntogl serve --web --notify notify.yaml",
    ),
    ("settle", "togl settle MUTAG 3f6c0e1d --reason 'the other machine had an old copy'"),
    ("slurm down", "togl slurm down --pool gpu"),
    ("slurm status", "togl slurm status"),
    ("slurm try", "togl slurm try --device cuda -- --partition=gpu --gres=gpu:1"),
    ("slurm up", "togl slurm up --pool gpu --max-workers 40 --time 12h -- --partition=gpu --gres=gpu:1"),
    ("status", "togl status zinc-depth\ntogl status zinc-depth --format json"),
    ("submit", "togl submit sweep.yaml\ntogl submit sweep.yaml depth=4 --context lab"),
    ("sweeps", "togl sweeps\ntogl sweeps --archived --format json"),
    ("table", "togl table zinc-depth\ntogl table zinc-depth --format latex --bold not-significantly-worse"),
    ("token bundle", "togl token bundle secrets"),
    ("token create", "togl token create --role viewer --name wall --expires 30d"),
    ("token list", "togl token list"),
    ("token revoke", "togl token revoke 1f3a"),
    ("version", "togl version"),
    ("watch", "togl watch\ntogl watch zinc-depth\ntogl watch zinc-depth --plain"),
    ("worker", "togl worker doctor"),
    ("workers", "togl workers\ntogl workers --fields worker,state,running"),
    ("workers drain", "togl workers drain gpu-3 --reason 'a new fan'\ntogl workers drain --all"),
    ("workers undrain", "togl workers undrain gpu-3"),
];

/// The grammar with the examples of a verb, and of the verbs below it. `words` are those that were typed so far.
pub(super) fn under(command: Command, words: &str) -> Command {
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    let command = verbs.into_iter().fold(command, |command, verb| {
        let words = if words.is_empty() { verb.clone() } else { format!("{words} {verb}") };
        command.mut_subcommand(verb, |below| under(below, &words))
    });
    match EXAMPLES.iter().find(|(verb, _)| *verb == words) {
        Some((_, lines)) if command.get_after_help().is_none() => {
            let many = if lines.contains('\n') { "s" } else { "" };
            command.after_help(format!("Example{many}:\n  {}", lines.replace('\n', "\n  ")))
        }
        _ => command,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::grouped;
    use super::*;

    /// The arguments of a line, as a shell splits it, up to where its output goes or what is said of it.
    fn arguments(line: &str) -> Vec<String> {
        let line = line.split("  ").next().unwrap_or_default();
        let (mut words, mut quoted) = (vec![String::new()], None);
        for sign in line.chars() {
            match (sign, quoted) {
                ('\'' | '"', None) => quoted = Some(sign),
                (sign, Some(quote)) if sign == quote => quoted = None,
                (' ', None) => words.push(String::new()),
                (sign, _) => words.last_mut().unwrap().push(sign),
            }
        }
        words.into_iter().take_while(|word| !matches!(word.as_str(), ">" | "|")).collect()
    }

    /// Every verb that does something, with the lines below its help.
    fn verbs(command: &Command, words: &str, found: &mut Vec<(String, Vec<String>)>) {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let words = format!("{words} {}", verb.get_name());
            let below = verb.get_subcommands().any(|below| below.get_name() != "help");
            if !below || !verb.is_subcommand_required_set() {
                let text = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
                let lines = text.lines().filter_map(|line| line.strip_prefix("  "));
                found.push((words.trim().to_owned(), lines.map(str::to_owned).collect()));
            }
            verbs(verb, &words, found);
        }
    }

    #[test]
    fn every_verb_has_an_example_and_every_example_can_be_typed() {
        let mut found = Vec::new();
        verbs(&grouped::command(), "", &mut found);
        assert!(found.len() > 40, "{found:?}");
        for (verb, lines) in found {
            assert!(
                !lines.is_empty(),
                "`togl {verb}` has no example: add a line to EXAMPLES in src/cli/examples.rs"
            );
            for line in lines {
                let Some(line) = line.strip_prefix("togl ").map(|_| line.as_str()) else { continue };
                let parsed = grouped::command().try_get_matches_from(arguments(line));
                let is_help = |error: &clap::Error| error.kind() == clap::error::ErrorKind::DisplayHelp;
                if let Err(error) = parsed
                    && !is_help(&error)
                {
                    panic!("`{line}`, an example of `togl {verb}`: {error}");
                }
                assert!(line.contains(&format!("togl {verb}")), "`{line}` is no example of `togl {verb}`");
            }
        }
    }

    /// The commands of a document: lines of its shell blocks that begin with `togl`, up to where a shell does something with them.
    fn commands(text: &str) -> Vec<&str> {
        let mut is_shell = false;
        let lines = text.lines().filter(|line| {
            if line.starts_with("```") {
                is_shell = *line == "```sh";
            }
            is_shell
        });
        let lines = lines.map(|line| line.split_once("=$(").map_or(line, |(_, inner)| inner));
        lines
            .filter(|line| line.starts_with("togl ") && !line.contains("...") && !line.ends_with('\\'))
            .collect()
    }

    #[test]
    fn every_command_of_the_documents_can_be_typed() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let folders = [root.to_owned(), root.join("docs"), root.join("deploy")];
        let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let files = files.map(|entry| entry.unwrap().path());
        let (mut wrong, mut tried) = (Vec::new(), 0);
        for file in files.filter(|file| file.extension().is_some_and(|ending| ending == "md")) {
            let text = std::fs::read_to_string(&file).unwrap();
            for line in commands(&text) {
                let stops =
                    |word: &String| matches!(word.as_str(), "#" | "&&" | ";" | "|" | ">" | "<" | "&" | "2>");
                let typed: Vec<String> =
                    arguments(line).into_iter().take_while(|word| !stops(word)).collect();
                let parsed = grouped::command().try_get_matches_from(typed);
                tried += 1;
                if let Err(error) = parsed
                    && error.kind() != clap::error::ErrorKind::DisplayHelp
                {
                    let why = error.to_string();
                    wrong.push(format!(
                        "{}: `{line}`: {}",
                        file.display(),
                        why.lines().next().unwrap_or_default()
                    ));
                }
            }
        }
        assert!(tried > 60, "only {tried} commands were found");
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn no_example_is_left_of_a_verb_that_is_gone() {
        let mut found = Vec::new();
        verbs(&grouped::command(), "", &mut found);
        let known: BTreeSet<_> = found.iter().map(|(verb, _)| verb.as_str()).chain(["help"]).collect();
        let gone: Vec<_> = EXAMPLES.iter().filter(|(verb, _)| !known.contains(verb)).collect();
        assert!(gone.is_empty(), "{gone:?}");
    }
}
