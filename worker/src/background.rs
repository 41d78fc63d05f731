//! Training that nobody notices (`join --background`): the lowest priority for trainers, and a pause while others need
//! the machine. Owns the rule of when to pause, what counts as others, and the priority; `slot.rs` stops its trainer.
//!
//! Others are whatever does not step back itself: processor time of processes of low priority, ours among them, is
//! nobody's hurry. Low priority alone is not enough, because training also takes memory bandwidth and the other half of
//! a core that runs two threads.

use std::future::pending;
use std::time::Duration;

use togl_agent::clock::AgentClock;
use togl_agent::tasks;
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// How often the machine is looked at: the longest that others wait for the pause.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Seconds without anybody before training goes on. Builds and people pause for a moment, too.
const QUIET_SECONDS: f64 = 10.0;

/// Whether training steps back for others
#[derive(Debug, Clone, clap::Args)]
pub struct Background {
    /// Train only with what nobody else needs: lowest priority for processor and disk, and a pause while others are busy
    #[arg(long)]
    background: bool,
    /// With --background: percent of this machine's processors that others may use before training pauses
    #[arg(long, value_name = "PERCENT", default_value_t = 25, requires = "background",
          value_parser = clap::value_parser!(u8).range(1..=100))]
    background_limit: u8,
}

impl Background {
    /// Starts to look at the machine, if this worker steps back at all.
    pub fn pauses(&self) -> Option<Pauses> {
        self.background.then(|| {
            let (sender, receiver) = watch::channel(false);
            tasks::spawn("background", look(f64::from(self.background_limit) / 100.0, sender));
            Pauses(receiver)
        })
    }
}

/// Tells when to pause and when to go on.
#[derive(Debug, Clone)]
pub struct Pauses(watch::Receiver<bool>);

impl Pauses {
    /// As told by `receiver`: true is a pause.
    #[cfg(test)]
    pub fn new(receiver: watch::Receiver<bool>) -> Self {
        Self(receiver)
    }

    /// The same, for a trainer that has not been told anything: what holds now is its first news.
    pub fn from_now(pauses: Option<&Self>) -> Option<Self> {
        let mut pauses = pauses.cloned()?;
        pauses.0.mark_changed();
        Some(pauses)
    }
}

/// Waits for news, for ever if there will be none.
pub async fn news(pauses: &mut Option<Pauses>) -> bool {
    let Some(Pauses(receiver)) = pauses else { return pending().await };
    match receiver.changed().await {
        Ok(()) => *receiver.borrow_and_update(),
        Err(_) => pending().await, // nobody looks any more
    }
}

async fn look(limit: f64, pause: watch::Sender<bool>) {
    let clock = AgentClock::start();
    let mut courtesy = Courtesy { limit, busy_at: None };
    let mut every = tokio::time::interval(LOOK_EVERY);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut before = None;
    loop {
        every.tick().await;
        let Some(now) = std::fs::read_to_string("/proc/stat").ok().as_deref().and_then(Ticks::parse) else {
            return tracing::warn!("this system does not tell how busy it is, so training does not pause");
        };
        let others = before.replace(now).and_then(|before| now.others_since(before));
        let paused = others.is_some_and(|others| courtesy.pauses(others, clock.seconds()));
        let turned = pause.send_if_modified(|held| std::mem::replace(held, paused) != paused);
        let others = format!("{:.0} % of the processors", 100.0 * others.unwrap_or(0.0));
        match (turned, paused) {
            (true, true) => tracing::info!(others, "training pauses"),
            (true, false) => tracing::info!(others, "training goes on"),
            (false, _) => {}
        }
    }
}

/// The rule: pause at the first look that finds others above the limit, go on when they were below for a while.
#[derive(Debug)]
struct Courtesy {
    limit: f64,
    busy_at: Option<f64>,
}

impl Courtesy {
    /// Whether to pause, when others use this share of the machine. `now` is in seconds since any fixed moment.
    fn pauses(&mut self, others: f64, now: f64) -> bool {
        if others > self.limit {
            self.busy_at = Some(now);
        }
        self.busy_at.is_some_and(|busy| now - busy < QUIET_SECONDS)
    }
}

/// What the machine's processors have done since it started, in units that cancel out.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ticks {
    /// Work of ordinary priority, and the kernel's.
    others: f64,
    all: f64,
}

impl Ticks {
    /// From the text of `/proc/stat`, whose first line is: user, nice, system, idle, iowait, irq, softirq, steal.
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map(str::parse);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().ok()?;
        let [user, nice, system, idle, waiting, interrupts, soft, ..] = numbers[..] else { return None };
        let others = user + system + interrupts + soft;
        Some(Self { others, all: others + nice + idle + waiting })
    }

    fn others_since(self, before: Self) -> Option<f64> {
        let all = self.all - before.all;
        (all > 0.0).then(|| (self.others - before.others) / all)
    }
}

/// Gives this process the lowest priority there is, and lets it die with its parent, also when it is stopped. To be
/// called before threads are started: they inherit it.
#[cfg(target_os = "linux")]
pub fn step_back() {
    use std::io::Error;
    // The kernel's `ioprio.h`: a class in the upper bits, 3 is idle, and 1 means "this process".
    const IDLE_DISK: libc::c_int = 3 << 13;
    const THIS_PROCESS: libc::c_int = 1;
    let idle = libc::sched_param { sched_priority: 0 };
    // SAFETY: each takes plain numbers about this process; `idle` lives longer than the call that reads it.
    let answers = unsafe {
        [
            ("death with the worker", libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL)),
            // A session of its own: schedulers that weigh sessions weigh this one, and not the user's shell.
            ("a session of its own", libc::setsid()),
            ("low priority", libc::setpriority(libc::PRIO_PROCESS, 0, 19)),
            (
                "the idle class of the processor",
                libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const idle),
            ),
            (
                "the idle class of the disk",
                -i32::from(libc::syscall(libc::SYS_ioprio_set, THIS_PROCESS, 0, IDLE_DISK) != 0),
            ),
        ]
        .map(|(what, code)| (what, (code < 0).then(Error::last_os_error)))
    };
    for (what, error) in answers {
        if let Some(error) = error {
            eprintln!("no {what}: {error}");
        }
    }
    let _ = std::fs::write("/proc/self/autogroup", "19"); // not every kernel groups by session
}

/// Elsewhere only the pauses keep training out of the way.
#[cfg(not(target_os = "linux"))]
pub fn step_back() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn training_pauses_at_once_and_goes_on_after_ten_quiet_seconds() {
        let mut courtesy = Courtesy { limit: 0.25, busy_at: None };
        let mut pauses = |others, now| courtesy.pauses(others, now);
        assert!(!pauses(0.25, 0.0), "the limit itself is allowed");
        assert!(pauses(0.26, 1.0), "the first busy look");
        assert!(pauses(0.0, 2.0), "a pause for breath of a build");
        assert!(pauses(0.9, 10.5), "busy again: the quiet counts from here");
        assert!(pauses(0.1, 20.4));
        assert!(!pauses(0.1, 20.5), "ten quiet seconds");
        assert!(!pauses(0.2, 21.0));
    }

    #[test]
    fn others_are_who_does_not_step_back_itself() {
        let at = |user: u32, nice: u32, idle: u32| {
            Ticks::parse(&format!("cpu  {user} {nice} 100 {idle} 5 1 2 0 0 0\ncpu0 1 2 3\n")).unwrap()
        };
        let before = at(1000, 500, 8000);
        assert_eq!(at(1000, 700, 8000).others_since(before), Some(0.0), "only background work");
        assert_eq!(at(1050, 600, 8050).others_since(before), Some(0.25));
        assert_eq!(before.others_since(before), None, "no time has passed");
        for strange in ["", "cpu", "cpu  1 2 x 4 5 6 7", "intr 5"] {
            assert_eq!(Ticks::parse(strange), None, "{strange}");
        }
    }
}
