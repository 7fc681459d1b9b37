//! A fence in Postgres: rows that refuse who was owner before.
//!
//! Every table that owners write to has a column for the token, and every
//! write compares it. A statement that changes no row was refused: the grant
//! is over, and its holder stops.
//!
//! divvy needs no Postgres client, so this prints what any client executes.
//!
//! ```console
//! $ cargo run -p divvy --example fence_postgres | psql --echo-all
//! ```

use divvy::store::Token;

/// Makes the table.
pub const TABLE: &str = "CREATE TEMPORARY TABLE balance (
    account text PRIMARY KEY,
    amount bigint NOT NULL,
    token bigint NOT NULL
);";

/// Writes if no higher token was seen: `$1` the token, `$2` the account, `$3`
/// the amount. The number of rows that it gives is 1 if it was written and 0
/// if it was refused.
pub const WRITE: &str = "INSERT INTO balance (token, account, amount) VALUES ($1, $2, $3)
ON CONFLICT (account) DO UPDATE SET token = excluded.token, amount = excluded.amount
WHERE balance.token <= excluded.token;";

/// Changes a row that is there: the same order of values.
pub const UPDATE: &str = "UPDATE balance SET token = $1, amount = $3
WHERE account = $2 AND token <= $1;";

fn main() {
    println!("{TABLE}");
    println!("PREPARE write (bigint, text, bigint) AS {WRITE}");
    println!("PREPARE change (bigint, text, bigint) AS {UPDATE}");
    // Grants give these: `grant.run(async |token| client.execute(WRITE, …).await)`.
    let (old, new) = (token(1 << 60), token((1 << 60) + 1));
    println!("\n-- The new owner writes, and writes again: one row each.");
    println!("EXECUTE write ({}, 'a', 10);", new.get());
    println!("EXECUTE change ({}, 'a', 20);", new.get());
    println!("\n-- The old owner wakes up and writes: no row, for its token is lower.");
    println!("EXECUTE change ({}, 'a', 99);", old.get());
    println!("EXECUTE write ({}, 'a', 99);", old.get());
    println!("\n-- What the new owner wrote is still there.");
    println!("SELECT * FROM balance;");
}

fn token(number: i64) -> Token {
    Token::new(number).expect("it is above 0")
}
