//! A device slot: one long-lived trainer child process. A crash, a CUDA error or an out-of-memory kill takes
//! the child, never the heartbeat; the slot starts a new child for the next fold.

use std::path::PathBuf;
use std::pin::Pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use togl_agent::clock::{AgentClock, later};
use togl_agent::crash;
use togl_agent::library::Library;
use togl_agent::slots::{Assignment, EpochReport, Latest, SlotEvent, SlotOrder, SlotReport};
use togl_learning::error::is_out_of_memory;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::time::{MissedTickBehavior, Sleep};

use crate::background::{self, Pauses};
use crate::data::Data;
use crate::fold::Keeping;
use crate::moving::{self, Moving};
use crate::program::{Files, Setup};
use crate::protocol::{self, Command as Ask, Request, TrainerEvent};

/// "After every epoch" means: asked for so often that hardly an epoch is shorter.
const LEAST_PAUSE: Duration = Duration::from_millis(20);

/// How long a trainer may take to end the program that it runs.
const TO_END: Duration = Duration::from_secs(3);

/// How a trainer is started, and what is the same for all folds it trains.
#[derive(Debug, Clone)]
pub struct TrainerProgram {
    /// The program.
    pub path: PathBuf,
    /// Threads of its training.
    pub threads: u32,
    /// Where data sets come from.
    pub data: Data,
    /// What folds leave on disk.
    pub keeping: Keeping,
    /// How long a fold may train without a checkpoint.
    pub save_every: Duration,
    /// How checkpoints move to and from the coordinator; none if they stay here.
    pub moving: Option<Moving>,
    /// When to pause for others; none if it never steps back.
    pub pauses: Option<Pauses>,
    /// How programs of users are run, and who fetches their files; none if they are not run.
    pub programs: Option<(Setup, Library)>,
}

impl TrainerProgram {
    fn request(&self, assignment: Assignment) -> Request {
        let Assignment { fold, attempt, trial, device, time_limit: _, held: _ } = assignment;
        let (data, keeping) = (self.data.clone(), self.keeping.clone());
        let programs = self.programs.as_ref().map(|(setup, _)| setup.clone());
        Request { fold, attempt, config: trial.canonical(), device, data, keeping, programs }
    }
}

/// Runs a slot until its orders end; the trainer dies with it.
pub async fn run(
    slot: usize,
    program: TrainerProgram,
    mut orders: mpsc::Receiver<SlotOrder>,
    events: mpsc::Sender<SlotEvent>,
    latest: watch::Sender<Latest>,
) {
    let mut trainer = None;
    while let Some(order) = orders.recv().await {
        let SlotOrder::Train(assignment) = order else { continue }; // about a fold that has just ended
        let (fold, attempt) = (assignment.fold, assignment.attempt);
        let reporter = Reporter { slot, fold, attempt, events: events.clone(), latest: latest.clone() };
        let last = match take_or_start(&mut trainer, &program) {
            Ok(process) => train(process, &program, *assignment, &mut orders, &reporter).await,
            Err(error) => Ended::Broken(Failure::new(
                FailureClass::Error,
                format!("cannot start the trainer {}: {error}", program.path.display()),
            )),
        };
        let report = match last {
            Ended::Clean(SlotReport::Failed(failure)) if failure.class == FailureClass::Preempted => {
                kill(trainer.take()).await; // it was told to leave, by us or by a signal
                if let Some(moving) = &program.moving {
                    // Before anybody hears that the fold is free.
                    moving.bring(fold, attempt, &|line| reporter.log(line)).await;
                }
                SlotReport::Failed(failure)
            }
            Ended::Clean(report) => report,
            Ended::Broken(failure) => {
                kill(trainer.take()).await;
                SlotReport::Failed(failure)
            }
            Ended::Abandoned => {
                kill(trainer.take()).await;
                SlotReport::Abandoned
            }
        };
        reporter.send(report).await;
    }
    kill(trainer).await;
}

/// What is said of one attempt, and to whom.
#[derive(Clone)]
pub struct Reporter {
    slot: usize,
    /// Which fold.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    events: mpsc::Sender<SlotEvent>,
    latest: watch::Sender<Latest>,
}

impl Reporter {
    /// Waits until the agent has room for what must not be lost.
    async fn send(&self, report: SlotReport) {
        let _ = self.events.send(self.event(report)).await; // the agent is gone: nobody is left to tell
    }

    /// A line of the log, dropped if the agent is too busy for it: the trainer must never wait for a reader.
    pub fn log(&self, line: String) {
        let _ = self.events.try_send(self.event(SlotReport::Log(line)));
    }

    fn epoch(&self, report: EpochReport) {
        self.latest.send_replace(Some((self.fold, self.attempt, report)));
    }

    fn event(&self, report: SlotReport) -> SlotEvent {
        SlotEvent { slot: self.slot, fold: self.fold, attempt: self.attempt, report }
    }
}

enum Ended {
    /// The trainer said so itself and lives on.
    Clean(SlotReport),
    /// The trainer must be replaced.
    Broken(Failure),
    /// Ordered; the trainer must be replaced, because training cannot be interrupted otherwise.
    Abandoned,
}

struct Trainer {
    child: Child,
    /// Closed, it ends by itself.
    requests: Option<ChildStdin>,
    /// The processes of the program that it runs.
    group: Option<i32>,
    events: Lines<BufReader<ChildStdout>>,
    log: Lines<BufReader<tokio::process::ChildStderr>>,
}

fn take_or_start<'a>(
    trainer: &'a mut Option<Trainer>,
    program: &TrainerProgram,
) -> std::io::Result<&'a mut Trainer> {
    if let Some(Trainer { child, .. }) = trainer
        && child.try_wait()?.is_some()
    {
        *trainer = None;
    }
    match trainer {
        Some(running) => Ok(running),
        None => Ok(trainer.insert(start(program)?)),
    }
}

fn start(program: &TrainerProgram) -> std::io::Result<Trainer> {
    let threads = program.threads.to_string();
    let mut command = Command::new(&program.path);
    if program.pauses.is_some() {
        command.args(["trainer", "--background"]);
    } else {
        command.arg("trainer").process_group(0); // Ctrl-C reaches the agent, which decides
    }
    let mut child = command
        .args(["--threads", &threads])
        // Idle OpenMP threads must not spin beside the trainer's own.
        .env("OMP_NUM_THREADS", &threads)
        .env("OMP_WAIT_POLICY", "passive")
        .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID") // devices have the numbers that the driver gives them
        .env_remove("TOGL_TOKEN")
        .env_remove(crash::SETTING)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let missing = || std::io::Error::other("no pipe to the trainer");
    Ok(Trainer {
        requests: Some(child.stdin.take().ok_or_else(missing)?),
        group: None,
        events: BufReader::new(child.stdout.take().ok_or_else(missing)?).lines(),
        log: BufReader::new(child.stderr.take().ok_or_else(missing)?).lines(),
        child,
    })
}

/// Ends a trainer. One that runs a program is first asked to end it, which it alone can do to the last process.
async fn kill(trainer: Option<Trainer>) {
    let Some(mut trainer) = trainer else { return };
    if trainer.group.is_some() {
        trainer.requests = None;
        let _ = tokio::time::timeout(TO_END, trainer.child.wait()).await;
    }
    let _ = trainer.child.kill().await; // already dead is as good
    trainer.signal_group(libc::SIGKILL);
}

impl Trainer {
    fn signal_group(&self, signal: libc::c_int) {
        if let Some(group) = self.group.filter(|group| *group > 1) {
            // SAFETY: takes plain numbers; a group that is gone is as good.
            let _ = unsafe { libc::kill(-group, signal) };
        }
    }
}

#[expect(clippy::too_many_lines, reason = "one loop that hears everybody")]
async fn train(
    trainer: &mut Trainer,
    program: &TrainerProgram,
    assignment: Assignment,
    orders: &mut mpsc::Receiver<SlotOrder>,
    reporter: &Reporter,
) -> Ended {
    if let Some(ended) = fetch(program, &assignment, orders, reporter).await {
        return ended;
    }
    if let Some(ended) = fetch_files(program, &assignment, orders, reporter).await {
        return ended;
    }
    let limit = assignment.time_limit.unwrap_or(Duration::MAX);
    let ask = Ask::Train(Box::new(program.request(assignment)));
    if tell(trainer, &ask).await.is_err() {
        return Ended::Broken(post_mortem(trainer, "").await);
    }
    let mut running = Running::new(limit);
    let mut pauses = Pauses::from_now(program.pauses.as_ref());
    let mut save = tokio::time::interval(program.save_every.max(LEAST_PAUSE));
    save.set_missed_tick_behavior(MissedTickBehavior::Delay);
    save.reset(); // the first one is due after the pause, not at once
    let mut bringer = program.moving.as_ref().map(|moving| moving.begin(reporter));
    let (mut last_words, mut log_open) = (String::new(), true);
    loop {
        tokio::select! {
            // In this order: what a trainer noted before its last event belongs to the log of this attempt.
            biased;
            line = trainer.log.next_line(), if log_open => match line {
                Ok(Some(line)) => { last_words.clone_from(&line); reporter.log(line) }
                _ => log_open = false,
            },
            line = trainer.events.next_line() => match line {
                Ok(Some(line)) => match understand(&line, reporter) {
                    // Fetching the data is not the fold's fault.
                    Step::Started => running.allow(limit),
                    Step::Runs(group) => trainer.group = Some(group),
                    Step::Ended(ended) => { trainer.group = None; return ended }
                    Step::Saved => if let Some(bringer) = &mut bringer { bringer.saved() },
                    Step::Told => {}
                },
                _ => return Ended::Broken(post_mortem(trainer, &last_words).await),
            },
            order = orders.recv() => match order {
                Some(SlotOrder::Abandon(fold, attempt)) if (fold, attempt) != (reporter.fold, reporter.attempt) => {}
                Some(SlotOrder::Stop) => {
                    pauses = None; // only who runs can save
                    running.pause(trainer, false);
                    drop(tell(trainer, &Ask::Stop).await);
                }
                Some(SlotOrder::Bring) => if let Some(bringer) = &mut bringer {
                    bringer.want_anew();
                    // One that is paused is asked when it goes on, as often as it always is.
                    if !running.is_paused() { drop(tell(trainer, &Ask::Save).await) }
                },
                _ => return Ended::Abandoned, // ordered, or the agent is gone
            },
            pause = background::news(&mut pauses) => running.pause(trainer, pause),
            // A trainer that cannot be told any more has died, and its events end too.
            _ = save.tick(), if !running.is_paused() => drop(tell(trainer, &Ask::Save).await),
            () = moving::due(&mut bringer), if !running.is_paused() => drop(tell(trainer, &Ask::Save).await),
            () = running.timer.as_mut(), if !running.is_paused() => return Ended::Broken(over_time(limit)),
        }
    }
}

/// Fetches what the coordinator holds of the fold, if that is further than what is here. Says how the attempt has ended if it
/// was told to end meanwhile.
async fn fetch(
    program: &TrainerProgram,
    assignment: &Assignment,
    orders: &mut mpsc::Receiver<SlotOrder>,
    reporter: &Reporter,
) -> Option<Ended> {
    let (moving, held) = program.moving.as_ref().zip(assignment.held)?;
    let say = |line| reporter.log(line);
    let fetching = moving.fetch(assignment.fold, assignment.attempt, held, &say);
    meanwhile(
        async {
            fetching.await;
            None
        },
        orders,
        reporter,
    )
    .await
}

/// Fetches the files of the trial's program, if they are not here. Says how the attempt has ended if that is not to be.
async fn fetch_files(
    program: &TrainerProgram,
    assignment: &Assignment,
    orders: &mut mpsc::Receiver<SlotOrder>,
    reporter: &Reporter,
) -> Option<Ended> {
    let digest = assignment.trial.program.as_ref()?.code.bundle.clone()?;
    let (setup, library) = program.programs.as_ref()?; // without, the trainer says so
    let files = Files::of(&setup.folder);
    let fetching = async {
        let fetched = obtain(files, library, digest).await;
        let failure = |error| {
            Failure::new(FailureClass::Data, format!("the files of the program are not here: {error}"))
        };
        fetched.err().map(|error| Ended::Clean(SlotReport::Failed(failure(error))))
    };
    meanwhile(fetching, orders, reporter).await
}

async fn obtain(files: Files, library: &Library, digest: String) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let (here, wanted) = (files.clone(), digest.clone());
    let found = tokio::task::spawn_blocking(move || here.get(&wanted).is_some()).await;
    if found.map_err(|error| text(&error))? {
        return Ok(());
    }
    let bytes = library.fetch(&digest).await.map_err(|error| text(&error))?;
    let put = tokio::task::spawn_blocking(move || files.put(&digest, &bytes)).await;
    put.map_err(|error| text(&error))?.map_err(|error| text(&error))
}

/// Does something before the trainer begins, unless the attempt is told to end meanwhile.
async fn meanwhile(
    work: impl Future<Output = Option<Ended>>,
    orders: &mut mpsc::Receiver<SlotOrder>,
    reporter: &Reporter,
) -> Option<Ended> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            ended = &mut work => return ended,
            order = orders.recv() => match order {
                Some(SlotOrder::Abandon(fold, attempt)) if (fold, attempt) != (reporter.fold, reporter.attempt) => {}
                Some(SlotOrder::Bring) => {} // there is nothing yet
                Some(SlotOrder::Stop) => {
                    let failure = Failure::new(FailureClass::Preempted, "stopped before it had begun");
                    return Some(Ended::Clean(SlotReport::Failed(failure)));
                }
                _ => return Some(Ended::Abandoned),
            },
        }
    }
}

/// How long a fold may still train. The time does not run while its trainer is paused.
struct Running {
    left: Duration,
    since: Option<AgentClock>,
    timer: Pin<Box<Sleep>>,
}

impl Running {
    fn new(left: Duration) -> Self {
        Self { left, since: Some(AgentClock::start()), timer: Box::pin(tokio::time::sleep(left)) }
    }

    /// This much from now on.
    fn allow(&mut self, left: Duration) {
        self.left = left;
        self.since = self.since.map(|_| AgentClock::start());
        self.timer.as_mut().reset(later(left));
    }

    fn is_paused(&self) -> bool {
        self.since.is_none()
    }

    /// Stops the trainer, or lets it go on with what is left of its time.
    fn pause(&mut self, trainer: &Trainer, pause: bool) {
        let signal = if pause { libc::SIGSTOP } else { libc::SIGCONT };
        if let Some(process) = trainer.child.id() {
            // SAFETY: takes plain numbers; a child that was not waited for keeps its number to itself.
            let _ = unsafe { libc::kill(process.cast_signed(), signal) }; // already dead is as good
        }
        trainer.signal_group(signal);
        let ran = self.since.map_or(0.0, |since| since.seconds());
        self.since = (!pause).then(AgentClock::start);
        self.allow(self.left.saturating_sub(Duration::from_secs_f64(ran)));
    }
}

async fn tell(trainer: &mut Trainer, ask: &Ask) -> std::io::Result<()> {
    let closed = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    trainer.requests.as_mut().ok_or_else(closed)?.write_all(protocol::line(ask)?.as_bytes()).await
}

fn over_time(limit: Duration) -> Failure {
    let message = format!("took longer than {} s; raise `limits: {{fold_seconds: ...}}`", limit.as_secs());
    Failure::new(FailureClass::TimeLimit, message)
}

/// What an event of the trainer means for its slot.
enum Step {
    /// The data is there: time counts from now on.
    Started,
    /// A program runs, as this group.
    Runs(i32),
    /// A checkpoint was written.
    Saved,
    /// Passed on.
    Told,
    /// The fold is over.
    Ended(Ended),
}

fn understand(line: &str, reporter: &Reporter) -> Step {
    match serde_json::from_str(line) {
        Ok(TrainerEvent::Started) => Step::Started,
        Ok(TrainerEvent::Epoch(progress)) => {
            reporter.epoch(progress);
            Step::Told
        }
        Ok(TrainerEvent::Runs(group)) => Step::Runs(group),
        Ok(TrainerEvent::Saved) => Step::Saved,
        Ok(TrainerEvent::Done(result)) => Step::Ended(Ended::Clean(SlotReport::Done(result))),
        Ok(TrainerEvent::Failed(failure)) => Step::Ended(Ended::Clean(SlotReport::Failed(failure))),
        Err(_) => {
            // A library printed to standard output; it belongs to the log.
            reporter.log(line.to_owned());
            Step::Told
        }
    }
}

/// What to say of a trainer that is no more.
async fn post_mortem(trainer: &mut Trainer, last_words: &str) -> Failure {
    let waited = tokio::time::timeout(Duration::from_secs(5), trainer.child.wait()).await;
    let mut words = last_words.to_owned();
    while let Ok(Ok(Some(line))) =
        tokio::time::timeout(Duration::from_millis(200), trainer.log.next_line()).await
    {
        words = line;
    }
    ending(waited.ok().and_then(Result::ok), &words)
}

/// The failure of a trainer that ended with this status after these words.
fn ending(status: Option<ExitStatus>, words: &str) -> Failure {
    let mut message = format!("the trainer died: {}", describe(status));
    if !words.is_empty() {
        message = format!("{message}; its last words: {words}");
    }
    let class = if is_out_of_memory(words) { FailureClass::OutOfMemory } else { FailureClass::Crashed };
    Failure::new(class, message)
}

fn describe(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Some(status) if status.signal() == Some(9) => {
            "killed (signal 9); if nobody did it, the machine ran out of memory".to_owned()
        }
        Some(status) => status.to_string(),
        None => "it closed its output but did not exit".to_owned(),
    }
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
