//! Stories of the autoscaler's decisions, and properties of it in a small played cluster: never above the bounds, demand 0
//! leaves nothing waiting, forgetting everything at any moment changes nothing, and nothing is submitted blindly.

use proptest::prelude::*;

use super::super::jobs::{Ended, SubmitRefusal};
use super::*;

fn pool() -> Pool {
    Pool {
        name: "gpu".to_owned(),
        max_workers: 6,
        max_waiting: 4,
        device: "cuda".to_owned(),
        memory: Some(24 << 30),
        slots: None,
        lifetime: 3_600,
        pin: "-".to_owned(),
    }
}

fn shape(folds: u64, free_slots: u64) -> wire::Shape {
    wire::Shape { device: "any".to_owned(), resumable: true, folds, free_slots, ..Default::default() }
}

fn job(number: u32, standing: JobState) -> SlurmJob {
    let (id, node) = (JobId(format!("{number}_0")), format!("n{}", number % 3));
    let (name, comment, reason) = (pool().job_name(), pool().comment(), String::new());
    SlurmJob { id, standing, node, name, comment, reason }
}

/// A decision with one slot a worker.
fn look(
    now: u64,
    demand: &[wire::Shape],
    jobs: &[SlurmJob],
    joined: &[u32],
    memory: &mut Memory,
) -> Decision {
    let joined = joined.iter().map(|number| format!("slurm:{number}_0")).collect();
    decide(&pool(), SlurmLook { now, demand, jobs: Some(jobs), joined: &joined, slots: Some(1) }, memory)
}

#[test]
fn as_many_workers_come_as_folds_have_no_slot_within_the_bounds() {
    let mut memory = Memory::default();
    let submit = |count| Some(SlurmAct::Submit(count));
    assert_eq!(look(0, &[shape(3, 1)], &[], &[], &mut memory).act, submit(2));
    assert_eq!(look(0, &[shape(50, 0)], &[], &[], &mut memory).act, submit(4), "--max-waiting");
    let jobs = [1, 2, 3, 4, 5].map(|number| job(number, JobState::Alive));
    assert_eq!(look(0, &[shape(50, 0)], &jobs, &[1, 2, 3], &mut memory).act, submit(1), "--max-workers");
    let starting = look(0, &[shape(2, 0)], &jobs[..2], &[], &mut memory);
    assert_eq!(starting, nothing("2 slots are wanted for 2 folds; 2 workers are on their way"));
    let idle = look(0, &[shape(2, 2)], &jobs[..2], &[1, 2], &mut memory);
    assert_eq!(idle, nothing("2 folds wait and as many slots are free"));
}

#[test]
fn before_a_worker_has_said_how_many_slots_it_has_one_is_tried() {
    let (mut memory, joined) = (Memory::default(), BTreeSet::new());
    let mut seen =
        SlurmLook { now: 0, demand: &[shape(50, 0)], jobs: Some(&[]), joined: &joined, slots: None };
    assert_eq!(decide(&pool(), seen, &mut memory).act, Some(SlurmAct::Submit(1)));
    seen.slots = Some(8);
    assert_eq!(
        decide(&pool(), seen, &mut memory).act,
        Some(SlurmAct::Submit(4)),
        "seven, of which four may wait"
    );
}

#[test]
fn folds_that_cannot_run_there_start_nothing_and_people_read_why() {
    let mut memory = Memory::default();
    let cpu = wire::Shape { device: "cpu".to_owned(), ..shape(2, 0) };
    let large = wire::Shape { memory: 80 << 30, ..shape(3, 0) };
    let long = wire::Shape { p90_seconds: Some(7_200), resumable: false, ..shape(4, 0) };
    let moves = wire::Shape { resumable: true, ..long.clone() };
    let why = look(0, &[cpu, large, long], &[], &[], &mut memory);
    let expected = "no fold waits that this pool could train; 2 others ask for another kind of device; 3 others need more \
                    memory than its devices have; 4 others take longer than its workers live (raise --time)";
    assert_eq!(why, nothing(expected));
    assert_eq!(look(0, &[moves], &[], &[], &mut memory).act, Some(SlurmAct::Submit(4)));
}

#[test]
fn what_waits_in_vain_is_cancelled_at_the_second_look_and_what_runs_never_is() {
    let mut memory = Memory::default();
    let jobs = [job(1, JobState::Alive), job(2, JobState::Waiting), job(3, JobState::Waiting)];
    assert_eq!(look(0, &[shape(2, 0)], &jobs, &[], &mut memory).act, None);
    let cancel = |ids: &[u32]| {
        Some(SlurmAct::CancelPending(ids.iter().map(|number| job(*number, JobState::Waiting).id).collect()))
    };
    assert_eq!(look(30, &[shape(2, 0)], &jobs, &[], &mut memory).act, cancel(&[3]), "the newest");
    assert_eq!(look(60, &[], &jobs, &[], &mut memory).act, None);
    assert_eq!(look(90, &[], &jobs, &[], &mut memory).act, cancel(&[2, 3]));
    assert_eq!(look(120, &[], &jobs[..1], &[], &mut memory).act, None);
    assert_eq!(look(150, &[], &jobs[..1], &[], &mut memory).act, None);
}

#[test]
fn trouble_that_passes_is_waited_for_longer_and_longer_and_lasting_trouble_pauses_with_slurms_words() {
    let (mut memory, demand) = (Memory::default(), [shape(3, 0)]);
    let busy = || Err(SubmitRefusal::Passing("Socket timed out".to_owned()));
    let mut now = 0;
    for pause in [10, 60, 300, 900, 3_600, 3_600] {
        memory.note_submission(now, 3, 0, busy());
        let why = look(now + pause - 1, &demand, &[], &[], &mut memory);
        assert_eq!(why, nothing("sbatch said: Socket timed out; it is asked again in 1 s"));
        now += pause;
        assert_eq!(look(now, &demand, &[], &[], &mut memory).act, Some(SlurmAct::Submit(3)));
    }
    memory.note_submission(
        now,
        3,
        0,
        Err(SubmitRefusal::Lasting("Invalid partition name specified".to_owned())),
    );
    let why = look(now + 999_999, &demand, &[], &[], &mut memory).why;
    assert!(why.starts_with("paused: Invalid partition name specified;"), "{why}");
}

#[test]
fn a_full_queue_is_tried_with_one_job_when_one_ends() {
    let (mut memory, demand) = (Memory::default(), [shape(6, 0)]);
    let jobs = [job(1, JobState::Alive), job(2, JobState::Alive)];
    memory.note_submission(0, 4, 2, Err(SubmitRefusal::Full("job submit limit".to_owned())));
    let why = look(60, &demand, &jobs, &[1, 2], &mut memory);
    assert_eq!(
        why,
        nothing("the queue is full (job submit limit); the next try is when a job ends or in 240 s")
    );
    assert_eq!(look(60, &demand, &jobs[..1], &[1], &mut memory).act, Some(SlurmAct::Submit(1)));
    assert_eq!(look(300, &demand, &jobs, &[1, 2], &mut memory).act, Some(SlurmAct::Submit(1)));
}

#[test]
fn nodes_where_workers_do_not_start_are_left_out_and_two_of_them_pause() {
    let (mut memory, demand, nobody) = (Memory::default(), [shape(9, 0)], BTreeSet::new());
    let start_badly = |memory: &mut Memory, number, by_itself| {
        let begun = [job(number, JobState::Alive)];
        assert_eq!(memory.note_queue(0, &begun, &nobody), []);
        let ended = memory.note_queue(30, &[], &nobody);
        assert_eq!(ended, [begun[0].id.clone()]);
        memory.note_end(30, &begun[0].id, &Ended { node: begun[0].node.clone(), seconds: 2, by_itself });
    };
    start_badly(&mut memory, 1, false);
    assert_eq!(memory.excluded(), Vec::<String>::new(), "whoever was preempted had no bad start");
    start_badly(&mut memory, 1, true);
    start_badly(&mut memory, 4, true);
    assert_eq!(memory.excluded(), ["n1"]);
    assert_eq!(
        look(60, &demand, &[], &[], &mut memory).act,
        Some(SlurmAct::Submit(4)),
        "one node may be bad"
    );
    start_badly(&mut memory, 2, true);
    let why = look(60, &demand, &[], &[], &mut memory).why;
    assert!(
        why.starts_with("paused: 3 jobs in a row ended within a minute without a worker, on n1, n2;"),
        "{why}"
    );
}

#[test]
fn a_job_whose_worker_has_joined_had_no_bad_start_however_it_ends() {
    let (mut memory, begun) = (Memory::default(), [job(1, JobState::Alive)]);
    memory.note_queue(0, &begun, &BTreeSet::from([begun[0].id.allocation()]));
    assert_eq!(memory.note_queue(30, &[], &BTreeSet::new()), []);
}

#[test]
fn jobs_that_began_and_ended_between_two_looks_had_a_bad_start_too() {
    let (mut memory, demand, nobody) = (Memory::default(), [shape(4, 0)], BTreeSet::new());
    memory.note_submission(0, 4, 0, Ok("7".to_owned()));
    assert_eq!(memory.note_queue(4, &[], &nobody), [], "squeue may be late");
    assert_eq!(look(4, &demand, &[], &[], &mut memory).act, None, "they count as waiting");
    let ended = memory.note_queue(5, &[], &nobody);
    assert_eq!(ended.len(), 4);
    for (number, id) in ended.iter().enumerate() {
        memory.note_end(5, id, &Ended { node: format!("n{}", number % 2), seconds: 0, by_itself: true });
    }
    let why = look(60, &demand, &[], &[], &mut memory).why;
    assert!(
        why.starts_with("paused: 4 jobs in a row ended within a minute without a worker, on n0, n1;"),
        "{why}"
    );
}

/// A node that ends every job at once is seen for what it is, though other tasks of the same array run, and though a job waits at one
/// look and has ended at the next.
#[test]
fn tasks_that_ended_between_two_looks_had_a_bad_start_while_others_of_their_array_run() {
    let (mut memory, nobody) = (Memory::default(), BTreeSet::new());
    let task = |task: u32, standing| SlurmJob { id: JobId(format!("7_{task}")), ..job(7, standing) };
    memory.note_submission(0, 4, 0, Ok("7".to_owned()));
    let shown = [task(2, JobState::Alive), task(3, JobState::Waiting)];
    let ended = memory.note_queue(1, &shown, &nobody);
    assert_eq!(ended, ["7_0", "7_1"].map(|id| JobId(id.to_owned())));
    assert_eq!(memory.note_queue(2, &shown, &nobody), [], "each is told once");
    assert_eq!(memory.note_queue(3, &shown[..1], &nobody), [shown[1].id.clone()]);
    let joined = BTreeSet::from([shown[0].id.allocation()]);
    assert_eq!(memory.note_queue(4, &shown[..1], &joined), []);
    assert_eq!(memory.note_queue(5, &[], &nobody), []);
    memory.note_end(5, &ended[0], &Ended { node: "n1".to_owned(), seconds: 0, by_itself: true });
    assert_eq!(memory.excluded(), ["n1"]);
}

/// One moment of a played cluster.
#[derive(Debug, Clone)]
enum Step {
    /// The coordinator wants so many slots.
    Want(u64),
    /// So many jobs begin.
    Begin(usize),
    /// So many workers join.
    Join(usize),
    /// So many jobs end.
    End(usize),
    /// `squeue` does not answer.
    Blind,
    /// The autoscaler is killed and started again.
    Restart,
    /// `sbatch` fails.
    Refuse(u8),
    /// Time passes.
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12u64).prop_map(Step::Want),
        (1..4usize).prop_map(Step::Begin),
        (1..4usize).prop_map(Step::Join),
        (1..3usize).prop_map(Step::End),
        Just(Step::Blind),
        Just(Step::Restart),
        (0..2u8).prop_map(Step::Refuse),
        (1..90u64).prop_map(Step::Pass),
    ]
}

#[derive(Default)]
struct Cluster {
    now: u64,
    wanted: u64,
    jobs: Vec<SlurmJob>,
    joined: BTreeSet<String>,
    arrays: u32,
    refuse: Option<SubmitRefusal>,
    memory: Memory,
    /// The mistake of taking no answer for an empty queue.
    credulous: bool,
}

impl Cluster {
    fn step(&mut self, step: &Step) {
        let waiting = |job: &&mut SlurmJob| job.standing == JobState::Waiting;
        match step {
            Step::Want(slots) => self.wanted = *slots,
            Step::Begin(count) => {
                self.jobs
                    .iter_mut()
                    .filter(waiting)
                    .take(*count)
                    .for_each(|job| job.standing = JobState::Alive);
            }
            Step::Join(count) => {
                let begun = self.jobs.iter().filter(|job| job.standing == JobState::Alive);
                let new = begun.map(|job| job.id.allocation()).filter(|at| !self.joined.contains(at));
                let new: Vec<String> = new.take(*count).collect();
                self.joined.extend(new);
            }
            Step::End(count) => {
                let ended: Vec<SlurmJob> = self.jobs.drain(..(*count).min(self.jobs.len())).collect();
                ended.iter().for_each(|job| _ = self.joined.remove(&job.id.allocation()));
            }
            Step::Restart => self.memory = Memory::default(),
            Step::Refuse(0) => self.refuse = Some(SubmitRefusal::Passing("busy".to_owned())),
            Step::Refuse(_) => self.refuse = Some(SubmitRefusal::Full("full".to_owned())),
            Step::Pass(seconds) => self.now += seconds,
            Step::Blind => {}
        }
        self.look(matches!(step, Step::Blind));
    }

    fn look(&mut self, blind: bool) {
        let free = (self.joined.len() as u64).min(self.wanted);
        let demand = [shape(self.wanted, free)];
        let jobs = self.jobs.clone();
        if !blind {
            self.memory.note_queue(self.now, &jobs, &self.joined);
        }
        let empty: &[SlurmJob] = &[];
        let seen = if blind { self.credulous.then_some(empty) } else { Some(&jobs[..]) };
        let seen =
            SlurmLook { now: self.now, demand: &demand, jobs: seen, joined: &self.joined, slots: Some(1) };
        let decision = decide(&pool(), seen, &mut self.memory);
        assert!(!decision.why.is_empty(), "there is always a reason");
        match decision.act {
            None => {}
            Some(act) if blind && !self.credulous => panic!("{act:?} on a blind look"),
            Some(SlurmAct::Submit(count)) => self.submit(count, free),
            Some(SlurmAct::CancelPending(ids)) => {
                let running = |job: &SlurmJob| job.standing == JobState::Alive && ids.contains(&job.id);
                assert!(!self.jobs.iter().any(running), "what runs is never cancelled");
                self.jobs.retain(|job| !ids.contains(&job.id));
            }
        }
        let waiting = self.jobs.iter().filter(|job| job.standing == JobState::Waiting).count();
        assert!(self.jobs.len() <= pool().max_workers as usize, "--max-workers");
        assert!(waiting <= pool().max_waiting as usize, "--max-waiting");
    }

    fn submit(&mut self, count: u32, free: u64) {
        let coming = self.jobs.len() - self.joined.len();
        assert!(coming as u64 + u64::from(count) <= self.wanted - free, "more than there are folds for");
        let (now, jobs) = (self.now, self.jobs.len());
        if let Some(refusal) = self.refuse.take() {
            return self.memory.note_submission(now, count, jobs, Err(refusal));
        }
        self.arrays += 1;
        let array = 100 + self.arrays;
        for task in 0..count {
            let id = JobId(format!("{array}_{task}"));
            self.jobs.push(SlurmJob { id, ..job(0, JobState::Waiting) });
        }
        self.memory.note_submission(now, count, jobs, Ok(array.to_string()));
    }
}

/// The bounds are what would be broken, and that is noticed.
#[test]
fn whoever_takes_no_answer_for_an_empty_queue_is_caught() {
    let story = [Step::Want(4), Step::Pass(1), Step::Begin(4), Step::Pass(90), Step::Blind, Step::Pass(1)];
    let played = |credulous| {
        let mut cluster = Cluster { credulous, ..Cluster::default() };
        story.iter().for_each(|step| cluster.step(step));
        cluster.jobs.len()
    };
    assert_eq!(played(false), 4);
    let caught = std::panic::catch_unwind(|| played(true)).unwrap_err();
    let words = caught.downcast_ref::<&str>().copied().unwrap_or_default();
    assert_eq!(words, "more than there are folds for");
}

proptest! {
    #[test]
    fn whatever_happens_the_bounds_hold_and_without_demand_nothing_is_left_waiting(
        steps in prop::collection::vec(step(), 1..60)
    ) {
        let mut cluster = Cluster::default();
        steps.iter().for_each(|step| cluster.step(step));
        cluster.step(&Step::Want(0));
        for _ in 0..3 {
            cluster.step(&Step::Pass(61));
        }
        prop_assert!(cluster.jobs.iter().all(|job| job.standing != JobState::Waiting), "{:?}", cluster.jobs);
    }

    #[test]
    fn demand_that_stays_is_met_wherever_the_autoscaler_was_killed(
        steps in prop::collection::vec(step(), 0..20), wanted in 1..6u64
    ) {
        let mut cluster = Cluster::default();
        steps.iter().for_each(|step| cluster.step(step));
        cluster.step(&Step::Want(wanted));
        for _ in 0..8 {
            cluster.step(&Step::Restart);
            cluster.step(&Step::Pass(61));
            cluster.step(&Step::Begin(9));
            cluster.step(&Step::Join(9));
        }
        prop_assert!(cluster.joined.len() as u64 >= wanted, "{:?}", cluster.jobs);
    }
}
