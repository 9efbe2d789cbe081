#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 180
# verityctl seal, ended at any point, leaves the old state or the new one, and
# the next run leaves nothing else.  SOAK_KILLS says how many random kills,
# SOAK_SEED which.  When they come depends on the speed of the machine, so their
# verdict is only that whatever is found is right; the kills at system calls,
# below, are the same everywhere.
[ ! -w /dev/shm ] || TMPDIR=/dev/shm # where syncfs waits for nobody's disk
export TMPDIR
. "${0%/*}/lib.sh"
. "$TOP/t/seal-lib.sh"

KILLS=${SOAK_KILLS:-60}
seed=${SOAK_SEED:-1}
serial_of() { sed -n '2s/serial //p' "$1/.verity/manifest"; }

# Two sealed states of the same files: everything in the metadata differs.
OLD=--block-size=4096 NEW=--block-size=1024
perl -e 'srand 5;
	for my $i (1 .. 40) {
		my $dir = "tree/" . ("", "a/", "a/b/", "c/")[$i % 4];
		mkdir "tree"; mkdir "tree/a"; mkdir "tree/a/b"; mkdir "tree/c";
		open my $f, ">", "${dir}f$i" or die;
		print $f chr(65 + $i % 26) x int($i % 5 ? rand 200000 : rand 5000);
		close $f;
	}' || bail 'no tree'
ln -s a/b tree/link
find tree -type f -exec touch -d '2020-01-01 UTC' {} +
for opts in $OLD $NEW; do
	verityctl seal --quiet "$opts" --meta "ref$opts" tree >/dev/null || bail 'no reference'
	sed 2d "ref$opts/manifest" >"want$opts"
done
verityctl seal --quiet $OLD tree >/dev/null

# is_state DIR OPTS SERIAL: DIR is sealed so, to the byte.
is_state() {
	[ "$(serial_of "$1")" = "$3" ] && sed 2d "$1/.verity/manifest" | cmp -s - "want$2"
}

# whole DIR OPTS SERIAL NEXT: DIR is sealed with OPTS and SERIAL, or with NEXT
# and one more; and that state checks, pinned.  $now is set to which.
whole() {
	if is_state "$1" "$2" "$3"; then
		now=$2
	elif is_state "$1" "$4" $(($3 + 1)); then
		now=$4
	else
		echo "the manifest is neither that of $2 nor of $4"
		return 1
	fi
	verityctl check --pin="$(tree_pin "$1")" "$1"
}

# lists DIR: the names in it.
lists() { find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | xargs; }

# tidy DIR OPTS: nothing but the manifest and its sidecars is there.
tidy() {
	[ "$(lists "$1/.verity")" = 'manifest meta' ] &&
		diff -r "$1/.verity/meta" "ref$2/meta" &&
		! find "$1" -name '.verity-tmp*' | grep .
}

other() { if [ "$1" = "$OLD" ]; then echo $NEW; else echo $OLD; fi; }

# killed SIGNAL MICROSECONDS COMMAND...: run it and send the signal then; the
# status as a shell has it.
cat >killed.pl <<'EOF2'
use Time::HiRes qw(usleep);
my ($signal, $us, @cmd) = @ARGV;
my $pid = fork // die;
if (!$pid) {
	open STDOUT, ">", "/dev/null";
	exec @cmd or die;
}
usleep $us;
kill $signal, $pid;
waitpid $pid, 0;
exit($? & 127 ? 128 + ($? & 127) : $? >> 8);
EOF2
killed() { perl killed.pl "$@"; }

# How long a seal takes, in microseconds.
start=$(date +%s%N)
for opts in $NEW $OLD $NEW $OLD; do verityctl seal --quiet "$opts" tree >/dev/null; done
took=$((($(date +%s%N) - start) / 4000))

# Random kills.  What is left over piles up, as the next run may be killed too.
diag "seed $seed, $KILLS kills within $took us"
perl -e 'srand shift; my ($n, $us) = @ARGV;
	printf "%d %d\n", rand(1.15 * $us), 1 + rand 4 for 1 .. $n' \
	"$seed" "$KILLS" "$took" >plan
state=$OLD died=0 flips=0 left=0 run=0
: >bad
while read -r us jobs; do
	run=$((run + 1))
	serial=$(serial_of tree) next=$(other "$state")
	killed KILL "$us" verityctl seal --quiet --jobs "$jobs" "$next" tree 2>/dev/null
	[ $? -ne 137 ] || died=$((died + 1))
	whole tree "$state" "$serial" "$next" >log 2>&1 || {
		{ echo "kill $run after $us us:"; cat log; } >>bad
		break
	}
	[ "$now" = "$state" ] || flips=$((flips + 1))
	state=$now
	[ ! -e tree/.verity/next ] || left=$((left + 1))
	[ $((run % 10)) -eq 0 ] || continue
	verityctl seal --quiet "$state" tree >/dev/null
	tidy tree "$state" >log 2>&1 || {
		{ echo "after kill $run:"; cat log; } >>bad
		break
	}
done <plan
ok "killed $KILLS times, the old state or the new one is there, whole" test ! -s bad
[ ! -s bad ] || diag "$(cat bad)"
diag "$died came in time, $flips runs got through, $left left something in next/"
verityctl seal --quiet $OLD tree >/dev/null
ok 'the next run leaves nothing but what belongs there' tidy tree $OLD

# Kills at each call that changes the disk: no state in between is missed.
# at SIGNAL SYSCALL N COMMAND...: the signal comes with its N-th such call.
at() {
	_sig=$1 _call=$2 _nth=$3; shift 3
	strace -f -qq -o log -e trace="$_call" \
		-e "inject=$_call:signal=$_sig:when=$_nth" "$@"
}
mkdir few few/d
cp -a tree/a/f1 tree/a/f21 few/; cp -a tree/a/b/f2 few/d/
head -c 3000 tree/c/f3 >few/one; head -c 700000 /dev/zero >few/two
find few -type f -exec touch -d '2020-01-01 UTC' {} +
for opts in $OLD $NEW; do
	rm -rf "ref$opts"
	verityctl seal --quiet "$opts" --meta "ref$opts" few >/dev/null
	sed 2d "ref$opts/manifest" >"want$opts"
done
verityctl seal --quiet $OLD few >/dev/null
cp -a few few.old
kills=0
for call in mkdirat linkat renameat unlinkat pwrite64 fsync syncfs flock; do
	: >bad
	n=0
	while n=$((n + 1)); do
		rm -rf few; cp -a few.old few
		! at KILL $call $n verityctl seal --quiet --jobs 1 $NEW few >/dev/null 2>&1 || break
		kills=$((kills + 1))
		{
			whole few $OLD 1 $NEW &&
				verityctl seal --quiet $NEW few >/dev/null &&
				tidy few $NEW &&
				sed 2d few/.verity/manifest | cmp - want$NEW
		} >log2 2>&1 || { echo "at $call $n:"; cat log2; } >>bad
		[ $n -lt 60 ] || break
	done
	ok "killed at each $call, it is the old state or the new" test ! -s bad
	[ ! -s bad ] || diag "$(cat bad)"
done
ok 'there were such calls' test $kills -gt 30
rm -rf few/.verity
at KILL fsync 1 verityctl seal --quiet few >/dev/null 2>&1
ok 'killed in its first run, it is not sealed' fails 4 'there is no manifest' \
	verityctl check few
rm -rf few; cp -a few.old few
at KILL fsync 1 verityctl seal --quiet $NEW few >/dev/null 2>&1
ok 'check does not mind what waits in next/' verityctl check few
verityctl seal --quiet $OLD few >/dev/null
ok 'which goes when it is not wanted' tidy few $OLD

# A file on its own.
head -c 300000 /dev/urandom >lone
verityctl seal --quiet $OLD lone >/dev/null
old=$(verityctl digest $OLD lone) new=$(verityctl digest $NEW lone)
cp lone.fsv_meta lone.old
for call in linkat renameat pwrite64 fsync; do
	: >bad
	n=0
	while n=$((n + 1)); do
		cp lone.old lone.fsv_meta
		! at KILL $call $n verityctl seal --quiet $NEW lone >/dev/null 2>&1 || break
		verityctl check --digest="${old%% *}" lone >/dev/null 2>&1 ||
			verityctl check --digest="${new%% *}" lone >/dev/null 2>&1 ||
			echo "at $call $n" >>bad
		[ $n -lt 60 ] || break
	done
	is "killed at each $call, a sidecar is the old one or the new" "$(cat bad)" ''
done
# Between its first name and its last one it is a file called .verity-tmp.
at KILL renameat 1 verityctl seal --quiet $NEW lone >/dev/null 2>&1
before=$(lists . | grep -c 'verity-tmp')
verityctl seal --quiet $NEW lone >/dev/null
is 'nothing is left of it after the next run' \
	"$before $(lists . | grep -c 'verity-tmp')" '1 0'
: >.verity-tmp.1.1
hold .verity-tmp.1.1
verityctl seal --quiet $NEW lone >/dev/null
ok "but another's that is at work is let alone" test -e .verity-tmp.1.1
stop $holder
verityctl seal --quiet $NEW lone >/dev/null
ok 'until it is not' test ! -e .verity-tmp.1.1
# Before, all that began so was taken away.
mkdir .verity-tmp.2.2 && mkfifo .verity-tmp.2.3 && ln -s lone .verity-tmp.2.4
for n in x 2.x x.2 2.5.1 2. .2 2; do echo mine >.verity-tmp.$n; done
: >after; lists . >before
verityctl seal --quiet $OLD lone >/dev/null
verityctl seal --quiet $NEW lone >/dev/null
lists . >after
ok 'and what has another name, or is no file, is not its own' diff before after
mv .verity-tmp.* tree/.verity/
lists tree/.verity >before
: >tree/.verity/.verity-tmp.3.3
verityctl seal --quiet "$state" tree >/dev/null
lists tree/.verity >after
ok 'in the folder of a tree, too' diff before after
rm -rf tree/.verity/.verity-tmp.*

# Interrupted, and gone on with.
# resume_command: the one that was proposed in the file err.
resume_command() { sed -n 's/.*; to go on: //p' err; }

perl -e 'srand shift; my $us = shift; printf "%d\n", rand $us for 1 .. 20' \
	"$seed" "$took" >plan
: >bad
told=0 reused=0
rm -rf few
verityctl seal --quiet $OLD tree >/dev/null
rm -rf "ref$OLD" "ref$NEW"
for opts in $OLD $NEW; do
	verityctl seal --quiet "$opts" --meta "ref$opts" tree >/dev/null
	sed 2d "ref$opts/manifest" >"want$opts"
done
state=$OLD
while read -r us; do
	serial=$(serial_of tree) next=$(other "$state")
	killed INT "$us" verityctl seal --jobs 2 "$next" tree 2>err
	status=$?
	whole tree "$state" "$serial" "$next" >log 2>&1 || { cat log; break; } >>bad
	if [ $status -eq 130 ] && grep -q 'to go on' err; then
		told=$((told + 1))
		sh -c "$(resume_command) --json" >json 2>>bad.err ||
			echo "status $? of: $(resume_command)" >>bad
		n=$(jq .reused json)
		[ "$n" -eq 0 ] || reused=$((reused + 1))
		is_state tree "$next" $((serial + 1)) || echo 'not the same bytes' >>bad
	elif [ $status -ne 0 ] && [ $status -ne 130 ]; then
		{ echo "status $status"; cat err; } >>bad
	else
		verityctl seal --quiet "$next" tree >/dev/null
	fi
	tidy tree "$next" >>bad 2>&1 || echo 'not tidy' >>bad
	state=$next
done <plan
ok 'SIGINT at any time: old or new, and what it proposes makes the new' \
	test ! -s bad
[ ! -s bad ] || diag "$(cat bad bad.err)"
diag "$told were interrupted, $reused of them had files to take over"

verityctl seal --quiet $OLD tree >/dev/null
serial=$(serial_of tree)
at INT linkat 20 verityctl seal --jobs 1 $NEW tree >out 2>err
is 'SIGINT is status 130' $? 130
like 'one line says what is valid and how to go on' "$(cat err)" \
	'^verityctl: seal: tree: interrupted after [0-9]+ of 40 files; what was sealed before stays valid; to go on: verityctl seal --resume --pin=sha256:[0-9a-f]{64} --block-size=1024 tree$'
is 'in one line, and nothing on standard output' "$(cat err out | wc -l)" 1
done=$(sed 's/.*after \([0-9]*\) of.*/\1/' err)
ok 'the old state checks' verityctl check --pin="$(tree_pin tree)" tree
sh -c "$(resume_command) --json --quiet" >json
# Before, what waited in next/ was thrown away and all was hashed again.
is 'files that were done are not hashed again' "$(jq .reused json)" "$done"
ok 'it is what a seal without interruption writes' is_state tree $NEW $((serial + 1))
ok 'and no more' tidy tree $NEW
ok 'pinned' verityctl check --pin="$(jq -r .pin json)" tree

# Interrupted twice.
verityctl seal --quiet $OLD tree >/dev/null
serial=$(serial_of tree)
at INT linkat 10 verityctl seal --jobs 1 $NEW tree >out 2>err
# shellcheck disable=SC2046 # words
at INT linkat 10 $(resume_command) --jobs 1 >out 2>err2
is 'a resumed run can be interrupted' $? 130
cp err2 err
ok 'and killed' whole tree $OLD "$serial" $NEW
# shellcheck disable=SC2046 # words
at KILL syncfs 1 $(resume_command) >out 2>&1
ok 'it is still the old state' is_state tree $OLD "$serial"
ok 'which checks' verityctl check tree
sh -c "$(resume_command) --json --quiet" >json
ok 'and resumed after all' is_state tree $NEW $((serial + 1))
ok 'with what the first one did' test "$(jq .reused json)" -gt 3
ok 'and no more' tidy tree $NEW

# A run that got through before its sidecars were moved, then --resume of an
# older one: what waits for the valid manifest must not be lost.
verityctl seal --quiet $OLD tree >/dev/null
at INT linkat 10 verityctl seal --jobs 1 --salt=07 tree >out 2>err
cp tree/.verity/partial partial
at KILL unlinkat 1 verityctl seal --quiet --jobs 1 $NEW tree >out 2>&1
[ -e tree/.verity/partial ] || cp partial tree/.verity/partial
ok 'killed before it tidied, the new state is valid' \
	verityctl check --pin="$(tree_pin tree)" tree
pin=$(tree_pin tree)
# shellcheck disable=SC2046 # words
at KILL syncfs 1 $(resume_command) >out 2>&1
is 'another run is gone on with, and killed' "$(tree_pin tree)" "$pin"
ok 'that state is whole still' verityctl check --pin="$pin" tree
ok 'and can be gone on from' sh -c "$(resume_command)"
ok 'with all options' grep -q '^salt 07$' tree/.verity/manifest
rm -rf tree/.verity
at INT linkat 10 verityctl seal --jobs 1 --sha256 --hash-alg=sha512 tree >out 2>err
is 'SIGINT in the first run' "$?:$(lists tree/.verity)" '130:meta partial'
ok 'can be gone on from' sh -c "$(resume_command)"
ok 'check agrees' verityctl check tree
verityctl seal --quiet --sha256 --hash-alg=sha512 --meta elsewhere tree >/dev/null
ok 'the bytes are the same' cmp elsewhere/manifest tree/.verity/manifest
at INT linkat 10 verityctl seal --jobs 1 --meta elsewhere $NEW tree >out 2>err
ok 'with --meta, too' sh -c "$(resume_command)"
ok 'there' sh -c 'verityctl check --meta elsewhere tree'
# Before, the command was not quoted.
odd="-it's; touch hacked \$(touch hacked)  *"
mkdir "./$odd"; cp -a tree/a "./$odd/"
at INT linkat 3 verityctl seal --jobs 1 --meta "$odd.meta" -- "$odd" >out 2>err
is 'a tree of an odd name can be interrupted' $? 130
ok 'and what is proposed be pasted' sh -c "$(resume_command)"
ok 'that tree is sealed' verityctl check --meta "$odd.meta" -- "$odd"
ok 'and nothing else was done' test ! -e hacked
at TERM linkat 10 verityctl seal --jobs 1 $NEW tree >out 2>err
is 'SIGTERM is status 143' $? 143
head -c 30000000 /dev/zero | tr '\0' x >lone
rm -f lone.fsv_meta
strace -f -qq -o log -P "$T/lone" -e trace=fcntl \
	-e inject=fcntl:signal=SIGINT:when=1 verityctl seal lone >out 2>err
is 'a file alone: SIGINT changes nothing' "$? $(cat err)" \
	'130 verityctl: seal: lone: interrupted; nothing was changed'
ok 'nothing is left of it' test ! -e lone.fsv_meta
# Before, the rest was skipped and the status 0.
mkdir one two
echo 1 >one/a; echo 1 >two/a
at INT syncfs 1 verityctl seal one two >out 2>err
is 'SIGINT that comes too late for one operand skips the next' \
	"$? $(ls one/.verity/manifest two/.verity 2>/dev/null)" '130 one/.verity/manifest'

# The order in which all becomes durable.
rm -rf tree/.verity
verityctl seal --quiet $OLD tree >/dev/null
strace -f -y -o log -e trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,linkat \
	verityctl seal --quiet --jobs 1 $NEW tree >/dev/null
# steps: what is in log, in order; the same twice in a row is shown once.
cat >steps.pl <<'EOF2'
while (<>) {
	next unless / = 0$/ && s/^\d+ +//;
	my $last = /.*"([^"]*)"/ ? $1 : "";
	my $step =
		/^syncfs/ ? "syncfs" :
		/^fsync\(\d+<[^>]*\/(t|\.verity)>\)/ ? "fsync-dir" :
		/^fsync/ ? "fsync" :
		$last =~ /^\.verity-tmp/ ? next :
		$last eq "manifest" ? "MANIFEST" :
		/^rename.*\/next[\/>].*\/meta[\/>]/ ? "settle" :
		/fsv_meta"/ ? "sidecar" : "?";
	push @steps, $step unless @steps && $steps[-1] eq $step;
}
print "@steps\n";
EOF2
is 'sidecars, syncfs, fsync, rename, fsync of the folder, and only then the rest' \
	"$(perl steps.pl log)" 'sidecar syncfs fsync MANIFEST fsync-dir settle'
strace -f -y -o log -e trace=fsync,rename,renameat,renameat2,linkat \
	verityctl seal --quiet $NEW lone >/dev/null
strace -f -y -o log2 -e trace=fsync,rename,renameat,renameat2,linkat \
	verityctl seal --quiet $OLD lone >/dev/null
is 'a sidecar is durable before it has its name, and its name after' \
	"$(perl steps.pl log; perl steps.pl log2)" 'fsync sidecar fsync-dir
fsync sidecar fsync-dir'

tap_done
