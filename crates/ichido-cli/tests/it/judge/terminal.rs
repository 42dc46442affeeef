//! What a person sees on a terminal: a bar, and whole lines beside it.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::json;

use super::program::JudgeFixture;

/// A terminal: the program writes at one end, and the test reads at the other.
struct Terminal {
    reader: File,
    end: File,
}

impl Terminal {
    fn open() -> Self {
        let reader: OwnedFd = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&reader).unwrap();
        unlockpt(&reader).unwrap();
        let name = ptsname(&reader, Vec::new()).unwrap().into_string().unwrap();
        let end = OpenOptions::new().read(true).write(true).open(name).unwrap();
        Self { reader: File::from(reader), end }
    }

    /// Runs a command with this terminal, and returns all that it wrote.
    fn run(self, command: &mut Command) -> String {
        let Self { mut reader, end } = self;
        let clone = || Stdio::from(end.try_clone().unwrap());
        command.env("TERM", "xterm").stdin(clone()).stdout(clone()).stderr(clone());
        let mut running = command.spawn().unwrap();
        // Reading ends with an error once no process has the terminal open.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        drop(end);
        let mut seen = Vec::new();
        let mut part = [0; 4_096];
        while let Ok(count @ 1..) = reader.read(&mut part) {
            seen.extend_from_slice(&part[..count]);
        }
        running.wait().unwrap();
        String::from_utf8(seen).unwrap()
    }
}

/// Returns the lines as they stand on the screen: what was cleared or overwritten is gone.
fn lines(seen: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut at) = (Vec::new(), 0);
    let mut letters = seen.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\n' => {
                lines.push(line.iter().collect::<String>().trim_end().to_owned());
                (line, at) = (Vec::new(), 0);
            }
            '\r' => at = 0,
            // An escape sequence ends with a letter; of those, only the one that clears the line matters.
            '\u{1b}' => {
                let sequence: String =
                    letters.by_ref().take_while(|letter| !letter.is_alphabetic()).collect();
                if sequence == "[2" {
                    (line, at) = (Vec::new(), 0);
                }
            }
            letter => {
                line.resize(line.len().max(at + 1), ' ');
                line[at] = letter;
                at += 1;
            }
        }
    }
    lines
}

#[test]
fn what_is_told_does_not_tear_the_progress_bar() {
    let refused =
        |item: &str| json!({ "do": { "fail": "invalid" }, "item": item, "latency": { "fixed_ms": 300 } });
    let script = json!({ "rules": [refused("5"), refused("15")], "latency": { "fixed_ms": 400 } });
    let fixture = JudgeFixture::new(20, &script);
    let seen = Terminal::open().run(&mut fixture.judging(&[]));
    assert!(seen.contains("20 about ") && seen.contains(" left, throttled 0"), "there is a bar: {seen:?}");
    let lines = lines(&seen);
    // Each reason is told once, with the line of the article and without jargon.
    let told: Vec<_> = lines.iter().filter(|line| line.contains("is not judged")).collect();
    assert_eq!(told.len(), 1, "{lines:#?}");
    assert!(told[0].starts_with("line 6 is not judged: no retry can help: "), "{told:#?}");
    assert!(lines.iter().all(|line| !line.contains("WARN")), "{lines:#?}");
    assert!(lines.iter().all(|line| !line.contains(" left, ")), "no bar is left behind: {lines:#?}");
    assert!(lines.iter().any(|line| line.starts_with("fallbacks")), "{lines:#?}");
}
