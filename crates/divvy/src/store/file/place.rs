//! Where the database is, and the files beside it.
//!
//! SQLite's locks belong to the process, and closing *any* descriptor of the
//! database or of its shared memory gives them up. So nothing here opens those
//! files: it only asks about them.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use divvy_core::Invalid;
use divvy_core::store::StoreError;

/// File systems that other machines or programs may serve, by the number that
/// Linux gives each. Neither locks nor shared memory can be relied on there.
const SERVED_FILE_SYSTEMS: [(u32, &str); 10] = [
    (0x6969, "NFS"),
    (0x6573_5546, "FUSE"),
    (0x517b, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0xff53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
];

/// The database's path: absolute, with all links followed, so that everyone
/// finds the same files beside it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    database: PathBuf,
}

impl Place {
    /// The place that `path` names, if a database can be there.
    pub(super) fn find(path: &Path) -> Result<Self, StoreError> {
        let refused = |rule: &str| StoreError::from(Invalid::new("store", shown(path), rule));
        if path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir() {
            return Err(refused("is a directory; name a file in it"));
        }
        let database = match fs::symlink_metadata(path) {
            Ok(_) => fs::canonicalize(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => refused("is a link to nothing; remove it"),
                _ => denied(path, "follow", error),
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => Self::to_be_made(path)?,
            Err(error) => return Err(denied(path, "look at", error)),
        };
        if fs::metadata(&database).is_ok_and(|found| !found.is_file()) {
            return Err(refused("is not a regular file; name another"));
        }
        let place = Self { database };
        place.check_file_system()?;
        Ok(place)
    }

    fn to_be_made(path: &Path) -> Result<PathBuf, StoreError> {
        let name = path.file_name().unwrap_or_default();
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = fs::canonicalize(parent).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                let rule = format!("there is no directory {}; make it first", parent.display());
                Invalid::new("store", shown(path), rule).into()
            }
            _ => denied(path, "look at the directory of", error),
        })?;
        Ok(directory.join(name))
    }

    fn check_file_system(&self) -> Result<(), StoreError> {
        let directory = self.database.parent().unwrap_or_else(|| Path::new("/"));
        let about = rustix::fs::statfs(directory)
            .map_err(|error| denied(&self.database, "look at the directory of", error.into()))?;
        // The kernel's number has 32 bits, whatever the width of the field.
        let number = about.f_type as u32;
        let known = SERVED_FILE_SYSTEMS.iter().find(|(at, _)| *at == number);
        match known {
            Some((_, name)) => Err(StoreError::unfit(format_args!(
                "store '{self}' is on {name}, a file system whose locks cannot be relied on; name \
                 a file on a local disk"
            ))),
            None => Ok(()),
        }
    }

    /// The database.
    pub(super) fn database(&self) -> &Path {
        &self.database
    }

    /// Whether there is anything at its path.
    pub(super) fn has_database(&self) -> bool {
        fs::symlink_metadata(&self.database).is_ok()
    }

    /// The file beside it with this ending.
    pub(super) fn beside(&self, ending: &str) -> PathBuf {
        let mut path = self.database.clone().into_os_string();
        path.push(ending);
        path.into()
    }

    /// Opens a file of our own beside it.
    pub(super) fn open_beside(&self, ending: &str, missing: Missing) -> Result<File, StoreError> {
        let path = self.beside(ending);
        let mut options = OpenOptions::new();
        options.read(true).write(true).truncate(false);
        options.create(missing == Missing::Make);
        options.open(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound if missing == Missing::Refuse => self.deleted(),
            _ => denied(&path, "write", error),
        })
    }

    /// The error for a store of which a file is gone.
    pub(super) fn deleted(&self) -> StoreError {
        StoreError::unavailable(format_args!(
            "store '{self}' or a file beside it was deleted; the next write makes it anew"
        ))
    }

    /// Which files are at this place now; nothing while one is missing.
    pub(super) fn identity(&self) -> Option<Identity> {
        let inode = |path: &Path| fs::metadata(path).ok().map(|about| Inode::of(&about));
        Some(Identity {
            database: inode(&self.database)?,
            companions: [
                inode(&self.beside(NEXT_ENDING))?,
                inode(&self.beside(TURN_ENDING))?,
            ],
        })
    }

    /// What tells this database file from a copy of it.
    pub(super) fn home(&self) -> io::Result<String> {
        home(&self.database)
    }

    /// What tells a file beside it from a copy of that.
    pub(super) fn home_beside(&self, ending: &str) -> io::Result<String> {
        home(&self.beside(ending))
    }

    /// The process that holds the lock on a file of our own, if the kernel
    /// tells.
    pub(super) fn lock_holder(&self, ending: &str) -> Option<u32> {
        let inode = fs::metadata(self.beside(ending)).ok()?.ino().to_string();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        // `7: FLOCK  ADVISORY  WRITE 4242 08:01:1234 0 EOF`; those who wait
        // have an arrow after the number.
        let held = locks.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let ours = fields.get(1) == Some(&"FLOCK")
                && fields.get(5)?.rsplit(':').next() == Some(inode.as_str());
            ours.then(|| fields[4].parse().ok()).flatten()
        });
        held.filter(|process| *process != 0)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&shown(&self.database))
    }
}

/// What to do about a file that is missing.
///
/// A database that was deleted is made anew by the next write only: whoever
/// just listens would otherwise fill a directory that is being removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    Make,
    Refuse,
}

/// The file whose lock is held by who writes next, and in which it is noted
/// which log is the database's.
pub(super) const NEXT_ENDING: &str = "-next";
/// The file whose lock is held by who writes, and which is touched when
/// something has changed.
pub(super) const TURN_ENDING: &str = "-turn";
/// The file whose lock is held by who copies the log into the database.
pub(super) const COPY_ENDING: &str = "-copy";

/// Which files a database consists of. When it differs from that of the files
/// that are open, the database was deleted, moved or replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity {
    database: Inode,
    companions: [Inode; 2],
}

impl Identity {
    /// Whether only companions differ. Both must be open: a number of a file
    /// that is gone may be given to another.
    pub(super) fn is_database_of(self, other: Option<Self>) -> bool {
        other.is_some_and(|other| self.database == other.database)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    fn of(about: &Metadata) -> Self {
        Self {
            device: about.dev(),
            number: about.ino(),
        }
    }
}

fn home(path: &Path) -> io::Result<String> {
    let about = fs::metadata(path)?;
    let born = about.created().ok().and_then(|at| {
        let since = at.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(since.as_nanos())
    });
    Ok(format!("{} {}", about.ino(), born.unwrap_or_default()))
}

fn shown(path: &Path) -> String {
    format!("file:{}", path.display())
}

/// The operating system does not let us at a file.
fn denied(path: &Path, deed: &str, error: io::Error) -> StoreError {
    let advice = match error.kind() {
        ErrorKind::PermissionDenied => "let this user read and write it and its directory",
        ErrorKind::ReadOnlyFilesystem => "name a file on a file system that can be written",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free space on its disk",
        _ => "name another file, or mend this",
    };
    StoreError::unfit(format_args!(
        "store '{}': cannot {deed} it: {error}; {advice}",
        shown(path)
    ))
    .caused_by(error)
}
