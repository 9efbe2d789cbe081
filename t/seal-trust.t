#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 120
# What verityctl seal takes from an older seal: nothing that the user did not
# vouch for with --pin, and no planted folder leads it astray.
. "${0%/*}/lib.sh"
. "$TOP/t/seal-lib.sh"
requires fsverity
zero=sha256:$(printf '%064d' 0)

# unchanged DIR NAME STATUS REGEX COMMAND...: it is refused so and leaves all of
# DIR as it was.
unchanged() {
	_dir=$1 _check=$2; shift 2
	state "$_dir" >"$T/x.before"
	ok "$_check" fails "$@"
	state "$_dir" >"$T/x.after"
	ok 'and nothing is changed' diff "$T/x.before" "$T/x.after"
}

# reused OPTION...: seal the tree again; print how many files were not read.
reused() { verityctl seal --quiet --json "$@" | jq .reused; }

# agrees DIR: its manifest has the digest that fsverity gives each file.
agrees() {
	(cd "$1" && sed -n 's/^\(sha256:[0-9a-f]* \)/\1/p' .verity/manifest >"$T/x.have" &&
		sed 's/^[^ ]* //' "$T/x.have" | xargs -d '\n' fsverity digest >"$T/x.want") &&
		diff "$T/x.want" "$T/x.have"
}

# make DIR LETTER: a tree of files of LETTERs, all of an old date.
make() {
	mkdir -p "$1/sub"
	for size in 1 4096 5000; do
		head -c $size /dev/zero | tr '\0' "$2" >"$1/f$size"
	done
	head -c 700000 /dev/zero | tr '\0' "$2" >"$1/sub/deep"
	head -c 9000000 /dev/zero | tr '\0' "$2" >"$1/sub/large"
	find "$1" -type f -exec touch -d '2020-01-01 UTC' {} +
}

make good g
make evil e
cp -a good pure
verityctl seal --quiet pure >/dev/null
verityctl seal --quiet evil >/dev/null

# A planted folder: digests and sidecars of evil data, sizes and times of ours.
cp -a evil/.verity good/
cp -a good planted
ok 'the planted folder would pass for the evil files' sh -c \
	'cp -a evil copy && rm -r copy/.verity && cp -a planted/.verity copy/ &&
	verityctl check copy'
verityctl seal --quiet good >out
ok 'without a pin it is not believed' agrees good
sed 2d good/.verity/manifest >have; sed 2d pure/.verity/manifest >want
ok 'the manifest is as if it had not been there' cmp want have
ok 'and so are the sidecars' diff -r pure/.verity/meta good/.verity/meta
is 'none waits in next/' "$(ls -A good/.verity)" 'manifest
meta'
like 'only the serial goes on' "$(sed -n 2p good/.verity/manifest)" '^serial 2$'
ok 'check agrees, pinned' verityctl check \
	--pin="$(tree_pin good)" good

rm -r good/.verity; cp -a planted/.verity good/
unchanged good 'with another pin it is refused' 3 \
	"good/.verity/manifest: is not the pinned manifest.*wanted $zero" \
	verityctl seal --pin="$zero" good
unchanged good 'so it is with a pin of another algorithm' 3 'not the pinned' \
	verityctl seal --pin="sha512:$(printf '%0128d' 0)" good
unchanged good 'and for --dry-run' 3 'not the pinned' \
	verityctl seal --dry-run --pin="$zero" good

# Sidecars alone are planted, and wait in next/.
rm -r good/.verity; cp -a pure/.verity good/
cp -a evil/.verity/meta good/.verity/next
cp evil/.verity/meta/sub/deep.fsv_meta good/.verity/meta/sub/
verityctl seal --quiet --pin="$(tree_pin good)" good >/dev/null
ok 'planted sidecars are replaced, though the manifest is pinned' \
	diff -r pure/.verity/meta good/.verity/meta
ok 'and those in next/ removed' test ! -e good/.verity/next
ok 'the digests are right' agrees good

# With the right pin.
pin=$(tree_pin good)
is 'with the right pin no unchanged file is hashed' \
	"$(reused --pin="$pin" good)" 5
pin=$(tree_pin good)
strace -f -o log -qq \
	-e trace=read,pread64,mmap -P "$T/good/f1" -P "$T/good/f5000" \
	-P "$T/good/sub/deep" -P "$T/good/sub/large" \
	verityctl seal --quiet --pin="$pin" good >out
is 'nor read' "$?:$(wc -l <log)" 0:0
ok 'the manifest is right all the same' agrees good
is 'without one all are hashed again' "$(reused good)" 0

# What makes a file another.
pin=$(tree_pin good)
printf x | dd of=good/f5000 conv=notrunc 2>/dev/null
printf y >>good/f4096
touch -d '2020-01-01 UTC' good/f4096
is 'another time or size: these are hashed again' \
	"$(reused --pin="$pin" good)" 3
ok 'and right' agrees good
pin=$(tree_pin good)
touch -d '2020-01-01 UTC' good/f5000
reused --pin="$pin" good >/dev/null
pin=$(tree_pin good)
printf z | dd of=good/sub/deep conv=notrunc 2>/dev/null
touch -d '2020-01-01 UTC' good/sub/deep
is 'one that looks unchanged keeps its old digest' \
	"$(reused --pin="$pin" good)" 5
ok 'so that its new bytes are refused' fails 1 'not good' verityctl check good
make good g
reused good >/dev/null

pin=$(tree_pin good)
touch -d @1699999999 good/f1
reused --pin="$pin" good >/dev/null
is 'a file written in the second of the seal is hashed again' \
	"$(reused --pin="$(tree_pin good)" good)" 4
touch -d '2020-01-01 UTC' good/f1
chmod +x good/f1
reused --pin="$(tree_pin good)" good >/dev/null
ok 'exec is as it is now' sh -c 'grep -A2 " f1$" good/.verity/manifest |
	grep -q exec'
chmod -x good/f1
reused --pin="$(tree_pin good)" good >/dev/null
rm good/.verity/meta/f5000.fsv_meta
is 'a file whose sidecar is gone is hashed again' \
	"$(reused --pin="$(tree_pin good)" good)" 4
truncate -s -1 good/.verity/meta/f5000.fsv_meta
is 'so is one whose sidecar is malformed' \
	"$(reused --pin="$(tree_pin good)" good)" 4
ok 'it has a new one' cmp pure/.verity/meta/f5000.fsv_meta \
	good/.verity/meta/f5000.fsv_meta

for opts in --block-size=1024 --salt=01 --hash-alg=sha512; do
	pin=$(tree_pin good)
	verityctl seal --json --pin="$pin" $opts good 2>err >out
	is "$opts: other parameters: all are hashed" "$(jq .reused out)" 0
	like 'which is said' "$(cat err)" \
		'good: other parameters than before: all files are hashed again'
	ok 'and the result checks' verityctl check \
		--pin="$(tree_pin good)" good
done
reused good >/dev/null
is 'files without the SHA-256 that is asked for are hashed' \
	"$(reused --sha256 --pin="$(tree_pin good)" good)" 0
is 'and those with one that is not' \
	"$(reused --pin="$(tree_pin good)" good)" 0
is 'no pin, no manifest: nothing to go by is status 4' \
	"$(verityctl seal --pin="$zero" --meta fresh good 2>&1; echo $?)" \
	'verityctl: seal: fresh/manifest: there is no manifest to compare with --pin
4'
# Before, --dry-run took no notice of what was not there.
is 'for --dry-run, too' \
	"$(verityctl seal --dry-run --pin="$zero" --meta fresh2 good 2>&1; echo $?)" \
	'verityctl: seal: fresh2/manifest: there is no manifest to compare with --pin
4'
is 'and nothing to resume' \
	"$(verityctl seal --dry-run --resume --pin="$zero" --meta fresh2 good 2>&1; echo $?)" \
	'verityctl: seal: fresh2/partial: there is nothing to resume
4'
ok 'and no folder is made' test ! -e fresh2

# --resume.
unchanged good '--resume needs --pin' 2 '--resume needs --pin' \
	verityctl seal --resume good
unchanged good 'and something to resume' 4 \
	'good/.verity/partial: there is nothing to resume' \
	verityctl seal --resume --pin="$zero" good
cp evil/.verity/manifest good/.verity/partial
unchanged good 'a planted partial manifest is refused' 3 \
	'good/.verity/partial: is not the pinned' \
	verityctl seal --resume --pin="$pin" good
is 'and without --resume not looked at' "$(reused good)" 0
ok 'but taken away' test ! -e good/.verity/partial
ok 'the digests are right' agrees good

# A folder that leads elsewhere.  Before, sidecars were written to where a
# planted symlink pointed.
mkdir -p else/sub
echo mine >else/keep; echo mine >else/f5000.fsv_meta
for what in meta next meta/sub next/sub; do
	rm -rf good/.verity; cp -a pure/.verity good/
	verityctl seal --quiet good >/dev/null
	rm -rf "good/.verity/$what"
	mkdir -p good/.verity/next
	[ $what = next ] && rmdir good/.verity/next
	ln -s "$T/else" "good/.verity/$what"
	state else >before
	verityctl seal --block-size=1024 good >log 2>&1
	status=$?
	state else >after
	ok "a symlink for $what: nothing is written there" diff before after
	ok "and it is refused, or done without" sh -c \
		'[ "$0" = 4 ] || verityctl check --quiet good' $status
done
rm -rf good/.verity
ln -s "$T/else" good/.verity
state else >before
ok 'a symlink for .verity is refused' fails 4 'good/.verity/manifest: open' \
	verityctl seal good
state else >after
ok 'nothing is written there' diff before after
rm good/.verity; cp -a pure/.verity good/
for what in manifest partial; do
	echo mine >else/keep
	ln -sf "$T/else/keep" good/.verity/$what
	verityctl seal --quiet good >/dev/null 2>&1
	is "a symlink for $what is not written through" "$(cat else/keep)" mine
	ok 'and gone' test ! -L good/.verity/$what
done
ln -f else/keep good/.verity/meta/f5000.fsv_meta
verityctl seal --quiet good >/dev/null
is 'nor is a hard link for a sidecar' "$(cat else/keep)" mine
ok 'it is a sidecar now' cmp pure/.verity/meta/f5000.fsv_meta \
	good/.verity/meta/f5000.fsv_meta
rm -rf good/.verity; : >good/.verity
ok 'a file in place of the folder is status 4' fails 4 'Not a directory' \
	verityctl seal good
rm good/.verity; cp -a pure/.verity good/
rm good/.verity/manifest; mkfifo good/.verity/manifest
ok 'a FIFO for a manifest does not hold it up' \
	timeout 20 verityctl seal --quiet good
rm -r good/.verity/meta; : >good/.verity/meta
ok 'a file in place of meta/ is status 4' fails 4 'Not a directory' \
	verityctl seal good
rm good/.verity/meta
verityctl seal --quiet good >/dev/null

# Serials.
sed 's/^serial .*/serial 41/' pure/.verity/manifest >good/.verity/manifest
verityctl seal --quiet good >/dev/null
is 'the serial goes on from what is there' \
	"$(sed -n 2p good/.verity/manifest)" 'serial 42'
sed 's/^serial .*/serial 18446744073709551615/' pure/.verity/manifest \
	>good/.verity/manifest
unchanged good/.verity 'the last serial there is does not start again at 1' 4 \
	'good/.verity/manifest: its serial is 18446744073709551615, .* less' \
	verityctl seal good
echo nonsense >good/.verity/manifest
verityctl seal good >out 2>err
is 'after what is no manifest it starts at 1' \
	"$(sed -n 2p good/.verity/manifest)" 'serial 1'
like 'which is said' "$(cat err)" 'can not be read as a manifest'

# Signatures in sidecars.
# sign SIDECAR: put in one of type 1, "the signature"; the tree does not move.
sign() {
	perl -e 'open F, "+<", $ARGV[0] or die; seek F, 260, 0;
		print F pack("VV", 1, 13) . "the signature"; close F or die' "$1"
}
signature() {
	dd if="$1" bs=1 skip=264 count=17 2>/dev/null | od -An -c | tr -d ' \n'
}
signed='\r\0\0\0thesignature'
head -c 20000 /dev/zero >lone
verityctl seal --quiet lone >digest
sign lone.fsv_meta
cp lone.fsv_meta want
ok 'a signed sidecar is in order' verityctl check lone
verityctl seal lone >out 2>err
ok 'sealed again the signature is kept' cmp want lone.fsv_meta
is 'in silence' "$(cat err)" ''
echo more >>lone
verityctl seal lone >out 2>err
is 'for another digest it is dropped' "$(signature lone.fsv_meta)" \
	"$(head -c 281 /dev/zero | tail -c 17 | od -An -c | tr -d ' \n')"
is 'which is said' "$(cat err)" \
	'verityctl: seal: lone.fsv_meta: its signature is dropped: it was for another digest'
ok 'and the new one checks' verityctl check lone
head -c 9 /dev/zero >lone
verityctl seal --quiet lone >/dev/null
sign lone.fsv_meta
cp lone.fsv_meta want
verityctl seal --quiet lone >/dev/null
ok 'the sidecar of a file of one block keeps its own, too' cmp want lone.fsv_meta

cd good || bail 'no tree'
for f in f5000 sub/deep sub/large; do sign .verity/meta/$f.fsv_meta; done
cd ..
verityctl seal good 2>err >/dev/null
for f in f5000 sub/deep sub/large; do
	is "in a tree, $f keeps its signature" \
		"$(signature good/.verity/meta/$f.fsv_meta)" "$signed"
done
ok 'and that is in order' verityctl check good
echo more >>good/sub/deep
verityctl seal good 2>err >/dev/null
like 'changed, it does not' "$(signature good/.verity/meta/sub/deep.fsv_meta)" \
	'^(\\0)+$'
like 'which is said' "$(cat err)" \
	'good/sub/deep: its signature is dropped: it was for another digest'
is 'the other has it still' "$(signature good/.verity/meta/f5000.fsv_meta)" "$signed"
verityctl seal --quiet good >/dev/null
echo sig >good/.verity/manifest.sig
verityctl seal good 2>err >/dev/null
like "a manifest's signature is told to be out of date" "$(cat err)" \
	'good/.verity/manifest.sig: .*sign again'
ok 'and left alone' test -s good/.verity/manifest.sig

tap_done
