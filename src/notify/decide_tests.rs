//! Stories about what is told: each matter once while it lasts, again when it comes back, also over restarts.

use std::time::Duration;

use proptest::prelude::*;

use super::decide::{Disputed, Matter, Notice, Observed, Occasion, Rules, Told};
use crate::remote::{ListedSweep, ListedWorker};

const HOUR: Duration = Duration::from_secs(3600);

fn sweep(name: &str, state: &str, [pending, running, finished, failed]: [u64; 4]) -> ListedSweep {
    let folds = pending + running + finished + failed;
    let (name, state) = (name.to_owned(), state.to_owned());
    let sweep = ListedSweep {
        name,
        state,
        trials: 1,
        folds,
        pending,
        running,
        finished,
        failed,
        priority: 0,
        note: String::new(),
    };
    sweep.settled()
}

fn paused_itself(name: &str) -> ListedSweep {
    ListedSweep { note: "its first 5 folds failed".to_owned(), ..sweep(name, "paused", [9, 0, 0, 5]) }
}

fn worker(host: &str, state: &str) -> ListedWorker {
    ListedWorker {
        worker: format!("{host}-1"),
        host: host.to_owned(),
        state: state.to_owned(),
        slots: 1,
        devices: Vec::new(),
        running: Vec::new(),
        code_version: String::new(),
        allocation: String::new(),
        note: "3 folds failed here and finished elsewhere".to_owned(),
    }
}

/// Somebody who looks again and again.
#[derive(Default)]
struct Teller {
    told: Told,
    now: Duration,
}

impl Teller {
    /// One whose first look is behind him.
    fn begun() -> Self {
        let mut teller = Self::default();
        assert!(teller.look(&Observed::default()).is_empty());
        teller
    }

    fn look(&mut self, picture: &Observed) -> Vec<(Occasion, String)> {
        let notices = self.told.decide(&Rules::default(), picture, self.now);
        notices.into_iter().map(|Notice { matter, .. }| (matter.occasion, matter.about)).collect()
    }

    /// What is stored is read again; clocks begin anew.
    fn restart(&mut self) {
        let stored = serde_json::to_string(&self.told).expect("JSON");
        self.told = serde_json::from_str(&stored).expect("what was stored");
        self.now = Duration::ZERO;
    }
}

fn of(sweeps: Vec<ListedSweep>) -> Observed {
    Observed { sweeps, ..Observed::default() }
}

#[test]
fn a_sweep_that_ends_is_told_once_and_again_when_it_ends_again() {
    let mut teller = Teller::begun();
    let busy = vec![worker("a", "connected")];
    let with = |sweep| Observed { workers: busy.clone(), ..of(vec![sweep]) };
    assert!(teller.look(&with(sweep("s", "active", [1, 1, 8, 0]))).is_empty());
    let done = with(sweep("s", "active", [0, 0, 9, 1]));
    assert_eq!(teller.look(&done), [(Occasion::SweepDone, "s".to_owned())]);
    assert!(teller.look(&done).is_empty());
    teller.restart();
    assert!(teller.look(&done).is_empty(), "a restart forgets nothing");
    assert!(teller.look(&with(sweep("s", "active", [1, 0, 9, 0]))).is_empty(), "somebody retried");
    assert_eq!(teller.look(&done).len(), 1);
}

#[test]
fn what_was_done_before_anybody_was_told_of_anything_is_old_but_what_asks_for_a_hand_is_told() {
    let mut teller = Teller::default();
    let failing = sweep("f", "active", [1, 0, 0, 30]);
    let picture = Observed {
        workers: vec![worker("a", "connected"), worker("b", "quarantined")],
        disputes: vec![Disputed { data: "MUTAG".to_owned(), dissenting: 1 }],
        ..of(vec![sweep("old", "active", [0, 0, 4, 0]), failing, paused_itself("p")])
    };
    let told = teller.look(&picture);
    let expected = [
        (Occasion::Failures, "f"),
        (Occasion::SweepPaused, "p"),
        (Occasion::HostQuarantined, "b"),
        (Occasion::DataDisputed, "MUTAG"),
    ];
    assert_eq!(told, expected.map(|(occasion, about)| (occasion, about.to_owned())));
    assert!(teller.look(&picture).is_empty());
}

#[test]
fn a_pause_by_somebody_is_no_news_and_one_by_itself_is() {
    let mut teller = Teller::begun();
    assert!(teller.look(&of(vec![sweep("s", "paused", [9, 0, 0, 5])])).is_empty());
    assert_eq!(teller.look(&of(vec![paused_itself("s")])), [(Occasion::SweepPaused, "s".to_owned())]);
}

#[test]
fn failures_are_told_when_there_are_so_many_and_not_with_each_further_one() {
    let mut teller = Teller::begun();
    let mut look = |failed| {
        let workers = vec![worker("a", "connected")];
        teller.look(&Observed { workers, ..of(vec![sweep("s", "active", [50, 0, 9, failed])]) }).len()
    };
    assert_eq!([look(9), look(10), look(11), look(40), look(0), look(10)], [0, 1, 0, 0, 0, 1]);
}

#[test]
fn a_host_is_told_once_however_many_workers_it_has_and_stays_told_while_none_of_them_is_back() {
    let mut teller = Teller::begun();
    let kept_out = Observed {
        workers: vec![worker("a", "quarantined"), worker("a", "quarantined")],
        ..Observed::default()
    };
    assert_eq!(teller.look(&kept_out), [(Occasion::HostQuarantined, "a".to_owned())]);
    assert!(teller.look(&Observed::default()).is_empty());
    assert!(
        teller.look(&kept_out).is_empty(),
        "its workers came back to a coordinator that was started again"
    );
    assert!(
        teller.look(&Observed { workers: vec![worker("a", "connected")], ..Observed::default() }).is_empty()
    );
    assert_eq!(teller.look(&kept_out).len(), 1);
}

#[test]
fn that_nobody_takes_folds_is_told_after_an_hour_of_waiting() {
    let mut teller = Teller::begun();
    let waiting = of(vec![sweep("s", "active", [5, 0, 0, 0])]);
    let mut at = |minutes: u64, picture: &Observed| {
        teller.now = Duration::from_secs(minutes * 60);
        teller.look(picture).len()
    };
    assert_eq!([at(0, &waiting), at(59, &waiting), at(60, &waiting), at(300, &waiting)], [0, 0, 1, 0]);
    let with = |state| Observed { workers: vec![worker("a", state)], ..waiting.clone() };
    assert_eq!(
        [at(301, &with("connected")), at(302, &waiting), at(361, &waiting), at(362, &waiting)],
        [0, 0, 0, 1]
    );
    assert_eq!(at(363, &with("connected")), 0);
    // Whoever leaves or is kept out takes nothing.
    assert_eq!(
        [at(400, &with("draining")), at(459, &with("quarantined")), at(460, &with("disconnected"))],
        [0, 1, 1]
    );
    let paused = of(vec![sweep("s", "paused", [5, 0, 0, 0])]);
    assert_eq!([at(500, &paused), at(600, &paused)], [0, 0], "what is paused does not wait");
    teller.now = HOUR * 20;
    assert!(teller.look(&waiting).is_empty());
    teller.now = HOUR * 21;
    assert_eq!(teller.look(&waiting).len(), 1);
    teller.restart();
    assert!(teller.look(&waiting).is_empty());
    teller.now = HOUR * 2;
    assert!(teller.look(&waiting).is_empty(), "it was told before the restart");
}

#[test]
fn a_sentence_says_what_happened() {
    let mut told = Told::default();
    told.decide(&Rules::default(), &Observed::default(), Duration::ZERO);
    let picture = Observed {
        workers: vec![worker("gpu-3", "quarantined")],
        disputes: vec![Disputed { data: "MUTAG".to_owned(), dissenting: 2 }],
        ..of(vec![
            sweep("a", "active", [0, 0, 7, 0]),
            sweep("b", "active", [0, 0, 7, 1]),
            sweep("c", "active", [0, 0, 0, 7]),
            paused_itself("d"),
        ])
    };
    let said: Vec<String> = told
        .decide(&Rules::default(), &picture, Duration::ZERO)
        .into_iter()
        .map(|notice| notice.text)
        .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    sweep a is done: 7 folds
    sweep b is done: 7 of 8 folds, 1 failed
    sweep c has ended without a result: all 7 folds failed
    sweep d has paused itself: its first 5 folds failed
    host gpu-3 gets no folds for a while: 3 folds failed here and finished elsewhere
    2 results come from other data of MUTAG than the rest; no more of its folds are handed out until `togl settle`
    ");
}

fn pictures() -> impl Strategy<Value = Observed> {
    let sweep =
        (0..3_usize, 0..3_u64, 0..20_u64, any::<bool>()).prop_map(|(name, pending, failed, paused)| {
            let name = ["x", "y", "z"][name];
            match paused {
                true => paused_itself(name),
                false => sweep(name, "active", [pending, 0, 4, failed]),
            }
        });
    let workers = prop::collection::vec(
        (0..2_usize, 0..4_usize).prop_map(|(host, state)| {
            worker(["a", "b"][host], ["connected", "disconnected", "draining", "quarantined"][state])
        }),
        0..3,
    );
    let disputes = any::<bool>().prop_map(|one| match one {
        true => vec![Disputed { data: "MUTAG".to_owned(), dissenting: 1 }],
        false => Vec::new(),
    });
    (sweep, workers, disputes).prop_map(|(sweep, workers, disputes)| Observed {
        sweeps: vec![sweep],
        workers,
        disputes,
    })
}

proptest! {
    /// Whatever happens: nothing is told twice for the same picture, and a restart at any moment changes nothing but the time
    /// that folds have waited.
    #[test]
    fn nothing_is_told_twice(pictures in prop::collection::vec(pictures(), 1..30), restarts in prop::collection::vec(any::<bool>(), 30)) {
        let (mut calm, mut restarted) = (Teller::begun(), Teller::begun());
        for (picture, restart) in pictures.iter().zip(restarts) {
            if restart {
                restarted.restart();
            }
            let (one, other) = (calm.look(picture), restarted.look(picture));
            prop_assert_eq!(&one, &other);
            let mut matters: Vec<Matter> =
                one.into_iter().map(|(occasion, about)| Matter { occasion, about }).collect();
            let all = matters.len();
            matters.sort();
            matters.dedup();
            prop_assert_eq!(matters.len(), all, "the same matter twice in one look");
            prop_assert!(calm.look(picture).is_empty(), "told twice");
            prop_assert!(restarted.look(picture).is_empty());
        }
    }
}
