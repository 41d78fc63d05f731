//! Exports as a user meets them: files that are whole and the same each time, and one line where a server is away, is none, or
//! refuses. The store is that of a real coordinator with simulated workers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod desk;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread;

use desk::Desk;

/// A desk with a store of 30 finished folds of the sweep `bench`, three trials on ten splits.
fn filled() -> Desk {
    let desk = Desk::new();
    let state = desk.path("state");
    let folds = ["bench", "dispatch", "--folds", "30", "--workers", "2", "--slots", "2", "--keep"];
    let said = desk.togl(&[&folds[..], &[state.to_str().unwrap()]].concat());
    assert_eq!(said.code, 0, "{}", said.err);
    desk
}

fn files(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push((path.clone(), fs::read(path).unwrap())) }
    }
    found.sort();
}

#[test]
fn event_files_are_one_a_fold_and_a_second_export_leaves_them_alone() {
    let desk = filled();
    let said = desk.togl(&["export", "tensorboard", "bench", "--out", "runs"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("wrote 30 event files below runs; 0 there already"), "{}", said.err);
    let (mut first, mut second) = (Vec::new(), Vec::new());
    files(&desk.path("runs"), &mut first);
    let said = desk.togl(&["export", "tensorboard", "bench", "--out", "runs"]);
    files(&desk.path("runs"), &mut second);
    assert!(first.len() == 30 && first == second, "{}", said.err);
    assert!(said.err.contains("wrote 0 event files below runs; 30 there already"), "{}", said.err);
}

#[test]
fn runs_for_weights_and_biases_are_read_back_and_make_the_same_table() {
    let desk = filled();
    let said = desk.togl(&["export", "wandb-csv", "bench", "--out", "out.csv"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(fs::read_to_string(desk.path("out-curves.csv")).unwrap().lines().count() > 1, "{}", said.err);
    let said = desk.togl(&["import", "wandb", "out.csv", "--out", "back.parquet"]);
    assert_eq!((said.code, said.err.as_str()), (0, "wrote 30 folds to back.parquet\n"));
    let rows = ["--rows", "data_seed", "--format", "csv"];
    let saved = desk.togl(&[&["table", "--from", "back.parquet"], &rows[..]].concat());
    let stored = desk.togl(&[&["table", "bench"], &rows[..]].concat());
    assert_eq!((saved.code, &saved.out), (0, &stored.out), "{}", saved.err);
}

/// A server that answers every request with this, and its address.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let listen = move || {
        for stream in listener.incoming() {
            let (mut stream, mut asked) = (stream.unwrap(), [0; 4096]);
            let _ = stream.read(&mut asked);
            let _ = stream.write_all(answer.as_bytes());
        }
    };
    drop(thread::Builder::new().name("server".to_owned()).spawn(listen).unwrap());
    address
}

#[test]
fn what_is_wrong_with_a_server_is_said_in_one_line_with_what_to_do() {
    let desk = filled();
    let to = |url: &str| desk.togl(&["export", "mlflow", "bench", "--to", url]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // nobody listens there any more
    to(&format!("http://{free}")).fails(3, &format!("no MLflow server answers at http://{free}: "));
    to("127.0.0.1:5000").fails(2, "`127.0.0.1:5000` is no address of a server");
    to("http://127.0.0.1:5000/#/experiments/0").fails(2, "is no address of a server");
    let page = "HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n<html>\nA page.\n";
    to(&answering(page)).fails(2, "answers, but not as an MLflow server: 200 <html> A page.");
    let locked = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    to(&answering(locked)).fails(2, "does not let us in (401)");
    let refusal = "HTTP/1.1 400 Bad Request\r\nContent-Length: 60\r\nConnection: close\r\n\r\n\
                   {\"error_code\":\"INVALID_PARAMETER_VALUE\",\"message\":\"too big\"}";
    let said = to(&answering(refusal));
    said.fails(2, "refused experiments/search: INVALID_PARAMETER_VALUE: too big");
    assert_eq!(said.err.matches("error:").count(), 1, "{}", said.err);
    assert!(said.err.contains("hint: "), "{}", said.err);
    desk.togl(&["export", "mlflow", "bench", "--to", "http://x", "--experiment", "it's"])
        .fails(2, "`it's` cannot be the name of an experiment");
}

#[test]
fn a_sweep_without_a_finished_fold_and_a_folder_that_is_none_are_told() {
    let desk = filled();
    desk.togl(&["export", "tensorboard", "bench", "--out", "runs.csv"])
        .fails(2, "cannot write the event files");
    desk.togl(&["export", "wandb-csv", "bench", "--out", "x.csv", "--filter", "data_seed=99"])
        .fails(1, "no finished fold of bench is to be exported");
    assert!(!desk.path("x.csv").exists());
    desk.togl(&["export", "wandb-csv", "other", "--out", "x.csv"]).fails(1, "other");
}
