//! The processes of a program: starts the first in a group of its own with nothing but its device, hears its streams, weighs
//! all of them, and ends all of them, also those that have left the group or outlived their parent. The only file that knows
//! processes and signals of programs.

use std::fs;
use std::io::{self, PipeReader, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use togl_sweeps::program::ProgramTrial;
use togl_sweeps::{Failure, FailureClass};

use super::events::{self};
use super::place::ScratchFolder;
use super::words::Words;
use super::{Heard, ProgramJob, write_at_once};
use crate::devices;

/// Where the program writes its events.
const EVENTS: i32 = 3;

/// Events that wait to be heard; a program that says more waits itself.
const WAITING: usize = 256;

/// Looks that are taken for processes that are left, a moment apart.
const LAST_LOOKS: u32 = 500;

/// Marks of secrets in the names of variables.
const SECRET: [&str; 8] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "KEY", "AUTH", "TOGL_"];

/// The group of the program that runs now, for whoever has to leave at once; 0 if none does.
static RUNNING: AtomicI32 = AtomicI32::new(0);

/// A running program.
pub struct ProcessGroup {
    child: Child,
    commands: Option<ChildStdin>,
    id: i32,
    ended: Option<ExitStatus>,
    sandboxed: bool,
}

impl ProcessGroup {
    /// Starts the program and tells it what it is to train.
    pub fn start(
        job: &ProgramJob<'_>,
        program: &ProgramTrial,
        place: &ScratchFolder,
    ) -> Result<(Self, Receiver<Heard>, Words), Failure> {
        let started = Self::spawn(job, program, place);
        let (mut group, events, words) = started.map_err(|error| cannot_run(job, program, &error))?;
        let (sender, heard) = sync_channel(WAITING);
        let hear = move || events::hear(events, &sender);
        let listening = std::thread::Builder::new().name("events".to_owned()).spawn(hear);
        let request = format!("{}\n", place.request);
        let told = match &mut group.commands {
            Some(commands) => commands.write_all(request.as_bytes()).or_else(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => Ok(()), // it does not want to know
                _ => Err(error),
            }),
            None => Ok(()),
        };
        match listening.map(drop).and(told).and_then(|()| group.wait_for_nobody()) {
            Ok(()) => Ok((group, heard, words)),
            Err(error) => {
                group.end();
                Err(Failure::new(FailureClass::Error, format!("cannot speak to the program: {error}")))
            }
        }
    }

    fn spawn(
        job: &ProgramJob<'_>,
        program: &ProgramTrial,
        place: &ScratchFolder,
    ) -> io::Result<(Self, PipeReader, Words)> {
        become_heir();
        take_third()?;
        let (events, to_events) = io::pipe()?;
        let mut command = command(job, program, place);
        surroundings(&mut command, job, place);
        let descriptor = to_events.as_raw_fd();
        let own = std::process::id();
        // SAFETY: between fork and exec only system calls that may be made there, on plain numbers.
        unsafe { command.pre_exec(move || in_the_child(descriptor, own)) };
        let mut child = command.process_group(0).spawn()?;
        drop(to_events);
        let id = i32::try_from(child.id()).unwrap_or(0);
        RUNNING.store(id, Ordering::SeqCst);
        let words = Words::default();
        let missing = || io::Error::other("no pipe to the program");
        let commands = child.stdin.take();
        let (out, err) = (child.stdout.take().ok_or_else(missing)?, child.stderr.take().ok_or_else(missing)?);
        let group = Self { child, commands, id, ended: None, sandboxed: job.setup.sandbox };
        words.read(out)?;
        words.read(err)?;
        Ok((group, events, words))
    }

    /// From now on a program that does not read is not waited for.
    fn wait_for_nobody(&self) -> io::Result<()> {
        let Some(commands) = &self.commands else { return Ok(()) };
        // SAFETY: plain numbers, and a descriptor that is ours.
        let outcome = unsafe {
            let flags = libc::fcntl(commands.as_raw_fd(), libc::F_GETFL);
            libc::fcntl(commands.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if outcome == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The number of the group.
    pub fn id(&self) -> i32 {
        self.id
    }

    /// Passes a wish on.
    pub fn tell(&mut self, command: &str) {
        let line = format!("{{\"command\":\"{command}\"}}\n");
        if let Some(commands) = &mut self.commands
            && write_at_once(commands, &line).is_err()
        {
            self.commands = None; // it has closed its input; it hears the signal
        }
    }

    /// Tells the first process to save and leave. Bubblewrap itself would take everything down at once, so the signal goes to
    /// what it runs: it has one child, the first process of the sandbox, whose children are the program.
    pub fn terminate(&self) {
        if self.ended.is_some() {
            return;
        }
        match self.sandboxed {
            false => send(self.id, libc::SIGTERM),
            true => {
                let inside = children(self.id.cast_unsigned()).into_iter();
                let programs = inside.flat_map(|first| children(first.cast_unsigned()));
                programs.for_each(|program| send(program, libc::SIGTERM));
            }
        }
    }

    /// How the first process has ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Bytes of memory of the program and all that it has started.
    pub fn memory(&self) -> u64 {
        family().into_iter().map(resident).sum()
    }

    /// Ends all processes of the program.
    pub fn end(&mut self) {
        if self.ended().is_none() {
            send(-self.id, libc::SIGKILL);
            let _ = self.child.kill(); // already dead is as good
            let _ = self.child.wait();
        }
        end_all();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}

/// Ends what runs of the program of this process, if it has one, and whatever that has left behind.
pub fn end_all() {
    let group = RUNNING.swap(0, Ordering::SeqCst);
    if group == 0 {
        return;
    }
    for _ in 0..LAST_LOOKS {
        send(-group, libc::SIGKILL);
        let left = children(std::process::id());
        if left.is_empty() {
            return;
        }
        left.into_iter().for_each(|child| send(child, libc::SIGKILL));
        // SAFETY: plain numbers; whoever is waited for is a child of this process that nobody else waits for.
        while unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) } > 0 {}
        std::thread::sleep(Duration::from_millis(1));
    }
    eprintln!("warning: processes of the program cannot be ended");
}

/// What is to be run, by itself or by bubblewrap.
fn command(job: &ProgramJob<'_>, program: &ProgramTrial, place: &ScratchFolder) -> Command {
    let first = program.code.run.first().map(String::as_str).unwrap_or_default();
    let python = job.setup.python.as_deref().filter(|_| matches!(first, "python" | "python3"));
    let is_own = |name: &str| !name.starts_with('/') && place.scratch.join(name).is_file();
    let first = match python {
        Some(python) => python.as_os_str().to_owned(),
        None if is_own(first) => place.scratch.join(first).into_os_string(),
        None => first.into(),
    };
    let rest = program.code.run.iter().skip(1);
    if !job.setup.sandbox {
        let mut command = Command::new(first);
        command.args(rest);
        return command;
    }
    let mut command = Command::new("bwrap");
    let scratch = place.scratch.as_os_str();
    command.args(["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--proc", "/proc", "--bind"]);
    command.arg(scratch).arg(scratch).args(["--unshare-net", "--unshare-pid", "--unshare-ipc"]);
    command.args(["--die-with-parent", "--new-session", "--"]).arg(first).args(rest);
    command
}

/// Whether a variable of this name in capitals may hold what a program is not to have.
fn is_secret(name: &str) -> bool {
    SECRET.iter().any(|secret| name.contains(secret))
}

/// What the program finds around it: no secret of whoever runs the worker, its own folder, its device.
fn surroundings(command: &mut Command, job: &ProgramJob<'_>, place: &ScratchFolder) {
    for (name, _) in std::env::vars_os() {
        let upper = name.to_string_lossy().to_uppercase();
        if is_secret(&upper) {
            command.env_remove(&name);
        }
    }
    let path = std::env::var_os("PYTHONPATH").filter(|path| !path.is_empty());
    let paths = [place.helper.clone()].into_iter().chain(path.iter().flat_map(std::env::split_paths));
    if let Ok(paths) = std::env::join_paths(paths) {
        command.env("PYTHONPATH", paths);
    }
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    command
        .env("TOGL_PROGRAM", "1")
        .env("TMPDIR", place.scratch.join("tmp"))
        .env("PYTHONUNBUFFERED", "1")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("CUDA_VISIBLE_DEVICES", devices::alone(&job.request.device, visible.as_deref()))
        .current_dir(&place.scratch)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
}

/// Between fork and exec: the events get their number, and the process dies with its parent.
fn in_the_child(events: i32, parent: u32) -> io::Result<()> {
    // SAFETY: system calls on plain numbers, all of which may be made after a fork.
    unsafe {
        if libc::dup2(events, EVENTS) == -1 {
            return Err(io::Error::last_os_error());
        }
        libc::fcntl(EVENTS, libc::F_SETFD, 0);
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        #[cfg(target_os = "linux")]
        {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid().cast_unsigned() != parent {
                return Err(io::Error::other("the worker is gone"));
            }
        }
    }
    let _ = parent;
    Ok(())
}

/// Processes whose parent dies become children of this one, so that none is out of reach.
fn become_heir() {
    #[cfg(target_os = "linux")]
    // SAFETY: takes plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
}

/// Makes sure that no pipe of ours has the number that the child's events get.
fn take_third() -> io::Result<()> {
    use std::os::fd::IntoRawFd;
    // SAFETY: asks about a number.
    if unsafe { libc::fcntl(EVENTS, libc::F_GETFD) } != -1 {
        return Ok(());
    }
    while fs::File::open("/dev/null")?.into_raw_fd() < EVENTS {} // kept for as long as this process lives
    Ok(())
}

fn send(to: i32, signal: i32) {
    if to != 0 && to != -1 {
        // SAFETY: takes plain numbers; whoever is gone already is none of our business.
        let _ = unsafe { libc::kill(to, signal) };
    }
}

/// The children of a process.
fn children(of: u32) -> Vec<i32> {
    let tasks = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers =
        |list: String| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<i32>>();
    lists.flat_map(numbers).collect()
}

/// Everything that descends from this process.
fn family() -> Vec<i32> {
    let mut all = children(std::process::id());
    let mut at = 0;
    while at < all.len() && all.len() < 10_000 {
        all.extend(children(all[at].cast_unsigned()));
        at += 1;
    }
    all
}

/// Resident bytes of a process.
fn resident(id: i32) -> u64 {
    let pages = fs::read_to_string(format!("/proc/{id}/statm")).ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    // SAFETY: asks for a constant of the system.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.saturating_mul(u64::try_from(size).unwrap_or(4096))
}

/// Why it did not start, and what helps.
fn cannot_run(job: &ProgramJob<'_>, program: &ProgramTrial, error: &io::Error) -> Failure {
    let first = program.code.run.first().map(String::as_str).unwrap_or_default();
    let name = match &job.setup.python {
        Some(python) if matches!(first, "python" | "python3") => python.display().to_string(),
        _ if job.setup.sandbox && !is_on_path("bwrap") => "bwrap".to_owned(),
        _ => first.to_owned(),
    };
    let help = match error.kind() {
        io::ErrorKind::NotFound => {
            "it is not on the path of this worker; install it there, name it in `files`, or give `togl-worker join --python FILE`"
        }
        io::ErrorKind::PermissionDenied => "it may not be executed; a script begins with `#!`",
        _ => "see the log of the worker",
    };
    Failure::new(FailureClass::Error, format!("cannot run `{name}`: {error}; {help}"))
}

/// Whether there is a program of this name.
pub fn is_on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| Path::new(&folder).join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::is_secret;

    #[test]
    fn what_may_let_somebody_in_is_taken_out_of_the_environment() {
        for name in
            ["AWS_ACCESS_KEY_ID", "WANDB_API_KEY", "HF_TOKEN", "SSH_AUTH_SOCK", "PGPASSWD", "TOGL_OPERATOR"]
        {
            assert!(is_secret(name), "{name}");
        }
        for name in ["PATH", "HOME", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "LANG", "OMP_NUM_THREADS"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
