//! The kinds of clusters that there are.

/// A store, and how the members of a cluster coordinate through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClusterKind {
    /// By leases, in a file.
    LeasesInFile,
    /// By leases, in Redis.
    LeasesInRedis,
    /// By a leader, through a file.
    LedByFile,
    /// By a leader, through Redis.
    LedByRedis,
    /// By a leader, through NATS.
    LedByNats,
}

impl ClusterKind {
    /// Every one that there is.
    pub const ALL: [Self; 5] = [
        Self::LeasesInFile,
        Self::LeasesInRedis,
        Self::LedByFile,
        Self::LedByRedis,
        Self::LedByNats,
    ];

    /// Whether there is a leader.
    pub const fn is_led(self) -> bool {
        matches!(self, Self::LedByFile | Self::LedByRedis | Self::LedByNats)
    }

    /// The mode, as the command line calls it.
    pub const fn mode(self) -> &'static str {
        match self.is_led() {
            true => "leader",
            false => "lease",
        }
    }
}
