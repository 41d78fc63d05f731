//! What every back end must remember of workers and hosts.

use togl_scheduler::{Event, WorkerInfo};
use togl_sweeps::FailureClass;
use togl_sweeps::result::example;
use togl_sweeps::trial::NUMERICS;

use super::Make;
use super::script::{Script, report, submission, worker};

fn join_on(script: &mut Script, name: &str, host: &str) {
    let info = WorkerInfo { host: host.to_owned(), slots: 1, numerics: NUMERICS, ..WorkerInfo::default() };
    script.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
}

pub(super) fn drained_workers_and_quarantined_hosts_are_loaded_again(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    let bad = "bad\0 'höst'";
    script.tell(submission("s", 0..20));
    join_on(&mut script, "bad", bad);
    join_on(&mut script, "good", "good");
    join_on(&mut script, "idle", "idle");
    for _ in 0..3 {
        let lease = script.lease("bad", 1).remove(0);
        script.fail("bad", &lease, FailureClass::Crashed);
        let again = script.lease("good", 1).remove(0);
        script.tell(report("good", &again, example(0.5)));
    }
    for name in ["good", "idle"] {
        script.tell(Event::Drain { worker: worker(name) });
        script.tell(Event::Drain { worker: worker(name) });
    }
    script.store.close().unwrap();

    let mut script = Script::on(backend.open());
    let held = script.store.load().unwrap();
    assert_eq!(held.drains.keys().map(|worker| worker.as_str()).collect::<Vec<_>>(), ["good", "idle"]);
    let reasons: Vec<_> = held.quarantines.iter().map(|(host, reason)| (host.as_str(), &**reason)).collect();
    assert_eq!(reasons, [(bad, "3 folds failed here and succeeded elsewhere, 0 succeeded here")]);
    script.tell(Event::Undrain { worker: worker("good") });
    script.now = script.now.plus(script.scheduler.limits().quarantine);
    script.tell(Event::Tick);
    let held = script.store.load().unwrap();
    assert_eq!((held.drains.len(), held.quarantines.len()), (1, 0));
    script.now = script.now.plus(script.scheduler.limits().drain_memory);
    script.tell(Event::Tick);
    assert!(script.store.load().unwrap().drains.is_empty(), "nobody waits for a dead worker for ever");
}
