//! `togl token`: makes, lists and revokes tokens. Works on the state directory's own file, or on the PostgreSQL store that
//! several coordinators share, so it needs the right to write there and no coordinator; one that runs heeds the change at
//! once. Also writes what a coordinator elsewhere is to begin with.

use std::fs::{File, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use togl_coordinator::bundle::{self, TokenBundleError};
use togl_coordinator::clock;
use togl_coordinator::tokens::{self, Entry, Role};
use togl_sweeps::nearest;

use super::history::rfc3339;
use super::install::InstallFrom;
use crate::output::{self, ListRow, Listing, Plain};
use crate::problem::Problem;
use crate::state::StateDir;

/// Make, list and revoke tokens
#[derive(Debug, clap::Args)]
pub struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make a token and print it; it is shown only now
    Create(Create),
    /// List tokens; never shows a secret
    List(List),
    /// Make a token worthless, also for those who are connected with it
    Revoke(Revoke),
    /// Write what a coordinator elsewhere is to begin with: a CA, hashes of tokens and its own tokens
    Bundle(Bundle),
}

#[derive(Debug, clap::Args)]
struct Bundle {
    /// Where to; a folder that is not there yet, or is empty
    folder: PathBuf,
}

#[derive(Debug, clap::Args)]
struct Create {
    /// What it allows: worker trains, viewer reads, operator reads and changes
    #[arg(long)]
    role: Role,
    /// A name that says later what it is for
    #[arg(long, default_value = "")]
    name: String,
    /// When it ends, such as 12h, 30d or 1y [default: never]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    expires: Option<Duration>,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    install: InstallFrom,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

#[derive(Debug, clap::Args)]
struct List {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    listing: Listing,
}

#[derive(Debug, clap::Args)]
struct Revoke {
    /// Its id as `togl token list` shows it; the beginning is enough
    id: String,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct Place {
    /// The state directory [default: the user's own]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    state: Option<PathBuf>,
    /// The store, if it is in PostgreSQL: its coordinators share the list of tokens [default: that of the state directory]
    #[arg(long, value_name = "ADDRESS", env = "TOGL_STORE", hide_env_values = true)]
    store: Option<String>,
}

impl Place {
    fn state(&self) -> Result<StateDir, Problem> {
        StateDir::resolve(self.state.clone())?.with_store(self.store.as_deref())
    }
}

#[derive(Serialize)]
struct Listed {
    id: String,
    role: &'static str,
    name: String,
    created: String,
    expires: Option<String>,
    expired: bool,
}

impl Listed {
    fn new(entry: Entry, now: u64) -> Self {
        let date = |seconds: u64| rfc3339(i64::try_from(seconds).unwrap_or(0).saturating_mul(1_000));
        Self {
            expired: !entry.is_alive(now),
            id: entry.id.to_string(),
            role: entry.role.as_str(),
            name: entry.name,
            created: date(entry.created),
            expires: entry.expires.map(date),
        }
    }
}

impl ListRow for Listed {
    const COLUMNS: &'static [&'static str] = &["ID", "ROLE", "NAME", "CREATED", "EXPIRES"];
    const ALSO: &'static [&'static str] = &["expired"];

    fn cells(&self) -> Vec<String> {
        let expires = match (&self.expires, self.expired) {
            (None, _) => "never".to_owned(),
            (Some(time), false) => time.clone(),
            (Some(time), true) => format!("{time} (has ended)"),
        };
        vec![self.id.clone(), self.role.to_owned(), self.name.clone(), self.created.clone(), expires]
    }
}

impl Token {
    pub(super) fn run(self) -> Result<(), Problem> {
        match self.action {
            Action::Create(create) => create.run(),
            Action::List(list) => list.run(),
            Action::Revoke(revoke) => revoke.run(),
            Action::Bundle(bundle) => bundle.run(),
        }
    }
}

impl Create {
    fn run(self) -> Result<(), Problem> {
        let state = self.place.state()?;
        let install = self.install.advice()?;
        let now = clock::unix_seconds();
        if self.expires.is_some_and(|time| time.as_secs() == 0) {
            return Err(
                Problem::usage("a token that expires at once is of no use").hint("such as --expires 30d")
            );
        }
        keep_output_private()?;
        let expires = self.expires.map(|time| now.saturating_add(time.as_secs()));
        // Its own worker token knows the CA of this state directory.
        let pin = tokens::own(state.path(), Role::Worker).map_err(Problem::usage)?.pin().cloned();
        let (token, entry) = tokens::create(state.token_place(), self.role, &self.name, expires, now)
            .map_err(Problem::usage)?;
        let token = pin.into_iter().fold(token, |token, pin| token.pinned(pin)).reveal();
        match self.format {
            Plain::Human => {
                eprintln!("{}: {} token; this is the only time that it is shown", entry.id, entry.role);
                if self.role == Role::Worker {
                    eprintln!("{install}");
                }
                eprintln!("{}", usage(entry.role));
                output::print(&format!("{token}\n"))
            }
            Plain::Json => output::print(&output::json(
                &json!({"id": entry.id.to_string(), "role": entry.role.as_str(), "token": token}),
            )?),
        }
    }
}

/// If standard output goes to a file, nobody else may read it.
fn keep_output_private() -> Result<(), Problem> {
    let output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    let metadata = output.metadata()?;
    if !metadata.is_file() || metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let refuse =
        |error| Problem::usage(format!("others could read the file that the token goes to: {error}"));
    output.set_permissions(Permissions::from_mode(0o600)).map_err(refuse)
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text)
        .map_err(|_| format!("`{text}` is not a time; write a number and its unit, such as 12h, 30d or 1y"))
}

fn usage(role: Role) -> &'static str {
    match role {
        Role::Worker => "use it with `TOGL_TOKEN=... togl-worker join HOST:PORT` or `--token-file FILE`",
        Role::Operator | Role::Viewer => {
            "use it with `TOGL_TOKEN=... togl sweeps --coordinator HOST:PORT` or `--token-file FILE`"
        }
    }
}

impl List {
    fn run(self) -> Result<(), Problem> {
        let entries = tokens::list(self.place.state()?.token_place()).map_err(Problem::usage)?;
        let now = clock::unix_seconds();
        let listed: Vec<_> = entries.into_iter().map(|entry| Listed::new(entry, now)).collect();
        output::list(&listed, &self.listing)
    }
}

impl Revoke {
    fn run(self) -> Result<(), Problem> {
        let state = self.place.state()?;
        let entry = tokens::revoke(state.token_place(), &self.id).map_err(|error| match error {
            tokens::TokenError::Unknown(_) => {
                let known = tokens::list(state.token_place()).unwrap_or_default();
                Problem::negative(error).hint(nearest_token(&self.id, &known))
            }
            other => Problem::usage(other),
        })?;
        let name = if entry.name.is_empty() { String::new() } else { format!(" ({})", entry.name) };
        eprintln!("{}: {} token{name} is worthless now", entry.id, entry.role);
        Ok(())
    }
}

/// The token that was probably meant, by its id or its name.
fn nearest_token(asked: &str, known: &[Entry]) -> String {
    if let Some(named) = known.iter().find(|entry| !entry.name.is_empty() && entry.name == asked) {
        return format!("the token of that name is `{}`", named.id);
    }
    let ids: Vec<String> = known.iter().map(|entry| entry.id.to_string()).collect();
    let names = known.iter().map(|entry| entry.name.as_str()).filter(|name| !name.is_empty());
    let all: Vec<&str> = ids.iter().map(String::as_str).chain(names).collect();
    if all.is_empty() { "there is no token".to_owned() } else { nearest::hint(asked, all) }
}

impl Bundle {
    fn run(self) -> Result<(), Problem> {
        let folder = self.folder.display();
        let written = bundle::write(&self.folder, clock::unix_seconds()).map_err(|error| match error {
            TokenBundleError::NotEmpty { .. } => Problem::usage(error)
                .hint("name another folder; workers of a CA that is replaced would need new tokens"),
            other => Problem::usage(other),
        })?;
        eprintln!(
            "wrote {} to {folder}; whoever has them is the coordinator, so keep them private\n\n\
             for the coordinator, whose state directory begins with all of them:\n\
             \n  kubectl create secret generic togl-coordinator --from-file={folder}\n\n\
             for workers, which get their token and nothing else:\n\
             \n  kubectl create secret generic togl-worker --from-file=worker.token={folder}/worker.token\n",
            written.join(", ")
        );
        Ok(())
    }
}
