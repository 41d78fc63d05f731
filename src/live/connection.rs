//! The way to the coordinator of those who look all day: one client for everything, made again when it broke, and since when
//! nobody answers. Asks nothing by itself.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use togl_web::Trouble;
use togl_web::source::Answer;
use tokio::sync::Mutex as Turns;

use crate::clock;
use crate::facts::Remote;
use crate::problem::{self, Problem};
use crate::remote::{Client, CoordinatorTarget};

/// A coordinator that is away is looked for so often, however many ask.
const AGAIN: Duration = Duration::from_secs(1);

/// The way to the coordinator.
pub struct CoordinatorLink {
    target: CoordinatorTarget,
    address: String,
    client: Turns<Option<Client>>,
    away_since: Mutex<Option<String>>,
    tried: Mutex<Option<Instant>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one step, so a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A problem as those who look are told of it.
pub fn trouble(problem: &Problem) -> Trouble {
    let words = problem.in_one_line();
    match problem.code() {
        problem::NEGATIVE => Trouble::Unknown(words),
        problem::USAGE => Trouble::Bad(words),
        problem::UNREACHABLE => Trouble::Away(words),
        _ => Trouble::Ours(words),
    }
}

impl CoordinatorLink {
    /// A way that is open.
    pub fn new(target: CoordinatorTarget, client: Client) -> Result<Self, Problem> {
        let address = target.address()?;
        let client = Turns::new(Some(client));
        Ok(Self { target, address, client, away_since: Mutex::default(), tried: Mutex::default() })
    }

    /// Where the coordinator is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Since when nobody answers, as a time of day.
    pub fn away_since(&self) -> Option<String> {
        lock(&self.away_since).clone()
    }

    /// A client; connects again if the last one was broken.
    pub async fn client(&self) -> Result<Client, Problem> {
        let mut client = self.client.lock().await;
        if let Some(client) = client.as_ref().filter(|_| lock(&self.away_since).is_none()) {
            return Ok(client.clone());
        }
        let now = clock::now();
        let tried = lock(&self.tried).replace(now);
        if tried.is_some_and(|tried| now.duration_since(tried) < AGAIN) {
            *lock(&self.tried) = tried;
            return Err(Problem::unreachable("the coordinator does not answer"));
        }
        let new = self.target.connect().await.inspect_err(|problem| self.heard(problem))?;
        *client = Some(new.clone());
        *lock(&self.away_since) = None;
        Ok(new)
    }

    /// Notes whether nobody answered.
    pub fn heard(&self, problem: &Problem) {
        if problem.is_unreachable() {
            lock(&self.away_since).get_or_insert_with(clock::time_of_day);
        }
    }

    /// What a call brought, in words for people.
    pub fn told<T>(&self, outcome: Result<T, Problem>) -> Answer<T> {
        outcome.map_err(|problem| {
            self.heard(&problem);
            trouble(&problem)
        })
    }

    /// A reader of facts.
    pub async fn facts(&self) -> Answer<Remote> {
        let client = self.client().await;
        Ok(Remote::new(self.told(client)?))
    }
}
