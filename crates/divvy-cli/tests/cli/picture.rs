//! Where a picture goes: a file that is replaced as a whole, or what is none.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};

use crate::scratch::Scratch;

const LINE: &str = "assign --workers 3 --partitions 9 --plot load.svg";

/// The names of what a directory has.
fn names(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(scratch.path("")).expect("a directory");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.into_string().expect("a name that is text"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_full_disk_leaves_the_old_picture_and_nothing_else() {
    let scratch = Scratch::new();
    for before in [&["load.svg"][..], &[]] {
        for name in before {
            scratch.file(name, "old");
        }
        // No file may have more than a block, which is told as an error and
        // not by a signal.
        let run = scratch.shell(&format!("trap '' 25; ulimit -f 1; divvy {LINE}"));
        run.refused(1, "plot 'load.svg': File too large\n");
        assert_eq!(names(&scratch), before);
        for name in before {
            let left = fs::read_to_string(scratch.path(name)).expect("it is there");
            assert_eq!(left, "old");
            fs::remove_file(scratch.path(name)).expect("it can be removed");
        }
    }
}

#[test]
fn the_file_that_a_link_names_is_replaced_and_keeps_its_mode() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("pictures")).expect("a directory for the test");
    scratch.file("pictures/real.svg", "old");
    let real = scratch.path("pictures/real.svg");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("a mode for the file");
    symlink("pictures/real.svg", scratch.path("load.svg")).expect("a link for the test");
    scratch.run(LINE.split(' ')).done();
    let link = fs::symlink_metadata(scratch.path("load.svg")).expect("it is there");
    assert!(link.is_symlink());
    let drawn = fs::read_to_string(&real).expect("it is there");
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    let mode = fs::metadata(&real)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    let left = fs::read_dir(scratch.path("pictures")).expect("a directory");
    assert_eq!(left.count(), 1);
}

#[test]
fn a_pipe_gets_the_picture_and_stays_a_pipe() {
    let scratch = Scratch::new();
    let line = format!("mkfifo load.svg; cat load.svg > copy & divvy {LINE} && wait");
    assert_eq!(scratch.shell(&line).code, 0);
    let copy = fs::read_to_string(scratch.path("copy")).expect("it is there");
    assert!(copy.ends_with("</svg>\n"), "{copy}");
    let pipe = fs::metadata(scratch.path("load.svg")).expect("it is there");
    assert!(pipe.file_type().is_fifo());
}

#[test]
fn a_pipe_whose_reader_goes_away_is_an_error() {
    let scratch = Scratch::new();
    // More than a pipe holds, so that the reader is gone before the end.
    let line = "mkfifo load.svg; head -c 1 load.svg > copy & \
                divvy assign --workers 3000 --partitions 3000 --plot load.svg";
    let run = scratch.shell(line);
    run.refused(1, "plot 'load.svg': Broken pipe\n");
}
