//! The full-screen watch on a terminal: the real binary in a pseudo-terminal that `script` makes, its screen read by a terminal
//! emulator. Whatever happens, the terminal is afterwards as it was before.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How long something may take before it counts as not happening.
const PATIENCE: Duration = Duration::from_secs(40);

/// A coordinator with one sweep, and the folder of all.
struct Lab {
    folder: tempfile::TempDir,
    served: Child,
}

impl Lab {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let served = serve(folder.path());
        let lab = Self { folder, served };
        let file = lab.folder.path().join("s.yaml");
        fs::write(&file, "version: 1\nname: depth\nbase: {dataset: necklaces}\nsplits: [0, 1]\n").unwrap();
        assert!(lab.togl(&["submit", file.to_str().unwrap()]));
        lab
    }

    fn togl(&self, arguments: &[&str]) -> bool {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        command.args(arguments).env("TOGL_STATE", self.folder.path().join("state")).stderr(Stdio::null());
        command.env_remove("TOGL_COORDINATOR").env_remove("TOGL_CONTEXT").env_remove("TOGL_TOKEN");
        command.status().unwrap().success()
    }

    fn kill(&mut self) {
        self.served.kill().unwrap();
        self.served.wait().unwrap();
    }

    fn written(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = self.served.kill(); // it may have been killed before
        let _ = self.served.wait();
    }
}

fn serve(folder: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("TOGL_STATE", folder.join("state"));
    let mut served = command.env_remove("RUST_LOG").stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(served.stderr.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().contains("togl-worker join")).unwrap().unwrap();
    // Nobody reads what it says later; a pipe that closes would end nothing but its log.
    drop(std::thread::Builder::new().spawn(move || lines.for_each(drop)).unwrap());
    served
}

fn at_least_one(size: u16) -> NonZeroU16 {
    NonZeroU16::new(size).unwrap()
}

/// A terminal on which a shell runs a script.
struct Terminal {
    child: Child,
    input: ChildStdin,
    screen: Arc<(Mutex<vt100::Parser>, Condvar)>,
}

impl Terminal {
    /// `then` is what the shell does; `$TOGL` is the program. None where there is no terminal to be had.
    fn start(lab: &Lab, (width, height): (u16, u16), then: &str) -> Option<Self> {
        if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_err() {
            eprintln!("skipped: there is no `script` to play a terminal");
            return None;
        }
        let file = lab.folder.path().join("typed.sh");
        let begin = format!("set -m; stty cols {width} rows {height}; tty >tty; stty -g >before\n");
        fs::write(&file, begin + then).unwrap();
        let mut script = Command::new("script");
        script.args(["-qefc", "bash typed.sh", "/dev/null"]).current_dir(lab.folder.path());
        script.env("TOGL", env!("CARGO_BIN_EXE_togl")).env("TOGL_STATE", lab.folder.path().join("state"));
        script.env("TERM", "xterm").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR").env_remove("TOGL_TOKEN");
        script.env_remove("TOGL_COORDINATOR").env_remove("TOGL_CONTEXT");
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new((
            Mutex::new(vt100::Parser::new(at_least_one(height), at_least_one(width), 0)),
            Condvar::new(),
        ));
        let shown = screen.clone();
        let read = move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut bytes) {
                shown.0.lock().unwrap().process(&bytes[..count]);
                shown.1.notify_all();
            }
        };
        drop(std::thread::Builder::new().spawn(read).unwrap());
        Some(Self { child, input, screen })
    }

    fn press(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Waits until the screen is like that.
    fn until(&self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) {
        let (parser, changed) = &*self.screen;
        let waited =
            changed.wait_timeout_while(parser.lock().unwrap(), PATIENCE, |parser| !is_so(parser.screen()));
        let (parser, timeout) = waited.unwrap();
        assert!(!timeout.timed_out(), "not seen: {what}\n{}", parser.screen().contents());
    }

    fn shows(&self, text: &str) {
        self.until(text, |screen| screen.contents().contains(text));
    }

    fn resize(&self, lab: &Lab, width: u16, height: u16) {
        self.screen.0.lock().unwrap().screen_mut().set_size(at_least_one(height), at_least_one(width));
        let (tty, size) = (lab.written("tty"), [width.to_string(), height.to_string()]);
        let mut stty = Command::new("stty");
        stty.args(["-F", tty.trim(), "cols", &size[0], "rows", &size[1]]);
        assert!(stty.status().unwrap().success());
    }

    /// The shell has it back: its screen, its cursor, its modes.
    fn is_as_before(&self, lab: &Lab, after: &str) {
        self.until("the main screen", |screen| !screen.alternate_screen() && !screen.hide_cursor());
        assert_eq!(lab.written(after), lab.written("before"), "the modes of the terminal");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill(); // of a test that failed; otherwise it has ended
        let _ = self.child.wait();
    }
}

const ONCE: &str =
    "sh -c 'echo $$ >pid; exec $TOGL watch depth'; echo code $?; stty -g >after; echo the end\n";

#[test]
fn keys_and_another_size_are_obeyed_and_the_terminal_is_as_before() {
    let lab = Lab::new();
    let Some(mut terminal) = Terminal::start(&lab, (100, 30), ONCE) else { return };
    terminal.shows("[1 Table]");
    terminal.shows("nothing runs: no worker is connected");
    terminal.until("another screen", |screen| screen.alternate_screen() && screen.hide_cursor());
    terminal.press("4");
    terminal.shows("[4 Workers]");
    terminal.press("\u{1b}[D");
    terminal.shows("[3 Failures]");
    terminal.press("?");
    terminal.shows("Ctrl-Z");
    terminal.press("x6");
    terminal.shows("submit");
    terminal.resize(&lab, 58, 15);
    terminal.shows("[6 Hist]");
    terminal.resize(&lab, 39, 7);
    terminal.until("one line", |screen| screen.contents().trim() == "depth 0 %, 0 running, 0 failed");
    terminal.resize(&lab, 120, 40);
    terminal.shows("[6 History]");
    terminal.press("P");
    terminal.shows("pause depth? what runs goes on  [N]o  [y]es");
    terminal.press("y");
    terminal.shows("depth is paused");
    terminal.press("w");
    terminal.shows("[1 Sweeps]");
    terminal.press("q");
    terminal.shows("code 0");
    terminal.shows("the end");
    terminal.is_as_before(&lab, "after");
}

#[test]
fn a_sweep_that_has_ended_is_said_where_the_shell_is() {
    let lab = Lab::new();
    let Some(terminal) = Terminal::start(&lab, (80, 24), ONCE) else { return };
    terminal.shows("[1 Table]");
    assert!(lab.togl(&["cancel", "depth"]));
    terminal.shows("depth is cancelled; make its table with `togl table depth`");
    terminal.shows("code 0");
    terminal.shows("the end");
    terminal.is_as_before(&lab, "after");
}

#[test]
fn a_coordinator_that_goes_away_and_comes_back_is_noticed() {
    let mut lab = Lab::new();
    let Some(mut terminal) = Terminal::start(&lab, (80, 24), ONCE) else { return };
    terminal.shows("connected");
    terminal.shows("depth"); // there is a picture
    lab.kill();
    terminal.shows("away since");
    terminal.shows("depth"); // the picture stays
    lab.served = serve(lab.folder.path());
    terminal.shows("connected");
    terminal.press("\u{3}");
    terminal.shows("code 130");
    terminal.shows("the end");
    terminal.is_as_before(&lab, "after");
}

#[test]
fn told_to_end_it_gives_the_terminal_back_first() {
    let lab = Lab::new();
    for (signal, code) in [("-TERM", "code 143"), ("-HUP", "code 129")] {
        let Some(terminal) = Terminal::start(&lab, (80, 24), ONCE) else { return };
        terminal.shows("[1 Table]");
        assert!(Command::new("kill").args([signal, lab.written("pid").trim()]).status().unwrap().success());
        terminal.shows(code);
        terminal.shows("the end");
        terminal.is_as_before(&lab, "after");
    }
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_takes_it_again() {
    let lab = Lab::new();
    let script = "$TOGL watch; stty -g >during; echo at the shell; read line; fg >fg; echo code $?; stty -g >after; echo the end\n";
    let Some(mut terminal) = Terminal::start(&lab, (80, 24), script) else { return };
    terminal.shows("[1 Sweeps]");
    terminal.press("\u{1a}");
    terminal.shows("at the shell");
    terminal.is_as_before(&lab, "during");
    terminal.press("\n");
    terminal.shows("[1 Sweeps]");
    terminal.press("q");
    terminal.shows("code 0");
    terminal.shows("the end");
    terminal.is_as_before(&lab, "after");
}

#[test]
fn where_it_cannot_draw_it_says_lines() {
    let lab = Lab::new();
    for how in ["TERM=dumb $TOGL watch depth", "$TOGL watch depth --plain"] {
        let script = format!("({how}) 2>&1; echo code $?; stty -g >after; echo the end\n");
        let Some(terminal) = Terminal::start(&lab, (100, 24), &script) else { return };
        terminal.shows("nothing runs: no worker is connected");
        terminal.until("no other screen", |screen| !screen.alternate_screen());
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
    command.arg("watch").env("TOGL_STATE", lab.folder.path().join("state")).env_remove("TOGL_COORDINATOR");
    let said = command.env_remove("TOGL_TOKEN").env_remove("TOGL_CONTEXT").output().unwrap();
    let text = String::from_utf8(said.stderr).unwrap();
    assert!(said.status.code() == Some(2) && text.contains("hint: name a sweep"), "{text}");
}

#[test]
fn hostile_words_of_others_move_nothing_on_the_terminal() {
    let lab = Lab::new();
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{1b}[?1049l\u{9b}31mred \u{202e}back";
    assert!(lab.togl(&["pause", "depth", "--reason", hostile]));
    let Some(mut terminal) = Terminal::start(&lab, (160, 24), ONCE) else { return };
    terminal.shows("[1 Table]");
    terminal.press("6");
    terminal.shows("\\u{1b}[2J");
    terminal.until("the same screen", |screen| {
        screen.alternate_screen() && screen.contents().contains("[6 History]")
    });
    terminal.press("q");
    terminal.shows("the end");
    terminal.is_as_before(&lab, "after");
}

#[test]
fn a_reason_that_is_typed_is_kept() {
    let lab = Lab::new();
    let Some(mut terminal) = Terminal::start(&lab, (120, 24), ONCE) else { return };
    terminal.shows("[1 Table]");
    terminal.press("P");
    terminal.shows("[w]hy");
    terminal.press("wa new fan\r");
    terminal.shows("depth is paused");
    terminal.press("6");
    terminal.shows("a new fan");
    terminal.press("q");
    terminal.shows("the end");
    terminal.is_as_before(&lab, "after");
}

#[test]
fn a_panic_leaves_the_terminal_as_it_was_and_is_read_there() {
    let lab = Lab::new();
    let script = ONCE.replace("exec $TOGL", "TOGL_CRASH=watch exec $TOGL");
    let Some(mut terminal) = Terminal::start(&lab, (100, 24), &script) else { return };
    terminal.shows("[1 Table]");
    terminal.press("!");
    terminal.shows("told to panic");
    terminal.shows("code 101");
    terminal.shows("the end");
    terminal.is_as_before(&lab, "after");
}
