//! What waits to be delivered, webhook by webhook and in order: when the next attempt is due, how long to wait after one that
//! failed, when to give up. Pure: time is an argument. Together with what was told it is the record that is kept over a restart.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::decide::Told;
use super::file::Hook;
use super::letter::Letter;

/// Pauses after one failed attempt, after two, and so on.
const PAUSES: [Duration; 7] = [
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(1_800),
    Duration::from_secs(3_600),
];
/// Letters that wait for one webhook; the oldest makes room.
const MOST_WAITING: usize = 100;
/// Seconds after which a letter is no news any more.
const OLD: u64 = 3 * 24 * 3_600;

/// Everything that is kept.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Outbox {
    /// What was told and still lasts.
    pub told: Told,
    /// What waits, by the name of the webhook.
    queues: BTreeMap<String, Queue>,
}

/// What waits for one webhook.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Queue {
    waiting: VecDeque<Letter>,
    /// Attempts that failed in a row.
    #[serde(skip)]
    failed: usize,
    /// No attempt before.
    #[serde(skip)]
    not_before: Duration,
    /// The first letter is on its way.
    #[serde(skip)]
    on_its_way: bool,
}

/// A letter that will never arrive.
#[derive(Debug, PartialEq, Eq)]
pub struct Lost {
    /// The webhook that was meant.
    pub hook: String,
    /// What it would have been told.
    pub occasion: String,
}

impl Outbox {
    /// Gives a letter to every webhook that wants to be told of it. Says what had to make room.
    pub fn post(&mut self, hooks: &[Hook], letter: &Letter) -> Vec<Lost> {
        let wants = |hook: &&Hook| hook.on.iter().any(|occasion| occasion.as_str() == letter.occasion);
        let mut lost = Vec::new();
        for hook in hooks.iter().filter(wants) {
            let queue = self.queues.entry(hook.name.clone()).or_default();
            queue.waiting.push_back(letter.clone());
            while queue.waiting.len() > MOST_WAITING {
                // The first may be on its way.
                let oldest = queue.waiting.remove(usize::from(queue.on_its_way));
                lost.extend(oldest.map(|letter| letter.lost(&hook.name)));
            }
        }
        lost
    }

    /// Forgets webhooks that are not there any more and letters that are too old. Says what is lost.
    pub fn sort_out(&mut self, hooks: &[Hook], today: u64) -> Vec<Lost> {
        let mut lost = Vec::new();
        for (name, queue) in &mut self.queues {
            let is_known = hooks.iter().any(|hook| hook.name == *name);
            let keeps = |letter: &Letter| is_known && today.saturating_sub(letter.at) <= OLD;
            let first = usize::from(queue.on_its_way);
            let mut at = 0;
            queue.waiting.retain(|letter| {
                let kept = at < first || keeps(letter);
                at += 1;
                if !kept {
                    lost.push(letter.lost(name));
                }
                kept
            });
        }
        self.queues.retain(|_, queue| !queue.waiting.is_empty() || queue.failed > 0);
        lost
    }

    /// Letters to be delivered now, at most one for each webhook; they are on their way from now on.
    pub fn due(&mut self, now: Duration) -> Vec<(String, Letter)> {
        let due = self.queues.iter_mut().filter(|(_, queue)| !queue.on_its_way && queue.not_before <= now);
        due.filter_map(|(name, queue)| {
            let letter = queue.waiting.front()?.clone();
            queue.on_its_way = true;
            Some((name.clone(), letter))
        })
        .collect()
    }

    /// The first letter of a webhook has arrived.
    pub fn arrived(&mut self, hook: &str) {
        if let Some(queue) = self.queues.get_mut(hook) {
            queue.waiting.pop_front();
            (queue.on_its_way, queue.failed, queue.not_before) = (false, 0, Duration::ZERO);
        }
    }

    /// It has not. Gives the pause before the next attempt, and how many have failed.
    pub fn returned(&mut self, hook: &str, now: Duration) -> (Duration, usize) {
        let Some(queue) = self.queues.get_mut(hook) else { return Default::default() };
        let pause = PAUSES[queue.failed.min(PAUSES.len() - 1)];
        queue.failed += 1;
        (queue.on_its_way, queue.not_before) = (false, now + pause);
        (pause, queue.failed)
    }

    /// Letters that wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.queues.values().map(|queue| queue.waiting.len()).sum()
    }
}

impl Letter {
    fn lost(&self, hook: &str) -> Lost {
        Lost { hook: hook.to_owned(), occasion: self.occasion.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::decide::{Matter, Notice, Occasion};
    use super::super::file::NotifyFile;
    use super::super::letter::Enclosed;
    use super::*;

    fn hooks() -> Vec<Hook> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify.yaml");
        let text = "webhooks: [{name: all, url: https://a/}, {name: one, url: https://b/, on: [no-worker]}]";
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
        NotifyFile::read(&path).expect("a good file").hooks
    }

    fn letter(id: u64, occasion: Occasion) -> Letter {
        let notice =
            Notice { matter: Matter { occasion, about: String::new() }, text: String::new(), sweep: None };
        Letter::new(format!("msg_{id}"), id, notice, Enclosed::default())
    }

    fn ids(due: &[(String, Letter)]) -> Vec<(&str, &str)> {
        due.iter().map(|(hook, letter)| (hook.as_str(), letter.id.as_str())).collect()
    }

    const NOW: Duration = Duration::from_secs(5);

    #[test]
    fn a_webhook_is_told_in_order_one_letter_at_a_time_and_only_what_it_wants() {
        let (hooks, mut outbox) = (hooks(), Outbox::default());
        outbox.post(&hooks, &letter(1, Occasion::SweepDone));
        outbox.post(&hooks, &letter(2, Occasion::NoWorker));
        assert_eq!(ids(&outbox.due(NOW)), [("all", "msg_1"), ("one", "msg_2")]);
        assert!(outbox.due(NOW).is_empty(), "they are on their way");
        outbox.arrived("all");
        assert_eq!(ids(&outbox.due(NOW)), [("all", "msg_2")]);
        outbox.arrived("all");
        outbox.arrived("one");
        assert_eq!(outbox.waiting(), 0);
    }

    #[test]
    fn one_that_fails_is_tried_again_ever_later_and_holds_up_nobody_else() {
        let (hooks, mut outbox) = (hooks(), Outbox::default());
        outbox.post(&hooks, &letter(1, Occasion::NoWorker));
        let mut now = NOW;
        let mut pauses = Vec::new();
        for _ in 0..9 {
            assert!(ids(&outbox.due(now)).contains(&("all", "msg_1")));
            let (pause, _) = outbox.returned("all", now);
            assert!(outbox.due(now + pause - Duration::from_millis(1)).iter().all(|(hook, _)| hook != "all"));
            now += pause;
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [1, 5, 30, 120, 600, 1800, 3600, 3600, 3600]);
        outbox.due(now);
        outbox.arrived("all");
        outbox.post(&hooks, &letter(2, Occasion::SweepDone));
        outbox.due(now);
        assert_eq!(outbox.returned("all", now).0, PAUSES[0], "a success begins anew");
    }

    #[test]
    fn what_waits_is_bounded_and_grows_old_and_never_loses_what_is_on_its_way() {
        let (hooks, mut outbox) = (hooks(), Outbox::default());
        for id in 0..MOST_WAITING as u64 {
            assert!(outbox.post(&hooks, &letter(id, Occasion::SweepDone)).is_empty());
        }
        assert_eq!(ids(&outbox.due(NOW)), [("all", "msg_0")]);
        let lost = outbox.post(&hooks, &letter(100, Occasion::SweepDone));
        assert_eq!(lost, [Lost { hook: "all".to_owned(), occasion: "sweep-done".to_owned() }]);
        outbox.arrived("all");
        assert_eq!(ids(&outbox.due(NOW)), [("all", "msg_2")], "the second made room");
        assert_eq!(outbox.sort_out(&hooks, OLD + 50).len(), 47, "3 to 49");
        assert_eq!(outbox.waiting(), 52);
        outbox.arrived("all");
        assert_eq!(ids(&outbox.due(NOW)), [("all", "msg_50")]);
        outbox.returned("all", NOW);
        assert_eq!(outbox.sort_out(&[], 0).len(), 51, "the webhook is not in the file any more");
    }

    #[test]
    fn a_restart_keeps_what_waits_and_tries_it_at_once() {
        let (hooks, mut outbox) = (hooks(), Outbox::default());
        outbox.post(&hooks, &letter(1, Occasion::SweepDone));
        outbox.due(NOW);
        outbox.returned("all", NOW);
        outbox.due(NOW * 9);
        let stored = serde_json::to_string(&outbox).expect("JSON");
        let mut outbox: Outbox = serde_json::from_str(&stored).expect("what was stored");
        assert_eq!(ids(&outbox.due(Duration::ZERO)), [("all", "msg_1")]);
    }
}
