#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/bench-build.sh - digest, seal and check beside fsverity and veritysetup.
#
#   B=build/none sh tools/bench-build.sh [ROUNDS]
#
# Files are fresh ones in a memory file system (TMPDIR, or /dev/shm): an inode
# in long use can be mapped at a third of the speed.  Results go to standard
# output as "name value unit" lines and, with all samples, into build/bench/.
# One core means both sides pinned to the same CPU; two cores means ours on
# two CPUs, and the peer, which has one thread, wherever it likes.
set -eu

rounds=${1:-7}
B=$(cd "${B:-build/none}" && pwd)
out=$(dirname "$B")/bench
mkdir -p "$out"
dir=$(mktemp -d "${TMPDIR:-/dev/shm}/verity-bench.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT TERM
PATH=$B:$PATH:/usr/sbin
cd "$dir"

cpus=$(nproc)
last=$((cpus - 1))
pair=$last
[ "$cpus" -lt 2 ] || pair=$((last - 1)),$last
one="taskset -c $last"
two="taskset -c $pair"

# run GROUP [options] BASE=... NAME=...
run() {
	group=$1; shift
	bench-run --rounds "$rounds" --json "$out/$group.json" "$@"
}

printf '# cpu: %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo |
	head -n 1)"
verityctl inspect --cpu | sed -n 's/^/# /p'

head -c 1G /dev/urandom >data
run build build \
	fsverity="$one fsverity digest data" \
	digest-1="$one verityctl digest --quiet data" \
	digest-2="$two verityctl digest --quiet data" \
	seal-1="$one verityctl seal --quiet data" \
	seal-2="$two verityctl seal --quiet data"

verityctl seal --quiet data >/dev/null
root=$(veritysetup format --salt=- data hash | sed -n 's/^Root hash:[[:space:]]*//p')
run check check \
	veritysetup="$one veritysetup verify data hash $root" \
	check-1="$one verityctl check --quiet data" \
	check-2="$two verityctl check --quiet data"
rm -f data data.fsv_meta hash

# One call of the peer takes the whole list, which is made before; ours has to
# find the files itself.  Each file is other bytes.
mkdir -p many/d
awk 'BEGIN { for (i = 0; i < 100000; i++) {
	f = sprintf("many/d/%05d", i); s = sprintf("%064d", i)
	for (k = 0; k < 6; k++) s = s s
	printf "%s", s > f; close(f) } }'
(cd many && find d -type f >../list)
run many --before 'rm -rf many/.verity' many \
	fsverity="cd many && $two xargs -x -s 2000000 -n 100000 -a ../list fsverity digest" \
	seal="cd many && $two verityctl seal --quiet ."
