//! Does on one host what was decided, through scripts over `ssh`. A reason for a failure is one line of words; the verb says whose
//! it is. Asks no coordinator and prints nothing itself.

use std::time::Duration;

use super::bundle::BundlePart;
use super::decide::{self, Common, HostPlan, HostRefusal, Libtorch, Step};
use super::file::HostEntry;
use super::looked::{self, Looked};
use super::scripts::{self, Starting};
use super::ssh;

pub use super::send::Parcel;

/// What all hosts of one command have in common.
#[derive(Debug)]
pub struct HostTask {
    /// What can be sent.
    pub parcel: Parcel,
    /// What decides.
    pub common: Common,
    /// The worker token.
    pub token: String,
    /// How long a worker may take to leave, in seconds.
    pub seconds: u64,
}

/// How a worker left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// None ran.
    Before,
    /// It saved and said goodbye.
    Itself,
    /// It took too long and was ended.
    Killed,
}

impl HostTask {
    /// What all hosts of a file have in common.
    pub fn new(parcel: Parcel, join: String, token: String, seconds: u64) -> Self {
        let token_digest = scripts::sha256(format!("{token}\n").as_bytes());
        Self { parcel, common: Common { join, token_digest }, token, seconds }
    }

    /// Brings a host to where it should be; gives what was seen there before.
    pub async fn up(&self, wish: &HostEntry, say: &(dyn Fn(String) + Sync)) -> Result<(), HostRefusal> {
        let looked = look(wish, true).await.map_err(|reason| HostRefusal { reason, hint: reach(wish) })?;
        let plan = decide::decide(wish, &looked, &self.parcel.bundle.contents, &self.common)?;
        for note in &plan.notes {
            say(note.clone());
        }
        if plan.steps.is_empty() {
            say("nothing to do".to_owned());
        }
        for step in &plan.steps {
            let done = self.perform(wish, &looked.folder, &plan, step, say).await;
            done.map_err(|reason| HostRefusal {
                reason,
                hint: "repeat `togl hosts up`; it goes on where it stopped".to_owned(),
            })?;
        }
        Ok(())
    }

    async fn perform(
        &self,
        wish: &HostEntry,
        folder: &str,
        plan: &HostPlan,
        step: &Step,
        say: &(dyn Fn(String) + Sync),
    ) -> Result<(), String> {
        let contents = &self.parcel.bundle.contents;
        let programs = contents.programs.name();
        match step {
            Step::Send(kind) => self.parcel.send(wish, folder, *kind, say).await,
            Step::Install(libtorch) => {
                let sent = contents.libtorch.as_ref().map(BundlePart::name).unwrap_or_default();
                let torch = match libtorch {
                    Libtorch::Sent => format!("{folder}/parts/{sent}/torch"),
                    Libtorch::Found(path) => path.clone(),
                };
                say(format!("installs the worker with {torch}"));
                let script = scripts::install(folder, &plan.key, &programs, &torch);
                ssh::run(wish, &script, ssh::LONG).await.map(drop)
            }
            Step::Stop => stop(wish, folder, self.seconds, false).await.map(drop),
            Step::Start { systemd } => {
                say(format!("starts the worker, {}", if *systemd { "kept by systemd" } else { "detached" }));
                let (key, start, token) = (&plan.key, &plan.start, &self.token);
                let (systemd, seconds) = (*systemd, self.seconds);
                let starting = Starting { folder, key, programs: &programs, start, token, systemd, seconds };
                ssh::run(wish, &scripts::start(&starting), ssh::QUICK).await.map(drop)
            }
        }
    }
}

/// Looks at a host; thoroughly, or only at its worker.
pub async fn look(wish: &HostEntry, thorough: bool) -> Result<Looked, String> {
    let said = ssh::run(wish, &scripts::look(wish, thorough), ssh::QUICK).await?;
    Looked::parse(&said).ok_or_else(|| "its answer broke off".to_owned())
}

/// Lets the worker of a host leave and forgets its token.
pub async fn down(wish: &HostEntry, seconds: u64) -> Result<Left, String> {
    let looked = look(wish, false).await?;
    stop(wish, &looked.folder, seconds, true).await
}

async fn stop(wish: &HostEntry, folder: &str, seconds: u64, forget: bool) -> Result<Left, String> {
    let limit = ssh::QUICK + Duration::from_secs(seconds);
    let said = ssh::run(wish, &scripts::stop(folder, seconds, forget), limit).await?;
    let value = |key| looked::value(&said, key).map(str::trim);
    match (value("left"), value("ran"), value("killed")) {
        (Some("0"), None, _) => Ok(Left::Before),
        (Some("0"), Some(_), None) => Ok(Left::Itself),
        (Some("0"), Some(_), Some(_)) => Ok(Left::Killed),
        (left, ..) => Err(format!("{} processes do not end", left.unwrap_or("some"))),
    }
}

/// What to do about a host that cannot be looked at.
pub fn reach(wish: &HostEntry) -> String {
    format!("try `ssh {} true`; it must work without a question", wish.host)
}
