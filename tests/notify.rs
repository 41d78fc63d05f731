//! Notifications as their reader meets them: `togl serve --notify` beside a receiver that fails at first, a coordinator that is
//! killed while something waits, and a log in which no secret is.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

const SECRET_KEY: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
/// Longer than anything here takes, so a fault is a failure and not a hang.
const LONG: Duration = Duration::from_secs(120);

/// A letter as it came in.
struct Came {
    head: String,
    body: Value,
}

impl Came {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    fn id(&self) -> &str {
        self.header("webhook-id").unwrap()
    }
}

/// Somebody on this machine who takes letters: answers with the statuses that it was given, then with 200.
struct Inbox {
    address: SocketAddr,
    answers: Arc<Mutex<VecDeque<&'static str>>>,
    came: Receiver<Came>,
}

impl Inbox {
    fn open(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, (tell, came)) = (listener.local_addr().unwrap(), channel());
        let answers = Arc::new(Mutex::new(answers.iter().copied().collect()));
        let script = Arc::clone(&answers);
        let listen = move || listener.incoming().for_each(|stream| take(stream.unwrap(), &script, &tell));
        drop(std::thread::Builder::new().name("inbox".to_owned()).spawn(listen).unwrap());
        Self { address, answers, came }
    }

    fn next(&self) -> Came {
        self.came.recv_timeout(LONG).expect("a letter")
    }

    fn answer(&self, answers: &[&'static str]) {
        self.answers.lock().unwrap().extend(answers);
    }
}

fn take(mut stream: TcpStream, script: &Mutex<VecDeque<&'static str>>, tell: &Sender<Came>) {
    let (mut head, mut length) = (String::new(), 0);
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while !head.ends_with("\r\n\r\n") {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return; // whoever came was killed
        }
        if let Some(said) = line.to_lowercase().strip_prefix("content-length: ") {
            length = said.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    let answer = script.lock().unwrap().pop_front().unwrap_or("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    _ = tell.send(Came { head, body: serde_json::from_slice(&body).unwrap() });
    _ = stream.write_all(answer.as_bytes());
}

/// A folder with a file of webhooks and a state directory.
struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new(webhooks: &str) -> Self {
        let lab = Self { folder: tempfile::tempdir().unwrap() };
        lab.write("notify.yaml", webhooks);
        std::fs::set_permissions(lab.path("notify.yaml"), PermissionsExt::from_mode(0o600)).unwrap();
        lab
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl"));
        command.current_dir(self.folder.path()).env("TOGL_STATE", self.path("state"));
        for name in ["TOGL_TOKEN", "TOGL_COORDINATOR", "TOGL_CONTEXT", "RUST_LOG", "http_proxy", "HTTP_PROXY"]
        {
            command.env_remove(name);
        }
        command
    }

    fn togl(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// `togl serve` that logs everything, once it serves.
    fn serve(&self, log: &str) -> Served {
        let err = std::fs::File::create(self.path(log)).unwrap();
        let mut command = self.command();
        command
            .args(["serve", "--listen", "127.0.0.1:0", "--notify", "notify.yaml"])
            .env("RUST_LOG", "trace");
        let served = Served(command.stderr(Stdio::from(err)).spawn().unwrap());
        until("it serves", || read(&self.path(log)).contains("togl-worker join"));
        served
    }

    /// What is kept of notifications.
    fn record(&self) -> Value {
        serde_json::from_str(&read(&self.path("state/notify.json"))).unwrap_or_default()
    }
}

/// Killed when it is dropped.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..LONG.as_millis() / 20 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20)); // between two looks
    }
    panic!("waited in vain until {what}");
}

const SWEEP: &str = "version: 1\nname: small\nbase: {dataset: necklaces, max_epochs: 1}\nsplits: [1, 2]\n";

const NO: &str = "HTTP/1.1 503 Later\r\ncontent-length: 0\r\n\r\n";
const MOVED: &str = "HTTP/1.1 302 There\r\nlocation: https://elsewhere.example/\r\ncontent-length: 0\r\n\r\n";

/// Two webhooks, of which one signs; nobody is there to take folds, which is told at once.
fn lab_of(pager: &Inbox, chat: &Inbox) -> Lab {
    let lab = Lab::new(&format!(
        "webhooks:\n  - {{name: pager, url: 'http://{}/HIDDEN', secret: {SECRET_KEY}}}\n  - {{name: chat, url: \
         'http://{}/HIDDEN', form: slack, on: [no-worker]}}\nno_worker_minutes: 0\n",
        pager.address, chat.address
    ));
    lab.write("sweep.yaml", SWEEP);
    lab
}

fn nothing_waits(lab: &Lab) -> bool {
    let record = lab.record();
    let waits =
        |name: &str| record["queues"][name]["waiting"].as_array().is_some_and(|letters| !letters.is_empty());
    record["told"]["begun"] == true && !waits("pager") && !waits("chat")
}

#[test]
fn what_is_told_arrives_once_although_the_receiver_fails_and_the_coordinator_is_killed() {
    let (pager, chat) = (Inbox::open(&[NO, "", MOVED]), Inbox::open(&[]));
    let lab = lab_of(&pager, &chat);
    let served = lab.serve("first.log");
    assert!(lab.togl(&["submit", "sweep.yaml"]).status.success());

    // One who fails holds up nobody else.
    let told = chat.next();
    assert!(
        told.body["text"].as_str().unwrap().starts_with("togl: 2 folds wait and no worker"),
        "{}",
        told.body
    );
    assert_eq!(told.header("webhook-signature"), None, "it has no key");

    let first = pager.next();
    assert_eq!(first.body["type"], "no-worker");
    assert!(first.header("webhook-signature").unwrap().starts_with("v1,"));
    let again = pager.next();
    assert_eq!((again.id(), &again.body), (first.id(), &first.body), "the same letter");
    until("it says so", || read(&lab.path("first.log")).contains("it answers 503"));
    assert_eq!(lab.record()["queues"]["pager"]["waiting"].as_array().unwrap().len(), 1, "it is kept");
    drop(served);

    // Started again, it tries at once and tells nothing anew.
    pager.answer(&[NO]);
    let served = lab.serve("second.log");
    until("it has arrived", || nothing_waits(&lab));
    for came in std::iter::from_fn(|| pager.came.try_recv().ok()) {
        assert_eq!(came.id(), first.id(), "nothing is told twice");
    }
    assert!(chat.came.try_recv().is_err(), "it was told before");
    drop(served);

    let mode = std::fs::metadata(lab.path("state/notify.json")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for file in ["first.log", "second.log", "state/notify.json"] {
        let text = read(&lab.path(file));
        for secret in ["HIDDEN", "MDEyMz", "elsewhere.example"] {
            assert!(!text.contains(secret), "{file} has {secret}");
        }
    }
}

#[test]
fn a_test_says_of_every_webhook_whether_it_arrives() {
    let (good, bad) = (Inbox::open(&[]), Inbox::open(&["HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"]));
    let lab = Lab::new(&format!(
        "webhooks:\n  - {{name: good, url: 'http://{}/HIDDEN', secret: {SECRET_KEY}}}\n  - {{name: bad, url: 'http://{}/HIDDEN', form: slack}}\n",
        good.address, bad.address
    ));
    let said = lab.togl(&["notify", "test", "notify.yaml"]);
    insta::assert_snapshot!(String::from_utf8(said.stdout).unwrap(), @"
    NAME  FORM   SIGNED  ARRIVED  REASON
    good  json   yes     yes
    bad   slack  no      no       it answers 404: the address is not known there (any more)
    ");
    assert_eq!((said.status.code(), said.stderr.is_empty()), (Some(1), true));
    assert_eq!(good.next().body["type"], "test");
    assert!(bad.next().body["text"].as_str().unwrap().contains("notifications arrive here"));

    let said = lab.togl(&["notify", "test", "notify.yaml", "--webhook", "good", "--format", "json"]);
    assert_eq!(said.status.code(), Some(0));
    let listed: Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!((&listed[0]["name"], &listed[0]["arrived"]), (&"good".into(), &true.into()));
    let said = lab.togl(&["notify", "test", "notify.yaml", "--webhook", "goud"]);
    assert_eq!(said.status.code(), Some(2));
    let said = String::from_utf8(said.stderr).unwrap();
    assert!(said.contains("no webhook is called `goud`") && said.contains("did you mean `good`?"), "{said}");
}

#[test]
fn a_bad_file_is_refused_before_anything_is_served() {
    let lab = Lab::new("webhooks: [{name: a, url: 'http://chat.example/HIDDEN'}]");
    let refused = |words: &str| {
        for verb in [
            &["serve", "--listen", "127.0.0.1:0", "--notify", "notify.yaml"][..],
            &["notify", "test", "notify.yaml"],
        ] {
            let said = lab.togl(verb);
            let text = String::from_utf8(said.stderr).unwrap();
            assert_eq!(said.status.code(), Some(2), "{text}");
            assert!(text.contains(words) && !text.contains("HIDDEN"), "{text}");
        }
        assert!(!lab.path("state/store.sqlite").exists());
    };
    refused("its url is not https://");
    std::fs::set_permissions(lab.path("notify.yaml"), PermissionsExt::from_mode(0o644)).unwrap();
    refused("chmod 600 notify.yaml");
    std::fs::remove_file(lab.path("notify.yaml")).unwrap();
    refused("cannot read the file of webhooks notify.yaml");
}
