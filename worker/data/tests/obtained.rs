//! What those who train call: a data set whose files are missing is fetched first, once for all who ask, and an
//! error says which file, from where, and how else to get it.

mod server;

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use server::{Answer, Server};
use tempfile::TempDir;
use togl_data::{CacheOutcome, Error, ObtainError, OpenOptions, Opened, Supply, obtain};
use zip::write::SimpleFileOptions;

/// Ten graphs of two nodes in the format of the TU collection, as the archive that the site would send.
fn archive(name: &str) -> Vec<u8> {
    let edges: String =
        (0..10).map(|graph| format!("{0}, {1}\n{1}, {0}\n", 2 * graph + 1, 2 * graph + 2)).collect();
    let nodes: String = (0..20).map(|node| format!("{}\n", node / 2 + 1)).collect();
    let labels: String = (0..10).map(|graph| format!("{}\n", graph % 2)).collect();
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (part, text) in [("A", edges), ("graph_indicator", nodes), ("graph_labels", labels)] {
        out.start_file(format!("{name}/{name}_{part}.txt"), SimpleFileOptions::default()).expect("in memory");
        out.write_all(text.as_bytes()).expect("in memory");
    }
    out.finish().expect("in memory").into_inner()
}

fn options(folder: &Path) -> OpenOptions {
    OpenOptions {
        data_dir: Some(folder.join("data")),
        cache_dir: Some(folder.join("cache")),
        ..OpenOptions::default()
    }
}

fn from_mirror(address: &str) -> Supply {
    Supply { mirror: Some(address.to_string()), ..Supply::default() }
}

fn ask(folder: &Path, name: &str, supply: &Supply) -> Result<Opened, ObtainError> {
    obtain(name, &options(folder), supply, &|_| ())
}

fn new_folder() -> TempDir {
    tempfile::tempdir().expect("temporary folder")
}

/// An address where nobody listens.
fn nobody() -> String {
    format!("http://{}", TcpListener::bind("127.0.0.1:0").expect("a free port").local_addr().expect("bound"))
}

#[test]
fn missing_files_are_fetched_before_the_set_is_opened() {
    let folder = new_folder();
    let server = Server::start(vec![Answer::full(&archive("MUTAG"))]);
    let opened = ask(folder.path(), "mutag", &from_mirror(&server.address)).expect("fetched and read");
    assert_eq!(opened.dataset.graph_count(), 10);
    assert_eq!(server.finish().len(), 1);
    assert!(folder.path().join("data/tu/MUTAG.zip").is_file());
    let again = ask(folder.path(), "MUTAG", &from_mirror(&nobody())).expect("it is there");
    assert_eq!(again.cache, CacheOutcome::Hit);
}

#[test]
fn what_lies_elsewhere_in_the_data_folder_is_not_fetched() {
    let folder = new_folder();
    std::fs::create_dir_all(folder.path().join("data")).expect("folder");
    std::fs::write(folder.path().join("data/DD.zip"), archive("DD")).expect("file");
    let parts: [String; 3] = [0, 1, 2].map(|part| {
        // Ten folds: six graphs train, two validate, two test, turning by one.
        let size = [6, 2, 2][part];
        let first = [0, 6, 8][part];
        let fold = |fold: usize| {
            let members = (first..first + size).map(|graph| ((graph + fold) % 10).to_string());
            members.collect::<Vec<_>>().join(",")
        };
        (0..10).map(|number| fold(number) + "\n").collect()
    });
    let server = Server::start(parts.iter().map(|part| Answer::full(part.as_bytes())).collect());
    let opened = ask(folder.path(), "DD", &from_mirror(&server.address)).expect("folds fetched");
    assert_eq!(opened.dataset.published_splits().len(), 10);
    let requests = server.finish();
    assert!(requests.iter().all(|request| request.starts_with("get /splits/dd_")), "{requests:?}");
}

#[test]
fn a_set_that_is_there_needs_no_network_and_no_permission_to_write() {
    let folder = new_folder();
    let tu = folder.path().join("data/tu");
    std::fs::create_dir_all(&tu).expect("folder");
    std::fs::write(tu.join("MUTAG.zip"), archive("MUTAG")).expect("file");
    ask(folder.path(), "MUTAG", &from_mirror(&nobody())).expect("it is there");
    ask(folder.path(), "cycles", &from_mirror(&nobody())).expect("it is generated");
    let entries = std::fs::read_dir(folder.path().join("data")).expect("folder");
    assert_eq!(entries.count(), 1, "no lock or record was written beside it");
}

#[test]
fn without_a_network_the_error_says_which_file_from_where_and_what_to_do() {
    let folder = new_folder();
    let address = nobody();
    let error = ask(folder.path(), "MUTAG", &from_mirror(&address)).expect_err("nobody listens");
    assert!(error.is_passing());
    let text = format!("{error}; {}", error.hint().expect("a way out"));
    for part in [
        "the files of MUTAG are missing and cannot be fetched: ",
        &format!("{address}/tu/MUTAG.zip: "),
        "; get them with `togl data fetch MUTAG`",
        "download https://www.chrsmrrs.com/graphkerneldatasets/MUTAG.zip elsewhere",
        "`togl data fetch MUTAG --from DIR`",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert_eq!(text.matches("fetch from a folder").count(), 0, "one hint is enough: {text}");
}

#[test]
fn offline_nothing_is_asked_and_nothing_is_written() {
    let folder = new_folder();
    let offline = Supply { offline: true, ..from_mirror(&nobody()) };
    let error = ask(folder.path(), "MUTAG", &offline).expect_err("no files");
    assert!(matches!(error, ObtainError::Open(Error::MissingFiles { .. })) && !error.is_passing());
    assert!(!folder.path().join("data").exists());
}

#[test]
fn a_slip_of_the_pen_is_answered_with_the_nearest_name_and_not_looked_for() {
    let folder = new_folder();
    let error = ask(folder.path(), "MUTGA", &from_mirror(&nobody())).expect_err("unknown");
    assert!(error.to_string().contains("unknown data set `MUTGA`"), "{error}");
    assert!(error.hint().is_some_and(|hint| hint.contains("did you mean `MUTAG`?")), "{error:?}");
}

#[test]
fn what_the_server_refuses_or_the_disk_is_an_error_that_stays() {
    let folder = new_folder();
    let server = Server::start(vec![Answer::status(404)]);
    let error = ask(folder.path(), "MUTAG", &from_mirror(&server.address)).expect_err("not there");
    server.finish();
    assert!(error.to_string().contains("the server answered 404") && !error.is_passing(), "{error}");
    let blocked = folder.path().join("blocked");
    std::fs::write(&blocked, "a file where the folder should be").expect("file");
    let options = OpenOptions { data_dir: Some(blocked.clone()), ..OpenOptions::default() };
    let error = obtain("MUTAG", &options, &from_mirror(&nobody()), &|_| ()).expect_err("no folder");
    let text = error.to_string();
    assert!(text.contains("cannot write") && text.contains("blocked"), "{text}");
}

#[test]
fn a_folder_can_be_the_supply() {
    let folder = new_folder();
    std::fs::write(folder.path().join("MUTAG.zip"), archive("MUTAG")).expect("file");
    let supply = Supply { from: Some(folder.path().to_path_buf()), ..Supply::default() };
    assert_eq!(ask(folder.path(), "MUTAG", &supply).expect("copied").dataset.graph_count(), 10);
}

const CHILD_FOLDER: &str = "TOGL_TEST_OBTAIN_FOLDER";
const CHILD_MIRROR: &str = "TOGL_TEST_OBTAIN_MIRROR";
const PROCESSES: usize = 4;
const THREADS: usize = 3;

fn ask_from_many_threads(folder: &Path, mirror: &str) {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let opened = ask(folder, "MUTAG", &from_mirror(mirror)).expect("fetched by somebody");
                assert_eq!(opened.dataset.graph_count(), 10);
            });
        }
    });
}

/// Does nothing by itself: the next test starts this program again and asks for this one.
#[test]
fn one_of_many_processes() {
    let (Some(folder), Ok(mirror)) = (std::env::var_os(CHILD_FOLDER), std::env::var(CHILD_MIRROR)) else {
        return;
    };
    ask_from_many_threads(Path::new(&folder), &mirror);
}

#[test]
fn many_processes_that_ask_at_once_cause_one_download() {
    let folder = new_folder();
    // One answer only: whoever asked for more would find the door closed and fail.
    let server = Server::start(vec![Answer::full(&archive("MUTAG"))]);
    let start = || {
        Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "one_of_many_processes"])
            .env(CHILD_FOLDER, folder.path())
            .env(CHILD_MIRROR, &server.address)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process")
    };
    let children: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    ask_from_many_threads(folder.path(), &server.address);
    for child in children {
        let output = child.wait_with_output().expect("it ended");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
    }
    assert_eq!(server.finish().len(), 1);
}
