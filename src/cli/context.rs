//! `togl context`: coordinators by name. The verb, and how the context that is meant becomes the default of options: below
//! everything that was typed or said in the environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::Resettable;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use serde::Serialize;
use togl_proto::client;

use crate::contexts::{Context, Contexts};
use crate::output::{self, ListRow, Listing};
use crate::problem::Problem;

/// Name coordinators, and say which one is meant
#[derive(Debug, clap::Args)]
pub struct ContextVerb {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Give a coordinator a name
    Add(Add),
    /// Mean this one from now on, unless something else is said
    Use(Use),
    /// List them
    List(List),
    /// Forget one
    Remove(Remove),
}

#[derive(Debug, clap::Args)]
struct Add {
    /// What to call it
    name: String,
    /// Where it listens
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// File that holds an operator or viewer token of it; the file stays where it is
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// PEM file with a certificate and its key, for a coordinator that asks for one
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Use {
    /// Its name, as `togl context list` shows it
    #[arg(required_unless_present = "none")]
    name: Option<String>,
    /// None of them: the coordinator that serves the state directory
    #[arg(long, conflicts_with = "name")]
    none: bool,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    listing: Listing,
}

#[derive(Debug, clap::Args)]
struct Remove {
    /// Its name, as `togl context list` shows it
    name: String,
}

#[derive(Serialize)]
struct Listed {
    name: String,
    current: bool,
    coordinator: String,
    token_file: Option<PathBuf>,
    identity: Option<PathBuf>,
}

impl ListRow for Listed {
    const COLUMNS: &'static [&'static str] = &["NAME", "CURRENT", "COORDINATOR", "TOKEN FILE"];
    const ALSO: &'static [&'static str] = &["identity"];

    fn cells(&self) -> Vec<String> {
        let file = self.token_file.as_ref().map(|file| file.display().to_string()).unwrap_or_default();
        let current = if self.current { "yes" } else { "" };
        vec![self.name.clone(), current.to_owned(), self.coordinator.clone(), file]
    }
}

fn file() -> Result<PathBuf, Problem> {
    Contexts::place().ok_or_else(|| {
        Problem::usage("no home directory to keep a configuration in").hint("name a file with TOGL_CONFIG")
    })
}

impl ContextVerb {
    pub(super) fn run(self) -> Result<(), Problem> {
        let file = file()?;
        let mut contexts = Contexts::read(&file)?;
        match self.action {
            Action::List(list) => return list.run(contexts),
            Action::Add(add) => add.run(&mut contexts)?,
            Action::Use(verb) => verb.run(&mut contexts)?,
            Action::Remove(remove) => remove.run(&mut contexts)?,
        }
        contexts.write(&file)
    }
}

impl Add {
    fn run(self, contexts: &mut Contexts) -> Result<(), Problem> {
        let Self { name, address, token_file, identity } = self;
        let is_plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || name.starts_with('-') || !name.chars().all(is_plain) {
            return Err(Problem::usage(format!("`{name}` cannot be the name of a context"))
                .hint("use 1 to 64 letters, digits, `-`, `_` and `.`, such as lab"));
        }
        client::check_address(&address).map_err(Problem::usage)?;
        if contexts.contexts.contains_key(&name) {
            return Err(Problem::usage(format!("there is a context `{name}` already"))
                .hint(format!("`togl context remove {name}` forgets it")));
        }
        let (token_file, identity) = (token_file.map(whole).transpose()?, identity.map(whole).transpose()?);
        let context = Context { coordinator: address, token_file, identity };
        eprintln!(
            "{name}: {}; `togl context use {name}` makes it the one that is meant",
            context.coordinator
        );
        contexts.contexts.insert(name, context);
        Ok(())
    }
}

/// The whole path of a file that must be there: the command may be typed in another folder next time.
fn whole(file: PathBuf) -> Result<PathBuf, Problem> {
    std::fs::canonicalize(&file)
        .map_err(|error| Problem::usage(format!("cannot read {}: {error}", file.display())))
}

impl Use {
    fn run(self, contexts: &mut Contexts) -> Result<(), Problem> {
        match &self.name {
            Some(name) => eprintln!("{name}: commands go to {} now", contexts.find(name)?.coordinator),
            None => eprintln!("commands go to the coordinator of the state directory now"),
        }
        contexts.current = self.name;
        Ok(())
    }
}

impl List {
    fn run(self, contexts: Contexts) -> Result<(), Problem> {
        let Contexts { current, contexts } = contexts;
        let listed = |(name, Context { coordinator, token_file, identity })| Listed {
            current: current.as_ref() == Some(&name),
            name,
            coordinator,
            token_file,
            identity,
        };
        let rows: Vec<Listed> = contexts.into_iter().map(listed).collect();
        let none = "no contexts yet; `togl context add NAME HOST:PORT --token-file FILE` makes one";
        output::list_unless_empty(&rows, &self.listing, none)
    }
}

impl Remove {
    fn run(self, contexts: &mut Contexts) -> Result<(), Problem> {
        contexts.find(&self.name)?;
        contexts.contexts.remove(&self.name);
        if contexts.current.as_ref() == Some(&self.name) {
            contexts.current = None;
        }
        eprintln!("{}: forgotten; its token file is where it was", self.name);
        Ok(())
    }
}

/// The context that a command means: the one that was named, else the current one. None if the command talks to nobody, or
/// was told to whom.
pub(super) fn meant(
    grammar: &Command,
    matches: &ArgMatches,
    file: Option<&Path>,
) -> Result<Option<Context>, Problem> {
    if !talks(grammar, matches) {
        return Ok(None);
    }
    let verb = deepest(matches);
    let coordinator = verb.try_get_raw("coordinator").ok().flatten();
    let typed = |option| verb.value_source(option) == Some(ValueSource::CommandLine);
    let named = verb.try_get_one::<String>("context").ok().flatten();
    if typed("coordinator") && typed("context") {
        return Err(Problem::usage("--coordinator and --context name two coordinators")
            .hint("leave one of them away"));
    }
    // Of two that are said in the environment the address is meant.
    if coordinator.is_some() && !typed("context") {
        return Ok(None);
    }
    // A state directory that was named, and a file of hosts, say themselves which coordinator is theirs.
    let is_said =
        matches!(verb.try_get_raw("state"), Ok(Some(_))) || matches.subcommand_name() == Some("hosts");
    let Some(file) = file.filter(|_| named.is_some() || !is_said) else { return Ok(None) };
    let contexts = Contexts::read(file)?;
    let Some(name) = named.or(contexts.current.as_ref()) else { return Ok(None) };
    let mut context = contexts.find(name)?.clone();
    if std::env::var_os("TOGL_TOKEN").is_some() && !typed("context") {
        context.token_file = None;
    }
    Ok(Some(context))
}

/// Whether the verb that is carried out may ask a coordinator. Matches do not tell an option that was left out from one that
/// there is not.
fn talks(grammar: &Command, matches: &ArgMatches) -> bool {
    match matches.subcommand() {
        Some((name, below)) => grammar.find_subcommand(name).is_some_and(|verb| talks(verb, below)),
        None => grammar.get_arguments().any(|argument| argument.get_id() == "coordinator"),
    }
}

/// What was said to the verb that is carried out.
pub(super) fn deepest(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, below)| deepest(below))
}

/// The same grammar, in which the options that a command leaves out mean this context.
pub(super) fn with(command: Command, context: &Context) -> Command {
    let files = [("token_file", &context.token_file), ("identity", &context.identity)];
    let mut command = preset(command, "coordinator", context.coordinator.clone().into());
    for (option, file) in files {
        if let Some(file) = file {
            command = preset(command, option, file.clone().into());
        }
    }
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    verbs.into_iter().fold(command, |command, verb| command.mut_subcommand(verb, |verb| with(verb, context)))
}

/// The verb `context` has options of these names itself, which mean something else.
fn preset(command: Command, option: &str, value: OsString) -> Command {
    let has = |option: &str| command.get_arguments().any(|argument| argument.get_id() == option);
    if !has("coordinator") || !has(option) {
        return command;
    }
    // The grammar keeps only words that stay; it is made once.
    let value: &'static OsStr = Box::leak(value.into_boxed_os_str());
    command.mut_arg(option, |argument| {
        let argument = if option == "coordinator" { argument.env(Resettable::Reset) } else { argument };
        argument.default_value(value).hide_default_value(true)
    })
}
