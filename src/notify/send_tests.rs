//! Deliveries to a receiver on this machine that does what it should not: refuses, hangs, points elsewhere, breaks off, says too
//! much, or speaks something else.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

use super::super::file::NotifyFile;
use super::*;

const KEY: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

fn thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    std::thread::Builder::new().name("receiver".to_owned()).spawn(work).expect("a thread")
}

/// What a receiver does with a letter that it has read.
type Manner = fn(&mut TcpStream);

/// Somebody who takes one letter in a manner of his own.
struct Receiver {
    hook: Hook,
    read: JoinHandle<String>,
}

fn receiver(manner: Manner) -> Receiver {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let read = thread(move || {
        let (mut stream, _) = listener.accept().expect("a letter");
        let request = request(&mut stream);
        manner(&mut stream);
        request
    });
    Receiver { hook: hook(&format!("http://{address}/SECRET?token=SECRET")), read }
}

fn hook(url: &str) -> Hook {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify.yaml");
    let text = format!("webhooks: [{{name: here, url: \"{url}\", secret: {KEY}}}]");
    std::fs::write(&path, text).expect("a file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).expect("a mode");
    NotifyFile::read(&path).expect("a good file").hooks.remove(0)
}

/// A whole request: its head, and as much as that says.
fn request(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let count = stream.read(&mut bytes).expect("a request");
        text += &String::from_utf8_lossy(&bytes[..count]);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn attempt(hook: &Hook, patience: Duration) -> Result<(), Returned> {
    let letter = Letter::test("msg_7".to_owned(), 1_794_812_999);
    let outcome = Sender { authorities: None, patience }.deliver(hook, &letter, 1_794_812_999);
    if let Err(said) = &outcome {
        assert!(!said.contains("SECRET") && !said.contains("127.0.0.1"), "{said}");
    }
    outcome
}

/// What comes of a letter to a receiver of this manner.
fn outcome(manner: Manner) -> Result<(), Returned> {
    attempt(&receiver(manner).hook, PATIENCE)
}

fn say(stream: &mut TcpStream, words: &str) {
    _ = stream.write_all(words.as_bytes()); // whoever has heard enough hangs up
}

#[test]
fn a_letter_arrives_signed_and_the_signature_holds() {
    let receiver = receiver(|stream| say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"));
    attempt(&receiver.hook, PATIENCE).expect("delivered");
    let read = receiver.read.join().expect("a request");
    let (head, body) = read.split_once("\r\n\r\n").expect("a head");
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.unwrap_or_else(|| panic!("no {name} in {head}"))
    };
    assert!(head.starts_with("POST /SECRET?token=SECRET HTTP/1.1"), "{head}");
    assert_eq!((header("webhook-id"), header("webhook-timestamp")), ("msg_7", "1794812999"));
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"0123456789abcdef0123456789abcdef");
    let tag = STANDARD
        .decode(header("webhook-signature").strip_prefix("v1,").expect("its version"))
        .expect("base64");
    hmac::verify(&key, format!("msg_7.1794812999.{body}").as_bytes(), &tag).expect("a good signature");
    assert!(hmac::verify(&key, format!("msg_7.1794813000.{body}").as_bytes(), &tag).is_err());
    let document: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(document["type"], "test");
}

/// The example of the specification and of its libraries.
#[test]
fn a_signature_is_the_one_that_libraries_check() {
    let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("base64");
    let signed = signature(&key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", r#"{"test": 2432232314}"#);
    assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn a_refusal_is_told_by_its_number() {
    assert_eq!(
        outcome(|s| say(s, "HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n")),
        Err("it answers 500".to_owned())
    );
    let gone = outcome(|s| say(s, "HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n")).expect_err("gone");
    assert!(gone.contains("404") && gone.contains("not known"), "{gone}");
    assert!(outcome(|s| say(s, "HTTP/1.1 204 Fine\r\n\r\n")).is_ok());
}

#[test]
fn nothing_is_sent_to_where_a_receiver_points() {
    for status in [301, 302, 303, 307, 308] {
        let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
        elsewhere.set_nonblocking(true).expect("a listener that does not wait");
        let here = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let to = elsewhere.local_addr().expect("an address");
        let url = format!("http://{}/SECRET", here.local_addr().expect("an address"));
        let answers = thread(move || {
            let (mut stream, _) = here.accept().expect("a letter");
            request(&mut stream);
            say(
                &mut stream,
                &format!("HTTP/1.1 {status} There\r\nlocation: http://{to}/x\r\ncontent-length: 0\r\n\r\n"),
            );
        });
        let said = attempt(&hook(&url), PATIENCE).expect_err("a redirect");
        answers.join().expect("an answer");
        assert!(said.contains("not followed") && said.contains(&status.to_string()), "{said}");
        let nobody = elsewhere.accept().map(|_| ()).map_err(|error| error.kind());
        assert_eq!(nobody, Err(std::io::ErrorKind::WouldBlock), "{status}");
    }
}

#[test]
fn a_receiver_that_hangs_or_dribbles_is_given_up_in_time() {
    let patience = Duration::from_secs(1);
    // Both hang up when we do.
    let silent = receiver(|stream| drop(stream.read(&mut [0])));
    assert_eq!(attempt(&silent.hook, patience), Err("no answer within 1 seconds".to_owned()));
    let slow = receiver(|stream| {
        while stream.write_all(b"H").is_ok() {
            std::thread::yield_now();
        }
    });
    attempt(&slow.hook, patience).expect_err("no answer");
    // Connected by the system, and never accepted.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let deaf = hook(&format!("http://{}/", listener.local_addr().expect("an address")));
    assert_eq!(attempt(&deaf, patience), Err("no answer within 1 seconds".to_owned()));
}

#[test]
fn an_answer_that_never_ends_is_not_read() {
    // The status has come; what follows is nobody's concern.
    let endless = outcome(|stream| {
        say(stream, "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n");
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    assert_eq!(endless, Ok(()));
    let head = outcome(|stream| {
        say(stream, "HTTP/1.1 200 OK\r\n");
        while stream.write_all(b"x-more: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n").is_ok() {}
    });
    head.expect_err("a head without an end");
}

#[test]
fn a_receiver_that_breaks_off_or_speaks_something_else_has_taken_nothing() {
    outcome(|stream| drop(stream.shutdown(std::net::Shutdown::Both))).expect_err("closed");
    outcome(|stream| say(stream, "HTTP/1.1 2")).expect_err("closed midway");
    outcome(|stream| say(stream, "220 mail.example ESMTP\r\n")).expect_err("not HTTP");
    outcome(|stream| say(stream, "HTTP/1.1 99 Odd\r\n\r\n")).expect_err("no status");
    let nobody =
        TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port");
    assert_eq!(
        attempt(&hook(&format!("http://{nobody}/")), PATIENCE),
        Err("nobody listens there".to_owned())
    );
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_not_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("https://{}/SECRET", listener.local_addr().expect("an address"));
    let answers = thread(move || {
        let (mut stream, _) = listener.accept().expect("a letter");
        drop(stream.read(&mut [0; 64]));
        say(&mut stream, "HTTP/1.1 200 OK\r\n\r\n"); // in the clear, where TLS was asked for
    });
    attempt(&hook(&url), PATIENCE).expect_err("not over TLS");
    answers.join().expect("an answer");
}
