//! What a trial needs that not every worker offers: who gets it, who is left alone, and what people are told. That the core
//! does not know what it is about is why these stories need nothing but the canonical form of such a trial.

use std::collections::BTreeSet;

use togl_scheduler::{Event, FoldState, Reason, ResultAnswer, Submission};
use togl_sweeps::result::example;
use togl_sweeps::{Capability, FoldResult, Goal, Scale};

use crate::world::{World, fold, info, submission, worker};

/// A sweep of trials that need somebody who runs programs.
fn programs(name: &str, folds: std::ops::Range<u32>) -> Submission {
    let mut programs = submission(name, folds);
    for (_, canonical) in &mut programs.trials {
        *canonical =
            r#"{"canonical":1,"dataset":"own","program":{"run":["./train"],"version":"1"},"settings":{}}"#
                .to_owned();
    }
    programs
}

/// A worker that offers to run programs.
fn join_offering(world: &mut World, name: &str, slots: u32) {
    let info =
        togl_scheduler::WorkerInfo { offers: BTreeSet::from([Capability::Programs]), ..info(name, slots) };
    world.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
}

fn reason(world: &World, n: u32) -> Reason {
    world.scheduler.explain(world.now, &fold(n)).expect("the fold is known").reason
}

#[test]
fn what_a_worker_does_not_offer_it_is_never_given() {
    let mut world = World::default();
    world.submit(programs("own", 0..4));
    world.join("plain", "h", 2);
    assert!(world.leases("plain", 2).is_empty());
    assert_eq!(reason(&world, 0), Reason::NobodyOffers { what: Capability::Programs });
    let said = reason(&world, 0).to_string();
    assert!(
        said.starts_with("no connected worker runs programs; start one with `togl-worker join"),
        "{said}"
    );
    assert_eq!(world.scheduler.demand(world.now).shapes[0].free_slots, 0, "its slots are not for these");
    world.submit(submission("ours", 10..12));
    assert_eq!(world.leases("plain", 2).len(), 2, "and what stands behind them is not held up");
    join_offering(&mut world, "able", 2);
    assert_eq!(world.leases("able", 2).len(), 2);
}

#[test]
fn whoever_offers_more_is_given_what_needs_nothing_too() {
    let mut world = World::default();
    world.submit(submission("ours", 0..2));
    join_offering(&mut world, "able", 2);
    assert_eq!(world.leases("able", 2).len(), 2);
}

#[test]
fn a_restart_forgets_nobody_s_needs() {
    let mut world = World::default();
    world.submit(programs("own", 0..2));
    world.restart();
    world.join("plain", "h", 2);
    assert!(world.leases("plain", 2).is_empty());
    join_offering(&mut world, "able", 1);
    let lease = world.lease("able");
    world.report("able", &lease, 0.5);
}

#[test]
fn a_result_of_another_score_than_that_of_its_trial_is_refused() {
    let mut world = World::default();
    let mut scored = programs("scored", 0..3);
    for (_, canonical) in &mut scored.trials {
        *canonical = canonical
            .replace(r#""run":["./train"],"#, r#""run":["./train"],"score":{"goal":"min","name":"MAE"},"#);
    }
    world.submit(scored);
    join_offering(&mut world, "able", 3);
    let leases = world.leases("able", 3);
    let scale = |goal| Scale { goal, high: None, low: None, name: "MAE".into() };
    let of = |score: Option<Scale>| FoldResult {
        version: if score.is_some() { 2 } else { 1 },
        numerics: 0,
        score,
        confusion: Vec::new(),
        ..example(0.5)
    };
    for (lease, wrong) in leases.iter().zip([None, Some(scale(Goal::Max))]) {
        let answer = world.report_result("able", lease.fold, lease.attempt, of(wrong));
        let ResultAnswer::Refused(why) = answer else { panic!("{answer:?}") };
        assert!(why.to_string().contains("those of its trial MAE, goal min, any number"), "{why}");
        assert_eq!(world.state(lease.fold), FoldState::Pending);
    }
    let answer = world.report_result("able", leases[2].fold, leases[2].attempt, of(Some(scale(Goal::Min))));
    assert!(matches!(answer, ResultAnswer::Accepted), "{answer:?}");
}
