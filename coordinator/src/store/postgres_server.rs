//! A real PostgreSQL for tests: made in a temporary folder, reached through a socket in it, killed as hard as a test
//! likes, gone at the end. Runs as the user `postgres` where the tests run as root, because it refuses root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use ::postgres::{Client, Config, NoTls};
use tempfile::TempDir;

use super::postgres::PostgresAccess;

/// A running server.
pub(crate) struct Server {
    folder: TempDir,
    programs: PathBuf,
    databases: AtomicU32,
    fsync: &'static str,
}

/// Where Debian puts the programs; none if they are not installed.
fn programs() -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop()
}

impl Server {
    /// Starts a server, or says why not.
    pub(crate) fn start() -> Option<Self> {
        Self::make("on")
    }

    /// Starts a server that does not wait for the disk, where durability is not what is tested.
    pub(crate) fn quick() -> Option<Self> {
        Self::make("off")
    }

    /// Starts a server that listens at a port of this machine, and says at which.
    pub(crate) fn on_a_port() -> Option<(Self, u16)> {
        let server = Self::make("off")?;
        let port = server.listen("");
        Some((server, port))
    }

    /// The same, with TLS.
    pub(crate) fn encrypted(certificate: &str, key: &str) -> Option<(Self, u16)> {
        use std::os::unix::fs::PermissionsExt;
        let server = Self::make("off")?;
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let file = server.data().join(name);
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
            if is_root() {
                run(Command::new("chown").arg("postgres").arg(&file));
            }
        }
        let port = server.listen("-c ssl=on");
        Some((server, port))
    }

    /// Starts it again, at a port that was free a moment ago.
    fn listen(&self, options: &str) -> u16 {
        run(self.program("pg_ctl").args(["-w", "-m", "fast", "stop", "-D"]).arg(self.data()));
        for _ in 0..20 {
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if self.start_with(&format!("-c listen_addresses=127.0.0.1 -c port={port} {options}")) {
                return port;
            }
        }
        panic!("PostgreSQL does not start: {}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn make(fsync: &'static str) -> Option<Self> {
        let Some(programs) = programs() else {
            eprintln!("skipped: PostgreSQL is not installed (apt-get install postgresql)");
            return None;
        };
        let folder = tempfile::Builder::new().prefix("togl-pg").tempdir_in("/tmp").unwrap();
        let server = Self { folder, programs, databases: AtomicU32::new(0), fsync };
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(server.folder.path()));
        }
        let data = server.data();
        run(server
            .program("initdb")
            .args(["-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8"])
            .args(["--locale=C", "-D", data.to_str().unwrap()]));
        server.up();
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// A program of PostgreSQL, run by somebody who may.
    fn program(&self, name: &str) -> Command {
        let program = self.programs.join(name);
        let mut command = if is_root() {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command.current_dir("/tmp");
        command
    }

    /// Starts it, also after a crash.
    pub(crate) fn up(&self) {
        // After a kill the last of its processes may still be letting go of its memory.
        for _ in 0..100 {
            if self.start_with("-c listen_addresses=") {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("PostgreSQL does not start: {}", self.log());
    }

    fn start_with(&self, more: &str) -> bool {
        let folder = self.folder.path().display();
        let fsync = self.fsync;
        let options =
            format!("-c unix_socket_directories={folder} -c max_connections=40 -c fsync={fsync} {more}");
        let mut start = self.program("pg_ctl");
        start.args(["-w", "-t", "60", "-o", &options, "-D"]).arg(self.data());
        let log = self.folder.path().join("log");
        start.arg("-l").arg(log).arg("start").output().unwrap().status.success()
    }

    /// Kills all its processes at once, as a loss of power would.
    pub(crate) fn kill(&self) {
        let pids = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let parent: u32 = pids.lines().next().unwrap().trim().parse().unwrap();
        // Stopped first, so that it does not notice the death of its children and put things in order.
        signal("STOP", parent);
        for child in children(parent) {
            signal("KILL", child);
        }
        signal("KILL", parent);
    }

    /// A new, empty database.
    pub(crate) fn database(&self) -> PostgresAccess {
        let name = format!("db{}", self.databases.fetch_add(1, Ordering::SeqCst));
        let mut client = self.config("postgres").connect(NoTls).unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        self.config(&name)
    }

    /// A way to an existing database.
    pub(crate) fn config(&self, database: &str) -> PostgresAccess {
        let mut config = Config::new();
        config.host_path(self.folder.path()).user("postgres").dbname(database);
        config.into()
    }

    /// A client that comes by the network, without TLS.
    pub(crate) fn network(&self, port: u16) -> Client {
        Config::new().host("127.0.0.1").port(port).user("postgres").connect(NoTls).unwrap()
    }

    /// The same as text, for another process.
    pub(crate) fn text(&self, config: &PostgresAccess) -> String {
        let folder = self.folder.path().display();
        format!("postgres:host={folder} user=postgres dbname={}", config.get_dbname().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if Path::new(&self.data().join("postmaster.pid")).exists() {
            _ = self.program("pg_ctl").args(["-m", "immediate", "stop", "-D"]).arg(self.data()).output();
        }
    }
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn children(parent: u32) -> Vec<u32> {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let text = fs::read_to_string(path).unwrap();
    text.split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

pub(crate) fn signal(name: &str, pid: u32) {
    // A child that is gone already is as dead as it should be.
    _ = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).output();
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}
