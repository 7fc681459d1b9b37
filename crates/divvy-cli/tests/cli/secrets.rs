//! Secrets: a canary in every address and credential sings nowhere.

use std::fs;
use std::io::Read as _;
use std::process::{Child, Command, Stdio};

use divvy_testbed::{
    NatsOperator, NatsOptions, NatsServer, NatsVersion, Nkey, RedisFlavour, RedisOptions,
    RedisServer,
};

use crate::scratch::Scratch;

const CANARY: &str = "canary-7c41e9";

/// Runs the command to its end, and gives everything that anybody on the
/// machine could have read of it: both outputs, and its line in a list of
/// processes, looked at while it runs.
fn seen(command: &mut Command) -> (i32, String) {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command can be started");
    let listed = listed(&child);
    let mut text = listed;
    let mut errors = child.stderr.take().expect("it is piped");
    let mut output = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        errors.read_to_string(&mut text).expect("stderr is text");
        text
    });
    output.read_to_string(&mut text).expect("stdout is text");
    text += &reader.join().expect("reading does not panic");
    let status = child.wait().expect("it ends by itself");
    (status.code().expect("it ends by itself"), text)
}

fn listed(child: &Child) -> String {
    let line = fs::read(format!("/proc/{}/cmdline", child.id())).expect("the process is there");
    String::from_utf8_lossy(&line).replace('\0', " ")
}

fn bench(scratch: &Scratch) -> Command {
    let mut command = scratch.command();
    command.args(["--verbose", "bench", "stores", "--time", "20ms"]);
    command.args(["--leases", "10", "--interval", "10ms", "--clients", "2"]);
    // Everything that any library would say, and where it would fall.
    command
        .env("RUST_LOG", "trace")
        .env("RUST_BACKTRACE", "full");
    command
}

#[track_caller]
fn assert_silent(command: &mut Command, expected: i32) {
    let (code, text) = seen(command);
    assert_eq!(code, expected, "{text}");
    assert!(!text.contains(CANARY), "{text}");
}

#[test]
fn an_argument_with_a_secret_is_refused_and_not_repeated() {
    let scratch = Scratch::new();
    for url in [
        format!("redis://ada:{CANARY}@127.0.0.1:1"),
        format!("rediss://:{CANARY}@127.0.0.1:1"),
        format!("nats://{CANARY}@127.0.0.1:1"),
        format!("nats://127.0.0.1:1,nats://ada:{CANARY}@127.0.0.1:2"),
        format!("http://ada:{CANARY}@127.0.0.1:1"),
        format!("redis://ada:{CANARY}@127.0.0.1:99999"),
    ] {
        let run = scratch.run(["bench", "stores", "--store", &url]);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(!run.stderr.contains(CANARY), "{}", run.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_of_redis_is_seen_nowhere() {
    let rule = format!("ada on >{CANARY} ~* &* +@all");
    let options = RedisOptions::new().user("default off").user(&rule);
    let server = RedisServer::start(RedisFlavour::Redis7, options).await;
    let address = server.address();
    let scratch = Scratch::new();
    scratch.file("password", CANARY);

    let by_address = format!("redis://ada:{CANARY}@{address}");
    assert_silent(bench(&scratch).env("DIVVY_STORE", by_address), 0);
    let plain = format!("redis://{address}");
    let by_file = [
        "--store",
        &plain,
        "--user",
        "ada",
        "--password-file",
        "password",
    ];
    assert_silent(bench(&scratch).args(by_file), 0);

    let wrong = format!("redis://ada:{CANARY}-wrong@{address}");
    assert_silent(bench(&scratch).env("DIVVY_STORE", wrong), 1);
    let nobody = format!("redis://ada:{CANARY}@127.0.0.1:9");
    assert_silent(bench(&scratch).env("DIVVY_STORE", nobody), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_or_token_of_nats_is_seen_nowhere() {
    let scratch = Scratch::new();
    scratch.file("secret", CANARY);
    let options = NatsOptions::new().user("ada", CANARY);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let by_address = format!("nats://ada:{CANARY}@{}", server.address());
    assert_silent(bench(&scratch).env("DIVVY_STORE", by_address), 0);
    let plain = format!("nats://{}", server.address());
    let by_file = [
        "--store",
        &plain,
        "--user",
        "ada",
        "--password-file",
        "secret",
    ];
    assert_silent(bench(&scratch).args(by_file), 0);
    let wrong = format!("nats://ada:{CANARY}-wrong@{}", server.address());
    assert_silent(bench(&scratch).env("DIVVY_STORE", wrong), 1);

    let options = NatsOptions::new().token(CANARY);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let by_address = format!("nats://{CANARY}@{}", server.address());
    assert_silent(bench(&scratch).env("DIVVY_STORE", by_address), 0);
    let plain = format!("nats://{}", server.address());
    let by_file = ["--store", &plain, "--token-file", "secret"];
    assert_silent(bench(&scratch).args(by_file), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_nats_is_seen_nowhere() {
    let scratch = Scratch::new();
    let nkey = Nkey::new();
    scratch.file("seed", nkey.seed());
    let options = NatsOptions::new().nkey(&nkey.public());
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let plain = format!("nats://{}", server.address());
    let (code, text) = seen(bench(&scratch).args(["--store", &plain, "--nkey-file", "seed"]));
    assert_eq!(code, 0, "{text}");
    assert!(!text.contains(&nkey.seed()), "{text}");

    let operator = NatsOperator::new();
    let creds = operator.user("ada");
    let options = NatsOptions::new().operator(&operator);
    let server = NatsServer::start(NatsVersion::Newest, options).await;
    let plain = format!("nats://{}", server.address());
    let command = &mut bench(&scratch);
    command
        .args(["--store", &plain, "--creds-file"])
        .arg(&creds);
    let (code, text) = seen(command);
    assert_eq!(code, 0, "{text}");
    let secrets = fs::read_to_string(creds).unwrap();
    let lines = secrets.lines().filter(|line| line.len() > 40);
    for secret in lines.filter(|line| !line.contains('-')) {
        assert!(!text.contains(secret), "{text}");
    }
}
