//! `togl logs FOLD`: what the trainers of a fold wrote, attempt by attempt; `--follow` goes on until the fold has ended.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use togl_coordinator::store::LogPiece;

use crate::facts::Facts;
use crate::output::{self, Plain};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Letters by which the place is found again where an old log ended: what is older may have made room.
const TAIL: usize = 256;

/// Show what the trainers of a fold wrote
#[derive(Debug, clap::Args)]
pub struct Logs {
    /// The fold, as TRIAL/split/seed; the trial may be shortened
    fold: String,
    /// Go on with what is written, until the fold has ended
    #[arg(short, long, conflicts_with = "format")]
    follow: bool,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// Print it as it was written, escapes of a terminal included
    #[arg(long, conflicts_with = "format")]
    raw: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Plain,
}

#[derive(Serialize)]
struct Entry {
    attempt: u32,
    text: String,
}

impl Logs {
    pub(super) async fn run(self) -> Result<(), Problem> {
        if self.follow {
            let mut facts = self.target.live().await?;
            return self.follow(facts.as_mut()).await;
        }
        let pieces = self.target.facts().await?.log(&self.fold).await?.into_iter();
        let entries: Vec<Entry> =
            pieces.map(|piece| Entry { attempt: piece.attempt.0, text: piece.text }).collect();
        if entries.is_empty() {
            return Err(Problem::negative(format!("the trainers of {} wrote nothing", self.fold)));
        }
        match self.format {
            Plain::Human => {
                let text = |e: &Entry| format!("--- attempt {}\n{}\n", e.attempt, e.text.trim_end());
                self.show(&entries.iter().map(text).collect::<String>())
            }
            Plain::Json => output::print(&output::json(&entries)?),
        }
    }

    fn show(&self, text: &str) -> Result<(), Problem> {
        if self.raw { output::styled(text) } else { output::print(text) }
    }

    async fn follow(&self, facts: &mut dyn Facts) -> Result<(), Problem> {
        let mut seen = Seen::default();
        loop {
            // In this order: what was written before the end is shown.
            let ended = has_ended(facts, &self.fold).await?;
            self.show(&seen.news(facts.log(&self.fold).await?))?;
            if ended || !facts.is_live() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Whether the last thing that happened to a fold is that it ended.
async fn has_ended(facts: &mut dyn Facts, fold: &str) -> Result<bool, Problem> {
    let (_, history) = facts.history(fold).await?;
    let last = history.iter().rev().find_map(|line| match line.event.as_str() {
        "accepted" | "failed" => Some(true),
        "leased" | "revived" | "retried" | "set-aside" => Some(false),
        _ => None,
    });
    Ok(last.unwrap_or(false))
}

/// What was shown of each attempt.
#[derive(Default)]
struct Seen(BTreeMap<u32, String>);

impl Seen {
    /// What is new, with a line before each attempt.
    fn news(&mut self, pieces: Vec<LogPiece>) -> String {
        let mut news = String::new();
        for LogPiece { attempt, text, .. } in pieces {
            match self.0.get(&attempt.0) {
                Some(before) => news += after(before, &text),
                None => news += &format!("--- attempt {attempt}\n{text}"),
            }
            self.0.insert(attempt.0, text);
        }
        news
    }
}

/// What `text` has after the end of what was `before`; all of it if that made room meanwhile.
fn after<'a>(before: &str, text: &'a str) -> &'a str {
    if let Some(new) = text.strip_prefix(before) {
        return new;
    }
    let mut from = before.len().saturating_sub(TAIL);
    while !before.is_char_boundary(from) {
        from += 1;
    }
    let tail = &before[from..];
    text.find(tail).map_or(text, |at| &text[at + tail.len()..])
}

#[cfg(test)]
mod tests {
    use togl_sweeps::{Attempt, FoldKey, TrialId};

    use super::*;

    #[test]
    fn what_is_followed_is_shown_once_also_when_old_lines_make_room() {
        let fold = FoldKey { trial: TrialId::from_bytes([7; 16]), split: 0, seed: 0 };
        let piece = |attempt, text: &str| LogPiece { fold, attempt: Attempt(attempt), text: text.to_owned() };
        let mut seen = Seen::default();
        assert_eq!(seen.news(vec![piece(1, "one\n")]), "--- attempt 1\none\n");
        assert_eq!(seen.news(vec![piece(1, "one\ntwo\n")]), "two\n");
        assert_eq!(seen.news(vec![piece(1, "one\ntwo\n"), piece(2, "ü\n")]), "--- attempt 2\nü\n");
        let lines = |range: std::ops::Range<u32>| range.map(|n| format!("epoch {n} ü\n")).collect::<String>();
        assert_eq!(after(&lines(0..100), &lines(50..103)), lines(100..103));
        assert_eq!(after(&lines(0..9), &lines(500..502)), lines(500..502));
    }
}
