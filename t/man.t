#!/bin/sh
# SPDX-License-Identifier: MIT
# The manuals: well-formed, complete, and their examples do what they say.
# (That every option is in verityctl.1 is options.t's.)
. "${0%/*}/lib.sh"

ctl=$TOP/tools/verityctl.1 lib=$TOP/merkle/verity.3
form=$TOP/tools/verity-manifest.5

for page in "$ctl" "$lib" "$form"; do
	is "${page##*/} begins with its licence" "$(head -n 1 "$page")" \
		'.\" SPDX-License-Identifier: MIT'
	if command -v mandoc >/dev/null; then
		ok "mandoc finds no fault in ${page##*/}" \
			mandoc -Tlint -W warning "$page"
	else
		skip "no mandoc here to read ${page##*/}"
	fi
done

# section PAGE NAME: its source.
section() {
	awk -v want=".Sh $2" '/^\.Sh / { on = $0 == want; next } on' "$1"
}

# blocks PAGE FILE: the literal blocks of its EXAMPLES as text, into FILE.1
# and on; FILE.N.wide exists for one that is indented twice.
blocks() {
	section "$1" EXAMPLES | awk -v file="$2" '
		/^\.Bd / {
			out = file "." ++n
			if (/indent-two/)
				printf "" >(out ".wide")
			next
		}
		/^\.Ed/ { close(out); out = "" }
		out {
			gsub(/\\\(aq/, "\047")
			gsub(/\\-/, "-")
			gsub(/\\&/, "")
			gsub(/\\e/, "\\")
			print >out
		}'
}

# Completeness.
awk '/^VERITY_API/ { on = 1 } on { print } /;/ { on = 0 }' \
	"$TOP/merkle/verity.h" | grep -oE 'verity_[a-z0-9_]+ *\(' | tr -d ' (' |
	sort -u >api
section "$lib" SYNOPSIS | sed -n 's/^\.F[no] \(verity_[a-z0-9_]*\).*/\1/p' |
	sort -u >synopsis
section "$lib" DESCRIPTION | grep -oE '^\.It Fn verity_[a-z0-9_]+' |
	sed 's/.* //' | sort -u >described
ok 'the header has functions' test -s api
ok "the synopsis has each of the header's functions, and no other" \
	diff api synopsis
ok 'each is described' diff api described

# documented: the statuses of the list, "130 , 143" being two.
documented() {
	section "$ctl" 'EXIT STATUS' | sed -n 's/^\.It \([0-9]\)/\1/p' |
		tr -d ' ' | tr ',' '\n' | sort -nu
}
{
	sed -n 's/.*EXIT_[A-Z]* = \([0-9]*\).*/\1/p' "$TOP/tools/exits.h"
	echo 143
} | sort -nu >statuses
documented >known
ok 'the header has exit statuses' test "$(wc -l <statuses)" -gt 2
ok 'the manual has each of them, and no other' diff statuses known

# verity-manifest.5: the tree that it describes.
blocks "$form" manifest
mkdir -p tree/.verity tree/bin
cp manifest.1 tree/.verity/manifest
pin=$(cat manifest.2)
echo hello >tree/bin/hello
: >"tree/two
lines"
ok 'the example of a manifest is one' verityctl inspect manifest.1
ok 'it has the pin that is shown, and the tree is as it says' \
	verityctl check --pin="$pin" tree
echo hallo >tree/bin/hello
ok 'and with another word it is not' \
	exits 1 verityctl check --pin="$pin" tree

# verityctl.1: all of it is typed in, one block after the other.
blocks "$ctl" typed
mkdir typed
n=1
: >script
: >want
while [ -f typed.$n ]; do
	if [ -f typed.$n.wide ]; then
		cat typed.$n >>want
	else
		cat typed.$n >>script
	fi
	n=$((n + 1))
done
ok 'the manual has examples' test $n -gt 5
(cd typed && sh ../script) >got 2>err
ok 'pasted into a shell they print what is shown' diff want got
notes='[0-9.]+ ([KMG]i)?B: |[0-9]+ files, |change detection: stat only|offset '
is 'and none is a mistake' \
	"$(grep -vE "^verityctl: (seal|check|cat): [^:]*: ($notes)" err)" ''

# verity.3: the program.
blocks "$lib" show
mv show.1 show.c
ok 'the example of a program compiles without a warning' \
	cc -std=c11 -Wall -Wextra -Wconversion -Werror -fsyntax-only \
	-I "$TOP/merkle" show.c
if [ "$B" = "$TOP/build/none" ]; then
	ok 'and links' cc -o show -I "$TOP/merkle" show.c -L "$B" -lverity
	LD_LIBRARY_PATH=$B
	export LD_LIBRARY_PATH
	seq 100000 >file
	digest=$(verityctl seal --quiet file | cut -d' ' -f1)
	ok 'it prints a sealed file' sh -c './show "$0" file | cmp - file' \
		"$digest"
	printf X | dd of=file bs=1 seek=300000 conv=notrunc 2>/dev/null
	ok 'up to a bad block' fails 1 'at 299008: Bad message' \
		sh -c './show "$0" file >good' "$digest"
	ok 'and only that far' cmp -n 299008 good file
	ok 'it refuses another digest' fails 1 'file: Bad message' ./show \
		"$(printf %064d 0)" file
	is 'and a word that is none' "$(./show nonsense file; echo $?)" 2
else
	skip 'the program is only linked to a plain build'
fi

tap_done
