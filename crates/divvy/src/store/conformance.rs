//! The suite that every store must pass, for stores of one's own too.
//!
//! A store of your own implements [`Store`] and one of [`KeyValue`] and
//! [`Leases`]. [`Watch::start`] makes its watches out of [`Hints`] that may be
//! as little as "something was missed", [`ConnectionReport`] says whether it is
//! reached, and [`NoticeBoard`] carries the notices of leases. It must take values
//! of 256 bytes; refuse what is larger than it takes as
//! [`StoreErrorKind::Invalid`], which `Invalid::new(…).into()` makes.
//!
//! A store is shown to it as a [`KeyValueSubject`] or a [`LeaseSubject`]: a way
//! to open further, independent clients. Every run works below names that it
//! has drawn for itself, so it can be repeated against a server that others
//! use, too.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use std::sync::Arc;
//!
//! use divvy::store::conformance::{LeaseSubject, Options, lease_cases, leases};
//! use divvy::store::{Leases, MemoryLeases, StoreError};
//!
//! struct Memory(MemoryLeases);
//!
//! #[async_trait::async_trait]
//! impl LeaseSubject for Memory {
//!     async fn open(&self, cluster: &str) -> Result<Arc<dyn Leases>, StoreError> {
//!         Ok(Arc::new(self.0.of_cluster(cluster)?))
//!     }
//! }
//!
//! let subject = Memory(MemoryLeases::new("any")?);
//! let options = Options { seed: 7, ..Options::default() };
//! let report = leases(&subject, &options).await.expect("a store like the reference");
//! println!("{report}");
//!
//! // One case alone, for instance one that has failed:
//! lease_cases::tenures::a_renewal_needs_the_nonce(&subject, &options).await.unwrap();
//! # Ok::<(), StoreError>(())
//! # }).unwrap();
//! ```
//!
//! What a store may do differently is not held against it: reads may be stale
//! for as long as [`Options::wait`], notices and watches may repeat themselves,
//! and revisions and tokens may leave gaps.

#[cfg(doc)]
use super::{ConnectionReport, Hints, KeyValue, Leases, NoticeBoard, Store, StoreErrorKind, Watch};

mod history;
mod key_value_client;
mod lease_client;
mod options;
mod report;
mod run;
mod subject;

pub mod key_value_cases;
pub mod lease_cases;

pub use key_value_cases::key_value;
pub use lease_cases::leases;
pub use options::Options;
pub use report::{CaseRun, Failure, Report};
pub use subject::{Forgetting, Interruption, KeyValueSubject, LeaseSubject, Spoilt, Vandal};
