//! What a program prints: each stream is read to its end whatever comes, short lines go into the log of the fold, and the last
//! ones are remembered for whoever asks why it died. Prints no more than a bound; what is beyond it is counted only.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The longest line of the log, in bytes.
const LONGEST: usize = 2_000;

/// Bytes of the log that are passed on.
const PASSED_ON: u64 = 4 << 20;

/// Lines that are remembered.
const REMEMBERED: usize = 20;

/// What was printed so far.
#[derive(Clone, Default)]
pub struct Words(Arc<Inner>);

#[derive(Default)]
struct Inner {
    bytes: AtomicU64,
    open: AtomicUsize,
    last: Mutex<VecDeque<String>>,
}

impl Words {
    /// Reads a stream on a thread of its own.
    pub fn read(&self, stream: impl Read + Send + 'static) -> io::Result<()> {
        let words = self.clone();
        words.0.open.fetch_add(1, Ordering::SeqCst);
        std::thread::Builder::new().name("words".to_owned()).spawn(move || {
            words.pump(stream);
            words.0.open.fetch_sub(1, Ordering::SeqCst);
        })?;
        Ok(())
    }

    fn pump(&self, mut stream: impl Read) {
        let (mut line, mut block) = (Vec::new(), [0; 1 << 14]);
        loop {
            let read = match stream.read(&mut block) {
                Ok(read) if read > 0 => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                _ => break,
            };
            let before = self.0.bytes.fetch_add(read as u64, Ordering::SeqCst);
            if before > PASSED_ON {
                continue;
            }
            for byte in &block[..read] {
                match byte {
                    b'\n' | b'\r' => self.note(&mut line),
                    byte if line.len() < LONGEST => line.push(*byte),
                    _ => {}
                }
            }
            if before + read as u64 > PASSED_ON {
                self.note(&mut line);
                eprintln!("the program has printed {} MiB; what follows is not in this log", PASSED_ON >> 20);
            }
        }
        self.note(&mut line);
    }

    fn note(&self, line: &mut Vec<u8>) {
        let text = String::from_utf8_lossy(line).into_owned();
        line.clear();
        if text.trim().is_empty() {
            return;
        }
        eprintln!("{text}");
        let mut last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.len() >= REMEMBERED {
            last.pop_front();
        }
        last.push_back(text);
    }

    /// Bytes that were printed.
    pub fn bytes(&self) -> u64 {
        self.0.bytes.load(Ordering::SeqCst)
    }

    /// Waits a moment until everything that was printed is read: somebody may hold the stream open for ever.
    pub fn settle(&self) {
        for _ in 0..100 {
            if self.0.open.load(Ordering::SeqCst) == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The last line; the one that tells of memory if there is one.
    pub fn last(&self) -> String {
        let last = self.0.last.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = last.iter().rev().find(|line| togl_learning::error::is_out_of_memory(line));
        let line = memory.or(last.back()).map(String::as_str).unwrap_or_default();
        line.chars().take(500).collect()
    }
}
