//! `togl notify`: whether the webhooks of a file can be reached, without waiting for something to happen.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use togl_sweeps::nearest;

use super::VerbOutcome;
use crate::notify::{self, Hook, NotifyFile};
use crate::output::{self, ListRow, Listing};
use crate::problem::{self, Problem};

/// Try the webhooks of `togl serve --notify`
#[derive(Debug, clap::Args)]
pub struct Notify {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Send a message to every webhook of a file and say whether it arrived
    Test(Test),
}

#[derive(Debug, clap::Args)]
struct Test {
    /// The file of `togl serve --notify`
    file: PathBuf,
    /// Only this one, by its name; may be given several times
    #[arg(long = "webhook", value_name = "NAME")]
    webhooks: Vec<String>,
    #[command(flatten)]
    listing: Listing,
}

#[derive(Serialize)]
struct Tried {
    name: String,
    form: &'static str,
    signed: bool,
    arrived: bool,
    /// Why it did not arrive.
    reason: String,
}

impl Tried {
    fn new(hook: &Hook, outcome: Result<(), String>) -> Self {
        Self {
            name: hook.name.clone(),
            form: hook.form.as_str(),
            signed: hook.key().is_some(),
            arrived: outcome.is_ok(),
            reason: outcome.err().unwrap_or_default(),
        }
    }
}

impl ListRow for Tried {
    const COLUMNS: &'static [&'static str] = &["NAME", "FORM", "SIGNED", "ARRIVED", "REASON"];

    fn cells(&self) -> Vec<String> {
        let word = |yes| if yes { "yes" } else { "no" }.to_owned();
        vec![
            self.name.clone(),
            self.form.to_owned(),
            word(self.signed),
            word(self.arrived),
            self.reason.clone(),
        ]
    }
}

impl Notify {
    pub(super) fn run(self) -> VerbOutcome {
        match self.action {
            Action::Test(test) => test.run(),
        }
    }
}

impl Test {
    fn run(self) -> VerbOutcome {
        let file = NotifyFile::read(&self.file)?;
        let names = || file.hooks.iter().map(|hook| hook.name.as_str());
        if let Some(unknown) = self.webhooks.iter().find(|wanted| !names().any(|name| name == **wanted)) {
            let hint = nearest::hint(unknown, names().collect::<Vec<_>>());
            return Err(Problem::usage(format!("no webhook is called `{unknown}`")).hint(hint));
        }
        let is_wanted = |hook: &&Hook| self.webhooks.is_empty() || self.webhooks.contains(&hook.name);
        let tell = notify::tester(&file)?;
        let tried = file.hooks.iter().filter(is_wanted).map(|hook| Tried::new(hook, tell(hook)));
        let tried: Vec<Tried> = tokio::task::block_in_place(|| tried.collect());
        let all = tried.iter().all(|tried| tried.arrived);
        output::list(&tried, &self.listing)?;
        Ok(ExitCode::from(if all { problem::DONE } else { problem::NEGATIVE }))
    }
}
