//! Fetching against a small HTTP server on the loopback device that breaks off, refuses, or changes its mind.

mod server;

use std::net::TcpListener;
use std::path::Path;
use std::sync::Mutex;

use server::{Answer, Server};
use tempfile::TempDir;
use togl_data::{DataProgress, FetchError, FetchOptions, FetchOutcome, Fetched, fetch};

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

fn options(folder: &TempDir, mirror: &str) -> FetchOptions {
    FetchOptions {
        data_dir: folder.path().join("data"),
        mirror: Some(mirror.to_string()),
        ..FetchOptions::default()
    }
}

fn run(folder: &TempDir, answers: Vec<Answer>) -> (Result<Vec<Fetched>, FetchError>, Vec<String>) {
    let server = Server::start(answers);
    let fetched = fetch("MUTAG", &options(folder, &server.address), &|_| ());
    (fetched, server.finish())
}

fn new_folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// What lies in the folder of the set, the digest record left out.
fn files(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path().join("data/tu")).expect("folder");
    let names = entries.map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.ends_with(".sha256")).collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_under_its_name_when_it_is_complete() {
    let folder = new_folder();
    let content = content(300_000);
    let (fetched, requests) = run(&folder, vec![Answer::full(&content)]);
    let fetched = fetched.expect("a sound server");
    assert_eq!((fetched[0].outcome, fetched[0].bytes), (FetchOutcome::Downloaded, 300_000));
    assert!(requests[0].starts_with("get /tu/mutag.zip "), "{}", requests[0]);
    assert_eq!(std::fs::read(&fetched[0].path).expect("file"), content);
    assert_eq!(files(&folder), ["MUTAG.zip"]);
}

#[test]
fn a_connection_closed_in_the_middle_is_continued_where_it_stopped() {
    let folder = new_folder();
    let content = content(300_000);
    let answers = vec![Answer::cut(&content, 100_000), Answer::cut(&content, 50_000), Answer::full(&content)];
    let (fetched, requests) = run(&folder, answers);
    assert_eq!(std::fs::read(&fetched.expect("three connections")[0].path).expect("file"), content);
    assert!(!requests[0].contains("range: "), "{}", requests[0]);
    for (request, start) in requests[1..].iter().zip([100_000, 150_000]) {
        assert!(request.contains(&format!("range: bytes={start}-\n")), "{request}");
        assert!(request.contains("if-range: \"one\"\n"), "{request}");
    }
}

#[test]
fn what_came_before_everything_failed_is_kept_for_the_next_time() {
    let folder = new_folder();
    let content = content(200_000);
    let broken = vec![
        Answer::cut(&content, 90_000),
        Answer::cut(&content, 0),
        Answer::cut(&content, 0),
        Answer::cut(&content, 0),
    ];
    let (failed, _) = run(&folder, broken);
    let error = failed.expect_err("three attempts brought nothing");
    assert!(matches!(error, FetchError::Interrupted { done: 90_000, total: Some(200_000), .. }), "{error}");
    assert!(!files(&folder).contains(&"MUTAG.zip".to_string()), "nothing unfinished has the name");
    let (fetched, requests) = run(&folder, vec![Answer::full(&content)]);
    let fetched = fetched.expect("a sound server");
    assert_eq!(fetched[0].outcome, FetchOutcome::Resumed);
    assert!(requests[0].contains("range: bytes=90000-\n"), "{}", requests[0]);
    assert_eq!(std::fs::read(&fetched[0].path).expect("file"), content);
    assert_eq!(files(&folder), ["MUTAG.zip"]);
}

#[test]
fn a_file_that_changed_between_two_attempts_is_downloaded_from_its_start() {
    let folder = new_folder();
    let (old, new) = (content(200_000), vec![7; 150_000]);
    let changed = Answer { etag: Some("\"two\""), ..Answer::full(&new) };
    let (fetched, _) = run(&folder, vec![Answer::cut(&old, 90_000), changed]);
    assert_eq!(std::fs::read(&fetched.expect("complete")[0].path).expect("file"), new);
}

#[test]
fn a_server_without_ranges_or_marks_is_asked_for_the_whole_file_again() {
    for (etag, ignore_range) in [(None, false), (Some("W/\"weak\""), false), (Some("\"one\""), true)] {
        let folder = new_folder();
        let content = content(120_000);
        let plain = Answer { etag, ignore_range, ..Answer::full(&content) };
        let cut = Answer { cut_after: Some(50_000), ..plain.clone() };
        let (fetched, _) = run(&folder, vec![cut, plain]);
        assert_eq!(std::fs::read(&fetched.expect("complete")[0].path).expect("file"), content, "{etag:?}");
    }
}

#[test]
fn an_answer_that_is_not_the_file_is_an_error_with_the_address() {
    let folder = new_folder();
    let (failed, _) = run(&folder, vec![Answer::status(404)]);
    let error = failed.expect_err("not found");
    assert!(error.to_string().ends_with("/tu/MUTAG.zip: the server answered 404"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.starts_with("check the name")), "{error:?}");
    assert_eq!(files(&folder), Vec::<String>::new());
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_not_a_wait() {
    let folder = new_folder();
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound");
    let failed = fetch("MUTAG", &options(&folder, &format!("http://{free}")), &|_| ());
    assert!(matches!(failed, Err(FetchError::Transport { .. })), "{failed:?}");
}

#[test]
fn a_file_without_authorities_is_named_before_anything_is_asked() {
    let folder = new_folder();
    let ca_file = folder.path().join("authorities.pem");
    std::fs::write(&ca_file, "nothing of the kind").expect("file");
    let options = FetchOptions { ca_file: Some(ca_file), ..options(&folder, "http://127.0.0.1:1") };
    let error = fetch("MUTAG", &options, &|_| ()).expect_err("no certificates").to_string();
    assert!(error.contains("authorities.pem holds no certificates"), "{error}");
}

#[test]
fn what_is_there_already_is_not_fetched_again_and_a_change_is_reported() {
    let folder = new_folder();
    let (first, _) = run(&folder, vec![Answer::full(b"first")]);
    let first = first.expect("complete");
    let (second, requests) = run(&folder, Vec::new());
    let second = second.expect("present");
    assert_eq!((second[0].outcome, &second[0].sha256), (FetchOutcome::Present, &first[0].sha256));
    assert!(requests.is_empty() && second[0].warning.is_none());
    std::fs::write(&first[0].path, "swapped").expect("file");
    let (third, _) = run(&folder, Vec::new());
    assert!(third.expect("present")[0].warning.as_ref().is_some_and(|text| text.contains("has changed")));
}

#[test]
fn a_published_file_that_is_not_what_it_was_at_first_comes_with_a_warning() {
    let folder = new_folder();
    run(&folder, vec![Answer::full(b"first")]).0.expect("complete");
    let server = Server::start(vec![Answer::full(b"other")]);
    let again = FetchOptions { again: true, ..options(&folder, &server.address) };
    let fetched = fetch("MUTAG", &again, &|_| ()).expect("complete");
    server.finish();
    assert!(fetched[0].warning.as_ref().is_some_and(|text| text.contains("since it was first fetched")));
    assert_eq!(std::fs::read(&fetched[0].path).expect("file"), b"other");
}

#[test]
fn content_that_is_not_the_pinned_one_is_not_kept() {
    let folder = new_folder();
    let server = Server::start(vec![Answer::full(b"<html>log in first</html>")]);
    let failed = fetch("cifar10", &options(&folder, &server.address), &|_| ());
    server.finish();
    let error = failed.expect_err("not the archive").to_string();
    assert!(error.contains("c4a38c50a1bc5f3a") && error.contains("was not kept"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path().join("data/cifar10")).expect("folder").count(), 0);
}

#[test]
fn published_folds_come_with_their_set() {
    let folder = new_folder();
    let server =
        Server::start(vec![Answer::full(b"zip"), Answer::full(b"0"), Answer::full(b"1"), Answer::full(b"2")]);
    let fetched = fetch("dd", &options(&folder, &server.address), &|_| ()).expect("complete");
    let requests = server.finish();
    assert_eq!(fetched.len(), 4);
    assert!(requests[3].starts_with("get /splits/dd_test.index "), "{}", requests[3]);
    assert!(folder.path().join("data/splits/DD_val.index").is_file());
}

#[test]
fn a_folder_serves_where_there_is_no_network() {
    let folder = new_folder();
    let stick = folder.path().join("stick");
    for (name, from) in [("tu/MUTAG.zip", "laid out"), ("MUTAG.zip", "flat")] {
        let path = stick.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
        std::fs::write(path, from).expect("file");
    }
    let copied = |data_dir: &Path| {
        let options = FetchOptions {
            data_dir: data_dir.to_path_buf(),
            from: Some(stick.clone()),
            ..FetchOptions::default()
        };
        fetch("MUTAG", &options, &|_| ())
    };
    let first = copied(&folder.path().join("a")).expect("on the stick");
    assert_eq!((first[0].outcome, first[0].bytes), (FetchOutcome::Copied, 8));
    std::fs::remove_file(stick.join("tu/MUTAG.zip")).expect("file");
    assert_eq!(copied(&folder.path().join("b")).expect("on the stick")[0].bytes, 4);
    std::fs::remove_file(stick.join("MUTAG.zip")).expect("file");
    let error = copied(&folder.path().join("c")).expect_err("nothing there");
    assert!(error.to_string().contains("no MUTAG.zip in"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("https://")), "{error:?}");
}

#[test]
fn generated_sets_need_nothing_and_unknown_ones_are_refused() {
    let folder = new_folder();
    let nowhere = options(&folder, "http://127.0.0.1:1");
    assert_eq!(fetch("cycles", &nowhere, &|_| ()).expect("nothing to do"), []);
    assert!(!folder.path().join("data").exists(), "nothing is written either");
    assert!(matches!(fetch("../x", &nowhere, &|_| ()), Err(FetchError::Dataset(_))));
}

#[test]
fn the_observer_hears_how_far_the_download_is() {
    let folder = new_folder();
    let content = content(1_000_000);
    let server = Server::start(vec![Answer::full(&content)]);
    let heard = Mutex::new(Vec::new());
    let observer =
        |progress: DataProgress| heard.lock().expect("no panic").push((progress.done, progress.total));
    fetch("MUTAG", &options(&folder, &server.address), &observer).expect("complete");
    server.finish();
    let heard = heard.into_inner().expect("no panic");
    assert_eq!(heard.first(), Some(&(0, Some(1_000_000))));
    assert_eq!(heard.last(), Some(&(1_000_000, Some(1_000_000))));
    assert!(heard.len() > 3 && heard.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{heard:?}");
}
