# Shared by the examples: a temporary folder, programs that are always stopped, and counted checks.
#
# A script sets `here` to its own folder and sources this file. Environment:
#   ICHIDO        the program, if `ichido` is not on the path
#   ICHIDO_STORE  an empty database (postgres://…) instead of an SQLite file in the folder
# It needs only POSIX sh, curl, sed, grep and awk.

set -u
# Settings for other servers and files must not reach these.
unset ICHIDO_SERVER ICHIDO_TOKEN ICHIDO_LOG
unset OUTBOX_BATCH_SIZE OUTBOX_PARALLELISM OUTBOX_RETRY_MAX OUTBOX_IDLE_SLEEP_MS OUTBOX_STUCK_THRESHOLD_MIN

# How often a condition is checked, ten times a second: half a minute.
max_looks=300
# The timeout of one request, in seconds.
max_request=30

checks=0
failed=0
pids=
address=
# Keys are new in each run, as they are for each click.
run=$(date +%s)-$$
place=$(mktemp -d) || exit 1

clean_up() {
  trap '' EXIT HUP INT TERM
  # Some shells report killed processes.
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

# Ends the script after a failure that it cannot recover from.
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
  give_up "cannot find ${ICHIDO:-ichido}; build it (cargo build --release) and set ICHIDO=target/release/ichido"
command -v curl >"$place/curl" || give_up "curl is not on the path"

ichido() { "$program" "$@"; }

# Prints a heading.
part() { printf '\n%s\n' "$1"; }

# check REQUIREMENT WHAT EXPECTED ACTUAL: prints one line for each check. The requirement (docs/spec.md) is not printed.
check() {
  checks=$((checks + 1))
  if [ "$3" = "$4" ]; then
    printf 'ok   %s\n' "$2"
  else
    failed=$((failed + 1))
    printf 'FAIL %s\n     expected: %s\n     actual:   %s\n' "$2" "$3" "$4"
  fi
}

# check_soon REQUIREMENT WHAT EXPECTED COMMAND…: the same for a command's output, which may need a moment.
check_soon() {
  requirement=$1
  what=$2
  expected=$3
  shift 3
  looks=0
  until actual=$("$@") && [ "$actual" = "$expected" ] || [ "$looks" -ge "$max_looks" ]; do
    looks=$((looks + 1))
    a_moment
  done
  check "$requirement" "$what" "$expected" "$actual"
}

# until_so WHAT COMMAND…: repeats the command until it succeeds, and gives up after half a minute.
until_so() {
  what=$1
  shift
  looks=0
  until "$@"; do
    looks=$((looks + 1))
    [ "$looks" -lt "$max_looks" ] || give_up "timed out waiting until $what"
    a_moment
  done
}

# POSIX has no fractions of a second, but nearly every system does.
a_moment() { sleep 0.1 2>/dev/null || sleep 1; }

# start NAME WORDS ARGUMENTS…: starts the program, and waits until it prints WORDS and its address. Sets `address`, and `started` to the
# process. Its output is in NAME.out, and its log in NAME.log.
start() {
  name=$1
  words=$2
  shift 2
  : >"$place/$name.out"
  "$program" "$@" >"$place/$name.out" 2>>"$place/$name.log" &
  started=$!
  pids="$pids $started"
  until_so "$name prints its address" says_or_ended "$name" "$words" "$started"
  address=$(sed -n "s|.*$words \(http://[0-9.:]*\).*|\1|p" "$place/$name.out")
  [ -n "$address" ] || give_up "$name did not start"
}

# kill_now PID: kills a started program.
kill_now() { end KILL "$1"; }

# stop_now PID: asks a started program to stop, and waits for it.
stop_now() { end TERM "$1"; }

# end SIGNAL PID
end() {
  {
    kill -"$1" "$2"
    wait "$2"
  } 2>/dev/null
  shift
  # The system may reuse its process id.
  running=
  for pid in $pids; do
    [ "$pid" = "$1" ] || running="$running $pid"
  done
  pids=$running
}

says_or_ended() {
  grep -q "$2" "$place/$1.out" || ! kill -0 "$3" 2>/dev/null
}

# ask ARGUMENTS…: sends a request to this machine. Prints the status; the response body is in the file `answer`, its head in `head`.
ask() {
  curl -q --noproxy '*' --silent --max-time "$max_request" --output "$place/answer" --dump-header "$place/head" \
    --write-out '%{http_code}' "$@"
}

# text NAME, number NAME: prints a member of the JSON on standard input.
text() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }
number() { sed -n "s/.*\"$1\":\([0-9][0-9]*\).*/\1/p"; }

# fails BROKER SETTINGS: sets how a mock broker fails from now on.
fails() {
  status=$(ask -X PUT "$1/mock/faults" --data "$2")
  [ "$status" = 200 ] || give_up "the mock broker rejected $2: $(cat "$place/answer")"
}

# broker_did BROKER [KEY]: prints the calls and effects of a mock broker, of one key or of all.
broker_did() {
  ask "$1/mock/effects" >"$place/status"
  if [ $# -eq 2 ]; then
    counts=$(sed -n "s/.*\"$2\":{\([^}]*\)}.*/\1/p" "$place/answer")
  else
    counts=$(sed 's/"keys".*//' "$place/answer")
  fi
  printf '%s calls, %s effects' "$(echo "$counts" | number calls)" "$(echo "$counts" | number effects)"
}

# Prints the last line and sets the exit code.
sum_up() {
  if [ "$failed" -eq 0 ]; then
    printf '\n%s checks, all ok\n' "$checks"
  else
    printf '\n%s of %s checks failed\n' "$failed" "$checks"
    exit 1
  fi
}
