//! What every back end must keep of sweeps whose trials race: nothing but what stands in their text and in results, from which a
//! start says whom they have stopped.

use togl_scheduler::Lease;
use togl_sweeps::result::example;
use togl_sweeps::{FoldResult, TrialId};

use super::Make;
use super::script::{Script, join, report, sweep, written};

/// A trial is the better the later it comes, but for its noise on a split.
fn value(script: &Script, name: &str, lease: &Lease) -> FoldResult {
    let yaml = &script.store.load().unwrap().sweeps[&sweep(name)].yaml;
    let spec = togl_sweeps::SweepSpec::parse(yaml).unwrap();
    let lr = spec.trials.iter().find(|trial| trial.id == lease.fold.trial).unwrap().config.lr;
    FoldResult { confusion: Vec::new(), ..example(lr + f64::from(lease.fold.split) / 1000.0) }
}

/// Trains what there is to be had on so many slots, and starts again from the store after each.
fn train(make: Make<'_>, yaml: &str, name: &str) -> Vec<(TrialId, u32)> {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(written(yaml));
    loop {
        script.tell(join("w", 3));
        let leases = script.lease("w", 3);
        if leases.is_empty() {
            break;
        }
        for lease in &leases {
            let result = value(&script, name, lease);
            script.tell(report("w", lease, result));
            script.scheduler.check_invariants().unwrap();
        }
        let before = script.scheduler.stopped(&sweep(name));
        script.store.close().unwrap();
        script = Script::on(backend.open());
        assert_eq!(script.scheduler.stopped(&sweep(name)), before, "a start says what was known before");
        script.scheduler.check_invariants().unwrap();
    }
    let stopped = script.scheduler.stopped(&sweep(name)).into_iter();
    let stopped = stopped.map(|stopped| (stopped.trial, stopped.look)).collect();
    script.store.close().unwrap();
    stopped
}

pub(super) fn a_race_goes_on_after_a_restart_where_it_was(make: Make<'_>) {
    let yaml = "version: 1\nname: raced\nbase: {dataset: DD}\ngrid: {lr: [0.1, 0.2, 0.3]}\nsplits: {from: 0, to: 6}\n\
                race: {among: [lr]}\n";
    let looks: Vec<u32> = train(make, yaml, "raced").into_iter().map(|(_, look)| look).collect();
    assert_eq!(looks, [4, 4]);
}

pub(super) fn a_halving_goes_on_after_a_restart_where_it_was(make: Make<'_>) {
    let yaml = "version: 1\nname: halved\nbase: {dataset: DD}\ngrid: {lr: [0.1, 0.2, 0.3, 0.4]}\nsplits: [0, 1]\n\
                halve: {over: max_epochs, rungs: [5, 10, 20], keep: 1/2, among: [lr]}\n";
    let looks: Vec<u32> = train(make, yaml, "halved").into_iter().map(|(_, look)| look).collect();
    assert_eq!(looks, [1, 1, 2]);
}
