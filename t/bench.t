#!/bin/sh
# SPDX-License-Identifier: MIT
# The benchmark programs: options, mistakes, and the form of what they print.
# How fast anything is, is no matter here.
. "${0%/*}/lib.sh"
requires jq

# lines PREFIX FILE: true when each line is PREFIX.NAME, a value, and a unit.
lines() {
	[ -s "$2" ] || { echo 'no line'; return 1; }
	! grep -vE "^$1\.[a-z0-9.-]+ ([0-9]+\.?[0-9]*|[a-z0-9-]+) (s|GB/s|KiB|x|kernel)\$" "$2"
}

# valid FILE FILTER: the one JSON value in it makes the filter true.
valid() { jq -es "length == 1 and (.[0] | $2)" "$1"; }

# What both have in common; bench-run's commands are added to its options.
run='group base=true other=true'
for prog in bench-hash bench-run; do
	words=
	[ $prog = bench-hash ] || words=$run
	ok "$prog --help" $prog --help
	$prog --help >help
	like 'begins with its usage' "$(head -n 1 help)" "^usage: $prog \["
	is 'and is no wider than 80 columns' "$(awk 'length > 80' help)" ''
	# shellcheck disable=SC2086 # words
	{
		ok 'an unknown option is refused' fails 2 nosuch $prog --nosuch $words
		ok 'so is one without its value' fails 2 rounds $prog $words --rounds
		for n in 6 1002 x 7x -7 '' 99999999999999999999; do
			ok "and --rounds '$n'" \
				fails 2 "^$prog: --rounds is '$n', must be a number from 7 to 100[01]\$" \
				$prog --rounds "$n" $words
		done
		ok 'a file that cannot be made is named' \
			fails 1 "^$prog: no/json: No such file" \
			$prog --rounds 7 --json no/json $words
		if [ -w /dev/full ]; then
			ok 'lost output is an error' fails 1 "^$prog: standard output: " \
				sh -c "$prog --rounds 7 $words >/dev/full"
			ok 'a lost file, too' fails 1 "^$prog: /dev/full: No space" \
				$prog --rounds 7 --json /dev/full $words
		else
			skip 'no /dev/full here'
		fi
	}
done

# bench-hash.
ok 'bench-hash takes no argument' fails 2 "unexpected argument 'x'" bench-hash x
ok 'nor a block that is no power of two' fails 2 '^bench-hash: --block is 96' \
	bench-hash --block 96
ok 'nor one too large' fails 2 '^bench-hash: --block is' bench-hash --block 131072
ok 'an unknown CPU feature is named' fails 2 "VERITY_CPU: unknown word '-mmx'" \
	env VERITY_CPU=-mmx bench-hash
ok 'bench-hash runs' \
	sh -c 'bench-hash --rounds 7 --block 1024 --json json >out'
ok 'prints names, values and units' lines hash out
ok 'of the path that was chosen, beside libcrypto' \
	sh -c 'grep -q "^hash\.evp\.ratio 1\.00 x$" out &&
		grep -q "^hash\.chosen " out'
ok 'and keeps each sample' valid json '.benchmark == "hash" and
	.block == 1024 and .rounds == 7 and .verity_cpu == "" and
	(.results | length > 1 and
		all(."GB/s".samples, .ratio.samples | length == 7))'
ok 'bench-hash --prefix' sh -c 'VERITY_CPU=-avx512 \
	bench-hash --rounds 7 --prefix other --json json >out'
ok 'gives another name to all of it' lines other out
ok 'and to what is kept' valid json \
	'.benchmark == "other" and .verity_cpu == "-avx512"'

# bench-run.
ok 'bench-run wants a group and two commands' \
	fails 2 '^usage: bench-run' bench-run group base=true
ok 'of which each has a name' fails 2 "^bench-run: 'true': must be NAME=COMMAND" \
	bench-run group base=true true
ok 'a command that fails ends it' fails 1 '^bench-run: exit 3: failed' \
	bench-run group base=true 'other=exit 3'
ok 'also one that goes before' fails 1 '^bench-run: false: failed' \
	bench-run --before false group base=true other=true
ok 'bench-run runs' sh -c 'bench-run --before "echo before >>log" --json json \
	group base="echo base >>log" "other=echo \"other\" >>log" >out'
ok 'prints names, values and units' lines group out
is 'these' "$(sed 's/ .* / /' out)" 'group.base s
group.base.min s
group.base.max s
group.base.rss KiB
group.other s
group.other.min s
group.other.max s
group.other.rss KiB
group.other.ratio x'
ok 'keeps each sample' valid json '.group == "group" and .rounds == 7 and
	.base == "base" and (.entries | length == 2 and
		all(.samples_s | length == 7 and all(. > 0)) and
		.[1].command == "echo \"other\" >>log")'
ok 'of which the middle one is the median' valid json \
	'all(.entries[]; (.samples_s | sort | .[3]) == .median_s)'
is 'and runs all commands in turn, once to warm up, each after the other one' \
	"$(grep -v before log | paste -sd ' ')" \
	"base other $(for _ in 1 2 3; do
		printf 'base other other base '
	done)base other"
is 'what goes before does so each time' \
	"$(awk 'NR % 2 != ($0 == "before")' log)" ''

tap_done
