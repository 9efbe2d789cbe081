# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# t/lib.sh - TAP for tests written in shell.  First line of each:
#
#   . "${0%/*}/lib.sh"
#
# The test then stands in a fresh directory, $T, that goes away with it; the
# programs of the build $B (default build/none) are on PATH; $TOP is the
# source tree.  It makes any number of checks, each named by the rule that
# holds, and ends with tap_done.  By hand:  B=build/none sh t/x.t
#
# Checks:   ok, is, like, skip; skip_all and bail end the test
# Commands: exits and fails, to be given to ok; requires; spawn and stop
# Files:    noise, overwrite, damage, for tests that require perl
# Names that begin with _ are this file's own.

set -u
LC_ALL=C
export LC_ALL
umask 022

skip_all() { echo "1..0 # SKIP $*"; exit 0; }
bail()     { echo "Bail out! $*"; exit 255; }
diag()     { printf '%s\n' "$*" | sed 's/^/# /'; }

TOP=$(cd "${0%/*}/.." && pwd) || bail "no source tree above $0"
B=$(cd "${B:-build/none}" 2>/dev/null && pwd) || bail "no such build: ${B:-build/none}"
PATH=$B:$PATH
_base=$(mktemp -d) || bail 'no temporary directory'
T=$_base/t
mkdir "$T" || bail "cannot make $T"
cd "$T" || bail "cannot enter $T"
export B T TOP

_n=0 _bad=0 _pids=
trap '_leave $?' EXIT
trap 'exit 255' HUP INT TERM

# _pass NAME, _fail NAME: print the result of the next check.
_pass() { _n=$((_n + 1)); echo "ok $_n - $1"; }
_fail() { _n=$((_n + 1)) _bad=$((_bad + 1)); echo "not ok $_n - $1"; }

# ok NAME COMMAND...: the command exits 0; its output is shown if not.
ok() {
	_name=$1; shift
	if "$@" >"$_base/out" 2>&1; then
		_pass "$_name"
	else
		_status=$?
		_fail "$_name"
		diag "exit $_status from: $*"
		sed 's/^/#   /' "$_base/out"
	fi
}

# is NAME GOT WANT: the two strings are equal.
is() {
	if [ "$2" = "$3" ]; then
		_pass "$1"
	else
		_fail "$1"
		diag "got:  $2"
		diag "want: $3"
	fi
}

# like NAME GOT REGEX: some line of the string matches the extended regex.
like() {
	if printf '%s\n' "$2" | grep -qE -e "$3"; then
		_pass "$1"
	else
		_fail "$1"
		diag "got: $2"
		diag "does not match: $3"
	fi
}

# skip WHY: a check that cannot be made here.
skip() { _n=$((_n + 1)); echo "ok $_n # SKIP $*"; }

# exits STATUS COMMAND...: true when the command exits with just that.
exits() {
	_want=$1; shift
	"$@"; _got=$?
	[ "$_got" -eq "$_want" ] || { echo "status $_got, want $_want"; return 1; }
}

# fails STATUS REGEX COMMAND...: true when the command exits with just that,
# and a line it wrote to standard error matches the extended regex.
fails() {
	_want=$1 _regex=$2; shift 2
	"$@" 2>"$_base/err"; _got=$?
	cat "$_base/err"
	[ "$_got" -eq "$_want" ] || { echo "status $_got, want $_want"; return 1; }
	grep -qE -e "$_regex" "$_base/err" || {
		echo "standard error does not match: $_regex"
		return 1
	}
}

# requires PROGRAM: skip the whole test where there is no such program;
# requires COMMAND ARG...: or where trying the command fails.
requires() {
	if [ $# -eq 1 ]; then
		command -v "$1" >/dev/null || skip_all "no $1 here"
	else
		"$@" >/dev/null 2>&1 || skip_all "cannot do here: $*"
	fi
}

# spawn COMMAND...: run in the background as process $!; ended with the test.
spawn() { "$@" & _pids="$_pids $!"; }

# _runs PID: true while it is a living child of ours, not another's process
# that got a number of ours.
_runs() {
	case $(sed 's/.*) \(.\) \([0-9]*\) .*/\1\2/' "/proc/$1/stat" 2>/dev/null) in
	[ZX]*) return 1 ;;
	?"$$") ;;
	*) return 1 ;;
	esac
}

# stop PID: end what spawn started.  False when SIGTERM does not do it in 5 s
# (20 s under sanitizers).
stop() {
	_left=50 _stuck=0
	case $B in *asan | *tsan) _left=200 ;; esac
	! _runs "$1" || kill -TERM "$1"
	while _runs "$1"; do
		_left=$((_left - 1))
		[ $_left -gt 0 ] || { _stuck=1; kill -KILL "$1"; break; }
		sleep 0.1
	done
	wait "$1" 2>/dev/null
	[ $_stuck -eq 0 ] || diag "process $1 did not end at SIGTERM"
	return $_stuck
}

# noise SEED SIZE: print bytes that repeat nothing, the same each time.
noise() { perl -e 'srand $ARGV[0]; print map { chr rand 256 } 1 .. $ARGV[1]' "$@"; }

# overwrite FILE OFFSET BYTES: BYTES are hex digits.
overwrite() {
	perl -e 'open F, "+<", $ARGV[0] or die; seek F, $ARGV[1], 0;
		print F pack "H*", $ARGV[2]; close F or die' "$@"
}

# damage FILE OFFSET...: turn a bit at each.
damage() {
	perl -e 'my $f = shift; open F, "+<", $f or die;
		for (@ARGV) { seek F, $_, 0; read F, $c, 1; seek F, $_, 0;
			print F $c ^ "\1" } close F or die' "$@"
}

_leave() {
	_code=$1
	for _pid in $_pids; do
		stop "$_pid" || _code=1
	done
	cd / && rm -rf "$_base"
	exit "$_code"
}

tap_done() { echo "1..$_n"; exit $((_bad > 0)); }
