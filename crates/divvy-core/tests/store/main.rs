//! The words of the store contracts and their reference semantics.

mod chunks;
mod key_value_table;
mod lease_table;
mod lease_words;
mod names;
