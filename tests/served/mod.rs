//! A coordinator that is served for a test, and what it says.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::rc::Rc;

/// A `togl serve` of its own, as careless a user starts it: with a umask that forbids nothing. Stopped with SIGTERM.
pub struct Served {
    pub state: Rc<tempfile::TempDir>,
    pub child: std::process::Child,
    stderr: BufReader<std::process::ChildStderr>,
}

impl Served {
    /// Starts and waits until it says that workers can be added. Gives what it said so far.
    pub fn start(arguments: &[&str]) -> (Self, String) {
        Self::on(Rc::new(tempfile::tempdir().unwrap()), arguments)
    }

    /// The same on a state directory that may have been served before.
    pub fn on(state: Rc<tempfile::TempDir>, arguments: &[&str]) -> (Self, String) {
        let mut child = Command::new("sh")
            .args(["-c", "umask 000; exec \"$0\" serve --listen 127.0.0.1:0 \"$@\""])
            .arg(env!("CARGO_BIN_EXE_togl"))
            .args(arguments)
            .env("TOGL_STATE", state.path())
            .env_remove("RUST_LOG")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        while !said.contains("togl-worker join") {
            assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "it ended: {said}");
        }
        (Self { state, child, stderr }, said)
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        command.args(arguments).env("TOGL_STATE", self.state.path()).env_remove("TOGL_TOKEN");
        command.env_remove("TOGL_COORDINATOR").env_remove("TOGL_CONTEXT");
        command
    }

    pub fn togl(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    pub fn stop(self) -> std::process::ExitStatus {
        self.last_words().0
    }

    /// Stops it. Gives how it ended and what it said meanwhile.
    pub fn last_words(mut self) -> (std::process::ExitStatus, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let mut said = String::new();
        self.stderr.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap(), said)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill(); // of a test that failed; otherwise it has ended
        let _ = self.child.wait();
    }
}

/// Where a coordinator says that it serves.
pub fn serving_at(said: &str) -> String {
    let line = said.lines().find(|line| line.starts_with("serving ")).unwrap();
    line.rsplit_once(" at ").unwrap().1.to_owned()
}

/// Every file and folder below `folder`, with its mode.
pub fn modes(folder: &Path, found: &mut Vec<(PathBuf, u32)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            modes(&path, found);
        }
        found.push((path, metadata.permissions().mode() & 0o777));
    }
}
