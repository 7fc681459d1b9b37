//! `divvy top` on a terminal of its own.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::{Arc, Mutex};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::fleet::{Kind, on};

#[test]
fn top_follows_a_cluster_and_leaves_the_terminal_as_it_was() {
    on(&Kind::ALL, async |mut fleet| {
        fleet.started(&["one", "two"]).await;
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).and_then(|()| unlockpt(&ours)).unwrap();
        let size = Winsize {
            ws_row: 30,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&ours, size).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let name = OsStr::from_bytes(name.as_bytes());
        let theirs = OpenOptions::new().read(true).write(true).open(name);
        let theirs = theirs.unwrap();
        let mut command = fleet.divvy();
        command
            .args(["top", "--interval", "200ms"])
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .stdin(theirs.try_clone().unwrap())
            .stdout(theirs.try_clone().unwrap())
            .stderr(theirs);
        let mut child = command.spawn().unwrap();
        drop(command);
        let mut ours = File::from(ours);
        let sent = Arc::new(Mutex::new(Vec::new()));
        let reading = std::thread::spawn({
            let (mut ours, sent) = (ours.try_clone().unwrap(), Arc::clone(&sent));
            move || {
                let mut some = [0; 4096];
                // A terminal whose other end is closed reads as an error.
                while let Ok(count @ 1..) = ours.read(&mut some) {
                    sent.lock().unwrap().extend(&some[..count]);
                }
            }
        });
        let text = || String::from_utf8_lossy(&sent.lock().unwrap()).into_owned();
        fleet
            .until("workers and partitions are shown", || {
                let text = text();
                text.contains("8 partitions on 2 workers") && text.contains("last moves")
            })
            .await;
        ours.write_all(b"q").unwrap();
        let ended = child.wait().unwrap();
        assert!(ended.success(), "{ended}");
        drop(ours);
        reading.join().unwrap();
        let text = text();
        assert!(text.contains("\u{1b}[?1049l"), "the other screen is back");
        assert!(text.contains("\u{1b}[?25h"), "and so is the cursor");
    });
}
