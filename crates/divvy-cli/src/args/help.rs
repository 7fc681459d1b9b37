//! The longer texts of `--help`. Every line of an `Examples:` section that
//! starts with `divvy` is run by the tests.

pub(super) const DIVVY: &str = "\
divvy divides partitions of work among workers: fairly, with few moves, one owner each.

An application's key belongs to a partition (`divvy key`), and a strategy gives each partition \
to a worker (`divvy assign`), for reasons that can be shown (`divvy explain`). What a change of \
workers would move can be seen before it is done (`divvy plan`). The same input gives the same \
placement on every machine, in any order, in every release.

A live cluster is made of `divvy worker`, of which one leads and places partitions (leader mode), or of \
`divvy agent`, which runs a command for each partition that it has a lease of (lease mode). `divvy doctor` examines the store that they meet in; `divvy status`, `divvy top` and \
`divvy why` look at them, and `divvy drain`, `divvy pin` and others change what is wished of them. \
`divvy playground` opens a cluster to break.";

pub(super) const DIVVY_EXAMPLES: &str = "\
Examples:
  divvy assign --workers 5 --partitions 64
  divvy plan --workers 5 --add 1 --partitions 64 --strategy balanced
  divvy explain default:17 --workers 5
  divvy key customer-4711 --partitions 64 --group default

Output:
  Results go to stdout, warnings and errors to stderr. --json has everything
  that a table has. Colours only on a terminal.

Environment:
  DIVVY_STORE    the store, where no --store is given; may hold a password
  DIVVY_WEBHOOK  the same for --webhook of workers and agents
  NO_COLOR       no colours, unless it is empty

Exit codes:
  0  done
  1  could not: a file that cannot be read or is wrong, a store that does not
     answer, no such cluster or worker, a goal or bound that was missed
  2  wrong usage: an unknown flag, or a value out of bounds";

pub(super) const KEY: &str = "\
Says which partition an application's key belongs to: a hash of the key modulo the number of \
partitions. The number is chosen once, for another sends nearly every key elsewhere.

Schemes:
  xxh3     XXH3 with 64 bits, even whatever the keys look like
  djb2-js  what JavaScript computes from UTF-16 units in 32 signed bits; 10 to
           1000 partitions, another number is corrected with a warning
  djb2-32  djb2 of the UTF-8 bytes in 32 bits, as cruster has it
  djb2-64  the same in 64 bits";

pub(super) const KEY_EXAMPLES: &str = "\
Examples:
  divvy key customer-4711
  divvy key customer-4711 customer-4712 --partitions 64 --group orders
  divvy key --scheme djb2-js hello 7e_Onxk
  divvy key hello --json
  divvy key -- -starts-with-a-dash";

pub(super) const ASSIGN: &str = "\
Places partitions on workers and shows who has how many, how that compares to the mean, and how \
even it is.

Workers (--workers):
  N                    worker-0 to worker-<N-1>, all of weight 1
  ID[=WEIGHT],...      these; one of weight 2 gets twice the share of one of
                       weight 1, one of weight 0 gets nothing
  @FILE                a file with the fields id, weight, zone, healthy (true or
                       false), max_partitions; - is stdin

Partitions (--partitions):
  N                    default:0 to default:<N-1>
  GROUP:N,...          GROUP:0 to GROUP:<N-1> of each group
  @FILE                a file with the fields key (such as tool001:chamber1)
                       and weight: a whole number, 1 where it is missing or 0;
                       - is stdin

Files are read by their ending: .csv or .tsv with a header (separated by , or ; or tabs), .json or \
.yaml with a list. All fields but the first are optional; in a list, a plain string is an id or key \
alone. A header may say partition or name for key; node, worker or name for id; capacity for weight.

With --previous, workers and partitions that are not given are those of the assignment in force, and \
so are the strategy and its options. Where it tells no weights and zones of its workers, those of \
--workers are taken.

Words in what is printed:
  mean                 what a worker would have if loads were even, by its
                       weight: its share
  max/mean, min/mean   how many times its share the fullest and the emptiest
                       worker have
  band                 how far from its share a load may be before partitions
                       are moved
  affinity             the part of the partitions that keeps its owner: 1 is all

Strategies (--strategy):
  rendezvous                shares in proportion to weights; only what must
                            moves
  rendezvous-parallel       the same placement, computed on all cores
  rendezvous-filtered       among a few workers per partition, for more than
                            10,000 of them
  balanced                  counts even to 1, and with --previous the fewest
                            moves to that
  weighted-consistent-hash  loads by partition weight inside a band around each
                            worker's share, and with --previous few moves
  zoned                     the same over the zones of the workers first
  consistent-hash           a ring of virtual nodes; only what must moves
  round-robin               counts even to 1, but nearly everything moves when a
                            worker comes or goes";

pub(super) const ASSIGN_EXAMPLES: &str = "\
Examples:
  divvy assign --workers 5 --partitions 64
  divvy assign --workers big=3,small --partitions orders:64,users:32 --list
  divvy assign --workers @workers.csv --partitions @partitions.yaml --plot a.svg
  divvy assign --workers 5 --partitions 64 --json > before.json
  divvy assign --workers 6 --previous @before.json --strategy balanced";

pub(super) const PLAN: &str = "\
Shows what a change of workers, of partitions or of weights would do before it is done: how many \
partitions move and how many would have to, how even loads are before and after, and why each \
partition moves.

What there is before:
  --previous @FILE     what `assign --json` or `plan --json` printed, or who
                       owns what in another system: CSV with the columns key,
                       worker and, if there is one, weight (as assign --csv
                       prints), or JSON {worker: [partition, ...]}
  without it           the partitions placed on --workers by the same strategy

Which workers there will be:
  --to WORKERS         these, in the forms of --workers
  --add N[=WEIGHT]     N more, numbered on after the highest number there is, in
                       the zones with the fewest workers where all have one; of
                       the weight that the others have, or their median
  --add N@ZONE,...     N more, in these zones in turn: with 3@a,c two go to zone
                       a and one to c. With a weight: 3=1.5@a,c
  --remove ID,...      all but these, and with zone:NAME all but those of a
                       zone; goes together with --add and --fit, which then add
                       nobody to that zone
  --fit LOAD[@ZONE,...]
                       as few more as keep the load of every one at or below
                       this, added as by --add. A worker inside the band keeps
                       what it has, so a wide --band may need more workers than
                       a narrow one: the plan says how many a narrower band
                       needs, and whether fewer than there are would be enough
  none of them         --workers, or those of --previous: what the strategy
                       would repair

Loads before are by the weights that partitions have now: what there is if nothing is done.

Words in what is printed:
  share                what a worker would have if loads were even, by its
                       weight: the mean
  max/mean, min/mean   how many times its share the fullest and the emptiest
                       worker have
  band                 how far from its share a load may be before partitions
                       are moved
  needed               a bound: no assignment that is as even has fewer moves
  orphans              moves of partitions whose worker leaves

The forms of --workers and --partitions and the strategies are those of `divvy assign`.";

pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  divvy plan --workers 3 --add 1 --partitions 2048 --strategy balanced
  divvy plan --workers @workers.csv --remove zone:b --add 2@a --partitions 64
  divvy assign --workers 5 --partitions 64 --json > before.json
  divvy plan --previous @before.json --add 2 --plot change.svg
  divvy plan --previous @before.json --to 4 --json > plan.json";

pub(super) const EXPLAIN: &str = "\
Shows the ranking behind the place of one partition: every worker with its score, and why a better \
one was passed over. The first that nothing vetoes owns the partition. -v also shows what was hashed, \
and how scores come about. With --previous it says where the partition is today, and why it moves or \
stays.

Strategies that balance (balanced, zoned, weighted-consistent-hash) place one partition after the \
other, and what a worker has by then decides. So loads in the table are those of that moment:
  load then            what each worker had just before the partition was
                       placed or moved, without all that came later
  load after           what each worker has by the plan, where the partition
                       stays: who is inside its band, or has its share, gives up
                       nothing and needs nothing
  per weight           the same divided by the worker's weight, where weights
                       differ: the lighter worker is the one with less of it

The forms of --workers and --partitions are those of `divvy assign`. Without --partitions the \
partition stands alone, which is enough where its place does not depend on the others: with \
rendezvous and consistent-hash. The other strategies need the whole set, from --partitions or \
--previous.";

pub(super) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  divvy explain default:17 --workers 3
  divvy explain default:17 --workers a=2,b,c=0 --json
  divvy explain orders:5 --workers 100 --strategy consistent-hash --top 3
  divvy explain default:17 --workers 3 --strategy balanced --partitions 64";

pub(super) const BENCH: &str = "\
Measures what a cluster's speed depends on, on the machine and the servers that it will run on.";

pub(super) const BENCH_EXAMPLES: &str = "\
Examples:
  divvy bench stores --store memory --time 200ms --leases 1000
  divvy bench failover --store file:a.db --workers 2 --kills 1 --start-workers 2

On servers:
  divvy bench messages --store nats://localhost";

pub(super) const BENCH_FAILOVER: &str = "\
Starts workers as processes, kills followers and leaders in turn (SIGKILL), stops some in order, and \
measures the time until everything that they had is started elsewhere. Before that, it starts \
--start-workers at once, for the sizes and times of a start: 64 with 5,000 partitions take about 220 MB \
and 8 s of a core, and starts fail where a machine has not that much left for them. It also counts \
what must not be: starts that fail, partitions with two owners at once, stable ids held twice; and \
puts sizes and times beside the bounds that they have to keep.

The first assignment counts from the end of the window in which the leader waits for more workers, to \
the last start. Memory is measured where --start-workers are 16 or more. Where a bound is missed, a \
start failed, or something was owned or held twice, the exit code is 1, after the figures.

Workers write to a cluster of their own (or --cluster), whose keys are deleted afterwards, also after \
a failure or an interrupt.";

pub(super) const BENCH_FAILOVER_EXAMPLES: &str = "\
Examples:
  divvy bench failover --store file:a.db --workers 2 --kills 2 --start-workers 3
  divvy bench failover --store file:b.db --kills 1 --start-workers 2 --json
  DIVVY_STORE=file:c.db divvy bench failover --kills 1 --start-workers 2

On servers:
  divvy bench failover --store nats://localhost --preset calm --kills 20 --json
  divvy bench failover --store redis://localhost --workers 8 --partitions 1000";

pub(super) const BENCH_MESSAGES: &str = "\
Publishes numbered messages to partitions that workers, as processes, own and hand on, and keeps a \
ledger of what they did: every message has to be there, once, in the order of its partition, and \
under a token that was not overtaken. A ledger refuses what comes under an older token, as a \
resource should.

With --faults workers join, stop (SIGTERM), are killed (SIGKILL) and paused (SIGSTOP) until their \
lease is over, --rounds times each; with --restart the server is restarted, too. Only messages that \
were in flight when something was killed, paused or restarted may be there twice.

Besides, unless --no-overhead, a backlog is handled by as many durable consumers without divvy and \
with it, in turns in this process; the overhead is the ratio of their times.

Streams, consumers and keys are this command's own, and are deleted afterwards.";

pub(super) const BENCH_MESSAGES_EXAMPLES: &str = "\
On servers:
  divvy bench messages --store nats://localhost
  divvy bench messages --store nats://localhost --retention workqueue --json
  divvy bench messages --store nats://localhost --faults --restart ./restart
  divvy bench messages --store nats://localhost --partitions 10000 --idle 30s";

pub(super) const BENCH_STORES: &str = "\
Measures stores: compare-and-set by one client and by many, one counter that all of them want, the \
time from a write to the watch that sees it, and leases that are acquired, renewed and released \
together. The share of a core is this program's, not the server's.

With --processes it measures how evenly a store serves several processes of this machine: all of \
them writing without pause, and renewing leases, also beside two that write without pause. Each \
process's operations are counted; the longest wait is that of any of them.

It writes only to keys of the cluster divvy-bench (or --cluster) and to leases of the group \
divvy-bench, and removes them afterwards; Redis and file stores keep the last token of each of \
those leases.

Stores (--store):
  memory               in this process
  file:PATH            all processes of one machine
  nats://HOST:PORT     a NATS server with JetStream; tls:// with encryption
  redis://HOST:PORT    Redis or Valkey; rediss:// with encryption,
                       redis+unix://PATH by a socket

An address with a password in it is taken from DIVVY_STORE, not from an argument, which everyone on \
the machine can read.";

pub(super) const BENCH_STORES_EXAMPLES: &str = "\
Examples:
  divvy bench stores --time 200ms --interval 100ms
  divvy bench stores --store memory --time 200ms --leases 1000 --json
  divvy bench stores --processes 16 --leases 3200 --interval 150ms
  DIVVY_STORE=file:divvy.db divvy bench stores --time 200ms --clients 4

On servers:
  divvy bench stores --store redis://localhost --store nats://localhost --peer
  divvy bench stores --store rediss://redis --user ada --password-file password";

pub(super) const AGENT: &str = "\
Takes part in a cluster in lease mode: every partition of a workload is a lease, and whoever has it \
runs --exec for it. There is no leader; agents that share a store share its workloads, also those \
of other clusters: --cluster says who is ranked with whom and whom operators steer, but leases are \
everybody's, so clusters of one store need workloads of different names. The command \
is started again when it ends, and stopped (SIGTERM, after --grace SIGKILL) before its lease is \
given back. It never outlives the agent or its lease, also if the agent stands still, nor does what it \
starts, as far as that is found and may be signalled. A process that has changed its real user id (sudo, su) may not: \
the agent keeps the partition until the process ends, the lease is lost, or shutdown_timeout ends the agent; after that \
another agent may run its command beside it. A partition whose command cannot be started is not owned.

No shell reads --exec: quotes keep words together, and {partition}, {workload}, {unit} and {token} are \
filled in. Another {word} is refused as a mistake; {{word}} stands for {word}. \
The command finds DIVVY_PARTITION, DIVVY_TOKEN and DIVVY_WORKER in its environment, and DIVVY_RUN, by \
which divvy finds what it starts. Hand the token \
to whatever it writes to, and let that refuse lower ones.

SIGTERM and SIGINT stop all commands, give their leases back, and end the agent; a second one ends \
it at once. SIGHUP reads --config again, for workloads, weight, limits and the pace of moves, and names \
what takes a restart; where it comes from a terminal that was closed, it ends the agent.

--webhook in place of --exec has a service work on partitions: it gets a signed POST for each start \
and stop, and what it does not accept is not owned (docs/operating.md, Webhooks).

--config is a file of settings, YAML or JSON. It has a field for every flag (--health-cmd is \
health_cmd), and those of lease mode (docs/operating.md). A flag counts before the environment \
(DIVVY_STORE, DIVVY_WEBHOOK), that before the file, and the file before what is default. \
--operation-timeout is store_operation_timeout there, for operation_timeout is the agent's own. \
--print-config prints every setting in force, with where it comes from, as --config reads it; of an \
address with a secret it shows where it leads.

HTTP (--listen):
  GET /healthz               200 while it runs
  GET /readyz                200 while it takes part and could have its share;
                             else 503 and why
  GET /metrics               what it counts, for Prometheus
  GET /v1/owned              its partitions, with tokens
  GET /v1/explain/PARTITION  who has it, who should, what keeps it from there,
                             and the ranking
  POST /v1/drain             hands everything on and takes nothing; DELETE ends
                             that

An address that other machines can reach needs --listen-token-file: clients send the token as \
`Authorization: Bearer TOKEN`, and only probes are answered yes or no without it.

Stores (--store):
  memory               in this process, so alone
  file:PATH            all agents of one machine
  redis://HOST:PORT    Redis or Valkey; rediss:// with encryption,
                       redis+unix://PATH by a socket

An address with a password in it is taken from DIVVY_STORE, or from a --config that not everybody can \
read, and not from an argument, which everyone on the machine can read.";

pub(super) const AGENT_EXAMPLES: &str = "\
Examples:
  divvy agent --store memory --workloads a:2 --exec 'echo {unit}' --run-for 5s
  divvy agent --store file:a.db --workloads a:8 --exec 'sleep 1000' --run-for 2s

On servers:
  divvy agent --store redis://localhost --workloads a:64 --exec './run {unit}'
  divvy agent --store redis://localhost --config agent.yaml --exec './run'";

pub(super) const WORKLOAD: &str = "\
Shows or changes the workloads that a store holds. Agents with --workloads dynamic serve them, and \
follow changes at once: units that are added start, units that are gone stop.

The store is Redis, Valkey or a file. Its workloads belong to all clusters that share it.";

pub(super) const WORKLOAD_EXAMPLES: &str = "\
Examples:
  divvy workload set orders 64 --store file:./agents.db
  divvy workload set mail 8 --max-per-worker 2 --store file:./agents.db
  divvy workload list --store file:./agents.db
  divvy workload remove mail --store file:./agents.db";

pub(super) const STATUS: &str = "\
Looks at a live cluster through its store, without taking part: which workers there are, what they \
own, and what is without an owner or not where it should be.

In lease mode the store knows who is alive. In leader mode a worker has to be seen renewing its \
record, so this takes up to a heartbeat, or up to a lease where one is silent; --no-wait shows \
records as they are.";

pub(super) const STATUS_EXAMPLES: &str = "\
Examples:
  divvy status --store file:./agents.db
  divvy status --store file:./agents.db --list
  divvy status --store file:./agents.db --json";

pub(super) const TOP: &str = "\
Shows a live cluster as it changes, until q is pressed: its workers and their loads, partitions \
without an owner or on their way, the last moves with their causes, and how quickly the store \
answers. Keys: q ends, s changes the order, arrows scroll, space pauses.";

pub(super) const TOP_EXAMPLES: &str = "\
Examples:
  divvy top --store redis://127.0.0.1:6379
  divvy top --store nats://127.0.0.1:4222 --cluster orders --interval 2s";

pub(super) const WHY: &str = "\
Shows where a partition is and why: how workers rank for it as things are now (in lease mode), and \
its last moves, each with its cause and with those that were passed over. The last 256 \
moves of a cluster in leader mode are remembered, and 4096 in lease mode.";

pub(super) const WHY_EXAMPLES: &str = "\
Examples:
  divvy why demo:3 --store file:./agents.db
  divvy why demo:3 --store file:./agents.db --json";

pub(super) const CORDON: &str = "\
Lets a worker keep what it has, and gives it nothing more, until `divvy uncordon`. The wish stays in the \
store: whoever leads, or every worker in lease mode, follows it at once, and still does after a \
restart.";

pub(super) const DRAIN: &str = "\
Lets a worker give up everything, so that it can be taken away without anybody noticing, and gives \
it nothing until `divvy uncordon`. Where nobody else can take its partitions, it keeps them.";

pub(super) const UNCORDON: &str = "\
Gives a worker that was cordoned or drained its share again.";

pub(super) const CORDON_EXAMPLES: &str = "\
Examples:
  divvy cordon one --store file:./agents.db
  divvy drain one --wait 10s --store file:./agents.db
  divvy uncordon one --store file:./agents.db";

pub(super) const PIN: &str = "\
Keeps a partition with a worker: it goes there, and stays for as long as that worker is there, \
healthy, not drained and able to have it; otherwise it goes where it would go without. The wish stays \
in the store until `divvy unpin`.";

pub(super) const UNPIN: &str = "\
Lets a pinned partition go where it belongs: takes back what `divvy pin` has wished.";

pub(super) const PIN_EXAMPLES: &str = "\
Examples:
  divvy pin demo:3 one --store file:./agents.db
  divvy unpin demo:3 --store file:./agents.db";

pub(super) const REFRESH: &str = "\
Has the leader of a cluster read its source of partitions now, instead of at its next time; in \
lease mode, has every worker read workloads, members and leases.";

pub(super) const REFRESH_EXAMPLES: &str = "\
Examples:
  divvy refresh --store file:./agents.db
  divvy refresh --store file:./divvy.db --mode leader --cluster payments";

pub(super) const COMPLETIONS: &str = "\
Prints a script by which a shell completes commands, flags, names of strategies, presets and \
scenarios, and files. The script asks the divvy that is installed, so it need not be made again for \
another release. Once, for all shells that are started from then on:

  bash  in ~/.bashrc: source <(divvy completions bash)
  zsh   mkdir -p ~/.zfunc; divvy completions zsh > ~/.zfunc/_divvy
        and in ~/.zshrc, before compinit: fpath+=~/.zfunc
  fish  mkdir -p ~/.config/fish/completions
        divvy completions fish > ~/.config/fish/completions/divvy.fish";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  divvy completions bash > divvy.bash
  divvy completions zsh > _divvy
  divvy completions fish > divvy.fish";

pub(super) const MAN: &str = "\
Prints the manual page of divvy, or writes one for each command into a directory and prints their \
names. Where `man` finds them: ~/.local/share/man/man1 for yourself, /usr/local/share/man/man1 for \
everybody.";

pub(super) const MAN_EXAMPLES: &str = "\
Examples:
  divvy man > divvy.1
  divvy man --dir man1";

pub(super) const WORKER: &str = "\
Takes part in a cluster as one of its workers: claims a stable id, may lead, and owns what it is \
given until SIGTERM, SIGINT or --run-for ends it. Every event is a line of JSON on stdout, \
with at_us (microseconds of a clock that all processes of the machine share), instance, event and \
what belongs to it: listening, claimed, session_ended, waiting, lease_regained, state_changed, \
adopted, assigned, started, revoked, stopped, leadership_changed, committed, error (with its kind), ended; \
with --tick also worked, with --deadlines also deadline. Who reads too slowly loses some: the line \
lost says how many.

With --exec it runs a command for each partition that it owns, as `divvy agent` does: started again \
when it ends, stopped (SIGTERM, after --grace SIGKILL) before its partition goes to another worker, \
and never left behind. {partition}, {workload}, {unit} and {token} are filled in; DIVVY_PARTITION, \
DIVVY_TOKEN, DIVVY_WORKER and DIVVY_RUN stand in its environment. What it writes goes to stderr, each line with \
its partition, or to --output-dir.

SIGHUP reads --config again, for partitions and weight, names what takes a restart, and has the leader \
read the source of partitions again.

--webhook, --listen, --config and --print-config are those of `divvy agent`; in the file, --grace is \
exec_grace, --operation-timeout is store_operation_timeout and --on-stop is shutdown.

--on-stop leave hands its partitions over at once; --on-stop return keeps them for an instance of \
the same name, for --return-within.

Stores (--store):
  memory               in this process, so alone
  file:PATH            all processes of one machine
  nats://HOST:PORT     a NATS server with JetStream; tls:// with encryption
  redis://HOST:PORT    Redis or Valkey; rediss:// with encryption,
                       redis+unix://PATH by a socket

An address with a password in it is taken from DIVVY_STORE, or from a --config that not everybody can \
read, and not from an argument, which everyone on the machine can read.";

pub(super) const WORKER_EXAMPLES: &str = "\
Examples:
  divvy worker --store memory --preset fast --partitions 8 --run-for 2s
  divvy worker --store file:a.db --preset fast --partitions mail:4 --run-for 3s
  DIVVY_STORE=memory divvy worker --preset fast --partitions 2 --run-for 3s

On servers:
  divvy worker --store nats://localhost --cluster orders --partitions @all.csv
  divvy worker --store redis://localhost --config worker.yaml --on-stop return";

pub(super) const DOCTOR: &str = "\
Examines a store before workers or agents rely on it, or when they do not get on with it: the \
server's version and settings, what this client may do there, clocks, and how quickly it answers. \
Each finding is good, worth a note, or bad, and says what to change. The exit code is 1 if \
one is bad.

Unless the server itself is bad, it does once what members do, under a key and a name of its own, and takes it away again (one small \
key stays where Redis has leases). A file or bucket that is missing is made, as the first member \
would. Running clusters do not mind.";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  divvy doctor --store file:./divvy.db
  divvy doctor --store file:./divvy.db --mode leader --cluster payments
  divvy doctor --store file:./divvy.db --json

On servers:
  divvy doctor --store redis://localhost:6379
  divvy doctor --store nats://localhost:4222 --cluster payments --replicas 3";

pub(super) const PLAYGROUND: &str = "\
Opens a cluster in the browser, to watch, to break and to understand. It has the machines that run \
in production, of either mode, in a simulated world: time can run fast, stand still and go on step \
by step. Kill, pause and cut off workers, break the store, change what there is, and see why every \
partition is where it is. All invariants are checked after every step.

`divvy playground` opens eight workers with 256 partitions at http://127.0.0.1:7433/ and prints that \
address. The page is served to this machine only; where --listen can be reached from others, a token is \
needed. Ctrl-C ends it.

A scenario is a world, what is done to it and when, and a goal in numbers. --headless runs one as \
fast as it goes, without a page, and exits with 1 where its goal is missed or an invariant broken.

--store starts real workers in place of a world, each a process of this program, on Redis, NATS or \
a file and by real time. Killing one is a SIGKILL and pausing it a SIGSTOP; cutting one off from its \
store, and breaking that, is done inside of the workers, so whoever else uses the store notices \
nothing. They are a cluster of their own, unless --cluster names one that nobody is in. Ctrl-C ends \
them and deletes all that they have written. DIVVY_STORE alone starts nothing:

  divvy playground --store redis://127.0.0.1:6379 --workers 6
  divvy playground --store file:./playground.db --mode lease
  divvy playground --store nats://127.0.0.1:4222 --partitions 1000

--observe shows a live cluster in place of a world: its workers, partitions and moves as they are, \
by real time, as `divvy status`, `top` and `why` tell them. Nothing can be changed from that page, and what \
the store does not tell is left out. A store that goes away is waited for:

  divvy playground --observe --store redis://127.0.0.1:6379 --cluster orders
  divvy playground --observe --store nats://127.0.0.1:4222 --mode leader
  divvy playground --observe --store file:divvy.db --mode lease --interval 2s";

pub(super) const PLAYGROUND_EXAMPLES: &str = "\
Examples:
  divvy playground --list
  divvy playground --scenario half-the-fleet-dies --headless
  divvy playground --scenario lease-cut-off --headless --json";

pub(super) const SIMULATE: &str = "\
Runs clusters that do not exist, to find out whether coordination holds. A seed is a world: \
members (the machine that runs in production) over a store, clocks, links, hooks and a source of \
partitions that fail in every way that the protocol allows for. After every step, invariants are \
checked: one owner per partition, rising tokens, nothing left unowned, and more.

The same seed is the same world, event for event, on every machine. Where an invariant is broken, \
the faults that do not matter are left out, and the command that shows the rest is printed; the \
exit code is 1.

What to run:
  --seeds N            so many worlds, from --from on
  --hours H            worlds until their clusters have lived so long together
  --seed N             one world; --trace prints all that happens in it
  --defects            the members with a mistake in one line, each until it is
                       caught
  --figures            how long hand-overs take in the time of the world, and
                       how fast it runs

A long run goes on where it was interrupted if --resume names the same file.";

pub(super) const SIMULATE_EXAMPLES: &str = "\
Examples:
  divvy simulate --mode leader --seeds 20
  divvy simulate --mode leader --seeds 20 --json
  divvy simulate --mode leader --seed 7 --trace > trace.txt
  divvy simulate --mode leader --hours 0.5 --resume run.json --jobs 2";
