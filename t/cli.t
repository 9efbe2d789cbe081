#!/bin/sh
# SPDX-License-Identifier: MIT
# What all commands have in common: help, mistakes told in one line, and what
# happens when standard output goes away.
. "${0%/*}/lib.sh"

commands='digest seal check cat inspect'
printf hello >file
head -c 1000000 /dev/zero >large

# one_line STATUS REGEX COMMAND...: fails so, with just one line on standard
# error and nothing on standard output.
one_line() {
	fails "$@" >out || { cat out; return 1; }
	_want=$1; shift 2
	"$@" >out 2>err
	[ ! -s out ] || { echo 'wrote to standard output:'; cat out; return 1; }
	[ "$(wc -l <err)" -eq 1 ] || { echo 'more than a line:'; cat err; return 1; }
}

like 'verityctl --version names a version' "$(verityctl --version)" \
	'^verityctl [0-9]+\.[0-9]+\.[0-9]+$'
verityctl --help >help
for cmd in $commands; do
	ok "verityctl --help knows $cmd" grep -q "^  $cmd  " help
	verityctl "$cmd" --help >"help.$cmd"
	ok "$cmd --help begins with its usage" \
		grep -q "^Usage: verityctl $cmd \[OPTION" "help.$cmd"
	verityctl help "$cmd" >"help2.$cmd"
	ok "help $cmd says the same" cmp "help.$cmd" "help2.$cmd"
	verityctl --list-options "$cmd" >options
	ok "its help names every option" sh -c 'while read -r option; do
			grep -qE "^  $option[ =]" "help.$0" || exit
		done <options' "$cmd"
	ok "$cmd --help goes before what is wrong later" \
		verityctl "$cmd" --help --nosuch
done
is 'no help is wider than 80 columns' \
	"$(cat help help.* | awk 'length > 80')" ''
ok '-h is --help' sh -c 'verityctl -h | cmp - help'
ok 'so is help' sh -c 'verityctl help | cmp - help'

ok 'without a command the help is pointed to' \
	one_line 2 '^verityctl: no command given .*--help' verityctl
ok 'an unknown command is named' \
	one_line 2 '^verityctl: frobnicate: no such command .*--help' \
	verityctl frobnicate
ok 'a near miss gets a proposal' \
	one_line 2 '^verityctl: digst: .*did you mean digest\?' verityctl digst
ok 'so does one of help' one_line 2 'did you mean seal\?' verityctl help sael
ok 'an unknown option is named' \
	one_line 2 '^verityctl: digest: --nosuch: no such option .*--help' \
	verityctl digest file --nosuch
ok 'and gets a proposal' one_line 2 'did you mean --block-size\?' \
	verityctl digest file --blocksize=512
ok 'short options are none' one_line 2 '^verityctl: cat: -x: no such option' \
	verityctl cat -x file
ok 'an option given twice is refused' \
	one_line 2 '^verityctl: digest: --salt: .*only once' \
	verityctl digest --salt=00 file --salt=00
ok 'so is a flag with a value' one_line 2 '--json: takes no value' \
	verityctl digest --json=yes file
ok 'and an option without one' \
	one_line 2 '--salt: needs a value: --salt=HEX' \
	verityctl digest file --salt

# The value, and the rule that it breaks.
ok 'algorithms are spelt out' \
	one_line 2 '--hash-alg=md5: must be sha256 or sha512' \
	verityctl digest file --hash-alg=md5
ok 'a block size has its limits' \
	one_line 2 '--block-size=1000: must be a power of two from 512 to 65536' \
	verityctl digest file --block-size 1000
ok 'so has a salt' one_line 2 '--salt=0: must be .*32 bytes in hex' \
	verityctl digest file --salt 0
ok 'and the number of threads' \
	one_line 2 '--jobs=0: must be a number from 1 to 256' \
	verityctl digest file --jobs 0
ok 'a range says its form' one_line 2 '--range=9-1: must be A-B' \
	verityctl cat file --range=9-1
ok 'so does a digest' one_line 2 '--pin=abc: must be sha256:HEX' \
	verityctl cat file --pin=abc
ok 'an empty file name is refused' \
	one_line 2 '--out-descriptor=: must not be empty' \
	verityctl digest file --out-descriptor=

ok 'operands are missed' \
	one_line 2 '^verityctl: digest: too few operands .*FILE' verityctl digest
ok 'inspect misses them too' one_line 2 'too few operands' verityctl inspect
ok 'one too many is named' one_line 2 '^verityctl: cat: b: one operand too' \
	verityctl cat a b
ok 'options may follow operands, -- ends them' \
	one_line 4 '^verityctl: digest: --json: cannot open' \
	verityctl digest -- --json

ok 'a message stays on one line' one_line 4 'a\\nb\\x1b\[m: cannot open' \
	verityctl digest "$(printf 'a\nb\033[m')"

# Standard output.
full='standard output: cannot write: No space left on device'
ok '/dev/full is noticed at the end' fails 4 "$full" \
	sh -c 'exec verityctl digest file >/dev/full'
# shellcheck disable=SC2046 # as many words
ok 'and before' fails 4 "$full" sh -c 'exec verityctl digest "$@" >/dev/full' \
	sh $(yes file | head -n 3000)
ok 'by --json, too' fails 4 "$full" \
	sh -c 'exec verityctl digest --json file >/dev/full'
ok 'and by --help' fails 4 "$full" sh -c 'exec verityctl --help >/dev/full'
ok 'and by inspect' fails 4 "$full" \
	sh -c 'exec verityctl inspect --cpu >/dev/full'
ok 'a closed standard output is noticed' fails 4 'Bad file descriptor' \
	sh -c 'exec verityctl digest file >&-'
ok 'and nothing is written into another file in its place' \
	fails 4 'Bad file descriptor' \
	sh -c 'exec verityctl digest file --out-descriptor=desc >&-'
is 'the other file has its own bytes only' "$(wc -c <desc)" 256
# More than a pipe holds, so that the reader is gone before the end.
# shellcheck disable=SC2046 # as many words
{ verityctl digest $(yes file | head -n 3000) 2>err; echo $? >status; } | true
is 'a reader that goes away makes it status 4' "$(cat status)" 4
is 'and is not worth a message' "$(cat err)" ''

# The environment.
ok 'a bad word in VERITY_CPU is an error' \
	one_line 2 "VERITY_CPU: '-mmx' is not a feature .*-avx512" \
	env VERITY_CPU=-avx2,-mmx,-shani verityctl digest file
ok 'as is one without the dash' one_line 2 "VERITY_CPU: 'shani' is not" \
	env VERITY_CPU=shani verityctl digest file
is 'features can be switched off, the digest is the same' \
	"$(VERITY_CPU=-avx512,-avx2,-shani,-sha2 verityctl digest large)" \
	"$(verityctl digest large)"
ok 'help needs no features' env VERITY_CPU=-mmx verityctl digest --help

# Once: seal used to say it twice.
echo x >sealme
verityctl seal --quiet sealme 2>err >/dev/full
is 'seal to a full disk is status 4, told in one line' \
	"$? $(grep -c 'No space left' err)" '4 1'

tap_done
