#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 120
# verityctl check finds every bad block, says where it lies and of what kind it
# is, and whether what it went by is to be trusted.
. "${0%/*}/lib.sh"
. "$TOP/t/seal-lib.sh"

other=sha256:$(printf '%064d' 7)

# finds NAME STATUS LINES OPERAND...: check prints just these lines.
finds() {
	_check=$1 _status=$2 _lines=$3; shift 3
	verityctl check --quiet "$@" >out 2>err
	is "$_check" "$? $(cat out err)" "$_status $_lines"
}

# 1075 data blocks; below the head and the padding of the sidecar one block of
# level 3, 2 of level 2, 34 of level 1.
noise 4 1100000 >good
verityctl seal --quiet --block-size=1024 good >digest
digest=$(sed 's/ .*//' digest)
fresh() { cp good f; cp good.fsv_meta f.fsv_meta; }
at() { echo $((4096 + 1024 * $1)); } # a block's place in the sidecar

fresh
verityctl check f >out 2>err
is 'a good file is status 0' "$?" 0
is 'and says what that is worth' "$(cat out err)" \
	'verityctl: check: f: 1.0 MiB: all good; self: finds rot, not attack'
verityctl check --pin="$digest" f 2>err
is 'more, with its digest' "$(cat err)" 'verityctl: check: f: 1.0 MiB: all good; pinned'
verityctl check --digest="$digest" f 2>err
is '--digest is the same' "$(cat err)" 'verityctl: check: f: 1.0 MiB: all good; pinned'
finds 'with --quiet it is silent' 0 '' f
for opt in pin digest; do
	ok "another --$opt is status 3" \
		fails 3 "f.fsv_meta: its digest is $digest, trusted is $other" \
		verityctl check --$opt="$other" f
done
ok 'a digest of another algorithm, too' fails 3 'trusted is sha512:0' \
	verityctl check --digest="sha512:$(printf '%0128d' 0)" f
ok '--pin and --digest may be the same' \
	verityctl check --pin="$digest" --digest="$digest" f
# Before, --pin was not looked at then.
ok 'but not differ' fails 2 '--pin and --digest' \
	verityctl check --pin="$other" --digest="$digest" f
ok 'and go with one operand' fails 2 'one operand' \
	verityctl check --pin="$digest" f f

# Data.
damage f 0; finds 'the first block' 1 'f 0 1024 0 data' f
fresh; damage f 1023; finds 'the last byte of the first block' 1 'f 0 1024 0 data' f
fresh; damage f 1024; finds 'the first byte of the second' 1 'f 1024 1024 0 data' f
fresh; damage f 1099999; finds 'the last block has a length of its own' 1 \
	'f 1099776 224 0 data' f
fresh; damage f 1025 5000 1025 600000 1025
finds 'several' 1 'f 1024 1024 0 data
f 4096 1024 0 data
f 599040 1024 0 data' f
verityctl check f 2>err >/dev/null
is 'a note counts them' "$(cat err)" \
	'verityctl: check: f: 1.0 MiB: not good, bad blocks: 3; self: finds rot, not attack'
verityctl check --json f >json 2>/dev/null
is '--json has the same' \
	"$(jq -r 'select(.kind) | "\(.path) \(.offset) \(.length) \(.level) \(.kind)"' json)" "$(cat out)"
is 'and the hashes' "$(jq -r 'select(.offset == 4096) | .got' json)" \
	"$(dd if=f bs=1024 skip=4 count=1 2>/dev/null | sha256sum | sed 's/ .*//')"
is 'both' "$(jq -r 'select(.offset == 4096) | .want' json)" \
	"$(dd if=good bs=1024 skip=4 count=1 2>/dev/null | sha256sum | sed 's/ .*//')"

# The tree, over good data.
for block in $(seq 0 36); do
	case $block in 0) level=3 ;; [12]) level=2 ;; *) level=1 ;; esac
	fresh; damage f.fsv_meta "$(at "$block")"
	verityctl check --quiet f
	echo "$? f $(at "$block") 1024 $level tree"
done >have 2>&1
for block in $(seq 0 36); do
	case $block in 0) level=3 ;; [12]) level=2 ;; *) level=1 ;; esac
	echo "f $(at "$block") 1024 $level tree"
	echo "1 f $(at "$block") 1024 $level tree"
done >want
ok 'a damaged hash block is reported alone, where it lies in the sidecar' \
	diff want have
fresh; damage f.fsv_meta "$(at 36)"; damage f.fsv_meta $(($(at 36) + 1000))
finds 'so is its padding' 1 "f $(at 36) 1024 1 tree" f
fresh; damage f.fsv_meta "$(at 30)" "$(at 0)" "$(at 2)"
# Before, all that hung on two bad hash blocks on one way was called unproven.
finds 'on all levels, root first, then by the data they are for' 1 \
	"f $(at 0) 1024 3 tree
f $(at 30) 1024 1 tree
f $(at 2) 1024 2 tree" f
fresh; perl -e 'truncate "f.fsv_meta", 4096; truncate "f.fsv_meta", 4096 + 37 * 1024'
verityctl check --quiet f >out
is 'a tree that is all zero is bad, all of it, and no data' \
	"$(cut -d' ' -f 4- out | sort | uniq -c | xargs)" '34 1 tree 2 2 tree 1 3 tree'
fresh; damage f.fsv_meta "$(at 1)" "$(at 36)"
finds 'in two branches' 1 "f $(at 1) 1024 2 tree
f $(at 36) 1024 1 tree" f
fresh; damage f.fsv_meta 300
finds 'the padding before the tree is nobody'\''s' 0 '' f

# Both.
fresh; damage f.fsv_meta "$(at 5)"; damage f 1090000
finds 'data here, tree there' 1 "f $(at 5) 1024 1 tree
f 1089536 1024 0 data" f
fresh; damage f.fsv_meta "$(at 5)"; damage f 70000
finds 'bad data under a bad hash block: its neighbours can not be proven' 1 \
	"f $(at 5) 1024 1 tree
f 65536 32768 0 unproven" f
fresh; damage f.fsv_meta "$(at 36)"; damage f 1090000
finds 'at the end, too' 1 "f $(at 36) 1024 1 tree
f 1081344 18656 0 unproven" f
fresh; damage f.fsv_meta "$(at 1)" "$(at 4)"; damage f 7
finds 'what can not be told apart is not proven' 1 "f $(at 1) 1024 2 tree
f 0 1048576 0 unproven" f

# Any set of damaged blocks: the model is this list.
for opts in --block-size=1024 --hash-alg=sha512 '--salt=00ff --block-size=512' \
	--block-size=65536; do
	cp good f; rm -f f.fsv_meta
	# shellcheck disable=SC2086 # several options
	verityctl seal --quiet $opts f >/dev/null
	case $opts in *size=*) bs=${opts##*=} ;; *) bs=4096 ;; esac
	perl -e 'srand 6; my $bs = shift; my ($size, %b) = 1100000;
		my @at = map { int rand $size } 1 .. 12;
		$b{int($_ / $bs)} = 1 for @at;
		open F, "+<", "f" or die;
		for (keys %b) { seek F, $_ * $bs + 3, 0; print F "damaged" }
		for (sort { $a <=> $b } keys %b) {
			my $len = $size - $_ * $bs;
			$len = $bs if $len > $bs;
			print "f ", $_ * $bs, " $len 0 data\n" }' "$bs" >want
	finds "$opts: each bad block and no other" 1 "$(cat want)" f
done

# Large files are checked in parts.
perl -e 'srand 8; my $s = join "", map { chr rand 256 } 1 .. 1000003;
	print $s x 12' >large
verityctl seal --quiet large >/dev/null
damage large 0 2097151 2097152 8388607 8388608 12000035
damage large.fsv_meta $((4096 + 4096 * 10))
verityctl check --quiet --jobs 1 large >want
is 'of 12 MB, in parts' "$? $(cat want)" '1 large 0 4096 0 data
large 2093056 4096 0 data
large 2097152 4096 0 data
large 45056 4096 1 tree
large 8384512 4096 0 data
large 8388608 4096 0 data
large 11997184 2852 0 data'
for jobs in 2 4 64; do
	verityctl check --quiet --jobs $jobs large >out
	ok "--jobs $jobs finds the same" cmp want out
done

# Missing and more bytes.
fresh; truncate -s 1097000 f
finds 'a file that is shorter: what is missing' 1 'f 1096704 1024 0 missing
f 1097728 1024 0 missing
f 1098752 1024 0 missing
f 1099776 224 0 missing' f
fresh; truncate -s 1099999 f
finds 'by a byte' 1 'f 1099776 224 0 missing' f
fresh; truncate -s 1024 f; damage f 5
verityctl check --quiet f >out
is 'damage in what is left is found as well' "$? $(head -n 2 out)" '1 f 0 1024 0 data
f 1024 1024 0 missing'
is 'and all that is missing' "$(wc -l <out)" 1075
: >f
verityctl check --quiet f >out
is 'all of it' "$? $(wc -l <out)" '1 1075'
fresh; echo more >>f
finds 'a file that is longer' 1 'f 1100000 5 0 excess' f
damage f 1099999
finds 'and bad' 1 'f 1099776 224 0 data
f 1100000 5 0 excess' f
fresh
strace -f -qq -o log -P "$T/f" -e trace=mmap,pread64 -e inject=mmap:error=ENODEV \
	-e inject=pread64:error=EIO verityctl check --quiet --jobs 1 f >out 2>err
is 'what can not be read is called so' "$? $(head -n 1 out)" '1 f 0 1024 0 unreadable'
is 'block by block' "$(grep -c 'f [0-9]* 1024 0 unreadable' out)" 1074
strace -f -qq -o log -P "$T/f.fsv_meta" -e trace=mmap,pread64 \
	-e inject=pread64:error=EIO:when=2+ verityctl check --quiet f >out 2>err
is 'a tree that can not be read is bad' "$? $(sed -n 1p out)" \
	"1 f $(at 0) 1024 3 tree"
is 'and built again' "$(wc -l <out)" 37
for size in 0 1 1024; do
	head -c $size good >f; rm f.fsv_meta
	verityctl seal --quiet --block-size=1024 f >/dev/null
	finds "a file of $size bytes" 0 '' f
	[ $size -eq 0 ] || {
		damage f $((size - 1))
		finds 'damaged' 1 "f 0 $size 0 data" f
		: >f
		finds 'emptied' 1 "f 0 $size 0 missing" f
	}
	head -c $size good >f; echo >>f
	finds 'with more' 1 "f $size 1 0 excess" f
done

# A file alone whose sidecar is not there.
rm f.fsv_meta
ok 'no sidecar is status 4' fails 4 'f: is not sealed: .*verityctl seal f' \
	verityctl check f
ok 'no file, too' fails 4 'nothing: stat: No such file' verityctl check nothing
mkdir bare
ok 'a tree that is not sealed, too' fails 4 'bare: is not sealed' verityctl check bare
mkfifo fifo
ok 'so is what is neither file nor directory' fails 4 'fifo: is not a regular' \
	verityctl check fifo

# A sealed tree.
mkdir -p tree/sub/deep
for f in a sub/b sub/deep/c; do head -c 30000 good >tree/$f; done
head -c 100 good >tree/small; : >tree/empty; head -c 4096 good >tree/sub/block
head -c 9000000 /dev/zero | tr '\0' z >tree/sub/large
ln -s sub/b tree/link; ln -s sub tree/way
pin=$(verityctl seal --quiet tree | sed 's/ .*//')
cp -a tree pristine
renew() { rm -rf tree; cp -a pristine tree; }
meta=tree/.verity/meta
verityctl check tree >out 2>err
is 'a good tree' "$? $(cat out err)" \
	'0 verityctl: check: tree: 7 files, 8.7 MiB: all good; self: finds rot, not attack'
verityctl check --pin="$pin" tree 2>err
is 'with its pin' "$? $(cat err)" \
	'0 verityctl: check: tree: 7 files, 8.7 MiB: all good; pinned'
ok 'with another' fails 3 "is not the pinned manifest: its pin is $pin, wanted $other" \
	verityctl check --pin="$other" tree
# Before, --digest was taken and not looked at.
ok '--digest is not for a tree' fails 2 'tree: .*--digest goes with a file' \
	verityctl check --digest="$pin" tree
ok 'nor for a manifest' fails 2 'goes with a file' \
	verityctl check --digest="$pin" tree/.verity/manifest
ok '--root is not for a tree' fails 2 'tree: .*--root .*with' \
	verityctl check --root=tree tree
damage tree/sub/b 5000; damage tree/small 99; damage tree/sub/large 8999999
damage $meta/sub/deep/c.fsv_meta 4100
finds 'bad blocks of a tree come in the order of the manifest' 1 \
	'tree/small 0 100 0 data
tree/sub/b 4096 4096 0 data
tree/sub/deep/c 4096 4096 1 tree
tree/sub/large 8998912 1088 0 data' tree
verityctl check --jobs 1 tree >want 2>err
is 'a note counts files and blocks' "$(cat err)" \
	'verityctl: check: tree: 7 files, 8.7 MiB: 4 of them not good, bad blocks: 4; self: finds rot, not attack'
verityctl check --quiet --jobs 4 tree >out
ok '--jobs makes no difference' cmp want out
verityctl check --quiet --json --pin="$pin" tree >json
is '--json ends with a summary' "$? $(tail -n 1 json | jq -c .)" \
	'1 {"path":"tree","trust":"pinned","files":7,"bytes":9094196,"bad_files":4,"bad_blocks":4,"status":1}'
is 'after the findings' "$(jq -r 'select(.kind) |
	"\(.path) \(.offset) \(.length) \(.level) \(.kind)"' json)" "$(cat want)"
is 'of a manifest, the same' \
	"$(verityctl check --quiet tree/.verity/manifest | sed "s|^$T/||")" "$(cat want)"

renew
rm tree/a; ln -s sub/b tree/a; rm tree/sub/b; mkfifo tree/sub/b
rm tree/small tree/empty; mkdir tree/small
rm tree/sub/block; perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(
	Local => "tree/sub/block", Listen => 1) or die'
rm -r tree/sub/deep
finds 'files that are gone or became a symlink, FIFO, folder or socket' 1 \
	'tree/a 0 30000 0 missing
tree/empty 0 0 0 missing
tree/small 0 100 0 missing
tree/sub/b 0 30000 0 missing
tree/sub/block 0 4096 0 missing
tree/sub/deep/c 0 30000 0 missing' tree
renew
mv tree/sub away; ln -s ../away tree/sub
finds 'a folder that became a symlink is not followed' 1 \
	'tree/sub/b 0 30000 0 missing
tree/sub/block 0 4096 0 missing
tree/sub/deep/c 0 30000 0 missing
tree/sub/large 0 9000000 0 missing' tree
rm -r away
renew
truncate -s 20000 tree/sub/b; echo more >>tree/small; echo more >>tree/sub/large
truncate -s 50 tree/sub/block; echo new >tree/new; mkdir tree/newer
finds 'shorter and longer ones; what is not listed does not count' 1 \
	'tree/small 100 5 0 excess
tree/sub/b 16384 4096 0 missing
tree/sub/b 20480 4096 0 missing
tree/sub/b 24576 4096 0 missing
tree/sub/b 28672 1328 0 missing
tree/sub/block 0 4096 0 missing
tree/sub/large 9000000 5 0 excess' tree

# Sidecars of a tree.
hint='verityctl: check: tree/sub/b: the data is good all the same (seal again)'
renew; rm $meta/sub/b.fsv_meta
finds 'a missing sidecar that the manifest lists is status 3' 3 \
	"verityctl: check: tree/sub/b: the manifest lists it, but its sidecar is missing
$hint" tree
damage tree/sub/b 1
finds 'it is said whether the data is good' 3 \
	'verityctl: check: tree/sub/b: the manifest lists it, but its sidecar is missing
verityctl: check: tree/sub/b: and the data is not what was sealed' tree
renew; truncate -s 5000 $meta/sub/b.fsv_meta
finds 'a malformed one is status 3' 3 \
	"verityctl: check: tree/sub/b: sidecar: sidecar size is 5000, must be 8192
$hint" tree
renew; damage $meta/sub/b.fsv_meta 0
finds 'one of another version, too' 3 \
	"verityctl: check: tree/sub/b: sidecar: version is 0, must be 1
$hint" tree
renew; damage $meta/sub/b.fsv_meta 30
finds 'one of another digest, too' 3 \
	"verityctl: check: tree/sub/b: its sidecar is of another digest than the manifest's
$hint" tree
renew; cp $meta/sub/deep/c.fsv_meta $meta/sub/b.fsv_meta
finds 'that of equal data is as good' 0 '' tree
renew; rm $meta/sub/b.fsv_meta; ln -s deep/c.fsv_meta $meta/sub/b.fsv_meta
verityctl check --quiet tree >out 2>err
is 'a symlink to it is not' $? 3
renew; rm $meta/sub/b.fsv_meta; mkfifo $meta/sub/b.fsv_meta
finds 'nor is a FIFO waited for' 3 \
	"verityctl: check: tree/sub/b: sidecar: file type is 1, must be 8
$hint" tree
renew; mkdir tree/.verity/next; mv $meta/sub tree/.verity/next/
finds 'a sidecar that waits in next/ is one' 0 '' tree
renew; rm -r $meta
verityctl check --quiet tree >out 2>err
is 'without any, all that have one are told' "$? $(grep -c missing err)" '3 4'
damage tree/small 1
verityctl check --quiet tree >out 2>err
is 'trust goes before data, which is still listed' "$? $(cat out)" \
	'3 tree/small 0 100 0 data'

# The manifest.
# edit SED...: change it.
edit() { renew; sed -i "$@" tree/.verity/manifest; }
edit '/ sub\/b$/{n;s/30000/30001/}'
finds 'a size that is not the one of the digest is status 3' 3 \
	'verityctl: check: tree/sub/b: the manifest gives its size as 30001, its digest as 30000' \
	tree
edit '/ sub\/block$/{n;s/4096/4095/}'
finds 'of a file of one block: its digest does not fit' 1 'tree/sub/block 0 4095 0 data
tree/sub/block 4095 1 0 excess' tree
edit '/ sub\/b$/{n;s/30000/3000/}'
finds 'nor does that of one that is said to be' 1 'tree/sub/b 0 3000 0 data
tree/sub/b 3000 27000 0 excess' tree
edit '/ sub\/block$/{n;s/4096/4097/}'
verityctl check --quiet tree >out 2>err
is 'one that is said to have a sidecar has none' "$? $(head -n 1 err)" \
	'3 verityctl: check: tree/sub/block: the manifest lists it, but its sidecar is missing'
edit 's/^created.*/&\nexpires 2023-11-14T22:13:21Z/'
verityctl check tree >out 2>err
is 'one that has expired is status 3' $? 3
is 'which is said' "$(sed -n 1p err)" \
	'verityctl: check: tree/.verity/manifest: expired at 2023-11-14T22:13:21Z'
damage tree/small 1
verityctl check --quiet tree >out 2>err
is 'before bad data, which is listed' "$? $(cat out)" '3 tree/small 0 100 0 data'
ok 'for a file alone, too' fails 3 'expired at' verityctl check tree/a
edit 's/^created.*/&\nexpires 2999-01-01T00:00:00Z/'
ok 'one that will is good' verityctl check tree
edit 's/^\(sha256:\).\(.* a\)$/\1_\2/'
ok 'a malformed one is status 4, with its line' \
	fails 4 'tree/.verity/manifest:7: digest' verityctl check tree
rm tree/.verity/manifest
ok 'a missing one, too' fails 4 'tree/.verity/manifest: there is no manifest' \
	verityctl check tree

# MANIFEST operands.
renew; cp -a tree moved; rm -r moved/.verity
verityctl seal --quiet --meta away tree >/dev/null
ok "a manifest in a tree's folder is of that tree" \
	verityctl check tree/.verity/manifest
ok 'also from there' sh -c 'cd tree/.verity && verityctl check manifest'
ok 'with --root it is of another' verityctl check --root=moved tree/.verity/manifest
ok 'one elsewhere needs --root' fails 2 'away/manifest: which tree .*--root' \
	verityctl check away/manifest
ok 'which may be given' verityctl check --root=tree away/manifest
ok 'with its pin' verityctl check --pin="$(pin_of away/manifest)" --root=tree away/manifest
ok '--meta is the other way round' verityctl check --meta=away tree
damage moved/a 3
verityctl check --quiet --root=moved away/manifest >out
is 'bad blocks are in the tree that was named' "$? $(cat out)" '1 moved/a 0 4096 0 data'

# A file in a sealed tree.
for f in a small empty sub/b sub/block sub/large; do
	ok "$f of a sealed tree checks on its own" verityctl check tree/$f
	ok 'by its absolute path' verityctl check "$T/tree/$f"
done
ok 'from within' sh -c 'cd tree/sub/deep && verityctl check c ../b ../../small'
ok 'by a way around' verityctl check tree/sub/../sub/./b
ok 'through a symlink to its folder' verityctl check tree/way/b
verityctl check --pin="$pin" tree/sub/b 2>err
is 'with the pin of the manifest it is pinned' "$? $(cat err)" \
	'0 verityctl: check: tree/sub/b: 29.3 KiB: all good; pinned'
ok 'with another it is refused' fails 3 'not the pinned manifest' \
	verityctl check --pin="$other" tree/sub/b
d=$(verityctl digest tree/sub/b)
ok 'so it is with --digest' verityctl check --digest="${d%% *}" tree/sub/b
ok 'and another' fails 3 "tree/sub/b: .* trusted is $other" \
	verityctl check --digest="$other" tree/sub/b
ok 'with both' verityctl check --pin="$pin" --digest="${d%% *}" tree/sub/b
echo new >tree/new
ok 'a file that is not listed is status 3' fails 3 'tree/new: .* no such file' \
	verityctl check tree/new
damage tree/sub/b 30; damage tree/small 0
finds 'a bad one is found' 1 'tree/sub/b 0 4096 0 data' tree/sub/b
finds 'a small one, too' 1 'tree/small 0 100 0 data' tree/small
is 'from within it has the name it was given' \
	"$(cd tree/sub && verityctl check --quiet b)" 'b 0 4096 0 data'
is 'with --json' "$(verityctl check --quiet --json tree/small |
	jq -r 'select(.kind) | "\(.path) \(.kind)"')" 'tree/small data'
rm $meta/sub/b.fsv_meta
verityctl check --quiet tree/sub/b 2>err
is 'its missing sidecar is status 3' $? 3
ok '--root names the tree of a file' verityctl check --root=tree tree/sub/deep/c
ok 'which must be in it' fails 2 'moved/a: is not below --root tree' \
	verityctl check --root=tree moved/a

# Several operands: trust before data before the rest.
renew; cp good bad; cp good.fsv_meta bad.fsv_meta; damage bad 0
cp good f; cp good.fsv_meta f.fsv_meta
damage tree/small 0
rm -rf distrust; cp -a pristine distrust; rm distrust/.verity/meta/a.fsv_meta
while read -r want operands; do
	# shellcheck disable=SC2086 # several
	verityctl check --quiet $operands >out 2>&1
	is "$operands: status $want" $? "$want"
done <<-'END'
	0 f good
	1 f bad good
	1 tree f
	4 f nothing
	1 nothing bad
	1 bad nothing
	3 distrust bad nothing
	3 nothing bad distrust
	3 nothing tree distrust f
END

# Names.
new=$(printf 'n\nx\134')
mkdir "$new"; head -c 5000 good >"$new/f"
verityctl seal --quiet "$new" >/dev/null
damage "$new/f" 0
finds 'a newline in a name does not make another line' 1 'n\nx\\/f 0 4096 0 data' "$new"
is 'in JSON it is one' "$(verityctl check --quiet --json "$new" | head -n 1 | jq -r .path)" \
	"$new/f"

# Nothing is written.
state tree >before
verityctl check --quiet tree tree/a tree/.verity/manifest >/dev/null
state tree >after
ok 'check writes nothing' cmp before after
strace -f -qq -o log -P "$T/large" -e trace=fstat,newfstatat \
	-e inject=fstat,newfstatat:signal=SIGINT:when=1 verityctl check large >out 2>err
is 'SIGINT is status 130' $? 130
like 'and says that not all was looked at' "$(cat err)" 'large: interrupted; not all'
ok 'a full standard output is noticed' fails 1 'No space left' \
	sh -c 'exec verityctl check bad >/dev/full'

tap_done
