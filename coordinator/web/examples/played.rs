//! A page without a coordinator, for the browser run: the played source of the HTTP tests, steered by lines on standard
//! input. `finished N`, `table`, `away`, `back` and `link` do what they say; the end of the input ends it.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "only tests run it, which read what it prints")]

#[path = "../tests/http/played.rs"]
mod played;

use std::io::BufRead;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use played::Played;
use togl_web::{PageSettings, Web};
use tokio::net::TcpListener;

#[expect(clippy::disallowed_methods, reason = "a program has to begin somewhere")]
fn now() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

/// Anybody could guess these; nobody else is there.
fn secret() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("{:064x}", NEXT.fetch_add(1, Ordering::SeqCst))
}

/// Does what a line says; gives what is to be printed.
fn obey(line: &str, source: &Played, web: &Web<Played>) -> Option<String> {
    match line.split_once(' ').unwrap_or((line, "")) {
        ("finished", count) => source.finished.store(count.parse().unwrap(), Ordering::SeqCst),
        ("table", _) => _ = source.version.fetch_add(1, Ordering::SeqCst),
        ("away", _) => *source.away.lock().unwrap() = true,
        ("back", _) => *source.away.lock().unwrap() = false,
        ("link", _) => return Some(web.link()),
        ("acts", _) => return Some(source.acts.lock().unwrap().join(", ")),
        other => panic!("what is {other:?}?"),
    }
    None
}

#[tokio::main]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let source = Arc::new(Played::default());
    let may_steer = std::env::args().all(|word| word != "--look");
    let web = Web::new(source.clone(), PageSettings { port, may_steer, now, secret });
    println!("{}", web.link());
    let steered = web.clone();
    let (ended, end) = tokio::sync::oneshot::channel::<()>();
    let listen = move || {
        for line in std::io::stdin().lock().lines() {
            if let Some(answer) = obey(&line.unwrap(), &source, &steered) {
                println!("{answer}");
            }
        }
        drop(ended);
    };
    std::thread::Builder::new().name("stdin".to_owned()).spawn(listen).unwrap();
    tokio::select! {
        served = web.serve(listener) => served.unwrap(),
        _ = end => {}
    }
}
