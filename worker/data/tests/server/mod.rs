//! A small HTTP server on the loopback device that breaks off, refuses, or changes its mind, for tests of fetching.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// One answer of the server.
#[derive(Clone)]
pub struct Answer {
    pub status: u16,
    pub etag: Option<&'static str>,
    pub content: Vec<u8>,
    /// Bytes of the body after which the connection is closed.
    pub cut_after: Option<usize>,
    pub ignore_range: bool,
}

impl Answer {
    pub fn full(content: &[u8]) -> Answer {
        Answer {
            status: 200,
            etag: Some("\"one\""),
            content: content.to_vec(),
            cut_after: None,
            ignore_range: false,
        }
    }

    pub fn cut(content: &[u8], after: usize) -> Answer {
        Answer { cut_after: Some(after), ..Answer::full(content) }
    }

    pub fn status(status: u16) -> Answer {
        Answer { status, ..Answer::full(b"no") }
    }
}

/// Gives its answers in turn, then closes; remembers the requests.
pub struct Server {
    pub address: String,
    requests: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(answers: Vec<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = format!("http://{}", listener.local_addr().expect("bound"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = requests.clone();
        let serve = move || {
            for answer in answers {
                let (stream, _) = listener.accept().expect("a client");
                let request = read_request(&stream);
                log.lock().expect("no panic").push(request.clone());
                give(stream, &request, &answer);
            }
        };
        let thread = std::thread::Builder::new().name("server".to_string()).spawn(serve).expect("a thread");
        Server { address, requests, thread: Some(thread) }
    }

    /// The requests, after all answers were given.
    pub fn finish(mut self) -> Vec<String> {
        self.thread.take().expect("once").join().expect("the server did not panic");
        self.requests.lock().expect("no panic").clone()
    }
}

fn read_request(stream: &TcpStream) -> String {
    let mut text = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.expect("text");
        if line.is_empty() {
            break;
        }
        text.push_str(&line.to_ascii_lowercase());
        text.push('\n');
    }
    text
}

fn give(mut stream: TcpStream, request: &str, answer: &Answer) {
    let start =
        request.lines().find_map(|line| line.strip_prefix("range: bytes=")?.strip_suffix('-')?.parse().ok());
    let mark = request.lines().find_map(|line| line.strip_prefix("if-range: "));
    let start = start.filter(|_| !answer.ignore_range && mark == answer.etag);
    let body = &answer.content[start.unwrap_or(0)..];
    let status = if start.is_some() { 206 } else { answer.status };
    let mut head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n", body.len());
    if let Some(etag) = answer.etag {
        head.push_str(&format!("ETag: {etag}\r\n"));
    }
    if let Some(start) = start {
        let (last, all) = (answer.content.len() - 1, answer.content.len());
        head.push_str(&format!("Content-Range: bytes {start}-{last}/{all}\r\n"));
    }
    let sent = answer.cut_after.map_or(body, |after| &body[..after.min(body.len())]);
    // The client may have gone; that is its affair.
    let _ = stream.write_all(format!("{head}\r\n").as_bytes());
    let _ = stream.write_all(sent);
}
