//! Server-sent events: what a tab is told while somebody looks at it. Several times a second the source is asked for what
//! the tab shows, which it has at hand; only what differs from what was sent last is sent, so that a slow reader gets the
//! latest picture and never a queue. Decides nothing.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use futures::Stream;
use futures::stream;
use serde::Serialize;

use crate::source::{Answer, Source, Trouble};
use crate::{Web, answer};

/// How often it is asked whether there is something new.
const MERGED: Duration = Duration::from_millis(250);

/// Bytes that a stream takes in a second at the most: after a large picture the next one waits longer.
const BYTES_A_SECOND: usize = 50_000;

/// How long a stream rests after so many bytes.
fn rest(bytes: usize) -> Duration {
    MERGED.max(Duration::from_millis((bytes * 1_000 / BYTES_A_SECOND) as u64))
}

/// A place for a stream, given back when dropped.
struct Place<S: Source> {
    web: Arc<Web<S>>,
    session: u64,
}

impl<S: Source> Drop for Place<S> {
    fn drop(&mut self) {
        self.web.sessions().end_stream(self.session);
    }
}

/// What a tab knows.
struct Told<S: Source> {
    place: Place<S>,
    sweep: Option<String>,
    about: String,
    picture: String,
    table: Option<u64>,
    waiting: Vec<Event>,
    /// Bytes of the pictures that were said last.
    said: usize,
    /// Whether it has begun.
    looked: bool,
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn picture<T: Serialize>(said: Answer<T>) -> Result<String, Trouble> {
    said.map(|value| json(&value))
}

impl<S: Source> Told<S> {
    fn say(&mut self, name: &str, text: &str) {
        self.said += text.len();
        self.waiting.push(Event::default().event(name).data(text));
    }

    /// Looks once, and notes what is new.
    async fn look(&mut self) {
        let source = self.place.web.source.clone();
        let about = json(&source.about().await);
        if about != self.about {
            self.say("about", &about);
            self.about = about;
        }
        let (name, seen) = match &self.sweep {
            Some(sweep) => ("sweep", picture(source.sweep(sweep).await)),
            None => ("overview", picture(source.overview().await)),
        };
        match seen {
            Ok(seen) if seen != self.picture => {
                self.say(name, &seen);
                self.picture = seen;
            }
            // While the coordinator is away, the last picture stays; `about` says so.
            Ok(_) | Err(Trouble::Away(_)) => {}
            Err(trouble) => {
                let text = serde_json::json!({ "error": trouble.words() }).to_string();
                if text != self.picture {
                    self.say("trouble", &text);
                    self.picture = text;
                }
            }
        }
        if let Some(sweep) = self.sweep.clone()
            && let Ok(version) = source.table_version(&sweep).await
            && self.table != Some(version)
        {
            self.say("table", &version.to_string());
            self.table = Some(version);
        }
    }

    /// The next event; none when the session is over.
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Self)> {
        loop {
            if !self.waiting.is_empty() {
                let event = self.waiting.remove(0);
                return Some((Ok(event), self));
            }
            let (web, session) = (&self.place.web, self.place.session);
            if !web.sessions().is_good(session, (web.settings.now)()) {
                return None;
            }
            if self.looked {
                tokio::time::sleep(rest(std::mem::take(&mut self.said))).await;
            }
            self.looked = true;
            self.look().await;
        }
    }
}

/// A stream for one tab; nothing if the session has enough of them.
pub(crate) fn begin<S: Source>(
    web: &Arc<Web<S>>,
    session: u64,
    sweep: Option<String>,
) -> Option<Sse<impl Stream<Item = Result<Event, Infallible>> + use<S>>> {
    if !web.sessions().begin_stream(session) {
        return None;
    }
    let place = Place { web: web.clone(), session };
    let (about, picture) = (String::new(), String::new());
    let told =
        Told { place, sweep, about, picture, table: None, waiting: Vec::new(), said: 0, looked: false };
    let events = stream::unfold(told, Told::next);
    Some(Sse::new(events).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}

/// What a tab that got no stream is told: it asks for itself.
pub(crate) fn none() -> axum::http::Response<axum::body::Body> {
    let mut empty = answer::text(axum::http::StatusCode::NO_CONTENT, "text/event-stream", "");
    empty.headers_mut().remove(axum::http::header::CONTENT_TYPE);
    empty
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_picture_is_followed_by_a_longer_rest() {
        assert_eq!((rest(0), rest(10_000)), (MERGED, MERGED));
        assert_eq!(rest(100_000), Duration::from_secs(2));
    }
}
