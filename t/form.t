#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 180
# Form: the layers hold, in what is included and in what is linked; symbols are
# named and shown as the rules say, files and functions stay short, and a build
# leaves nothing behind.
. "${0%/*}/lib.sh"
cd "$TOP" || bail "cannot enter $TOP"

# The files of the project, a line each: what git knows or would take in.
sources() {
	if git rev-parse --git-dir >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard
	else
		find . -path ./build -prune -o -type f -print | sed 's|^\./||'
	fi | while IFS= read -r file; do
		[ ! -f "$file" ] || printf '%s\n' "$file"
	done | sort
}
sources >"$T/sources"

# nothing COMMAND...: true when the command prints no line.
nothing() { ! "$@" | grep .; }

# includes FOLDER ALLOWED: the includes of FOLDER that are not of the regex.
includes() {
	grep -nE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' \
		"$1"/*.[ch] /dev/null | grep -vE "\"($2)\"\$"
}

for rule in \
	'merkle merkle/.*' \
	'wq wq/.*' \
	'daemon (daemon|merkle|wq)/.*' \
	'tools (tools|merkle|wq)/.*|daemon/proto\.h'; do
	[ -d "${rule%% *}" ] || continue
	ok "${rule%% *}/ includes only what its layer may" \
		nothing includes "${rule%% *}" "${rule#* }"
done

# globals NM_ARGUMENT...: names it defines for others, less the sanitizers'.
globals() {
	nm -g --defined-only "$@" | awk 'NF == 3 { print $3 }' |
		sed 's/@.*//' | grep -v '^__' | sort
}
misnamed() { globals "$1" | grep -v "^$2"; }
ok 'merkle defines only verity_ symbols' nothing misnamed "$B/merkle.a" verity_
ok 'wq defines only wq_ symbols' nothing misnamed "$B/wq.a" wq_

# wanted REGEX [ARCHIVE]: the names of it that merkle, or the archive, takes from
# elsewhere, each after the object that does.
wanted() {
	nm -A -u "$B/${2-merkle.a}" | sed 's/.*:\([^:]*\.o\): *[Uw] /\1 /; s/@.*//' |
		grep -E " ($1)"
}
wanted 'EVP_' | sed 's/ .*//' | sort -u >"$T/evp"
is 'merkle takes libcrypto through kernel_evp alone' "$(cat "$T/evp")" \
	kernel_evp.o
ok 'merkle has no threads and no locks' nothing wanted \
	'pthread_|thrd_|mtx_|cnd_|tss_|call_once|sem_|futex|fork$|clone'
ok 'and no sockets' nothing wanted 'socket|bind$|connect$|listen$|accept|send|recv'
ok 'wq knows nothing of hashes' nothing wanted 'EVP_|SHA|verity_' wq.a
ok 'and no sockets either' nothing wanted 'socket|bind$|connect$|listen$|accept' wq.a
points() { globals "$B/$1" | grep -x wq_point; }
ok 'what holds jobs up for tests is in wq-bench.a' points wq-bench.a
ok 'and not in wq.a' nothing points wq.a

# strange_libs: programs and libraries linked to more than they may.
strange_libs() {
	for file in "$B"/libverity.so "$B"/verityctl; do
		readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' |
			grep -vE '^lib(crypto|c|pthread|gcc_s|asan|ubsan|tsan)\.so|^ld-linux' |
			sed "s|^|${file##*/}: |"
	done
}
ok 'nothing is linked but libc and libcrypto' nothing strange_libs

awk '/^VERITY_API/ { on = 1 } on { print } /;/ { on = 0 }' merkle/verity.h |
	grep -oE 'verity_[a-z0-9_]+ *\(' | tr -d ' (' | sort >"$T/marked"
globals -D "$B/libverity.so" >"$T/shown"
ok 'the header marks functions VERITY_API' test -s "$T/marked"
ok 'the shared library shows those and no more' diff "$T/marked" "$T/shown"

grep -E '^[^./]+/.*\.[ch]$' "$T/sources" >"$T/code"
grep -E '^[^./]+/' "$T/sources" | grep -vE '\.[1-9]$' >"$T/files"

# The functions, a line each: how many lines the body has, and which it is.
xargs awk '/^[a-zA-Z_].*\(/ { head = $0 }
	/^{/ { start = FNR }
	/^}/ && start {
		print FNR - start - 1, FILENAME ": " head
		start = 0
	}' <"$T/code" >"$T/functions"
long_functions() { awk '$1 > 60' "$T/functions"; }
ok 'no function is longer than 60 lines' nothing long_functions
ok 'nine in ten are under 45' awk '$1 >= 45 { long++; print }
	END { exit !NR || long * 10 > NR }' "$T/functions"

# long_files: those of more than 600 lines, manuals aside.
long_files() { xargs awk 'FNR == 601 { print FILENAME }' <"$T/files"; }
ok 'no file is longer than 600 lines' nothing long_files

# unlicensed: files of code, and scripts, whose first lines name no licence.
unlicensed() {
	grep -E '\.([ch]|t|sh|mk)$|^Makefile$|^t/exec$|^\.ci/' "$T/sources" |
		while IFS= read -r file; do
			head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT' ||
				echo "$file"
		done
}
ok 'every source, script and make fragment names its licence' \
	nothing unlicensed

# strangers: what lies at the top and is not of the plan.
strangers() {
	sed 's|/.*||' "$T/sources" | sort -u |
		grep -vxE 'Makefile|README\.md|NEWS\.md|LICENSE|merkle|wq|daemon|tools|t|\..*'
}
ok 'the top level holds only what the plan names' nothing strangers

# A build of a copy, without optimizing, so that this is tested as well.
mkdir "$T/copy"
tar -cf - -T "$T/sources" | tar -xf - -C "$T/copy"
cd "$T/copy" || bail 'no copy'
ok 'a fresh copy builds with CFLAGS=-O0 and no warning' env -u MAKEFLAGS \
	-u MAKELEVEL make -j2 SAN=none ARCH=host WERROR=1 CFLAGS=-O0
find . -path ./build -prune -o -type f -print | sed 's|^\./||' | sort >"$T/after"
ok 'the build leaves no file outside build/' diff "$T/sources" "$T/after"
ok 'and git does not look there' grep -qx build/ .gitignore

tap_done
