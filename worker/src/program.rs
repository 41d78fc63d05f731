//! A fold that a program of the user's own trains: lays out its folder, runs it as a group of processes, hears what it says,
//! watches what it takes, and makes the result. Whatever it does ends as a result or as a failure with a class: it is not
//! trusted to keep any promise. Decides nothing about folds; knows no tensors.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use togl_agent::clock::AgentClock;
use togl_agent::slots::EpochReport;
use togl_learning::Flow;
use togl_learning::error::is_out_of_memory;
use togl_sweeps::program::ProgramTrial;
use togl_sweeps::{Failure, FailureClass, FoldResult, TrialConfig};

use crate::protocol::{Request, TrainerEvent};
use crate::signals;

mod account;
mod checkpoint;
mod events;
mod group;
pub mod options;
mod place;
mod words;

pub use account::KnownData;
pub use checkpoint::epochs_of;
pub use group::end_all;
pub use place::Files;

use account::Account;
use events::ProgramEvent;
use group::ProcessGroup;
use place::ScratchFolder;
use words::Words;

/// How often the program is looked at while it says nothing.
const LOOK: Duration = Duration::from_millis(50);

/// The same once it has closed its events, which is what most do when they end.
const LOOK_SOON: Duration = Duration::from_millis(1);

/// Seconds between two looks at what it takes.
const WEIGH: f64 = 1.0;

/// Seconds that it may go on after it was told to stop; less than workers give their folds (`--grace`).
const PATIENCE: f64 = 6.0;

/// Seconds that it may go on after its result, or after it closed its events.
const TO_LEAVE: f64 = 10.0;

/// Bytes that it may print.
const MOST_OUTPUT: u64 = 256 << 20;

/// What a worker gives a program, and what it lets it take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// The worker's folder for programs.
    pub folder: PathBuf,
    /// What runs `python` and `python3`; none for what the path has.
    pub python: Option<PathBuf>,
    /// Bytes of memory of all its processes.
    pub memory: Option<u64>,
    /// Bytes of its scratch folder.
    pub disk: u64,
    /// Whether it is run by bubblewrap.
    pub sandbox: bool,
}

/// What is the same for the whole fold.
pub struct ProgramJob<'a> {
    /// What was asked for.
    pub request: &'a Request,
    /// The trial of it.
    pub trial: &'a TrialConfig,
    /// What the worker gives it.
    pub setup: &'a Setup,
    /// Where data sets are.
    pub data_dir: PathBuf,
    /// What is known of the data set.
    pub known: KnownData,
}

/// Runs the program of a fold to its end.
pub fn train(
    job: &ProgramJob<'_>,
    program: &ProgramTrial,
    say: &mut dyn FnMut(&TrainerEvent),
) -> Result<FoldResult, Failure> {
    let place = ScratchFolder::make(job, program).map_err(|error| {
        Failure::new(FailureClass::Error, format!("cannot make the folder of the program: {error}"))
    })?;
    let (mut group, heard, words) = ProcessGroup::start(job, program, &place)?;
    say(&TrainerEvent::Runs(group.id()));
    let mut run = Run {
        job,
        place: &place,
        account: Account::going_on(&place.resumed, job.trial.scale()),
        clock: AgentClock::start(),
        weighed: 0.0,
        peak: 0,
        stopping: None,
        closed: None,
        finished: None,
        saving: false,
    };
    let ended = run.follow(&mut group, &heard, &words, say);
    group.end(); // whatever is left of it, also what has outlived its parent
    let seconds = run.clock.seconds();
    let Run { account, peak, .. } = run;
    ended.and_then(|()| account.result(job, seconds, peak))
}

/// A running program.
struct Run<'a> {
    job: &'a ProgramJob<'a>,
    place: &'a ScratchFolder,
    account: Account,
    clock: AgentClock,
    /// When it was last looked at what it takes.
    weighed: f64,
    /// Most memory that was seen.
    peak: u64,
    /// Since when it has been told to stop.
    stopping: Option<f64>,
    /// Since when it has nothing more to say.
    closed: Option<f64>,
    /// Since when its result is there.
    finished: Option<f64>,
    /// It was asked to save and has not done so yet.
    saving: bool,
}

/// What comes from the program.
pub enum Heard {
    /// An event.
    Said(Box<ProgramEvent>),
    /// What is no event.
    Rubbish(String),
}

impl Run<'_> {
    /// Until there is a result, or a failure.
    fn follow(
        &mut self,
        group: &mut ProcessGroup,
        heard: &Receiver<Heard>,
        words: &Words,
        say: &mut dyn FnMut(&TrainerEvent),
    ) -> Result<(), Failure> {
        loop {
            let pause = if self.closed.is_some() { LOOK_SOON } else { LOOK };
            let quiet = match heard.recv_timeout(pause) {
                Ok(Heard::Said(event)) => {
                    self.hear(*event, say)?;
                    false
                }
                Ok(Heard::Rubbish(line)) => return Err(rubbish(&line)),
                Err(RecvTimeoutError::Timeout) => true,
                Err(RecvTimeoutError::Disconnected) => {
                    self.closed.get_or_insert_with(|| self.clock.seconds());
                    std::thread::sleep(LOOK_SOON);
                    true
                }
            };
            // Somebody whom it has left behind may hold its events open for ever.
            if quiet && let Some(status) = group.ended() {
                group.end(); // whoever it has left behind lets go of its events
                for said in rest(heard) {
                    match said {
                        Heard::Said(event) => self.hear(*event, say)?,
                        Heard::Rubbish(line) => return Err(rubbish(&line)),
                    }
                }
                return self.ending(status, words);
            }
            self.wishes(group);
            if self.is_late(words)? {
                return Ok(());
            }
            self.weigh(group, words)?;
        }
    }

    fn hear(&mut self, event: ProgramEvent, say: &mut dyn FnMut(&TrainerEvent)) -> Result<(), Failure> {
        if event.fold().is_some_and(|fold| fold != self.job.request.fold.to_string()) {
            let message = "the program speaks of another fold than the one that it was given";
            return Err(Failure::new(FailureClass::Error, message));
        }
        match event {
            ProgramEvent::Started { .. } => {}
            ProgramEvent::Epoch(line) => {
                let (done, of) = (line.epoch.saturating_add(1), line.of);
                let record = self.account.epoch(&line)?;
                let report = EpochReport {
                    epoch: done,
                    max_epochs: of.max(done),
                    lr: record.lr,
                    train: record.train,
                    validation: record.validation,
                    graphs_per_second: 0.0,
                };
                say(&TrainerEvent::Epoch(report));
            }
            ProgramEvent::Saved { epoch, .. } => {
                self.saving = false;
                match self.place.keep(self.job, &self.account, epoch, self.clock.seconds()) {
                    Ok(true) => say(&TrainerEvent::Saved),
                    Ok(false) => {}
                    Err(error) => {
                        eprintln!("warning: no checkpoint written, training goes on without: {error}")
                    }
                }
            }
            ProgramEvent::Result(result) => self.account.finish(*result)?,
            ProgramEvent::Failed { class, message, .. } => return Err(events::failure(&class, &message)),
        }
        Ok(())
    }

    /// What the agent asks for is passed on. A program that does not read is left alone.
    fn wishes(&mut self, group: &mut ProcessGroup) {
        match signals::next() {
            Flow::Continue => {}
            Flow::Save if self.saving => {}
            Flow::Save => {
                self.saving = true;
                group.tell("save");
            }
            Flow::SaveAndStop | Flow::Stop if self.stopping.is_some() => {}
            Flow::SaveAndStop | Flow::Stop => {
                self.stopping = Some(self.clock.seconds());
                group.tell("stop");
                group.terminate();
            }
        }
    }

    /// Whether it takes too long to leave after its result; says how it has failed if there is none.
    fn is_late(&mut self, words: &Words) -> Result<bool, Failure> {
        let now = self.clock.seconds();
        let over = |since: Option<f64>, most: f64| since.is_some_and(|since| now - since > most);
        let stopped = over(self.stopping, PATIENCE);
        match self.account.is_finished() {
            true => {
                let since = *self.finished.get_or_insert(now);
                Ok(stopped || over(Some(since), TO_LEAVE))
            }
            false if stopped => Err(self.preempted("it did not leave in time and was killed")),
            false if over(self.closed, TO_LEAVE) => {
                Err(crashed("it closed its events without a result and did not exit", &words.last()))
            }
            false => Ok(false),
        }
    }

    fn weigh(&mut self, group: &ProcessGroup, words: &Words) -> Result<(), Failure> {
        if words.bytes() > MOST_OUTPUT {
            let message = format!("the program printed more than {} MiB; let it say less", MOST_OUTPUT >> 20);
            return Err(Failure::new(FailureClass::Error, message));
        }
        let now = self.clock.seconds();
        if now - self.weighed < WEIGH {
            return Ok(());
        }
        self.weighed = now;
        let memory = group.memory();
        self.peak = self.peak.max(memory);
        if let Some(most) = self.job.setup.memory.filter(|most| memory > *most) {
            let (took, most) = (memory >> 20, most >> 20);
            let message = format!("the program took {took} MiB of memory, and {most} MiB are allowed here");
            return Err(Failure::new(FailureClass::OutOfMemory, message));
        }
        let (disk, most) = (self.place.bytes(), self.job.setup.disk);
        if disk > most {
            let message = format!(
                "the program wrote {} MiB into its folder, and {} MiB are allowed here",
                disk >> 20,
                most >> 20
            );
            return Err(Failure::new(FailureClass::Error, message));
        }
        Ok(())
    }

    /// What it means that the program has ended.
    fn ending(&mut self, status: ExitStatus, words: &Words) -> Result<(), Failure> {
        if self.account.is_finished() {
            return Ok(());
        }
        if self.stopping.is_some() {
            return Err(self.preempted("stopped"));
        }
        words.settle();
        let said = words.last();
        let how = match status.success() {
            true => "it exited without a result; a program ends with the event `result` (`fold.result(...)`)"
                .to_owned(),
            false => status.to_string(),
        };
        Err(crashed(&how, &said))
    }

    fn preempted(&self, how: &str) -> Failure {
        let epochs = self.account.epochs();
        Failure::new(FailureClass::Preempted, format!("{how} after {epochs} epochs"))
    }
}

/// What a program has said before it ended and nobody has heard yet: it may have said its result and left between two looks.
fn rest(heard: &Receiver<Heard>) -> impl Iterator<Item = Heard> + '_ {
    std::iter::from_fn(|| heard.recv_timeout(Duration::from_secs_f64(TO_LEAVE)).ok())
}

fn crashed(how: &str, words: &str) -> Failure {
    let class = if is_out_of_memory(words) { FailureClass::OutOfMemory } else { FailureClass::Crashed };
    let words = if words.is_empty() { String::new() } else { format!("; its last words: {words}") };
    Failure::new(class, format!("the program ended: {how}{words}"))
}

fn rubbish(line: &str) -> Failure {
    let start: String = line.chars().take(100).collect();
    Failure::new(
        FailureClass::Error,
        format!("the program wrote what is no event to descriptor 3: `{start}`"),
    )
}

/// Passes on what can be written at once.
fn write_at_once(to: &mut impl Write, line: &str) -> io::Result<()> {
    match to.write(line.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn what_a_program_said_before_it_left_is_heard_however_late_its_reader_comes() {
        let (sender, heard) = sync_channel(1);
        let reader = std::thread::Builder::new().name("reader".to_owned()).spawn(move || {
            for line in ["one", "two", "three"] {
                std::thread::yield_now();
                sender.send(Heard::Rubbish(line.to_owned())).expect("somebody hears");
            }
        });
        assert_eq!(rest(&heard).count(), 3);
        reader.expect("a thread").join().expect("it has ended");
    }
}
