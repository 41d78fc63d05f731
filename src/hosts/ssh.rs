//! The user's own `ssh`: runs a script or a command on a host, within a time limit. Asks no questions, knows no passwords, and puts
//! nothing into its command line but the name of the host and the options of the user.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::file::HostEntry;

/// Time for looking at a host, logging in included.
pub const QUICK: Duration = Duration::from_secs(40);
/// Time for what may take longer there: unpacking a large part.
pub const LONG: Duration = Duration::from_secs(900);
/// Bytes of an answer that are read.
const MOST: u64 = 1 << 20;

/// What `ssh` is always told: ask nobody, do not wait for ever, notice when the other side is gone.
const ALWAYS: [&str; 8] = [
    "-oBatchMode=yes",
    "-oConnectTimeout=10",
    "-oServerAliveInterval=5",
    "-oServerAliveCountMax=3",
    "-oForwardAgent=no",
    "-oForwardX11=no",
    "-oClearAllForwardings=yes",
    "-T",
];

/// `ssh` to a host, ready to be started. What the user wrote comes first, because the first word about an option counts.
pub fn command(wish: &HostEntry, command: &str) -> Command {
    let mut ssh = Command::new("ssh");
    ssh.args(&wish.ssh_options).args(ALWAYS).arg("--").arg(&wish.host).arg(command);
    ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    ssh
}

/// Runs a script of `sh` and gives what it printed, or a reason in words.
pub async fn run(wish: &HostEntry, script: &str, limit: Duration) -> Result<String, String> {
    let child = start(wish, "sh -s")?;
    tokio::time::timeout(limit, talk(child, script.as_bytes())).await.map_err(|_| silent(limit))?
}

/// Starts `ssh`.
pub fn start(wish: &HostEntry, line: &str) -> Result<Child, String> {
    command(wish, line).spawn().map_err(|error| format!("cannot start ssh: {error}"))
}

/// What is said of a host that does not answer in time.
pub fn silent(limit: Duration) -> String {
    format!("it did not answer within {} s", limit.as_secs())
}

async fn talk(mut child: Child, script: &[u8]) -> Result<String, String> {
    let mut input = child.stdin.take();
    let write = async {
        if let Some(mut input) = input.take() {
            let _ = input.write_all(script).await; // the exit code says what went wrong
        }
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let read_out = async {
        if let Some(stdout) = stdout {
            let _ = stdout.take(MOST).read_to_end(&mut out).await;
        }
    };
    let read_err = async {
        if let Some(stderr) = stderr {
            let _ = stderr.take(MOST).read_to_end(&mut err).await;
        }
    };
    tokio::join!(write, read_out, read_err);
    let status = child.wait().await.map_err(|error| format!("ssh: {error}"))?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&out).into_owned()),
        false => Err(reason(&String::from_utf8_lossy(&err), status.code())),
    }
}

/// How a child ended, in words; what it said is read to its end.
pub async fn ended(mut child: Child) -> Result<(), String> {
    let mut said = Vec::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(MOST).read_to_end(&mut said).await;
    }
    let status = child.wait().await.map_err(|error| format!("ssh: {error}"))?;
    if status.success() { Ok(()) } else { Err(reason(&String::from_utf8_lossy(&said), status.code())) }
}

/// The last line that says something; ssh's own warnings come before it.
fn reason(said: &str, code: Option<i32>) -> String {
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    let code = code.map_or_else(|| "a signal".to_owned(), |code| format!("exit code {code}"));
    last.unwrap_or_else(|| format!("ssh ended with {code} and said nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_last_thing_that_was_said() {
        let said = "Warning: Permanently added 'x'\nroot@x: Permission denied (publickey).\r\n\n";
        assert_eq!(reason(said, Some(255)), "root@x: Permission denied (publickey).");
        assert_eq!(reason("", Some(255)), "ssh ended with exit code 255 and said nothing");
    }
}
