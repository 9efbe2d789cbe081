#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 120
# bench-pools and bench-wq: what they print, what they refuse, and that no job
# is lost when the mode is flipped.  How fast anything is, is no matter here.
. "${0%/*}/lib.sh"
requires jq

ok 'bench-pools --help' bench-pools --help
bench-pools --help >help
is 'its help is no wider than 80 columns' "$(awk 'length > 80' help)" ''
ok 'an unknown option is refused' fails 2 nosuch bench-pools --nosuch
ok 'so is an operand' fails 2 'no operands' bench-pools x
ok 'a mode that does not exist, with those that do' \
	fails 2 "mode 'socket' was asked for; possible are inline, bound" \
	bench-pools --mode socket
ok 'a CPU that may not be used, with those that may' \
	fails 2 'CPUs 1023 were asked for; this process may use' \
	bench-pools --cpus 1023
ok 'a list of CPUs that is none' fails 2 "must be a list as 0-3,8" \
	bench-pools --cpus 3-1
ok 'a priority out of range' fails 2 'nice 20 was asked for; -20 to 19' \
	bench-pools --prio nice:20
for n in 0 x '' 1e9; do
	ok "--gap-us '$n'" fails 2 "must be a number from 1 to" \
		bench-pools --gap-us "$n"
done
if [ "$(id -u)" -eq 0 ]; then
	ok 'a priority without permission, with the limits' \
		fails 2 'RLIMIT_NICE' setpriv --reuid 65534 --clear-groups \
		--bounding-set=-all env PATH="$PATH" bench-pools --prio nice:-5
else
	skip 'not root: nobody to become'
fi

echo 'cpu 0 capacity=9999' >bad
ok 'a bad topology, with its line' fails 2 'bad, line 1: capacity must be' \
	bench-pools --topology bad
echo 'cpu 0 cache=0' >one
ok 'a made-up topology is taken' bench-pools --topology one \
	--mode unbound:cache,strict --seconds 0.05 --rounds 1

# part MODE PART: the row of the table.
part() { grep -E "^$1 +$2 " out; }
ok 'a flip under load loses no job' sh -c 'bench-pools --mode bound \
	--mode inline --mode local-first --mode unbound:cpu,strict \
	--issuers 3 --burst 40 --seconds 0.03 --rounds 8 >out'
for mode in bound inline local-first unbound:cpu,strict; do
	for what in enqueue queue wake dispatch ready run; do
		ok "$mode: $what is told" part "$mode" "$what"
	done
done
like 'and what the switches cost' "$(cat out)" '^switches 32: drain p50 '
like 'why the slowest were slow' "$(cat out)" '  job [0-9a-f]+, class 0: ready after'
queued=$(sed -n 's/^jobs queued \([0-9]*\), done .*/\1/p' out)
is 'all that was queued is done' \
	"$(sed -n 's/^jobs queued [0-9]*, done \([0-9]*\),.*/\1/p' out)" "$queued"

ok 'a trace is written' sh -c 'bench-pools --seconds 0.05 --rounds 1 \
	--trace trace >out'
if command -v protoc >/dev/null; then
	ok 'that protoc reads' sh -c 'protoc --decode_raw <trace >raw'
	like 'with states of workers, or a note that there are none' \
		"$(cat raw)" '^  117 \{|no scheduler states'
else
	skip 'no protoc'
	skip 'no protoc'
fi
ok 'a trace that cannot be written is an error' fails 4 'trace: ' \
	bench-pools --seconds 0.01 --rounds 1 --trace no/trace
ok 'percentiles as .hgrm text' sh -c 'bench-pools --seconds 0.05 --rounds 1 \
	--hgrm hgrm >out'
like 'as HdrHistogram prints them' "$(cat hgrm)" '^#\[Buckets = +30, SubBuckets +='

ok 'bench-wq' sh -c 'bench-wq --rounds 7 --switches 50 --json json >out'
like 'says how many jobs 50 switches lost' "$(cat out)" '^wq.switch-jobs-lost 0 jobs$'
is 'each line is a name, a value and a unit' \
	"$(grep -vE '^(#.*|wq\.[a-z0-9.-]+ -?[0-9.]+ (ns|us|x|M/s|jobs|switches|stamps))$' out)" ''
ok 'and keeps its samples' sh -c \
	'jq -e ".[\"stamps-on-minus-off\"] | length == 7" json'
ok 'fewer than 7 rounds are refused' fails 2 . bench-wq --rounds 6

tap_done
