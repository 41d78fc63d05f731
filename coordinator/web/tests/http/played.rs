//! A source that knows one sweep of 5,000 trials with hostile words in it, and notes what it is told to do.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use togl_web::source::{Answer, FigureAsked, FoldsAsked, TableAsked, TableForm};
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

    fn counted(&self) -> SweepOnPage {
        let finished = self.finished.load(Ordering::SeqCst);
        SweepOnPage {
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
            folds_an_hour: Some(2_310),
        }
    }
}

fn here() -> WorkerOnPage {
    WorkerOnPage {
        worker: "w".into(),
        host: HOSTILE.into(),
        state: "connected".into(),
        slots: 2,
        devices: vec!["cpu".into()],
        busy: 1,
        running: vec![line(1).fold],
        version: "1".into(),
        note: String::new(),
    }
}

fn training() -> InTraining {
    InTraining {
        score: score(),
        fold: line(1).fold,
        title: HOSTILE.into(),
        attempt: 1,
        worker: "w".into(),
        epoch: 3,
        max_epochs: 10,
        validation_accuracy: Some(0.5),
    }
}

/// A curve that rises and wavers; `at` makes no two the same.
fn rising(at: u64, points: u64) -> Vec<Along> {
    let share =
        |epoch: u64| 0.5 + 0.4 * (epoch as f64 / points as f64) + 0.02 * ((epoch * 7 + at * 13) % 5) as f64;
    (0..points).map(|epoch| [epoch as f64, (share(epoch) * 1e3).round() / 1e3]).collect()
}

/// A cell of the table in a row and a column.
fn cell(row: u64, column: u64) -> CellOnPage {
    CellOnPage {
        number: format!("{:.1} ± 2.1", 61.2 + row as f64 + 2.0 * column as f64),
        count: if column == 0 { "n=7/10".into() } else { String::new() },
        marks: if column == 0 { "*".into() } else { String::new() },
        best: row == 3,
        n: 10,
        planned: 10,
        trials: (0..=row).map(|at| format!("{at:032x}")).collect(),
    }
}

const PICTURE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"640\" height=\"240\" viewBox=\"0 0 640 240\">\
    <rect width=\"640\" height=\"240\" fill=\"white\"/><path d=\"M40 200H620M40 20V200\" stroke=\"black\"/>\
    <path d=\"M40 180L200 90L380 70L600 50\" fill=\"none\" stroke=\"#1a5a9e\" stroke-width=\"2\"/>\
    <text x=\"40\" y=\"225\" font-size=\"12\">depth</text></svg>";

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

/// The result of every fold that has one.
fn outcome() -> OutcomeOnPage {
    let point = |[epoch, share]: Along| CurvePoint {
        epoch: epoch as u32,
        train_loss: 1.0 - share,
        validation_loss: 1.1 - share,
        train: share,
        validation: share - 0.05,
    };
    OutcomeOnPage {
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
        curve: rising(1, 60).into_iter().map(point).collect(),
    }
}

/// An act without its empty reason.
fn told(act: &str) -> String {
    act.replace(" { reason: \"\" }", "").replace(", reason: \"\" }", " }")
}

impl Source for Played {
    async fn about(&self) -> AboutPage {
        let away_since = if *self.away.lock().unwrap() { "12:00:00 UTC" } else { "" };
        AboutPage { version: "1".into(), coordinator: "127.0.0.1:7447".into(), away_since: away_since.into() }
    }

    async fn overview(&self) -> Answer<Overview> {
        self.known("played")?;
        let gone = WorkerOnPage {
            worker: HOSTILE.into(),
            state: "quarantined".into(),
            note: HOSTILE.into(),
            ..here()
        };
        let idle = SweepOnPage {
            name: "second".into(),
            state: "paused".into(),
            failed: 7,
            note: String::new(),
            ..self.counted()
        };
        Ok(Overview {
            sweeps: vec![idle, self.counted()],
            sweeps_total: 2,
            workers: vec![here(), gone],
            worker_states: BTreeMap::from([("connected".into(), 1), ("quarantined".into(), 1)]),
            slots: 4,
            busy: 2,
            disputes: vec!["cycles".into()],
        })
    }

    async fn sweep(&self, name: &str) -> Answer<SweepNow> {
        self.known(name)?;
        let running = training();
        Ok(SweepNow {
            sweep: self.counted(),
            trials_finished: 1,
            eta_seconds: 60,
            left: [7_800, 9_600],
            standstill: String::new(),
            failed_by_class: BTreeMap::from([("not-finite".into(), 3)]),
            in_training: vec![running],
            varying: vec!["depth".into(), "lr".into()],
            score: score(),
        })
    }

    async fn table_version(&self, name: &str) -> Answer<u64> {
        self.known(name)?;
        Ok(self.version.load(Ordering::SeqCst))
    }

    async fn table(&self, name: &str, asked: TableAsked) -> Answer<TableOnPage> {
        self.known(name)?;
        if asked.columns == "nonsense" {
            return Err(Trouble::Bad("no setting `nonsense`".into()));
        }
        let columns = if asked.columns.is_empty() { 3 } else { 1 };
        let methods = ["GCN", "GCN-TOGL-1", "GIN", HOSTILE];
        let row = |(at, method): (usize, &&str)| RowOnPage {
            labels: vec![(*method).into()],
            cells: (0..columns).map(|column| cell(at as u64, column)).collect(),
        };
        Ok(TableOnPage {
            version: self.version.load(Ordering::SeqCst),
            folds: 7,
            reading: false,
            problem: String::new(),
            label_headers: vec!["method".into()],
            above: vec![vec![Span { text: "dataset".into(), columns }]],
            headers: ["cycles", "necklaces", "DD"]
                .map(String::from)
                .into_iter()
                .take(columns as usize)
                .collect(),
            rows: methods.iter().enumerate().map(row).collect(),
            total: 4,
            below: vec![
                "Test accuracy in percent, mean ± standard deviation".into(),
                "* fewer folds than planned".into(),
            ],
        })
    }

    async fn table_as(&self, name: &str, asked: TableAsked, form: TableForm) -> Answer<String> {
        self.known(name)?;
        Ok(format!("{form:?}{}", asked.columns))
    }

    async fn folds(&self, name: &str, asked: FoldsAsked) -> Answer<FoldsOnPage> {
        self.known(name)?;
        let total = 100_000;
        let folds: Vec<FoldLine> =
            (asked.from..total.min(asked.from.saturating_add(asked.limit))).map(line).collect();
        let next = Some(asked.from.saturating_add(asked.limit)).filter(|next| *next < total);
        Ok(FoldsOnPage { total, from: asked.from, next, folds })
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
            hosts: BTreeMap::from([(HOSTILE.into(), 3)]),
            rule: "tried once more".into(),
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
        Ok(PICTURE.into())
    }

    async fn curves(&self, name: &str) -> Answer<CurvesNow> {
        self.known(name)?;
        let group = |at: u64| CurveLine {
            dataset: "cycles".into(),
            label: if at == 0 { HOSTILE.into() } else { format!("GCN-{at} (n=50)") },
            mean: rising(at, 100),
            folds: (0..50).map(|fold| rising(at + fold, 48)).collect(),
        };
        let points = 20 + self.version.load(Ordering::SeqCst).min(50);
        let running = ThinCurve { fold: line(1).fold, title: HOSTILE.into(), points: rising(3, points) };
        Ok(CurvesNow {
            total: 100_000,
            drawn: 200,
            groups: (0..4).map(group).collect(),
            score: score(),
            running: vec![running],
        })
    }

    async fn against(&self, name: &str, setting: &str) -> Answer<Against> {
        self.known(name)?;
        let bar = |x: u64, at: u64| AgainstPoint {
            x: x.to_string(),
            y: 60.0 + x as f64 + 4.0 * at as f64,
            spread: Some(1.5),
            n: 10,
            planned: 10,
        };
        let line = |at: u64| AgainstLine {
            label: format!("GCN-{at}"),
            points: (2..8).map(|x| bar(x, at)).collect(),
        };
        let panel = |title: &str| AgainstPanel { title: title.into(), lines: (0..3).map(line).collect() };
        let caption = "Test accuracy in percent, mean ± standard deviation".into();
        let panels = vec![panel("cycles"), panel("necklaces")];
        Ok(Against { setting: setting.into(), caption, score: score(), panels })
    }

    async fn trials(&self, name: &str, from: u64, limit: u64) -> Answer<Trials> {
        self.known(name)?;
        let total = 5_000;
        let trial = |at: u64| TrialOnPage {
            trial: format!("{at:032x}"),
            method: if at == 0 { HOSTILE.into() } else { format!("GCN-{}", at % 4) },
            values: vec![
                (at % 8).to_string(),
                if at.is_multiple_of(9) { String::new() } else { format!("{}", 1e-4 * (1 + at % 50) as f64) },
            ],
            validation: Some(90.0 - at as f64 / 100.0),
            test: if at % 10 == 3 { None } else { Some(88.0 - at as f64 / 120.0) },
            test_std: Some(1.0),
            n: 9,
            planned: 10,
        };
        let trials: Vec<TrialOnPage> = (from..total.min(from.saturating_add(limit))).map(trial).collect();
        let next = Some(from.saturating_add(limit)).filter(|next| *next < total);
        let settings = vec!["depth".into(), "lr".into()];
        Ok(Trials { total, from, next, caption: "c".into(), score: score(), settings, trials })
    }

    async fn worker(&self, name: &str) -> Answer<WorkerNow> {
        self.known("played")?;
        if name != "w" {
            return Err(Trouble::Unknown(format!("no worker `{name}` is connected")));
        }
        let at = 1_794_812_999_000;
        let stretch = |n: u64| Stretch {
            fold: line(n).fold,
            title: HOSTILE.into(),
            from: at - 60_000 * (n + 1),
            until: at - 60_000 * n - 5_000,
        };
        Ok(WorkerNow {
            worker: here(),
            in_training: vec![training()],
            looked_at: 1_000,
            finished: 900,
            last_hour: 55,
            seconds_a_fold: Some(55.0),
            failed_by_class: BTreeMap::from([("not-finite".into(), 3)]),
            lately: (0..55).rev().map(stretch).collect(),
            at,
        })
    }

    async fn compare(&self, name: &str, a: &str, b: &str) -> Answer<ComparisonOnPage> {
        self.known(name)?;
        Ok(ComparisonOnPage {
            names: [a.into(), b.into()],
            settings: vec![["depth".into(), "2".into(), "4".into()]],
            pairs: vec![PairOnPage { split: 0, seed: 0, a: 50.0, b: 51.0 }],
            verdict: "no test is made".into(),
            score: score(),
            difference: Some(MeanDifference { mean: -1.0, low: -2.5, high: 0.5, level: 95 }),
        })
    }

    async fn fold(&self, fold: &str) -> Answer<FoldOnPage> {
        self.known("played")?;
        Ok(FoldOnPage {
            score: score(),
            fold: fold.into(),
            title: HOSTILE.into(),
            reason: "finished".into(),
            sweeps: vec!["played".into()],
            attempts: vec![AttemptOnPage { attempt: 1, worker: "w".into(), ending: String::new() }],
            history: vec![EventOnPage {
                at: 1,
                event: "leased".into(),
                attempt: 1,
                worker: "w".into(),
                detail: HOSTILE.into(),
            }],
            log: vec![LogOnPage { attempt: 1, text: HOSTILE.into() }],
            settings: BTreeMap::from([("depth".into(), "4".into())]),
            result: (!fold.ends_with("/1")).then(outcome),
            growing: if fold.ends_with("/1") { rising(1, 30) } else { Vec::new() },
            replicates: vec![Again {
                attempt: 2,
                worker: "w".into(),
                kind: "replicate".into(),
                test: Some(0.5),
                differs: vec![HOSTILE.into()],
            }],
        })
    }

    async fn steer_sweep(&self, name: &str, act: SweepAct) -> Answer<Done> {
        self.known(name)?;
        self.acts.lock().unwrap().push(format!("{name} {}", told(&format!("{act:?}"))));
        Ok(Done { said: "done".into() })
    }

    async fn steer_worker(&self, worker: &str, act: WorkerAct) -> Answer<Done> {
        self.acts.lock().unwrap().push(format!("{worker} {}", told(&format!("{act:?}"))));
        Ok(Done { said: "done".into() })
    }
}
