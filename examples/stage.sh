# What the examples share: a folder that is thrown away, programs that are stopped whatever happens, and checks that are counted.
#
# A script sets `here` to its own folder and sources this. Of the environment it takes:
#   ICHIDO        the program, where `ichido` is not on the path
#   ICHIDO_STORE  an empty database (postgres://…) in place of an SQLite file in the folder
# POSIX sh, curl, sed, grep and awk are all it needs.

set -u
# What was meant for other servers and files must not reach these.
unset ICHIDO_SERVER ICHIDO_TOKEN ICHIDO_LOG
unset OUTBOX_BATCH_SIZE OUTBOX_PARALLELISM OUTBOX_RETRY_MAX OUTBOX_IDLE_SLEEP_MS OUTBOX_STUCK_THRESHOLD_MIN

# How often something is looked at until it is so, ten times a second: half a minute.
looks_max=300
# The longest that one request may take, in seconds.
request_max=30

checks=0
failed=0
pids=
address=
# Keys are new in each run, as they are for each press of a button.
run=$(date +%s)-$$
place=$(mktemp -d) || exit 1

clean_up() {
  trap '' EXIT HUP INT TERM
  # Some shells have something to say about who was killed.
  {
    for pid in $pids; do
      kill -KILL "$pid"
    done
    wait
  } 2>/dev/null
  rm -rf "$place"
}
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

export ICHIDO_CONFIG="$here/ichido.toml"
export ICHIDO_STORE="${ICHIDO_STORE:-sqlite:$place/ichido.db}"

# Ends the script where it makes no sense to go on.
give_up() {
  printf 'FAIL %s\n' "$1" >&2
  for log in "$place"/*.log; do
    if [ -s "$log" ]; then
      printf '     the last lines of %s:\n' "${log##*/}" >&2
      tail -n 5 "$log" | sed 's/^/       /' >&2
    fi
  done
  exit 1
}

program=$(command -v "${ICHIDO:-ichido}") ||
  give_up "${ICHIDO:-ichido} is no program; build it (cargo build --release) and say where it is: ICHIDO=target/release/ichido"
command -v curl >"$place/curl" || give_up "curl is not on the path"

ichido() { "$program" "$@"; }

# A title in what is printed.
part() { printf '\n%s\n' "$1"; }

# check WHAT EXPECTED CAME: one line for each thing that was looked at.
check() {
  checks=$((checks + 1))
  if [ "$2" = "$3" ]; then
    printf 'ok   %s\n' "$1"
  else
    failed=$((failed + 1))
    printf 'FAIL %s\n     expected: %s\n     came:     %s\n' "$1" "$2" "$3"
  fi
}

# check_soon WHAT EXPECTED COMMAND…: the same of what a command prints, where that may take a moment to be so.
check_soon() {
  what=$1
  expected=$2
  shift 2
  looks=0
  until came=$("$@") && [ "$came" = "$expected" ] || [ "$looks" -ge "$looks_max" ]; do
    looks=$((looks + 1))
    a_moment
  done
  check "$what" "$expected" "$came"
}

# until_so WHAT COMMAND…: runs it again and again until it succeeds, and gives up after half a minute.
until_so() {
  what=$1
  shift
  looks=0
  until "$@"; do
    looks=$((looks + 1))
    [ "$looks" -lt "$looks_max" ] || give_up "waited in vain: $what"
    a_moment
  done
}

# Parts of a second are not in POSIX, though nearly everywhere.
a_moment() { sleep 0.1 2>/dev/null || sleep 1; }

# start NAME WORDS ARGUMENTS…: starts the program, and waits until it says WORDS and its address, which is left in `address`, as its
# process is in `started`. What it says is in NAME.out, and what it logs in NAME.log.
start() {
  name=$1
  words=$2
  shift 2
  : >"$place/$name.out"
  "$program" "$@" >"$place/$name.out" 2>>"$place/$name.log" &
  started=$!
  pids="$pids $started"
  until_so "$name says where it listens" says_or_ended "$name" "$words" "$started"
  address=$(sed -n "s|.*$words \(http://[0-9.:]*\).*|\1|p" "$place/$name.out")
  [ -n "$address" ] || give_up "$name did not start"
}

# kill_now PID: ends a program that was started, without a chance to do anything about it.
kill_now() { end KILL "$1"; }

# stop_now PID: asks a program that was started to stop, and waits until it has.
stop_now() { end TERM "$1"; }

# end SIGNAL PID
end() {
  {
    kill -"$1" "$2"
    wait "$2"
  } 2>/dev/null
  shift
  # Its number may be another's from now on.
  running=
  for pid in $pids; do
    [ "$pid" = "$1" ] || running="$running $pid"
  done
  pids=$running
}

says_or_ended() {
  grep -q "$2" "$place/$1.out" || ! kill -0 "$3" 2>/dev/null
}

# ask ARGUMENTS…: a request to this machine. Prints the status; the answer's body is in the file `answer`, its head in `head`.
ask() {
  curl -q --noproxy '*' --silent --max-time "$request_max" --output "$place/answer" --dump-header "$place/head" \
    --write-out '%{http_code}' "$@"
}

# text NAME, number NAME: a member of the JSON on standard input.
text() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
number() { sed -n "s/.*\"$1\":\([0-9][0-9]*\).*/\1/p"; }

# fails BROKER SETTINGS: tells a broker of paper how to fail from now on, and fails WELL how not to.
fails() {
  status=$(ask -X PUT "$1/paper/faults" --data "$2")
  [ "$status" = 200 ] || give_up "the broker of paper does not understand $2: $(cat "$place/answer")"
}

# broker_did BROKER [KEY]: how often a broker of paper was called, and how often that took effect; under one key, or under all.
broker_did() {
  ask "$1/paper/effects" >"$place/status"
  if [ $# -eq 2 ]; then
    counts=$(sed -n "s/.*\"$2\":{\([^}]*\)}.*/\1/p" "$place/answer")
  else
    counts=$(sed 's/"effects_max".*//' "$place/answer")
  fi
  printf '%s calls, %s effects' "$(echo "$counts" | number calls)" "$(echo "$counts" | number effects)"
}

# The last line, and the exit code.
sum_up() {
  if [ "$failed" -eq 0 ]; then
    printf '\n%s checks, all ok\n' "$checks"
  else
    printf '\n%s of %s checks failed\n' "$failed" "$checks"
    exit 1
  fi
}
