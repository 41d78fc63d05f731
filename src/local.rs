//! Workers on this machine: finds the worker program, starts it, starts it again if it dies, stops it.

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::{Child, Command};
use tokio::sync::watch;

use crate::problem::{self, Problem};

/// `togl-worker`, beside this program or on PATH.
pub fn worker_program() -> Result<PathBuf, Problem> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("togl-worker")));
    let on_path = std::env::var_os("PATH").map(|path| {
        std::env::split_paths(&path).map(|folder| folder.join("togl-worker")).collect::<Vec<_>>()
    });
    let mut candidates = beside.into_iter().chain(on_path.unwrap_or_default());
    candidates.find(|candidate| candidate.is_file()).ok_or_else(|| {
        Problem::usage("togl-worker is neither beside togl nor on PATH").hint(
            "in a Python environment install this package's extra `worker`; from sources, `make install`",
        )
    })
}

/// How to start a local worker.
#[derive(Debug, Clone)]
pub struct LocalWorker {
    /// The program.
    pub program: PathBuf,
    /// The coordinator.
    pub address: String,
    /// The worker token; handed over in the environment, where `ps` does not show it.
    pub token: String,
    /// Slots; the worker's own default if none.
    pub slots: Option<u32>,
    /// Device; the worker's own default if none.
    pub device: Option<String>,
    /// Whether it steps back for others.
    pub background: bool,
    /// Where it keeps its spool.
    pub state: PathBuf,
    /// Where data sets are.
    pub data_dir: Option<PathBuf>,
    /// Whether it runs programs that sweeps bring along.
    pub programs: bool,
}

/// Deaths in a row, each soon after the start, after which it makes no sense to go on.
const HOPELESS: u32 = 5;

impl LocalWorker {
    fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .arg("join")
            .arg(&self.address)
            .arg("--with-parent")
            .arg("--no-uploads")
            .arg("--state")
            .arg(&self.state);
        if let Some(slots) = self.slots {
            command.arg("--slots").arg(slots.to_string());
        }
        if let Some(device) = &self.device {
            command.arg("--device").arg(device);
        }
        if self.programs {
            command.arg("--programs");
        }
        if self.background {
            command.arg("--background");
        }
        if let Some(folder) = &self.data_dir {
            command.arg("--data-dir").arg(folder);
        }
        let log =
            std::fs::OpenOptions::new().create(true).append(true).mode(0o600).open(log_file(&self.state))?;
        command
            .env("TOGL_TOKEN", &self.token)
            .stdin(Stdio::piped()) // it leaves when this pipe closes, however this process ends
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0) // Ctrl-C reaches this program, which decides
            .kill_on_drop(true)
            .spawn()
    }

    /// Keeps one worker alive until told to stop. Gives up only if it keeps dying at once.
    pub async fn keep(self, mut stop: watch::Receiver<bool>, say: impl Fn(String)) -> Result<(), Problem> {
        let mut early_deaths = 0;
        loop {
            let mut child = self.start().map_err(|error| {
                Problem::usage(format!("cannot start {}: {error}", self.program.display()))
            })?;
            // Waiting for a child closes its standard input, and this worker leaves when that closes: hold it apart.
            let mut lifeline = child.stdin.take();
            let long_enough = tokio::time::sleep(Duration::from_secs(10));
            tokio::pin!(long_enough);
            let mut lived = false;
            let status = loop {
                tokio::select! {
                    status = child.wait() => break status,
                    () = &mut long_enough, if !lived => lived = true,
                    _ = stop.wait_for(|stop| *stop) => { drop(lifeline.take()); dismiss(child).await; return Ok(()) }
                }
            };
            early_deaths = if lived { 0 } else { early_deaths + 1 };
            if status.as_ref().is_ok_and(|status| status.code() == Some(problem::USAGE.into())) {
                return Err(refused(&self.state)); // another one would be told the same
            }
            let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            if early_deaths >= HOPELESS {
                return Err(given_up(&how, &self.state));
            }
            say(format!("the local worker died ({how}); starting another"));
        }
    }
}

fn log_file(state: &Path) -> PathBuf {
    state.join("worker.log")
}

/// The worker's own words about what it was asked to do.
fn refused(state: &Path) -> Problem {
    let log = std::fs::read_to_string(log_file(state)).unwrap_or_default();
    let (_, words) =
        log.rsplit_once("error: ").unwrap_or(("", "the local worker was asked for something that cannot be"));
    Problem::told(words.trim())
}

fn given_up(how: &str, state: &Path) -> Problem {
    let log = std::fs::read_to_string(log_file(state)).unwrap_or_default();
    let last = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
    Problem::ours(format!("the local worker keeps dying ({how}): {last}"))
        .hint("run `togl-worker doctor` to see whether this machine can train")
}

/// Its lifeline is cut, so it lets folds save (10 s) and says goodbye (2 s); makes sure that it goes.
async fn dismiss(mut child: Child) {
    if tokio::time::timeout(Duration::from_secs(15), child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_worker_refused_is_told_in_its_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let told = |log: &str| {
            std::fs::write(log_file(folder.path()), log).unwrap();
            format!("{:?}", refused(folder.path()))
        };
        let log = "INFO something\nerror: old\nerror: device cuda is not there\n\n  hint: `togl-worker doctor` says why\n";
        let problem = told(log);
        assert!(
            problem.contains("device cuda is not there\"") && problem.contains("doctor` says why\""),
            "{problem}"
        );
        assert!(problem.contains("code: 2") && !problem.contains("old"), "{problem}");
        assert!(told("error: 0 slots make no sense").contains("0 slots make no sense"));
        assert!(told("").contains("cannot be"));
    }
}
