# shellcheck shell=sh
# SPDX-License-Identifier: MIT
# t/seal-lib.sh - what the tests of seal and check share.  Behind lib.sh:
#
#	. "$TOP/t/seal-lib.sh"
#
# The time is fixed, so that equal trees have equal manifests.

# First, for from below on strace is a function.
requires jq
requires perl
requires strace

SOURCE_DATE_EPOCH=1700000000
export SOURCE_DATE_EPOCH

# The leak checker can not work under strace.
strace() { ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0 command strace "$@"; }

# pin_of MANIFEST, tree_pin DIR: print the pin.
pin_of()   { _sum=$(sha256sum <"$1"); echo "sha256:${_sum%% *}"; }
tree_pin() { pin_of "$1/.verity/manifest"; }

# state DIR: print all that is in it, contents, times and all.
state() {
	find "$1" -printf '%P %y %s %m %U %T@ %C@ %n %l\n' | sort
	find "$1" -type f -exec sha256sum {} + | sort
}

# hold PATH: another process locks it, until stop "$holder".
hold() {
	spawn flock -F "$1" sleep 60
	# shellcheck disable=SC2034 # for the test
	holder=$!
	until ! flock -n "$1" true; do sleep 0.05; done
}
