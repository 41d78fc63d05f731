//! What a host is like, read from the lines that `look.sh` prints. Whatever else a login prints is passed over; what a host says
//! is believed only as far as it is checked where it is used.

/// A torch on the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torch {
    /// Whether it is the one that the user named.
    pub asked: bool,
    /// Whether it has the CUDA half.
    pub cuda: bool,
    /// As it calls itself, such as `2.13.0+cu130`.
    pub version: String,
    /// Its folder.
    pub path: String,
}

/// What was seen on a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Looked {
    /// Operating system.
    pub system: String,
    /// Architecture.
    pub arch: String,
    /// Version of the GNU C library; none where there is another one.
    pub glibc: Option<(u32, u32)>,
    /// Version of the NVIDIA driver.
    pub driver: Option<String>,
    /// The physical path of the folder.
    pub folder: String,
    /// Free bytes there.
    pub free: u64,
    /// Whether the folder can be written, or made.
    pub writable: bool,
    /// Programs that are needed and not there.
    pub lacks: Vec<String>,
    /// Every torch that was found, the best known first.
    pub torches: Vec<Torch>,
    /// Parts of a bundle that are there, whole.
    pub parts: Vec<String>,
    /// The installation that is the current one.
    pub installed: Option<String>,
    /// SHA-256 of the file that starts the worker.
    pub start: Option<String>,
    /// SHA-256 of the token file.
    pub token: Option<String>,
    /// Whether systemd keeps services of this user.
    pub systemd: bool,
    /// Whether it does so after the user has left.
    pub linger: bool,
    /// Whether a worker of ours runs.
    pub running: bool,
    /// What the worker that was started last calls itself.
    pub worker: Option<String>,
    /// The last lines of its log.
    pub log: Vec<String>,
}

impl Looked {
    /// Reads what the script printed; none if it did not come to its end.
    pub fn parse(text: &str) -> Option<Self> {
        let mut looked = Self::default();
        let mut whole = false;
        for line in text.lines() {
            let Some((key, value)) = line.strip_prefix("togl.").and_then(|line| line.split_once('=')) else {
                continue;
            };
            let some = || Some(value.to_owned()).filter(|value| !value.is_empty());
            match key {
                "system" => looked.system = value.to_owned(),
                "arch" => looked.arch = value.to_owned(),
                "glibc" => looked.glibc = pair(value),
                "driver" => looked.driver = Some(value.to_owned()),
                "folder" => looked.folder = value.to_owned(),
                "free" => looked.free = value.parse::<u64>().unwrap_or(0).saturating_mul(1024),
                "writable" => looked.writable = true,
                "lacks" => looked.lacks.push(value.to_owned()),
                "torch" => looked.torches.extend(torch(value)),
                "part" => looked.parts.push(value.to_owned()),
                "installed" => looked.installed = some(),
                "start" => looked.start = some(),
                "token" => looked.token = some(),
                "systemd" => looked.systemd = true,
                "linger" => looked.linger = true,
                "running" => looked.running = true,
                "worker" => looked.worker = some(),
                "log" => looked.log.push(value.to_owned()),
                "end" => whole = true,
                _ => {}
            }
        }
        whole.then_some(looked)
    }
}

/// The value of one key that a script printed.
pub fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix("togl.")?.strip_prefix(key)?.strip_prefix('='))
}

/// `2.36` as numbers.
pub fn pair(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn torch(text: &str) -> Option<Torch> {
    let mut words = text.splitn(4, ' ');
    let (asked, cuda) = (words.next()? == "yes", words.next()? == "yes");
    Some(Torch { asked, cuda, version: words.next()?.to_owned(), path: words.next()?.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_of_the_login_does_not_matter_and_half_an_answer_is_none() {
        let text = "Welcome to gpu1!\ntogl.arch=x86_64\ntogl.glibc=2.36\ntogl.free=2\ntogl.driver=580.65\n\
                    togl.torch=no yes 2.13.0+cu130 /home/me/my venv/torch\ntogl.log=a=b togl.c\ntogl.running=yes\n";
        assert_eq!(Looked::parse(text), None);
        let looked = Looked::parse(&format!("{text}togl.end=yes\n")).unwrap();
        assert_eq!((looked.glibc, looked.free, looked.running), (Some((2, 36)), 2048, true));
        assert_eq!(looked.torches[0].path, "/home/me/my venv/torch");
        assert!(looked.torches[0].cuda && !looked.torches[0].asked);
        assert_eq!(looked.log, ["a=b togl.c"]);
        assert_eq!(value(text, "arch"), Some("x86_64"));
        assert_eq!(value(text, "arc"), None);
    }

    #[test]
    fn what_makes_no_sense_is_as_if_it_were_not_said() {
        let looked =
            Looked::parse("togl.glibc=musl\ntogl.free=-\ntogl.torch=no\ntogl.worker=\ntogl.end=yes").unwrap();
        assert_eq!((looked.glibc, looked.free, looked.worker), (None, 0, None));
        assert!(looked.torches.is_empty());
    }
}
