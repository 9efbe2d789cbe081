#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 180
# verityctl seal when files change under it, and when system calls fail: it
# refuses, says why, and what was sealed before stays as it was.
. "${0%/*}/lib.sh"
. "$TOP/t/seal-lib.sh"

# freeze STRACE_ARGUMENT... COMMAND...: start it, and wait until it stops at a
# SIGSTOP that strace injects; what it says goes to out and err.
freeze() {
	rm -f log
	spawn env ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" \
		strace -f -qq -o log "$@" >out 2>err
	tracer=$!
	pid=
	for _ in $(seq 600); do
		pid=$(sed -n 's/^\([0-9]*\) *--- stopped by SIGSTOP.*/\1/p' log \
			2>/dev/null | head -n 1)
		[ -z "$pid" ] || return 0
		sleep 0.02
	done
	diag "it did not stop: $*"; diag "$(cat err)"
	return 1
}

# frozen FILE COMMAND...: the same, as it begins to read FILE.
frozen() {
	_file=$1; shift
	freeze -P "$T/$_file" -e trace=mmap,pread64 \
		-e inject=mmap,pread64:signal=SIGSTOP:when=1 "$@"
}

# thaw: let it go on; its status is left in $status.
thaw() {
	while [ -n "$pid" ] && kill -CONT "$pid" 2>/dev/null; do sleep 0.02; done
	wait "$tracer"
	status=$?
}

noise 9 300000 >random

# A program that maps a file to write, and does so when it is told to.
cat >mapper.c <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open(argv[argc - 1], O_RDWR);
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	if (map == MAP_FAILED || puts("mapped") < 0 || fflush(stdout))
		return 1;
	if (getchar() != EOF)
		map[7] ^= 1;
	puts("written");
	fflush(stdout);
	return getchar() == EOF;
}
END
mapper=
! cc -o mapper mapper.c 2>/dev/null || mapper=./mapper

# A file that changes.  Someone has it open to write, so there is no lease.
fresh() {
	cp random f
	touch -d '1 hour ago' f
	rm -f f.fsv_meta
	verityctl seal --quiet f >/dev/null
	cp -p f.fsv_meta old
}
while IFS='|' read -r what change; do
	fresh
	exec 7>>f
	frozen f verityctl seal --jobs 1 --block-size=1024 f || bail 'no strace as it should be'
	eval "$change"
	thaw
	exec 7>&-
	is "a file that is $what while it is sealed is refused" "$status" 4
	is 'in a line, after a note that there was no lease' "$(cat err)" \
		'verityctl: seal: f: change detection: stat only (someone has it open for writing)
verityctl: seal: f: changed while it was sealed; not sealed'
	ok 'and its sidecar is the old one' cmp old f.fsv_meta
done <<'END'
written to|printf x | dd of=f bs=1 seek=299999 conv=notrunc 2>/dev/null
cut|truncate -s -1 f
cut to nothing|: >f
cut and filled up again|truncate -s 100 f; truncate -s 300000 f
appended to|echo more >>f
overwritten with the same bytes|cat random >f
replaced by rename|cp -p f g; mv g f
deleted|rm f
deleted and made again|cp -p f g; rm f; cp -p g f
given to another mode|chmod 700 f
touched|touch -d '1 hour ago' f
linked|ln f other; rm other
END
is 'nothing else is left' "$(find . -name '.verity-tmp*')" ''
fresh
exec 7>>f
frozen f verityctl seal f
thaw
is 'a file that is only open, and not written to, is sealed' "$status" 0
exec 7>&-

# A writer with a mapping and no descriptor.
if [ -n "$mapper" ]; then
	mkfifo in
	for write in yes no; do
		fresh
		exec 8<>in # opens at once
		spawn sh -c "exec $mapper f <in >said 8>&-"
		until grep -qs mapped said; do sleep 0.02; done
		frozen f verityctl seal --jobs 1 --block-size=1024 f
		mtime=$(stat -c %y f)
		[ $write = no ] || { echo >&8; until grep -q written said; do sleep 0.02; done; }
		shown=yes
		[ "$mtime" != "$(stat -c %y f)" ] || shown=no
		thaw
		exec 8>&-
		like "mapped to write, there is no lease" "$(cat err)" 'stat only'
		if [ $write = no ]; then
			is 'a mapping alone does no harm' "$status" 0
		elif [ $shown = no ]; then
			skip 'a write through a mapping changes no time on this file system'
		else
			is 'what is written through a mapping is seen' "$status" 4
			ok 'the sidecar is the old one' cmp old f.fsv_meta
		fi
	done
else
	skip 'no C compiler here'
fi

# With a lease.
# breaking FILE: someone waits for a lease on it to be given back.
breaking() {
	grep -qE "LEASE +BREAKING .*:$(stat -c %i "$1") " /proc/locks
}
fresh
digest=$(verityctl digest --block-size=1024 f)
frozen f verityctl seal --jobs 1 --block-size=1024 f
spawn sh -c 'echo more >>f; : >written'
writer=$!
for _ in $(seq 500); do
	! breaking f || break
	sleep 0.02
done
ok 'a writer asks for the lease to be broken' breaking f
ok 'and has to wait' test ! -e written
sleep 1.2
ok 'longer than a second' test ! -e written
thaw
is 'which is seen' "$status" 4
is 'and told' "$(cat err)" 'verityctl: seal: f: changed while it was sealed; not sealed'
ok 'the sidecar is the old one' cmp old f.fsv_meta
wait $writer
ok 'the writer may go on afterwards' test -e written
rm written
fresh
frozen f verityctl seal --jobs 1 --block-size=1024 f
spawn perl -e 'truncate "f", 5 or die; open F, ">", "written"'
writer=$!
thaw
wait $writer
if [ "$status" -eq 0 ]; then
	is 'one that comes as it ends is not in the digest' "$(cat out)" "$digest"
else
	is 'one that comes as it ends makes it fail' "$status" 4
fi
rm written
for change in 'cp -p f g; mv g f' 'rm f'; do
	fresh
	frozen f verityctl seal --jobs 1 --block-size=1024 f
	eval "$change"
	thaw
	is "a lease does not keep others from '$change': refused" "$status" 4
	ok 'and the sidecar is the old one' cmp old f.fsv_meta
done
fresh
frozen f verityctl seal --jobs 1 --block-size=1024 f
sleep 1.2; chmod 700 f
thaw
is 'nor from chmod, which is seen when it took a second' "$status" 4
fresh
frozen f verityctl seal --jobs 1 f
sleep 1.2
thaw
is 'to be slow is no fault' "$status $(cat err)" '0 '

# Another's file.
cp -p random theirs
chmod 755 "$T" "$T/.."
chmod 644 theirs
mkdir -m 777 open
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups'
# shellcheck disable=SC2086 # words
if [ "$(id -u)" = 0 ] && $nobody verityctl --version >/dev/null 2>&1; then
	$nobody verityctl seal --meta open theirs >out 2>err
	is "another owner's file is sealed" $? 0
	is 'with a note that there is no lease' "$(cat err)" \
		"verityctl: seal: theirs: change detection: stat only (it is another owner's)"
	cp -p open/theirs.fsv_meta old
	# Root's strace, so that nobody needs no leave to trace.
	frozen theirs $nobody verityctl seal --meta open --block-size=1024 theirs
	echo more >>theirs
	thaw
	is 'it is refused when it changes' "$status" 4
	ok 'its sidecar is the old one' cmp old open/theirs.fsv_meta
	chmod 600 theirs
	ok 'one that may not be read is status 4' \
		fails 4 'theirs: open: Permission denied' \
		$nobody verityctl seal --meta open theirs
	chmod 644 theirs
	ok 'a folder that may not be written is status 4' \
		fails 4 'theirs: seal: Permission denied' \
		$nobody verityctl seal theirs
	mkdir tree; cp random tree/a; cp random tree/b; cp random tree/c
	chmod 600 tree/b; chmod 777 tree
	$nobody verityctl seal tree >out 2>err
	is 'in a tree one that may not be read is status 4' $? 4
	is 'it is named, the others are not' "$(grep -v 'stat only' err)" \
		'verityctl: seal: tree/b: Permission denied
verityctl: seal: tree: not sealed; what was sealed before stays valid'
	ok 'and there is no manifest' test ! -e tree/.verity/manifest
	chmod 644 tree/b; rm -r tree/.verity; chmod 755 tree
	ok 'a tree that may not be written is status 4' \
		fails 4 'tree/.verity/manifest: make directory: Permission denied' \
		$nobody verityctl seal tree
	mkdir -m 700 tree/sub
	ok 'so is a folder that may not be listed' \
		fails 4 'sub: open directory: Permission denied' \
		$nobody verityctl seal --meta open tree
	rm -r tree
else
	skip 'only root can be another here'
fi

# A tree in which something changes.
plant() {
	rm -rf t
	mkdir -p t/d/e t/later
	cp random t/a; cp random t/d/b; cp random t/d/e/c; echo small >t/later/s
	cp random t/later/x; cp random t/later/z
	find t -type f -exec touch -d '1 hour ago' {} +
	verityctl seal --quiet t >/dev/null
	pin=$(tree_pin t)
	rm -rf before; cp -a t/.verity before
}
# kept: the old manifest is in place and its sidecars are as they were.
kept() {
	cmp before/manifest t/.verity/manifest && diff -r before/meta t/.verity/meta
}
while IFS='|' read -r what said change; do
	plant
	frozen t/a verityctl seal --jobs 1 --block-size=1024 t
	eval "$change"
	thaw
	is "a tree in which $what is refused" "$status" 4
	like 'it is told where' "$(cat err)" "^verityctl: seal: $said"
	like 'and that the old state stays' "$(tail -n 1 err)" \
		'^verityctl: seal: t: not sealed; what was sealed before stays valid$'
	ok 'which it does' kept
	is 'nothing is said on standard output' "$(cat out)" ''
done <<'END'
a file is added|d: directory changed|echo new >t/d/new
one is added and removed again|d: directory changed|echo new >t/d/new; rm t/d/new
a folder is added|\.: directory changed|mkdir t/new
a folder is renamed|t/d/e/c: No such file|mv t/d/e t/d/f
a file that is next is gone|t/later/x: No such file|rm t/later/x
a file that is done is replaced|.* changed|cp -p t/a g; mv g t/a
a file becomes a symlink|t/later/x: .*symbolic link|ln -sf /etc/passwd t/later/x
a file becomes a FIFO|t/later/x: changed|rm t/later/x; mkfifo t/later/x
a file becomes a folder|t/later/x: changed|rm t/later/x; mkdir t/later/x
a folder becomes a symlink|t/later/s: .*symbolic link|mv t/later later; ln -s ../later t/later; rm -r later/gone 2>/dev/null
END
rm -rf later
plant
exec 7>>t/a
frozen t/a verityctl seal --jobs 1 --block-size=1024 t
echo more >>t/a
thaw
exec 7>&-
is 'so is one in which a file is written to' "$status" 4
is 'which is named, once' "$(grep -c 't/a: changed while it was sealed$' err)" 1
ok 'the rest is as it was' kept
plant
exec 7>>t/a 6>>t/d/b
verityctl seal --json t >json 2>err
exec 7>&- 6>&-
is 'files without a lease are counted' "$(jq .stat_only json)" 2
like 'and one is named' "$(cat err)" \
	't: change detection: stat only for 2 files \(first: (a|d/b): someone has'

# Another seal while one is at work.
plant
frozen t/a verityctl seal --jobs 1 --block-size=1024 t
ok 'while one is at work, another is told so' \
	fails 6 't: another seal is at work' verityctl seal t
ok 'and check finds the old state' verityctl check --pin="$pin" t
thaw
is 'the first is not disturbed' "$status" 0
ok 'its state checks' verityctl check --pin="$(sed 's/ .*//' out)" t

# Cut under a mapping, many times: an error, never a signal.
head -c 8000000 /dev/zero | tr '\0' y >f
verityctl seal --quiet f >/dev/null
mkdir shaky; cp f shaky/f; cp f shaky/g
spawn perl -e 'open F, "+<", $_ and push @f, *F{IO} or die for @ARGV;
	my @fh = map { open my $h, "+<", $_ or die; $h } @ARGV;
	while () { for (@fh) { truncate $_, rand 8e6; truncate $_, 8e6 } }' \
	f shaky/f shaky/g
cutter=$!
: >bad
for i in $(seq 40); do
	for cmd in 'seal --meta open f' 'check f' 'digest f' \
		'seal --jobs 2 --meta shaky.meta shaky'; do
		# shellcheck disable=SC2086 # words
		verityctl $cmd >/dev/null 2>err
		status=$?
		case $cmd:$status in *:0 | *:4 | check*:1) ;;
		*) echo "$cmd: status $status: $(cat err)" >>bad ;;
		esac
	done
done
stop $cutter
is 'a file that is cut under its mapping is an error, never SIGBUS' "$(cat bad)" ''

# Calls that fail.  inject CALL[:...] COMMAND...: all such calls, or as said.
inject() {
	_what=$1; shift
	strace -f -qq -o log -e trace="${_what%%:*}" -e inject="$_what" "$@"
}
# fault NAME STATUS REGEX INJECTION: seal of the tree ends so, the old state
# stays.
fault() {
	plant
	inject "$4" verityctl seal --jobs 1 --block-size=1024 t >out 2>err
	is "$1" $? "$2"
	like 'which is said' "$(cat err)" "$3"
	ok 'and the old state stays' kept
	ok 'and checks' verityctl check --pin="$pin" t
	is 'no pin is printed' "$(cat out)" ''
}
io='Input/output error'
fault 'a write that fails' 4 "t/a: $io" pwrite64:error=EIO
fault 'a full disk' 4 't/a: No space left on device' pwrite64:error=ENOSPC:when=3+
fault 'a quota' 4 't/a: Disk quota exceeded' pwrite64:error=EDQUOT:when=2+
fault 'syncfs that fails' 4 "t/.verity/manifest: sync sidecars: $io" \
	syncfs:error=EIO
fault 'fsync of the manifest that fails' 4 "t/.verity/manifest: write: $io" \
	fsync:error=EIO:when=1
fault 'a rename that fails' 4 'write: Operation not permitted' \
	renameat:error=EPERM
fault 'a link that fails' 4 't/a: Operation not permitted' linkat:error=EPERM
fault 'a folder that can not be made' 4 'Permission denied' mkdirat:error=EACCES:when=2+
fault 'a lock that can not be had' 4 'lock: No locks available' \
	flock:error=ENOLCK:when=1
fault 'a folder that can not be read' 4 "read directory: $io" \
	getdents64:error=EIO:when=3
# Before, it was said that the old state was valid, which it was not.
plant
inject fsync:error=EIO:when=2 verityctl seal --jobs 1 --block-size=1024 t >out 2>err
is 'fsync of the folder that fails, when the new manifest is in place' $? 4
is 'tells that it is' "$(cat err)" \
	"verityctl: seal: t/.verity/manifest: is in place, but may not outlive a power cut (seal again): fsync of its directory: $io"
ok 'the new state checks' verityctl check \
	--pin="$(tree_pin t)" t
cp before/manifest t/.verity/manifest
ok 'and the old one would' verityctl check --pin="$pin" t

# Reading.
want=$(verityctl digest random)
# reading NAME INJECTION STATUS STDOUT STDERR: of seal of a file.
reading() {
	cp random f; rm -f f.fsv_meta
	[ "${6-}" != small ] || head -c 5000 random >f
	strace -f -qq -o log -P "$T/f" -e trace=pread64,mmap,fcntl,lseek \
		-e inject="$2" verityctl seal --jobs 1 f >out 2>err
	is "$1" "$? $(sed 's/ .*//' out)" "$3 $4"
	is 'and says so, or nothing' "$(cat err)" "$5"
}
reading 'a read that fails' pread64:error=EIO 4 '' \
	"verityctl: seal: f: seal: $io" small
ok 'there is no sidecar' test ! -e f.fsv_meta
small=$(head -c 5000 random >f; verityctl digest f); small=${small%% *}
reading 'one that is interrupted is repeated' pread64:error=EINTR:when=1 0 \
	"$small" '' small
reading 'a file that can not be mapped is read' mmap:error=ENODEV 0 \
	"${want%% *}" ''
reading 'a lease that is refused is told' fcntl:error=EINVAL 0 "${want%% *}" \
	'verityctl: seal: f: change detection: stat only (this file system has no leases)'
cp random f; rm -f f.fsv_meta
strace -f -qq -o log -P "$T/f" -e trace=pread64,mmap \
	-e inject=mmap:error=ENOMEM -e inject=pread64:error=EIO \
	verityctl seal f >out 2>err
is 'neither mapped nor read' "$? $(cat out err)" "4 verityctl: seal: f: seal: $io"
case $B in
*tsan) skip 'the thread sanitizer needs madvise' ;;
*)
	inject madvise:error=EFAULT verityctl digest f >out
	is 'pages that do not come with advice come without' "$(cat out)" \
		"$(echo "$want" | sed 's/random/f/')" ;;
esac
inject openat2:error=ENOSYS verityctl seal --quiet t >out
is 'a kernel without openat2 will do' "$?" 0
ok 'the result checks' verityctl check --pin="$(sed 's/ .*//' out)" t
inject openat2:error=ENOSYS verityctl check --quiet t
is 'there, too' $? 0
inject clone3,clone:error=EAGAIN verityctl seal --jobs 4 --quiet t >out
is 'threads that can not be had are done without' $? 0
ok 'the result checks, again' verityctl check --pin="$(sed 's/ .*//' out)" t
plant
inject pwrite64:error=EINTR:when=2 verityctl seal --quiet --jobs 1 --salt=01 t >out
is 'a write that is interrupted is repeated' $? 0
ok 'and all is right' verityctl check --pin="$(sed 's/ .*//' out)" t

# Real disks that are full or read-only.
mkdir mnt
if unshare -m mount -t tmpfs none mnt 2>/dev/null; then
	cat >full.sh <<-'END'
		mount -t tmpfs -o "$1" none mnt || exit
		cp -a small/. mnt && verityctl seal --quiet mnt >pin || exit 99
		pin=$(sed 's/ .*//' pin)
		cp -a mnt/.verity was
		mkdir mnt/more && mount --bind large mnt/more || exit 99
		verityctl seal mnt --block-size=1024; echo "status $?"
		diff -r was/meta mnt/.verity/meta >/dev/null
		cmp was/manifest mnt/.verity/manifest && echo same
		verityctl check --quiet --pin="$pin" mnt && echo good
		umount mnt/more; mount -o remount,size=100%,nr_inodes=0 mnt
		verityctl seal --quiet mnt >/dev/null && verityctl check --quiet mnt &&
			find mnt/.verity -name '.verity-tmp*' -o -name next | grep . ||
			echo healed
		umount mnt
		rm -r was
	END
	mkdir small large
	head -c 20000 random >small/a; echo b >small/b
	for i in 1 2 3 4 5 6 7 8 9; do cp random large/$i; done
	for opts in size=100k size=120k size=140k size=160k size=180k nr_inodes=12; do
		unshare -m sh full.sh "$opts" >out 2>err
		is "$opts: full: status 4, the old manifest stays, checks, and heals" \
			"$(xargs <out)" 'status 4 same good healed'
		like 'the reason is told' "$(cat err)" 'No space left on device'
	done
	cat >ro.sh <<-'END'
		mount -t tmpfs none mnt && cp -a small/. mnt || exit
		pin=$(verityctl seal --quiet mnt | sed 's/ .*//')
		mount -o remount,ro mnt
		verityctl seal mnt; echo "status $?"
		verityctl seal mnt/a; echo "status $?"
		verityctl check --quiet --pin="$pin" mnt && echo good
	END
	unshare -m sh ro.sh >out 2>err
	is 'read-only: status 4, and the old state checks' "$(xargs <out)" \
		'status 4 status 4 good'
	is 'the reason is told' "$(grep -c 'Read-only file system' err)" 2
else
	skip 'no tmpfs can be mounted here'
fi

# Without /proc a nameless file can not get a name: then it has one.
case $B in
*asan | *tsan) skip 'sanitizers need /proc' ;;
*)
	plant
	cat >noproc.sh <<-'END'
		mount -t tmpfs none /proc || exit 99
		verityctl seal --quiet --block-size=1024 t
	END
	if unshare -m true 2>/dev/null; then
		unshare -m sh noproc.sh >out
		is 'without /proc a tree is sealed' $? 0
		ok 'the same way' verityctl check --pin="$(sed 's/ .*//' out)" t
		is 'with nothing left over' "$(find t -name '.verity-tmp*')" ''
	else
		skip 'no file system can be hidden here'
	fi ;;
esac

# What a run that was killed before it tidied left in next/ is needed by the
# manifest in place.  Before, it was removed when that, or a sidecar, could not
# be read for once.
while IFS='|' read -r what file injection said; do
	plant
	inject unlinkat:signal=SIGKILL:when=1 \
		verityctl seal --jobs 1 --block-size=1024 t >/dev/null 2>&1
	pin=$(tree_pin t)
	state t >before.state
	strace -f -qq -o log -P "$T/t/.verity/$file" -e trace=pread64 \
		-e inject="$injection" verityctl seal --jobs 1 t >out 2>err
	is "$what: status 4" $? 4
	is 'and it is told' "$(cat err)" "verityctl: seal: $said: $io"
	state t >after.state
	ok 'nothing is changed' diff before.state after.state
	ok 'the state in place checks' verityctl check --pin="$pin" t
	ok 'when it can be read all is well' verityctl seal t
	ok 'and tidy' test ! -e t/.verity/next
done <<'END'
a manifest that can not be read|manifest|pread64:error=EIO|t/.verity/manifest: read
one of which only the head can|manifest|pread64:error=EIO:when=2+|t/.verity/manifest: read
a sidecar that can not|next/later/z.fsv_meta|pread64:error=EIO|next/later/z.fsv_meta: tidy
END

# A folder that becomes a symlink after it was listed.  Before, it was followed.
mkdir outside
plant
rm t/d/b
freeze -P "$T/t/.verity/meta/d/e" -e trace=getdents64 \
	-e inject=getdents64:signal=SIGSTOP:when=2 verityctl seal --jobs 1 t
echo precious >outside/b.fsv_meta
mv t/.verity/meta/d t/.verity/meta/away; ln -s "$T/outside" t/.verity/meta/d
thaw
is 'nothing is removed outside' "$(cat outside/b.fsv_meta)" precious
plant
freeze -P "$T/t/.verity/next/d/b.fsv_meta" -e trace=pread64 \
	-e inject=pread64:signal=SIGSTOP:when=1 \
	verityctl seal --jobs 1 --block-size=1024 t
mv t/.verity/next/d t/.verity/next/away; ln -s "$T/outside" t/.verity/next/d
thaw
is 'nor renamed' "$(cat outside/b.fsv_meta)" precious

# What close() tells.  Before, it was asked only when the name was given.
plant
strace -f -qq -o log -e trace=close,fsync \
	verityctl seal --jobs 1 --block-size=1024 t >/dev/null 2>&1
nth=$(perl -ne '$n++ if /close/; $f ||= /fsync/; if ($f && /close/) { print $n; last }' log)
fault 'an error that close of the manifest tells' 4 \
	"t/.verity/manifest: write: $io" "close:error=EIO:when=$nth"

# A file's sidecar.  Before, it was not said that it was in place.
fresh
inject fsync:error=EIO:when=1 verityctl seal --block-size=1024 f >out 2>err
is 'fsync of a sidecar that fails' "$? $(cat err)" "4 verityctl: seal: f: seal: $io"
ok 'leaves the old one' cmp old f.fsv_meta
inject fsync:error=EIO:when=2 verityctl seal --block-size=1024 f >out 2>err
is 'fsync of its folder that fails' $? 4
is 'tells that the new one is in place' "$(cat err)" \
	"verityctl: seal: f: its new sidecar is in place, but may not outlive a power cut (seal again): fsync of its directory: $io"
ok 'which it is' verityctl check --digest="$(verityctl digest --block-size=1024 f | sed 's/ .*//')" f
inject fsync:error=EIO:when=3 verityctl digest --out-merkle-tree=f.tree \
	--out-descriptor=f.desc f >out 2>err
is 'the same for an output of digest' $? 4
is 'is told' "$(cat err)" \
	"verityctl: digest: f.tree: is in place, but may not outlive a power cut: fsync of its directory: $io"
rm -f f.tree f.desc
# Before, the tree was in place when the descriptor could not be written.
inject fsync:error=EIO:when=2 verityctl digest --out-merkle-tree=f.tree \
	--out-descriptor=f.desc f >out 2>err
is 'an error in either output of digest' "$? $(cat err)" \
	"4 verityctl: digest: f.desc: cannot write: $io"
ok 'leaves both as they were' test ! -e f.tree -a ! -e f.desc

# Temporary files with names.  Before, one that was taken made seal fail.
cat >taken.sh <<'END'
exec 7>".verity-tmp.$$.0" 8>".verity-tmp.$$.1"
flock 7 && flock 8 && exec "$@"
END
ok 'a temporary name that is taken is not used' \
	sh taken.sh verityctl seal --quiet f
rm .verity-tmp.*
# named: to strace, for a file system without nameless files.
named='-e inject=?access,?faccessat:error=ENOENT'
# shellcheck disable=SC2086 # words
ok 'nor where all have names' sh taken.sh env ASAN_OPTIONS="${ASAN_OPTIONS-}:detect_leaks=0" \
	strace -D -f -qq -o log -e trace=?access,?faccessat $named \
	verityctl seal --quiet f
rm .verity-tmp.*
# Before, it was renamed when it was not there any more.
rm f.fsv_meta
# shellcheck disable=SC2086 # words
freeze -e trace=?access,?faccessat,flock $named \
	-e inject=flock:signal=SIGSTOP:when=1 verityctl seal f
ok 'it has a name' ls .verity-tmp.*
rm -f .verity-tmp.*
thaw
is "one that another's sweep takes before it is locked is made again" \
	"$status $(cat err)" '0 '
ok 'and the sidecar is there' verityctl check f
# shellcheck disable=SC2086 # words
strace -f -qq -o log -e trace=?access,?faccessat,flock $named \
	-e inject=flock:error=EAGAIN:when=1 verityctl seal --quiet f >out 2>err
is 'so is one that a sweep has locked' "$? $(cat err)" '0 '
rm -f .verity-tmp.*

tap_done
