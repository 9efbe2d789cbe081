#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual knows every option, and none that is not there.
. "${0%/*}/lib.sh"

manual=$TOP/tools/verityctl.1
ok 'there is a manual' test -s "$manual"

# Options are introduced by ".It Fl -name" (mdoc) or a line that begins with
# "\-\-name" or a font macro and that (man).  A dash inside may be spelt "\-".
documented() {
	sed -n -e 's/\\-/-/g' -e 's/^\.It Fl -/--/p' \
		-e 's/^\.\(B\|BR\|BI\|IP\) "\{0,1\}--/--/p' \
		-e 's/^\(\\fB\)\{0,1\}--/--/p' "$manual" |
		sed 's/^\(--[a-z0-9-]*\).*/\1/' | sort -u
}
[ ! -s "$manual" ] || documented >known
verityctl --list-options | sort -u >options

ok 'there are options' test -s options
ok 'each is in the manual, and no other' diff known options
# synopsis COMMAND: its options there.  --help is every command's, and is not
# repeated.
synopsis() {
	awk -v want="$1" '/^\.Sh/ { on = $2 == "SYNOPSIS" }
		!on { next }
		$1 == ".Cm" { cmd = $2 }
		cmd == want && match($0, /Fl -[a-z0-9-]+/) {
			print "-" substr($0, RSTART + 3, RLENGTH - 3)
		}' "$manual" | sort -u
}
for cmd in digest seal check cat inspect; do
	verityctl --list-options "$cmd" | grep -vx -e --help | sort >options
	synopsis "$cmd" >known
	ok "the synopsis of $cmd has its options" diff known options
done

tap_done
