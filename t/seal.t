#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 180
# verityctl seal: what it writes for files and trees is what fsverity and an
# independent list of the tree say it must be, and nothing else is written.
. "${0%/*}/lib.sh"
. "$TOP/t/seal-lib.sh"
requires fsverity

# sidecar FILE OPTION...: print the sidecar that FILE must have.
sidecar() {
	_file=$1; shift
	rm -f "$T/x.tree" "$T/x.desc"
	fsverity digest "$@" --out-merkle-tree="$T/x.tree" \
		--out-descriptor="$T/x.desc" -- "$_file" >"$T/x.out" || return
	perl -e 'print pack "V", 1'
	cat "$T/x.desc"
	perl -e 'print pack "VV", 0, 0'
	[ ! -s "$T/x.tree" ] || head -c $((4096 - 268)) /dev/zero
	cat "$T/x.tree"
}

# entries ROOT OPTION...: print the entries that a manifest of ROOT must have,
# from find and fsverity; SHA256 set: with the plain hashes.
entries() {
	find "$1" -mindepth 1 \( -name .verity -o -name '*.fsv_meta' \) -prune \
		-o -printf '%P\0%y\0%s\0%m\0%T@\0%l\0' | perl -e '
		use strict;
		my ($root, @opts) = @ARGV;
		local $/ = "\0";
		my %e;
		while (defined(my $path = <STDIN>)) {
			my @f = map { scalar <STDIN> } 1 .. 5;
			chomp($path, @f);
			$e{$path} = \@f;
		}
		sub run {
			open my $p, "-|", @_ or die;
			local $/ = "\n";
			my $line = <$p>;
			close $p or die "@_";
			$line =~ s/^\\//; # sha256sum of an odd name
			return $line =~ /^([0-9a-f]+)/ ? $1 : die "@_";
		}
		my %spelt = ("\n" => "n", "\r" => "r", "\t" => "t", "\\" => "\\");
		sub path { my $s = shift; $s =~ s/([\n\r\t\\])/\\$spelt{$1}/g; $s }
		my ($alg) = map { /--hash-alg=(.*)/ } @opts;
		$alg //= "sha256";
		for my $p (sort keys %e) {
			my ($type, $size, $mode, $mtime, $target) = @{$e{$p}};
			my $name = path($p);
			if ($type eq "d") { print "dir $name\n"; next }
			if ($type eq "l") {
				print "symlink $name\n\ttarget ", path($target), "\n";
				next;
			}
			next if $type ne "f";
			my $hex = run("fsverity", "digest", "--compact", @opts, "--",
				"$root/$p");
			print "$alg:$hex $name\n\tsize $size\n";
			print "\texec\n" if oct($mode) & 0111;
			print "\tsha256 ", run("sha256sum", "--", "$root/$p"), "\n"
				if $ENV{SHA256};
			$mtime =~ s/(\.\d{9})\d*$/$1/;
			print "\tmtime $mtime\n";
		}' "$@"
}

# head_of SERIAL ALG BLOCK_SIZE [SALT]: print a manifest's head.
head_of() {
	printf 'verity-manifest 1\nserial %d\ncreated 2023-11-14T22:13:20Z\n' "$1"
	printf 'algorithm %s\nblock-size %d\n' "$2" "$3"
	[ $# -lt 4 ] || printf 'salt %s\n' "$4"
	echo
}

# sidecars ROOT META OPTION...: the sidecars of a tree are those of its files
# of more than BS bytes, byte for byte, and no others.
sidecars() {
	_root=$1 _meta=$2; shift 2
	find "$_root" \( -name .verity -o -name '*.fsv_meta' \) -prune -o \
		-type f -size +"$BS"c -printf '%P.fsv_meta\0' | sort -z >"$T/x.want"
	(cd "$_meta/meta" 2>/dev/null && find . -type f -printf '%P\0') |
		sort -z >"$T/x.have"
	cmp "$T/x.want" "$T/x.have" || return
	xargs -0 -r -n 1 sh -c 'printf "%s\0" "${1%.fsv_meta}"' sh <"$T/x.want" \
		>"$T/x.files"
	perl -0 -ne 'chomp; print "$_\n" if !/\n/' <"$T/x.files" >"$T/x.plain"
	while IFS= read -r _f; do
		sidecar "$_root/$_f" "$@" | cmp - "$_meta/meta/$_f.fsv_meta" ||
			return
	done <"$T/x.plain"
}

noise 3 1300000 >random

# One file.
for size in 0 1 4095 4096 4097 524288 524289; do
	head -c $size random >f
	rm -f f.fsv_meta
	is "a file of $size bytes gets the digest that fsverity gives it" \
		"$(verityctl seal f)" "$(fsverity digest f)"
	sidecar f >want
	ok "and a sidecar of fsverity's parts" cmp want f.fsv_meta
done
head -c 300000 random >f
for opts in --hash-alg=sha512 --block-size=1024 --block-size=65536 --salt=00 \
	"--salt=$(printf '%064d' 5) --hash-alg=sha512 --block-size=512"; do
	# shellcheck disable=SC2086 # several options
	is "with $opts the digest is fsverity's" "$(verityctl seal $opts f)" \
		"$(fsverity digest $opts f)"
	# shellcheck disable=SC2086 # several options
	sidecar f $opts >want
	ok 'and the sidecar too' cmp want f.fsv_meta
done
verityctl seal f >out 2>err
is 'one file: its line, no more' "$(cat out)" "$(fsverity digest f)"
is 'nothing is said where all is well' "$(cat err)" ''
is 'nothing else is left beside it' "$(find . -name '*verity*')" ''
ok '--json is status 0' sh -c 'verityctl seal --json f >json'
is 'and says the same' "$(jq -r '"\(.digest) \(.path) \(.bytes) \(.sidecar_bytes) \(.lease)"' json)" \
	"$(fsverity digest f) 300000 $(stat -c %s f.fsv_meta) true"
rm f.fsv_meta
mkdir away
verityctl seal --quiet --meta away f >out
ok '--meta: the sidecar lies there' test -f away/f.fsv_meta -a ! -e f.fsv_meta
like '--dry-run says what would be read and written' \
	"$(verityctl seal --dry-run f)" '^f: would read 293\.0 KiB and write 8\.0 KiB$'
ok 'and writes nothing' test ! -e f.fsv_meta
mkdir ro; cp f ro/f
ok 'a sidecar is readable as the umask allows' sh -c \
	'umask 027; verityctl seal ro/f && [ "$(stat -c %a ro/f.fsv_meta)" = 640 ]'

# Several.
head -c 5000 random >a; head -c 9 random >b
verityctl seal a none b >out 2>err
is 'of several files one may be missing: that is status 4' $? 4
fsverity digest a b >want
ok 'and the others are sealed' cmp want out
is 'one line says which' "$(cat err)" \
	'verityctl: seal: none: stat: No such file or directory'
is 'what is neither file nor directory is refused' \
	"$(mkfifo fifo; verityctl seal fifo 2>&1; echo $?)" \
	'verityctl: seal: fifo: is not a regular file
4'
ok '--meta goes with one operand' fails 2 'one operand' \
	verityctl seal --meta away a b
ok '--pin does not go with a file' fails 2 'go with a directory' \
	verityctl seal --pin="sha256:$(printf '%064d' 0)" a
ok 'a full standard output is noticed' fails 4 'No space left' \
	sh -c 'exec verityctl seal a >/dev/full'

# A tree with all that a tree can have.
mkdir -p tree/empty tree/sub/deep/er tree/sub/empty tree/d
: >tree/none
for size in 1 4095 4096 4097 8192 524289; do
	head -c $size random >tree/sub/f$size
done
cat random random random random random random random >tree/sub/deep/large
head -c 50000 random >tree/sub/deep/er/tool
chmod 755 tree/sub/deep/er/tool; chmod 600 tree/sub/f1; chmod 410 tree/sub/f4095
ln -s sub/f1 tree/link
ln -s ../nowhere/at/all tree/sub/dangling
ln -s . tree/sub/loop
ln -s /etc tree/etc
ln -s "$(perl -e 'print "\\\t" x 2000')" tree/sub/far
head -c 5000 random >"tree/with space"
head -c 10 random >"tree/ lead and trail "
head -c 10 random >"tree/new
line"
head -c 10 random >"$(printf 'tree/tab\there\\back\rcr')"
head -c 5000 random >"$(printf 'tree/\377\376 not UTF-8 \300\200')"
head -c 10 random >tree/-rf
head -c 10 random >'tree/$(touch x) `x` "q" '\'q
head -c 5000 random >"tree/$(printf 'n%.0s' $(seq 246))"
head -c 10 random >"tree/$(printf 's%.0s' $(seq 255))"
mkdir -p "tree/$(printf 'd%.0s' $(seq 255))/$(printf 'e%.0s' $(seq 255))"
# In the order of their bytes, d-x and d.x come between d and d/x.
for f in d/x d-x d.x d0x D; do head -c 10 random >tree/$f; done
ln tree/sub/f4097 tree/hard
touch -d '1969-12-31 23:59:58.5 UTC' tree/sub/f1
touch -d '2038-02-01 00:00:00.123456789 UTC' tree/sub/f4096
find tree -type l -exec readlink {} + | sort >links.before
find tree -type f -exec sha256sum {} + | sort >sums.before
BS=4096

verityctl seal tree >out 2>err
is 'a tree is sealed' $? 0
{ head_of 1 sha256 4096; entries tree; } >want
ok 'the manifest lists it all, in order, and no more' \
	diff want tree/.verity/manifest
is 'the pin is printed last: the SHA-256 of the manifest' "$(tail -n 1 out)" \
	"$(tree_pin tree) tree/.verity/manifest"
is 'standard output is that line' "$(wc -l <out)" 1
is 'and standard error one' "$(wc -l <err)" 1
ok 'what is larger than a block has a sidecar of fsverity'\''s parts' \
	sidecars tree tree/.verity
is 'manifest and sidecars are all there is' "$(ls -A tree/.verity)" 'manifest
meta'
find tree -name .verity -prune -o -type f -exec sha256sum {} + | sort >sums.after
ok 'no file was changed' cmp sums.before sums.after
ok 'symlinks stand there as they were given' grep -qF '	target ../nowhere/at/all' \
	tree/.verity/manifest
ok 'none was followed' sh -c '! grep -q "etc/passwd\|loop/" tree/.verity/manifest'
ok 'the result checks, pinned' verityctl check \
	--pin="$(tree_pin tree)" tree
cp tree/.verity/manifest first

verityctl seal --quiet tree >out 2>err
is '--quiet leaves the pin' "$(wc -l <out) $(cat err)" '1 '
{ head_of 2 sha256 4096; entries tree; } >want
ok 'sealed again: the serial counts up, the rest is the same' \
	diff want tree/.verity/manifest
verityctl seal --json tree 2>err >json
is '--json is status 0' $? 0
is 'and one object with the same pin' \
	"$(jq -cr '[.path, .manifest, .pin, .serial, .reused]' json)" \
	"[\"tree\",\"tree/.verity/manifest\",\"$(tree_pin tree)\",3,0]"
is 'and the counts' "$(jq -r '"\(.files) \(.bytes) \(.sidecar_bytes)"' json)" \
	"$(find tree -name .verity -prune -o -type f -printf '%s\n' |
	awk '{ n++; s += $1 } END { print n, s }') $(find tree/.verity/meta \
	-type f -printf '%s\n' | awk '{ s += $1 } END { print s }')"

BS=1024
for opts in '--hash-alg=sha512 --salt=0102ff' '--block-size=65536' \
	'--block-size=1024'; do
	alg=sha256 bs=4096 salt=
	case $opts in *sha512*) alg=sha512 salt=0102ff ;; *size=*) bs=${opts#*=} ;; esac
	BS=$bs
	# shellcheck disable=SC2086 # several options
	verityctl seal --quiet $opts tree >out
	# shellcheck disable=SC2086 # several options
	{ head_of 0 $alg $bs $salt | sed 2d; entries tree $opts; } >want
	sed 2d tree/.verity/manifest >have
	ok "$opts: the manifest is as fsverity has it" diff want have
	# shellcheck disable=SC2086 # several options
	ok 'the sidecars, too' sidecars tree tree/.verity $opts
	is 'and nothing of the old ones is left' "$(ls -A tree/.verity)" 'manifest
meta'
done
BS=4096
verityctl seal --quiet --sha256 tree >out
entries_sum=$(SHA256=1 entries tree | sha256sum)
is '--sha256 adds what sha256sum prints' "$entries_sum" \
	"$(sed '1,/^$/d' tree/.verity/manifest | sha256sum)"

# Threads make no difference.
rm -r tree/.verity
for n in 1 4; do
	for opts in '' --sha256; do
		# shellcheck disable=SC2086 # an option or none
		verityctl seal --quiet --jobs $n --meta "jobs$n$opts" $opts tree >/dev/null
	done
done
ok '--jobs 1 and 4 write the same bytes' diff -r jobs1 jobs4
ok 'with --sha256, too' diff -r jobs1--sha256 jobs4--sha256
sed 2d first >want; sed 2d jobs1/manifest >have
ok '--meta DIR gives the same manifest' diff want have
ok 'and sidecars' sidecars tree jobs1
ok 'and leaves the tree alone' test ! -e tree/.verity
ok 'check takes it from there' verityctl check --meta jobs1 tree

# Metadata inside the tree.
mkdir -p in/sub
cp tree/sub/f8192 in/sub/f
verityctl seal --quiet --meta in/sub/.m in >/dev/null
verityctl seal --meta in/sub/.m in >out 2>err
is '--meta inside the tree is no content of it' \
	"$(sed '1,/^$/d; /^	/d; s/^.* //' in/sub/.m/manifest | xargs)" 'sub sub/f'
like 'which is said' "$(cat err)" \
	'^verityctl: seal: in: 1 names left out as metadata \(first: sub/\.m\)$'
is 'its pin is printed, too' "$(cat out)" \
	"$(pin_of in/sub/.m/manifest) in/sub/.m/manifest"
ok 'and checks' verityctl check --meta in/sub/.m in
is 'but the tree itself as a folder of it is refused' \
	"$(verityctl seal --meta in in 2>&1 >/dev/null; echo $?; ls in)" \
	'verityctl: seal: in: --meta must not be the tree itself
2
sub'

# What others keep in the folder is not ours to remove.
mkdir -p theirs/meta/sub theirs/next
echo precious >theirs/meta/sub/notes; echo precious >theirs/next/notes
echo old >theirs/meta/gone.fsv_meta
verityctl seal --quiet --meta theirs in >/dev/null
is 'files in --meta DIR that are no sidecars stay' \
	"$(cat theirs/meta/sub/notes theirs/next/notes)" 'precious
precious'
ok 'sidecars of what is gone do not' test ! -e theirs/meta/gone.fsv_meta

# --dry-run.
cp -a in dry; rm -r dry/sub/.m
state dry >before
verityctl seal --dry-run dry >out 2>err
is '--dry-run tells what would be done' "$(cat out err)" \
	'dry: would read 1 files, 8.0 KiB, and write 8.0 KiB of sidecars'
state dry >after
ok 'and leaves no trace' diff before after
ok '--json is status 0, too' sh -c 'verityctl seal --dry-run --json dry >json'
is 'and says the same' "$(jq -c . json)" \
	'{"path":"dry","dry_run":true,"files":1,"bytes":8192,"sidecar_bytes":8192}'
verityctl seal --quiet dry >/dev/null
state dry >before
verityctl seal --dry-run --block-size=1024 --meta nowhere dry >/dev/null
verityctl seal --dry-run --block-size=1024 dry >/dev/null
state dry >after
ok 'nor in a sealed tree' diff before after
ok 'nor makes the folder of --meta' test ! -e nowhere

# Trees of next to nothing.
mkdir void
verityctl seal --quiet void >/dev/null
head_of 1 sha256 4096 >want
ok 'an empty tree has a head for a manifest' cmp want void/.verity/manifest
ok 'which checks' verityctl check void
ok 'a trailing slash is no other tree' sh -c \
	'verityctl seal --quiet void/ && verityctl check void'

# What is left out.
mkdir -p odd/sub/.verity odd/x.fsv_meta odd/keep
echo a >odd/sub/.verity/manifest; echo a >odd/x.fsv_meta/a; echo a >odd/y.fsv_meta
echo a >odd/.verity-tmp.7.0; echo a >odd/keep/a
mkfifo odd/fifo
perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "odd/socket",
	Listen => 1) or die'
count=2
! mknod odd/null c 1 3 2>/dev/null || count=3
verityctl seal odd >out 2>err
is 'FIFOs, sockets and devices are left out, and names of metadata' \
	"$(sed '1,/^$/d; /^	/d; s/^.* //' odd/.verity/manifest | xargs)" \
	'keep keep/a sub'
like 'the former with a note' "$(cat err)" \
	"^verityctl: seal: odd: $count FIFOs, sockets or devices left out \(first: (fifo|socket|null)\)\$"
like 'the latter, too' "$(cat err)" \
	'^verityctl: seal: odd: 4 names left out as metadata \(first: [^ ]+\)$'

# Names.
new='n
x'
mkdir "$new"; head -c 10 random >"$new/f"
verityctl seal --quiet "$new/f" >out
is 'a newline in a name does not make another line' "$(cat out)" \
	"$(fsverity digest --compact "$new/f" | sed 's/^/sha256:/') n\\nx/f"
verityctl seal --quiet "$new" >out
is 'nor in that of a tree' "$(cat out)" \
	"$(tree_pin "$new") n\\nx/.verity/manifest"
mkdir long
head -c 5000 random >"long/$(printf 'n%.0s' $(seq 247))"
ok 'a name that leaves no room for .fsv_meta is refused' \
	fails 4 'long/n{247}: ' verityctl seal long
ok 'and no manifest is written' test ! -e long/.verity/manifest
( cd "$T" && mkdir pit && cd pit && for _ in $(seq 18); do
	n=$(printf 'p%.0s' $(seq 240)) && mkdir "$n" && cd "$n" || exit; done ) 2>/dev/null
ok 'so is a path of over 4095 bytes' fails 4 'path is longer than 4095 bytes' \
	verityctl seal pit
rm -rf pit

# Times.
ok 'SOURCE_DATE_EPOCH must be a time' fails 2 \
	'SOURCE_DATE_EPOCH=1e9: must be seconds' \
	env SOURCE_DATE_EPOCH=1e9 verityctl seal void
ok 'that a manifest can hold' fails 2 'SOURCE_DATE_EPOCH=253402300800: must be' \
	env SOURCE_DATE_EPOCH=253402300800 verityctl seal void
ok 'the last of them can be read back' sh -c \
	'SOURCE_DATE_EPOCH=253402300799 verityctl seal void && verityctl check void'

# Large and sparse files, in memory where that is to be had.
sparse=$T/sparse; mkdir "$sparse"
if unshare -m mount -t tmpfs none "$sparse" 2>/dev/null; then
	cat >sparse.sh <<-'END'
		mount -t tmpfs -o size=2g none "$1" && cd "$1" || exit
		truncate -s 64G huge
		truncate -s 256M mid
		printf x | dd of=mid bs=1 seek=123456789 conv=notrunc 2>/dev/null
		printf x | dd of=mid bs=1 conv=notrunc 2>/dev/null
		timeout "$2" verityctl seal --quiet huge mid
		ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
			strace -f -qq -o log -P "$1/huge" -e trace=read,pread64,mmap \
			timeout "$2" verityctl digest huge >digest
		grep -cE '(read|read64|mmap)\(' log
		fsverity digest mid
		cmp mid "$3" 2>/dev/null
		verityctl check --quiet mid huge; echo $?
	END
	: "${ASAN_OPTIONS:=}"
	export ASAN_OPTIONS
	limit=30; case $B in *asan | *tsan) limit=120 ;; esac
	unshare -m sh sparse.sh "$sparse" $limit /dev/null >out 2>err
	# The digest of 64 GiB of zeros, level by level; each has equal blocks.
	perl -MDigest::SHA=sha256 -e '
		my ($n, $hash) = (2 ** 24, sha256("\0" x 4096));
		while ($n > 1) {
			my $in = $n < 128 ? $n : 128;
			$hash = sha256($hash x $in . "\0" x (4096 - 32 * $in));
			$n /= $in;
		}
		my $desc = pack "CCCCVQ<a64a32a144", 1, 1, 12, 0, 0, 2 ** 36,
			$hash, "", "";
		print "sha256:", unpack("H*", sha256($desc)), " huge\n"' >want
	is 'a sparse file of 64 GiB is sealed in seconds' \
		"$(sed -n 1p out)" "$(cat want)"
	is 'its holes cost no reading' "$(sed -n 3p out)" 0
	is 'one of 256 MiB has the digest that fsverity gives it' \
		"$(sed -n 2p out)" "$(sed -n 4p out)"
	is 'both check' "$(sed -n 5p out)" 0
else
	skip 'no tmpfs can be mounted here'
fi

# A tree that can not be written to.
if unshare -m mount -t tmpfs none "$sparse" 2>/dev/null; then
	cat >ro.sh <<-'END'
		mount -t tmpfs none "$1" && cp -a in/sub "$1" || exit
		mount -o remount,ro "$1" || exit
		verityctl seal --quiet "$1"; echo $?
		verityctl seal --quiet --meta ro.meta "$1" || exit
		verityctl check --meta ro.meta "$1"
	END
	unshare -m sh ro.sh "$sparse" >out 2>err
	is 'a read-only tree is sealed with --meta' $? 0
	is 'without it that is status 4' "$(sed -n 1p out)" 4
	like 'with the reason' "$(cat err)" 'Read-only file system'
else
	skip 'no tmpfs can be mounted here'
fi

# One at a time.
verityctl seal --quiet dry >/dev/null
hold dry/.verity
state dry >before
ok 'while another is at work, seal is told so' \
	fails 6 'dry: another seal is at work' verityctl seal dry
state dry >after
ok 'and does nothing' diff before after
ok 'check does not mind' verityctl check dry
stop $holder
ok 'when it is gone, so is the lock' verityctl seal dry

tap_done
