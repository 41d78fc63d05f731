//! Where a path really lies: read from the table of mounts. Says whether that is a network file system, on which SQLite's locks
//! and shared memory do not hold, and what to type instead. Reads one file of `/proc` and decides on text; opens no store.

use std::path::{Path, PathBuf};

use togl_coordinator::store::address::StoreAddress;

use crate::hosts::scripts;
use crate::problem::Problem;
use crate::state::StateDir;

/// File systems of other machines. Names as the kernel has them.
const NETWORK: [&str; 7] = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "fuse.sshfs"];

/// Folders of this machine that outlive a restart, or at least this command.
const LOCAL: [&str; 2] = ["/var/tmp", "/tmp"];

/// Refuses to serve a SQLite store that lies on a network file system. Reading, copying and moving it away is another matter.
pub fn refuse_network(state: &StateDir) -> Result<(), Problem> {
    let table = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(); // not Linux: nothing is known
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let user = std::env::var("USER").ok();
    match state.store() {
        StoreAddress::Sqlite(path) => refuse(&table, &existing(path), &words, user.as_deref()),
        _ => Ok(()),
    }
}

fn refuse(table: &str, path: &Path, words: &[String], user: Option<&str>) -> Result<(), Problem> {
    let Some(kind) = kind_of(table, path).filter(|kind| NETWORK.contains(kind)) else { return Ok(()) };
    let problem = Problem::usage(format!(
        "the store {} lies on a network file system ({kind}), where SQLite can be damaged",
        path.display()
    ));
    let is_local =
        |folder: &str| kind_of(table, Path::new(folder)).is_some_and(|kind| !NETWORK.contains(&kind));
    Err(match LOCAL.iter().find(|folder| is_local(folder)) {
        Some(folder) => {
            let name = user.filter(|user| {
                !user.is_empty() && user.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
            });
            let local = format!("{folder}/togl-{}", name.unwrap_or("state"));
            problem.hint(format!(
                "keep the state on a disk of this machine: `{}`; to bring along what is there, first \
                 `togl backup` it and `togl restore` it there",
                with_state(words, &local)
            ))
        }
        None => problem
            .hint("name a folder on a disk of this machine with --state, or use PostgreSQL with --store"),
    })
}

/// The file system of a path: that of the mount which is nearest above it, and of several at one place the last.
fn kind_of<'a>(table: &'a str, path: &Path) -> Option<&'a str> {
    let above = table.lines().filter_map(mount).filter(|(point, _)| path.starts_with(point));
    let nearest = above.max_by_key(|(point, _)| point.components().count()); // of equals the last
    nearest.map(|(_, kind)| kind)
}

/// Where something is mounted, and its kind, from a line as proc(5) has it.
fn mount(line: &str) -> Option<(PathBuf, &str)> {
    let (mounted, source) = line.split_once(" - ")?;
    Some((unescaped(mounted.split(' ').nth(4)?), source.split(' ').next()?))
}

/// Blanks, tabs, line ends and backslashes are written as octal numbers.
fn unescaped(text: &str) -> PathBuf {
    let (mut plain, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let code = after.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        plain.push(code.map_or('\\', char::from));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    PathBuf::from(plain + rest)
}

/// The path without links, as far as there is something; the rest is still to be made.
fn existing(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut above = absolute.ancestors();
    let found = above.find_map(|folder| Some((folder, folder.canonicalize().ok()?)));
    found.map_or_else(
        || absolute.clone(),
        |(folder, real)| absolute.strip_prefix(folder).map_or_else(|_| real.clone(), |rest| real.join(rest)),
    )
}

/// The command as it was typed, with another state directory and the store in it.
fn with_state(words: &[String], state: &str) -> String {
    let mut typed = vec!["togl".to_owned()];
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--state" | "--store" => _ = rest.next(), // and its value
            word if word.starts_with("--state=") || word.starts_with("--store=") => {}
            word => typed.push(quoted(word)),
        }
    }
    typed.extend(["--state".to_owned(), quoted(state)]);
    typed.join(" ")
}

/// As a person would type it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => scripts::quoted(word),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node of a cluster: the system on a disk, homes on NFS, a local disk below one of them, names with blanks.
    const NODE: &str = r"22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 259:1 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p1 rw
30 27 0:40 / /home rw,relatime shared:9 - nfs4 server:/home rw,vers=4.2
31 30 259:2 / /home/ada/local\040disk rw - xfs /dev/nvme1n1 rw
32 27 0:41 / /shares/win rw - cifs //server/share rw
33 27 0:42 / /mnt/c rw - 9p C: rw
34 27 0:43 / /mnt/ssh rw - fuse.sshfs ada@server: rw
35 27 0:44 / /mnt/other rw - fuse.gocryptfs x rw
36 27 0:45 / /data rw - ext4 /dev/sdb rw
37 27 0:46 / /data rw - nfs server:/data rw
38 27 0:47 / /homes rw - ext4 /dev/sdc rw
39 27 0:48 / /tmp rw master:1 propagate_from:2 - tmpfs tmpfs rw";

    fn words(text: &str) -> Vec<String> {
        text.split('|').map(str::to_owned).collect()
    }

    #[test]
    fn the_nearest_mount_decides_and_of_two_at_one_place_the_last() {
        let kinds = [
            ("/home/ada/state/store.sqlite", "nfs4"),
            ("/home/ada/local disk/store.sqlite", "xfs"),
            ("/home/ada/local", "nfs4"),
            ("/homes/ada", "ext4"),
            ("/shares/win/x", "cifs"),
            ("/mnt/c/Users", "9p"),
            ("/mnt/ssh/x", "fuse.sshfs"),
            ("/mnt/other/x", "fuse.gocryptfs"),
            ("/data/x", "nfs"),
            ("/tmp/x", "tmpfs"),
            ("/var/lib/x", "ext4"),
        ];
        for (path, kind) in kinds {
            assert_eq!(kind_of(NODE, Path::new(path)), Some(kind), "{path}");
        }
        for nonsense in ["", "\n\n", "1 2 3", "1 2 3 4 - nfs", "a b c d / - ", &"x ".repeat(500)] {
            assert!(refuse(nonsense, Path::new("/home/x"), &[], None).is_ok(), "{nonsense:?}");
        }
        assert_eq!(unescaped(r"/a\040b\134c\"), Path::new(r"/a b\c\"));
    }

    #[test]
    fn a_store_on_a_network_file_system_is_refused_with_the_command_that_works() {
        let typed =
            words("/usr/bin/togl|run|my sweep.yaml|--state|/home/ada/s|--store=sqlite:/home/ada/x|--slots|2");
        let refused = refuse(NODE, Path::new("/home/ada/s/store.sqlite"), &typed, Some("ada")).unwrap_err();
        let said = format!("{refused:?}");
        assert!(said.contains("lies on a network file system (nfs4)"), "{said}");
        assert!(said.contains("`togl run 'my sweep.yaml' --slots 2 --state /var/tmp/togl-ada`"), "{said}");
        assert!(refuse(NODE, Path::new("/home/ada/local disk/store.sqlite"), &typed, None).is_ok());
        assert!(refuse(NODE, Path::new("/var/lib/togl/store.sqlite"), &typed, None).is_ok());
        let hostile = refuse(NODE, Path::new("/data/x"), &typed, Some("$(rm -rf)")).unwrap_err();
        assert!(format!("{hostile:?}").contains("--state /var/tmp/togl-state`"), "{hostile:?}");
        let only_network = "1 0 0:1 / / rw - nfs server:/ rw";
        let diskless = refuse(only_network, Path::new("/x"), &typed, None).unwrap_err();
        assert!(format!("{diskless:?}").contains("PostgreSQL"), "{diskless:?}");
    }

    #[test]
    fn what_is_not_there_yet_is_judged_by_what_is_above_it_without_links() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("real")).unwrap();
        std::os::unix::fs::symlink(real.join("real"), real.join("link")).unwrap();
        assert_eq!(existing(&real.join("link/new/store.sqlite")), real.join("real/new/store.sqlite"));
    }
}
