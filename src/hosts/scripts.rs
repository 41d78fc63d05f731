//! The texts that go to a host: scripts of POSIX `sh` with their variables set, and the files that they write there. Pure; the one
//! place that quotes. The scripts themselves are the `.sh` files beside this one.

use super::bundle::BundlePart;
use super::decide::Libtorch;
use super::file::HostEntry;

/// Text as one word of a shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A script with its variables set.
fn with(variables: &[(&str, &str)], script: &str) -> String {
    let set = variables.iter().map(|(name, value)| format!("{name}={}\n", quoted(value)));
    set.collect::<String>() + script
}

fn yes(flag: bool) -> &'static str {
    if flag { "yes" } else { "no" }
}

/// SHA-256, as `sha256sum` writes it.
pub fn sha256(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&ring::digest::SHA256, bytes).as_ref())
}

/// Bytes as people write digests.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name of the installation of a program with a libtorch: another one for everything that differs.
pub fn installation(programs: &BundlePart, sent: Option<&BundlePart>, libtorch: &Libtorch) -> String {
    let libtorch = match libtorch {
        Libtorch::Sent => sent.map_or_else(String::new, BundlePart::name),
        Libtorch::Found(path) => path.clone(),
    };
    let text = format!("{}\n{libtorch}", programs.name());
    blake3::hash(text.as_bytes()).to_hex()[..16].to_owned()
}

/// The file that starts the worker. Holds no secret; the worker's number is that of the shell that it replaces.
pub fn start_file(wish: &HostEntry, folder: &str, join: &str, on_gpu: bool) -> String {
    let mut command = vec![
        format!("{folder}/worker/bin/togl-worker"),
        "join".to_owned(),
        join.to_owned(),
        "--token-file".to_owned(),
        format!("{folder}/worker.token"),
        "--state".to_owned(),
        format!("{folder}/state"),
        "--device".to_owned(),
        if on_gpu { "cuda" } else { "cpu" }.to_owned(),
    ];
    if let Some(slots) = wish.slots {
        command.extend(["--slots".to_owned(), slots.to_string()]);
    }
    command.extend(wish.worker_options.iter().cloned());
    let command: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let devices: Vec<String> = wish.devices.iter().map(u32::to_string).collect();
    let devices = match devices.is_empty() {
        true => String::new(),
        false => format!("export CUDA_VISIBLE_DEVICES={}\n", devices.join(",")),
    };
    format!(
        "# Written by `togl hosts up`: starts the worker of this host.\numask 077\ncd {folder} || exit 1\n\
         unset TOGL_TOKEN RUST_LOG\n{devices}exec </dev/null >>{folder}/worker.log 2>&1\necho $$ >{folder}/worker.pid\n\
         exec {}\n",
        command.join(" ")
    )
}

/// The name of the systemd unit of a folder: several folders on one host may have a worker each.
pub fn unit_name(folder: &str) -> String {
    format!("togl-worker-{}.service", &blake3::hash(folder.as_bytes()).to_hex()[..8])
}

/// The systemd unit of a folder. The worker gets all the time to leave that `seconds` say.
fn unit_file(folder: &str, seconds: u64) -> String {
    format!(
        "# Written by `togl hosts up`; `togl hosts down` removes it.\n[Unit]\nDescription=togl worker in {folder}\n\n[Service]\n\
         ExecStart=/bin/sh {folder}/start\nKillMode=mixed\nRestart=on-failure\nRestartSec=5\n\
         # Bad usage or input does not get better by trying again.\nRestartPreventExitStatus=2\n\
         TimeoutStopSec={seconds}\n\n[Install]\nWantedBy=default.target\n"
    )
}

/// Looks at a host; thoroughly, or only whether its worker runs.
pub fn look(wish: &HostEntry, thorough: bool) -> String {
    let torch = wish.torch.as_deref().unwrap_or_default();
    let variables = [("folder", wish.folder.as_str()), ("torch", torch), ("thorough", yes(thorough))];
    with(&variables, include_str!("look.sh"))
}

/// Asks how much of a part has arrived.
pub fn receive(folder: &str, sha: &str) -> String {
    with(&[("folder", folder), ("sha", sha)], include_str!("receive.sh"))
}

/// The command that takes the rest of a part from standard input. Its words are plain, so every login shell reads them alike.
pub fn append(folder: &str, sha: &str) -> String {
    format!("cat >>{folder}/incoming/{sha}.part")
}

/// Checks and unpacks a part that has arrived.
pub fn unpack(folder: &str, sha: &str, part: &str) -> String {
    with(&[("folder", folder), ("sha", sha), ("part", part)], include_str!("unpack.sh"))
}

/// Puts program and libtorch together.
pub fn install(folder: &str, key: &str, programs: &str, torch: &str) -> String {
    let variables = [("folder", folder), ("key", key), ("programs", programs), ("torch", torch)];
    with(&variables, include_str!("install.sh"))
}

/// What starting a worker needs.
pub struct Starting<'a> {
    /// The folder of the host.
    pub folder: &'a str,
    /// The installation.
    pub key: &'a str,
    /// The part with the program.
    pub programs: &'a str,
    /// The file that starts the worker.
    pub start: &'a str,
    /// The worker token.
    pub token: &'a str,
    /// Whether systemd keeps the worker.
    pub systemd: bool,
    /// How long it may take to leave.
    pub seconds: u64,
}

/// Starts a worker. Files travel as here documents: a command line would show them to everybody on the host.
pub fn start(starting: &Starting<'_>) -> String {
    let Starting { folder, key, programs, start, token, systemd, seconds } = starting;
    let unit = unit_name(folder);
    let variables = [
        ("folder", *folder),
        ("key", key),
        ("programs", programs),
        ("unit", unit.as_str()),
        ("with_systemd", yes(*systemd)),
    ];
    let file = |name: &str, text: &str| {
        format!("cat >\"$folder/{name}\" <<'TOGL-FILE-ENDS' || exit 1\n{}\nTOGL-FILE-ENDS\n", text.trim_end())
    };
    let files = [
        "umask 077\n".to_owned(),
        file("worker.token.new", token),
        file("start.new", start),
        file("unit.new", &unit_file(folder, *seconds)),
    ];
    with(&variables, &(files.concat() + include_str!("start.sh")))
}

/// Lets the worker leave; `forget` removes its token, too.
pub fn stop(folder: &str, seconds: u64, forget: bool) -> String {
    let (unit, seconds) = (unit_name(folder), seconds.to_string());
    let variables = [("folder", folder), ("unit", &unit), ("seconds", &seconds), ("forget", yes(forget))];
    with(&variables, include_str!("stop.sh"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn shell(script: &str) -> String {
        let output = Command::new("sh").args(["-c", script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn what_is_quoted_is_one_word_and_means_itself() {
        for text in ["a b", "it's", "''", "$(id)`id`", "a\\", "--x; rm -rf /", "*", "!x", ""] {
            assert_eq!(shell(&format!("printf %s {}", quoted(text))), text);
        }
    }

    #[test]
    fn options_of_the_worker_reach_it_as_they_were_written() {
        let text = "join: a:1\nhosts: [{host: h, slots: 2, devices: [0, 2], worker_options: [--data-dir, \"/a b/$x\"]}]";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.yaml");
        std::fs::write(&path, text).unwrap();
        let file = super::super::file::HostsFile::read(&path).unwrap();
        let start = start_file(&file.hosts[0], "/f", "a:1", true);
        assert!(start.contains("'--slots' '2' '--data-dir' '/a b/$x'\n"), "{start}");
        assert!(start.contains("export CUDA_VISIBLE_DEVICES=0,2\n") && start.contains("'--device' 'cuda'"));
    }

    /// What `look.sh` says of the driver where the kernel says this.
    fn driver_said(line: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let kernel = folder.path().join("version");
        std::fs::write(&kernel, format!("{line}\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"))
            .unwrap();
        let (_, script) = include_str!("look.sh").split_once("\nfind_driver() {").unwrap();
        let function = script.split_once("\n}\n").unwrap().0;
        let said = "say() { printf '%s=%s' \"$1\" \"$2\"; }";
        shell(&format!("{said}\nkernel={}\nfind_driver() {{{function}\n}}\nfind_driver", kernel.display()))
    }

    #[test]
    fn the_version_of_the_driver_is_read_whichever_module_the_kernel_has() {
        let module =
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023";
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (root@builder)";
        assert_eq!(driver_said(module), "driver=535.104.05");
        assert_eq!(driver_said(open), "driver=580.65.06");
        assert_eq!(driver_said("NVRM version: something else"), "driver=");
    }

    #[test]
    fn a_token_is_in_a_here_document_and_nowhere_else() {
        let starting = Starting {
            folder: "/f",
            key: "k",
            programs: "programs-1",
            start: "exec x\n",
            token: "secret-token",
            systemd: false,
            seconds: 20,
        };
        let script = start(&starting);
        let lines: Vec<&str> = script.lines().filter(|line| line.contains("secret-token")).collect();
        assert_eq!(lines, ["secret-token"]);
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
