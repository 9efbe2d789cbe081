#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/demo.sh - a short tour: seal a real tree, check it, damage it, and see
# the damage refused.  `make demo` builds first and then runs this.
#
#   B=build/none sh tools/demo.sh [DIR]      DIR: /usr/share/doc, copied
set -eu

B=$(cd "${B:-build/none}" && pwd)
PATH=$B:$PATH
src=${1:-/usr/share/doc}
dir=$(mktemp -d "${TMPDIR:-/tmp}/verity-demo.XXXXXX")
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' HUP INT TERM

say() { printf '\n# %s\n' "$*"; }

# show COMMAND: print it as it would be typed, then run it.
show() { printf '$ %s\n' "$1"; sh -c "$1"; }

# refused STATUS COMMAND: the same for one that must fail with that status.
refused() {
	printf '$ %s\n' "$2"
	status=0
	sh -c "$2" || status=$?
	printf '(exit status %s)\n' "$status"
	[ "$status" -eq "$1" ] || { echo "demo: wanted status $1" >&2; exit 1; }
}

cp -r "$src" "$dir/tree"
cd "$dir"

say "A copy of $src.  Seal it: a digest for every file, one for all of them."
show 'verityctl seal tree | tee pin.txt'
pin=$(cut -d' ' -f1 pin.txt)

say 'The pin stands for the whole tree.  Keep it somewhere safe; with it:'
show "verityctl check --pin $pin tree"

victim=$(find tree -type f -not -path '*/.verity/*' -size +20k | sort | head -n 1)
size=$(wc -c <"$victim")
say "Flip one bit in the middle of $victim ($size bytes)."
at=$((size / 2))
byte=$(od -An -tu1 -j "$at" -N 1 "$victim" | tr -d ' ')
# shellcheck disable=SC2059 # the format is the byte
printf "\\$(printf %03o $((byte ^ 1)))" |
	dd of="$victim" bs=1 seek="$at" conv=notrunc status=none
refused 1 "verityctl check --pin $pin tree"

say 'cat gives the good bytes before the bad block, and not one more:'
refused 1 "verityctl cat --pin $pin $victim >got"
printf 'got %s of %s bytes; block %s is bad\n' "$(wc -c <got)" "$size" \
	"$((at / 4096))"
cmp -n "$(wc -c <got)" got "$src/${victim#tree/}" && echo 'all of them right'

say 'Bytes after it can still be had:'
last=$((size - 100))
show "verityctl cat --pin $pin --range $last- $victim | cksum"
show "tail -c 100 $src/${victim#tree/} | cksum"

say 'Someone clever seals the damaged tree again.  The pin is another one:'
show 'verityctl seal --quiet tree'
refused 3 "verityctl check --pin $pin tree"

printf '\nThat is all.  verityctl --help tells the rest.\n'

say 'The worker pools: jobs of 10 us, and the mode flipped under them.'
show 'bench-pools --seconds 0.3 --rounds 2 --mode bound --mode unbound --worst 2'
