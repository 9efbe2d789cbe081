#!/bin/sh
# SPDX-License-Identifier: MIT
# verityctl cat prints verified bytes and no others.  Sidecars are put together
# here from what fsverity writes, so that two programs must agree on them.
. "${0%/*}/lib.sh"
requires fsverity
requires perl

# sidecar FILE OPTION...: seal FILE, and leave its digest in $digest.
sidecar() {
	_file=$1; shift
	rm -f out.tree out.desc
	digest=$(fsverity digest "$_file" "$@" --out-merkle-tree=out.tree \
		--out-descriptor=out.desc) || bail 'fsverity failed'
	digest=${digest%% *}
	{
		perl -e 'print pack "V", 1'
		cat out.desc
		perl -e 'print pack "VV", 0, 0'
	} >"$_file.fsv_meta"
	[ ! -s out.tree ] || truncate -s 4096 "$_file.fsv_meta"
	cat out.tree >>"$_file.fsv_meta"
}

# cats FILE OPTION...: prints just what FILE holds.
cats() { verityctl cat --quiet "$@" >got && cmp "$1" got; }

noise 7 700000 >data
for size in 0 1 4095 4096 4097 524288 524289 700000; do
	head -c $size data >f
	sidecar f
	ok "$size bytes come whole" cats f
	ok 'with a pin, too' cats f --pin="$digest"
done
for opts in --block-size=1024 --block-size=65536 --hash-alg=sha512 \
	'--salt=0102 --block-size=512'; do
	# shellcheck disable=SC2086 # several options
	sidecar f $opts
	ok "with $opts" cats f --digest="$digest"
done

# Trust.
sidecar data
self='data: self: .*rot, not attack'
verityctl cat data >got 2>err
like 'without a pin it says how much that is worth' "$(cat err)" "$self"
is 'in one line' "$(wc -l <err)" 1
is 'with --quiet it does not' "$(verityctl cat data --quiet 2>&1 >/dev/null)" ''
is 'nor with a pin' "$(verityctl cat data --pin="$digest" 2>&1 >/dev/null)" ''
other=sha256:$(printf '%064d' 7)
verityctl cat data --pin="$other" >got 2>err
is 'another digest than the pinned is status 3' $? 3
like 'both are shown' "$(cat err)" "wanted $other, .* is of $digest\$"
is 'nothing is printed' "$(wc -c <got)" 0
ok '--pin and --digest may be the same' \
	cats data --pin="$digest" --digest="${digest#*:}"
ok 'but not differ' fails 2 '--pin and --digest' \
	verityctl cat data --pin="$digest" --digest="$other"
mkdir away
mv data.fsv_meta away/
ok 'a sidecar may lie elsewhere' cats data --meta=away
ok 'a missing one is named, and what to do' \
	fails 4 'data: .* no data.fsv_meta .*verityctl seal data' \
	verityctl cat data
mv away/data.fsv_meta .

# A sealed tree: seal.t has more of it.
mkdir -p tree/sub
head -c 100000 data >tree/sub/large; head -c 100 data >tree/small; : >tree/none
pin=$(verityctl seal --quiet tree | cut -d' ' -f1)
for f in sub/large small none; do
	ok "$f of a sealed tree comes" cats tree/$f
	ok 'with its pin, too' cats tree/$f --pin="$pin"
done
ok 'with another pin it does not' \
	fails 3 "$other" verityctl cat tree/small --pin="$other"
damage tree/small 50
verityctl cat --quiet tree/small >got 2>err
is 'nothing comes of a bad file of one block' "$?:$(wc -c <got)" 1:0
like 'which is said' "$(cat err)" 'tree/small: offset 0, length 100: failed'
echo new >tree/new
ok 'a file that is not in the manifest is not trusted' \
	fails 3 'tree/new: .*no such file' verityctl cat tree/new

# Ranges.
# range ARGUMENT SKIP COUNT: of data.
range() {
	verityctl cat data --quiet --range="$1" >got &&
		tail -c +$(($2 + 1)) data | head -c "$3" | cmp - got
}
ok 'the first byte' range 0-0 0 1
ok 'the last byte' range 699999-699999 699999 1
ok 'bytes over the edge of a block' range 4090-4099 4090 10
ok 'many blocks' range 1-600000 1 600000
ok 'from somewhere to the end' range 690000- 690000 10000
ok 'the last ones' range -5000 695000 5000
ok 'more of the last than there are' range -9999999 0 700000
ok 'the end may be past the end' range 699990-9999999 699990 10
ok 'the beginning may not, and the size is named' \
	fails 2 'data: --range begins .*size is 700000$' \
	verityctl cat data --quiet --range=700000-
: >empty; sidecar empty
ok 'an empty file has no range' fails 2 'size is 0$' \
	verityctl cat empty --quiet --range=-1

# Damage.
cp data bad; cp data.fsv_meta bad.fsv_meta
damage bad 409700
good=$((100 * 4096))
verityctl cat bad --quiet >got 2>err
is 'a bad block is status 1' $? 1
ok 'the blocks before it come' sh -c 'head -c "$0" data | cmp - got' $good
hash='[0-9a-f]{64}'
is 'with one line' "$(wc -l <err)" 1
like 'that says where and how' "$(cat err)" \
	"^verityctl: cat: bad: offset $good, length 4096: .*level 0 .*wanted $hash, got $hash\$"
ok 'a range before it comes' sh -c \
	'verityctl cat bad --quiet --range=0-409599 | cmp -n 409600 - data'
ok 'and one after it' sh -c 'verityctl cat bad --quiet --range=413696- >got &&
	tail -c +413697 data | cmp - got'
verityctl cat bad --quiet --range=409650-409660 >got 2>err
is 'nothing of the bad block comes, though these bytes are good' "$?:$(wc -c <got)" 1:0

cp data bad
damage bad.fsv_meta $((4096 + 4096 + 1))
verityctl cat bad --quiet >got 2>err
is 'a bad hash block is status 1' "$?:$(wc -c <got)" 1:0
like 'its level is named' "$(cat err)" 'offset 0, length 4096: .*level 1 \(hash block 0\)'
ok 'what hangs on another is good' sh -c \
	'verityctl cat bad --quiet --range=524288- >got &&
	tail -c +524289 data | cmp - got'

cp data.fsv_meta bad.fsv_meta
head -c 650000 data >bad
verityctl cat bad --quiet >got 2>err
is 'a file that lost its end is status 1' $? 1
ok 'its whole blocks come' sh -c 'head -c 647168 data | cmp - got'
like 'missing bytes are called so' "$(cat err)" \
	'offset 647168, length 4096: .*(missing|failed verification) at level 0'
{ cat data; echo more; } >bad
ok 'what was added to a file is not printed' sh -c \
	'verityctl cat bad --quiet | cmp - data'

# Sidecars that are none.
# sick REGEX: with bad.fsv_meta as it is now.
sick() { fails 4 "bad.fsv_meta: $1" verityctl cat bad --quiet; }
cp data bad
printf '\002' | dd of=bad.fsv_meta conv=notrunc 2>/dev/null
ok 'another version' sick 'version is 2, must be 1'
cp data.fsv_meta bad.fsv_meta
truncate -s 5000 bad.fsv_meta
ok 'a sidecar cut short' sick 'sidecar size is 5000, must be [0-9]+'
truncate -s 100 bad.fsv_meta
ok 'and shorter' sick 'sidecar size is 100, must be at least 268'
: >bad.fsv_meta
ok 'and empty' sick 'sidecar size is 0, must be'
rm bad.fsv_meta; mkdir bad.fsv_meta
ok 'a directory' fails 4 'bad.fsv_meta' verityctl cat bad --quiet
rmdir bad.fsv_meta; mkfifo bad.fsv_meta
ok 'a FIFO, at once' fails 4 'bad.fsv_meta' verityctl cat bad --quiet
mkfifo fifo
ok 'a FIFO in place of the data' fails 4 'fifo: is a FIFO' verityctl cat fifo
ok 'a directory in place of the data' fails 4 '^verityctl: cat: .: is a dir' \
	verityctl cat .
ok 'no data' fails 4 'none: cannot open: No such' verityctl cat none

# Output.
ok 'a full disk is noticed' fails 4 'No space left' \
	sh -c 'exec verityctl cat data --quiet >/dev/full'
{ verityctl cat data --quiet 2>err; echo $? >status; } | true
is 'a reader that goes away makes it status 4, quietly' \
	"$(cat status err)" 4

# Files of a sealed tree, where the way to them has to be told.
mkdir named
cp data named/f
ln -s f named/link
verityctl seal --quiet --meta=away named >/dev/null || bail 'no tree'
ok 'metadata of a tree wants the tree named' \
	fails 4 'away has the metadata of a tree \(name it with --root\)' \
	verityctl cat --quiet --meta=away named/f
ok 'with it, the file is had' sh -c \
	'verityctl cat --quiet --meta=away --root=named named/f | cmp - data'
ok 'a symlink is told, with its target' \
	fails 3 'named/link: is a symlink in away/manifest, to f: name that' \
	verityctl cat --quiet --meta=away --root=named named/link

tap_done
