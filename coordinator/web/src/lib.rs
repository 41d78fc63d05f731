//! The page of an operator: what it shows ([`view`]), whom it believes ([`sessions`], [`guard`]), how it is asked
//! ([`routes`], [`api`]) and the files that browsers run. Where views come from is somebody else's business ([`Source`]), and
//! so are clock and chance: time and secrets come in with [`PageSettings`]. Knows no coordinator, no Polars and no SQL.

mod answer;
pub mod api;
mod events;
mod files;
mod guard;
mod routes;
mod sessions;
pub mod source;
pub mod view;
mod view_acts;
mod view_figures;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;

pub use self::sessions::CODE_LIFE;
use self::sessions::Sessions;
pub use self::source::{Source, Trouble};

/// What the page is to know of the world around it.
pub struct PageSettings {
    /// The port that browsers are told, which names the cookie.
    pub port: u16,
    /// Whether who comes may change anything; without it no route but the sign-in takes a `POST`.
    pub may_steer: bool,
    /// Time since some moment that stays the same.
    pub now: fn() -> Duration,
    /// Something that nobody can guess, new each time, in letters and digits.
    pub secret: fn() -> String,
}

/// The page, ready to be served.
pub struct Web<S> {
    pub(crate) source: Arc<S>,
    pub(crate) settings: PageSettings,
    sessions: Mutex<Sessions>,
}

impl<S: Source> Web<S> {
    /// The page of a source.
    pub fn new(source: Arc<S>, settings: PageSettings) -> Arc<Self> {
        Arc::new(Self { source, settings, sessions: Mutex::default() })
    }

    /// A new link for one person, good once and for [`CODE_LIFE`].
    pub fn link(&self) -> String {
        let code = (self.settings.secret)();
        self.sessions().issue(code.clone(), (self.settings.now)());
        format!("http://127.0.0.1:{}/#{code}", self.settings.port)
    }

    /// Everything that is answered.
    pub fn router(self: &Arc<Self>) -> Router {
        routes::router(self)
    }

    /// Serves until the future is dropped.
    pub async fn serve(self: &Arc<Self>, listener: TcpListener) -> std::io::Result<()> {
        axum::serve(listener, self.router()).await
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        // Every change is one step, so a panic elsewhere leaves nothing half done.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
