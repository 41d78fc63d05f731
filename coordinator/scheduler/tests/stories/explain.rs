//! Why is my fold not running? The nearest obstacle, in words.

use togl_scheduler::{Ending, Event, Reason};
use togl_sweeps::{Attempt, FailureClass};

use crate::world::{World, fold, submission, sweep, worker};

fn reason(world: &World, n: u32) -> Reason {
    world.scheduler.explain(world.now, &fold(n)).unwrap().reason
}

#[test]
fn each_obstacle_is_named_in_turn() {
    let mut world = World::default();
    world.submit(submission("s", 0..3));
    assert_eq!(reason(&world, 0), Reason::NoWorkers);
    world.join("w", "h", 1);
    assert_eq!(reason(&world, 2), Reason::Queued { ahead: 2 });
    let lease = world.lease("w");
    assert_eq!(reason(&world, 0), Reason::Running { worker: worker("w"), attempt: Attempt(1) });
    assert_eq!(reason(&world, 1), Reason::AllBusy { slots: 1 });
    world.fail("w", &lease, FailureClass::NotFinite);
    world.pass(1_000);
    let waits = Reason::WaitsForAnother { worker: worker("w"), milliseconds: 59_000 };
    assert_eq!(reason(&world, 0), waits);
    assert!(waits.to_string().ends_with("w may try again in 59 s"), "{waits}");
    world.tell(Event::Drain { worker: worker("w") });
    assert_eq!(reason(&world, 0), Reason::NoWorkerTakesMore);
    world.tell(Event::Pause { sweep: sweep("s") });
    assert_eq!(reason(&world, 0), Reason::Paused { note: None });
    world.cancel("s");
    assert_eq!(reason(&world, 0), Reason::NotWanted);
}

#[test]
fn what_is_over_is_said_to_be_over_with_its_attempts() {
    let mut world = World::with_sweep(2, 2);
    let leases = world.leases("w", 2);
    world.report("w", &leases[0], 0.5);
    world.fail("w", &leases[1], FailureClass::Config);
    assert_eq!(reason(&world, 0), Reason::Finished { attempt: Attempt(1) });
    let explanation = world.scheduler.explain(world.now, &fold(1)).unwrap();
    let ending = Some(Ending::Failed(FailureClass::Config));
    assert_eq!(explanation.attempts, [(Attempt(1), worker("w"), ending)]);
    assert!(explanation.reason.to_string().starts_with("it failed: config: a config on purpose"));
    assert_eq!(world.scheduler.explain(world.now, &fold(50)), None);
}
