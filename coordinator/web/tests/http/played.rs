//! A source that knows one sweep with hostile words in it, and notes what it is told to do.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use togl_web::source::{Answer, FigureAsked, FoldsAsked, TableForm};
use togl_web::view::*;
use togl_web::{Source, Trouble};

pub const HOSTILE: &str = "<img src=x onerror=alert(1)>\u{202e}\u{1b}[2J\"'`${1}";

#[derive(Default)]
pub struct Played {
    /// What it was told to do.
    pub acts: Mutex<Vec<String>>,
    pub finished: AtomicU64,
    pub version: AtomicU64,
    pub away: Mutex<bool>,
}

impl Played {
    fn known(&self, name: &str) -> Answer<()> {
        if *self.away.lock().unwrap() {
            return Err(Trouble::Away("nobody answers".into()));
        }
        match name {
            "played" => Ok(()),
            other => Err(Trouble::Unknown(format!("there is no sweep `{other}`"))),
        }
    }

    fn counted(&self) -> Sweep {
        let finished = self.finished.load(Ordering::SeqCst);
        Sweep {
            name: "played".into(),
            state: "active".into(),
            trials: 100,
            folds: 100_000,
            pending: 100_000 - finished,
            running: 0,
            finished,
            failed: 0,
            priority: -3,
            note: HOSTILE.into(),
        }
    }
}

fn line(at: u64) -> FoldLine {
    FoldLine {
        fold: format!("{at:032x}/0/0"),
        method: HOSTILE.into(),
        dataset: "cycles".into(),
        settings: BTreeMap::from([("depth".into(), "4".into())]),
        state: "failed".into(),
        attempts: 2,
        worker: "w".into(),
        value: None,
        seconds: Some(1.5),
        class: "not-finite".into(),
        message: HOSTILE.into(),
    }
}

fn score() -> ShownScore {
    ShownScore { name: "accuracy".into(), factor: 100.0, unit: "%".into(), decimals: 1 }
}

impl Source for Played {
    async fn about(&self) -> About {
        let away_since = if *self.away.lock().unwrap() { "12:00:00 UTC" } else { "" };
        About { version: "1".into(), coordinator: "127.0.0.1:7447".into(), away_since: away_since.into() }
    }

    async fn overview(&self) -> Answer<Overview> {
        self.known("played")?;
        let worker = Worker {
            worker: HOSTILE.into(),
            host: "h".into(),
            state: "connected".into(),
            slots: 2,
            devices: vec!["cpu".into()],
            running: vec![line(1).fold],
            version: "1".into(),
            note: String::new(),
        };
        Ok(Overview { sweeps: vec![self.counted()], workers: vec![worker], disputes: vec!["cycles".into()] })
    }

    async fn sweep(&self, name: &str) -> Answer<SweepNow> {
        self.known(name)?;
        let running = InTraining {
            fold: line(1).fold,
            title: HOSTILE.into(),
            attempt: 1,
            worker: "w".into(),
            epoch: 3,
            max_epochs: 10,
            validation_accuracy: Some(0.5),
        };
        Ok(SweepNow {
            sweep: self.counted(),
            trials_finished: 1,
            eta_seconds: 60,
            standstill: String::new(),
            failed_by_class: BTreeMap::from([("not-finite".into(), 3)]),
            in_training: vec![running],
            varying: vec!["depth".into()],
            score: score(),
        })
    }

    async fn table_version(&self, name: &str) -> Answer<u64> {
        self.known(name)?;
        Ok(self.version.load(Ordering::SeqCst))
    }

    async fn table(&self, name: &str) -> Answer<Table> {
        self.known(name)?;
        let cell = Cell {
            number: "61.2 ± 2.1".into(),
            count: "n=7/10".into(),
            marks: "*".into(),
            best: true,
            n: 7,
            planned: 10,
            trials: vec![line(1).fold],
        };
        Ok(Table {
            version: self.version.load(Ordering::SeqCst),
            folds: 7,
            reading: false,
            problem: String::new(),
            label_headers: vec!["method".into()],
            above: vec![vec![Span { text: "dataset".into(), columns: 1 }]],
            headers: vec!["cycles".into()],
            rows: vec![Row { labels: vec![HOSTILE.into()], cells: vec![cell] }],
            total: 1,
            below: vec!["Test accuracy".into()],
        })
    }

    async fn table_as(&self, name: &str, form: TableForm) -> Answer<String> {
        self.known(name)?;
        Ok(format!("{form:?}"))
    }

    async fn folds(&self, name: &str, asked: FoldsAsked) -> Answer<Folds> {
        self.known(name)?;
        let total = 100_000;
        let folds: Vec<FoldLine> =
            (asked.from..total.min(asked.from.saturating_add(asked.limit))).map(line).collect();
        let next = Some(asked.from.saturating_add(asked.limit)).filter(|next| *next < total);
        Ok(Folds { total, from: asked.from, next, folds })
    }

    async fn failures(&self, name: &str) -> Answer<Failures> {
        self.known(name)?;
        let group = FailureGroup {
            class: "not-finite".into(),
            words: HOSTILE.into(),
            folds: 3,
            example: line(1).fold,
            message: HOSTILE.into(),
            workers: BTreeMap::from([("w".into(), 3)]),
        };
        Ok(Failures { total: 3, looked_at: 3, groups: vec![group] })
    }

    async fn acts(&self, sweep: Option<&str>) -> Answer<Acts> {
        sweep.map(|name| self.known(name)).transpose()?;
        let act = ActLine {
            at: 1_794_812_999_000,
            by: "anna".into(),
            act: "pause".into(),
            about: sweep.unwrap_or("played").into(),
            detail: String::new(),
            reason: HOSTILE.into(),
        };
        Ok(Acts { acts: vec![act] })
    }

    async fn figure(&self, name: &str, _: FigureAsked) -> Answer<String> {
        self.known(name)?;
        Ok("<svg xmlns=\"http://www.w3.org/2000/svg\"/>".into())
    }

    async fn trials(&self, name: &str) -> Answer<Trials> {
        self.known(name)?;
        let trial = Trial {
            trial: "0".repeat(32),
            method: HOSTILE.into(),
            values: vec!["4".into()],
            validation: Some(60.0),
            test: None,
            test_std: None,
            n: 1,
            planned: 10,
        };
        let (caption, settings) = ("c".into(), vec!["depth".into()]);
        Ok(Trials { total: 1, caption, score: score(), settings, trials: vec![trial] })
    }

    async fn compare(&self, name: &str, a: &str, b: &str) -> Answer<Comparison> {
        self.known(name)?;
        Ok(Comparison {
            names: [a.into(), b.into()],
            settings: vec![["depth".into(), "2".into(), "4".into()]],
            pairs: vec![Pair { split: 0, seed: 0, a: 50.0, b: 51.0 }],
            verdict: "no test is made".into(),
            score: score(),
        })
    }

    async fn fold(&self, fold: &str) -> Answer<Fold> {
        self.known("played")?;
        let point =
            CurvePoint { epoch: 0, train_loss: 1.0, validation_loss: 1.0, train: 0.5, validation: 0.5 };
        let result = Outcome {
            score: score(),
            test: 0.5,
            validation: 0.5,
            train: 0.5,
            best_epoch: 0,
            epochs: 1,
            seconds: 1.0,
            parameters: 10,
            confusion: vec![vec![1, 0], vec![0, 1]],
            provenance: vec![["host".into(), "h".into()]],
            curve: vec![point],
        };
        Ok(Fold {
            fold: fold.into(),
            title: HOSTILE.into(),
            reason: "finished".into(),
            sweeps: vec!["played".into()],
            attempts: vec![Attempt { attempt: 1, worker: "w".into(), ending: String::new() }],
            history: vec![Happened {
                at: 1,
                event: "leased".into(),
                attempt: 1,
                worker: "w".into(),
                detail: HOSTILE.into(),
            }],
            log: vec![Log { attempt: 1, text: HOSTILE.into() }],
            settings: BTreeMap::from([("depth".into(), "4".into())]),
            result: Some(result),
        })
    }

    async fn steer_sweep(&self, name: &str, act: SweepAct) -> Answer<Done> {
        self.known(name)?;
        self.acts.lock().unwrap().push(format!("{name} {act:?}"));
        Ok(Done { said: "done".into() })
    }

    async fn steer_worker(&self, worker: &str, act: WorkerAct) -> Answer<Done> {
        self.acts.lock().unwrap().push(format!("{worker} {act:?}"));
        Ok(Done { said: "done".into() })
    }
}
