#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 300
# verityctl digest says and writes what fsverity digest does, byte for byte.
. "${0%/*}/lib.sh"
requires fsverity
requires openssl

# 64 MiB and a byte that repeat nothing, the same each time.
openssl enc -aes-128-ctr -K 00 -iv 00 -in /dev/zero 2>/dev/null |
	head -c 67108865 >data
[ "$(wc -c <data)" -eq 67108865 ] || bail 'cannot make data'

salts="- 5a 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

# both ARGUMENT...: both programs print the same and exit with 0.
both() {
	fsverity digest "$@" >want || { echo 'fsverity failed'; return 1; }
	verityctl digest "$@" >got || return
	cmp want got
}

# same FILE OPTION...: so, and trees and descriptors are equal too, also when
# the file comes through a pipe.
same() {
	_file=$1; shift
	rm -f want.* got.* pipe.*
	fsverity digest "$@" "$_file" --out-merkle-tree=want.tree \
		--out-descriptor=want.desc >want || return
	verityctl digest "$@" "$_file" --out-merkle-tree=got.tree \
		--out-descriptor=got.desc >got || return
	verityctl digest "$@" - --out-merkle-tree=pipe.tree \
		--out-descriptor=pipe.desc <"$_file" >pipe || return
	cmp want got && cmp want.tree got.tree && cmp want.desc got.desc &&
		cmp want.tree pipe.tree && cmp want.desc pipe.desc &&
		[ "$(cut -d' ' -f1 <want)" = "$(cut -d' ' -f1 <pipe)" ]
}

# sizes BLOCK_SIZE: those at which a tree may get another block or level.
#
# The last one is for blocks up to 8 KiB only: of 64 KiB it is 1 GiB, which
# takes fsverity up to 5 s each time.  128 digests or fewer fill the hash blocks
# up to 8 KiB of SHA-512 and 4 KiB of SHA-256; larger ones hold more, so that
# there it is no edge of the tree.
sizes() {
	echo 0 1 $(($1 - 1)) "$1" $(($1 + 1)) $(($1 * 128)) $(($1 * 128 + 1))
	[ "$1" -gt 8192 ] || echo $(($1 * 128 * 128 + 1))
}

# shape ALG BLOCK_SIZE SALT: files whose trees have every edge.  What goes
# beyond the data is a hole.
shape() {
	_alg=$1 _bs=$2 _salt=$3
	for _size in $(sizes "$_bs"); do
		head -c "$_size" data >sized && truncate -s "$_size" sized || return
		set -- sized --hash-alg="$_alg" --block-size="$_bs"
		[ "$_salt" = - ] || set -- "$@" --salt="$_salt"
		same "$@" || { echo "differs at $_size bytes"; return 1; }
	done
}

for alg in sha256 sha512; do
	for bs in 512 1024 2048 4096 8192 16384 32768 65536; do
		for salt in $salts; do
			ok "$alg, $bs bytes, $((${#salt} / 2)) of salt" \
				shape $alg $bs "$salt"
		done
	done
done
head -c $((1024 * 128 * 128 + 1)) data >deep
ok 'on one thread it is the same' sh -c 'fsverity digest data >want &&
	verityctl digest --jobs=1 data | cmp want -'

# Holes, which are not read.
truncate -s 50000000 sparse
printf x | dd of=sparse bs=1 seek=30000000 conv=notrunc 2>/dev/null
truncate -s 80000001 empty
ok 'a file with holes' same sparse
ok 'a file that is one hole' same empty --salt=77
ok 'and with small blocks' same sparse --block-size=512

# What is printed.
printf hello >a; : >b; head -c 5000 data >c
for opts in '' --compact --for-builtin-sig '--compact --for-builtin-sig' \
	'--hash-alg=sha512 --for-builtin-sig' '--block-size=1024 --salt=' \
	'--hash-alg sha512 --block-size 1024 --salt aabb --compact'; do
	# shellcheck disable=SC2086 # several options
	ok "several files, ${opts:-no options}" both a b c $opts
done
ok 'options may stand between files' both a --compact b

# Many files: small ones side by side, large ones in their midst.
mkdir many
for i in 0 1 2 3 4 5 6 7 8 9; do
	for j in 0 1 2 3 4 5 6 7 8 9; do
		head -c $((i * 10000 + j)) data >many/$i$j
	done
done
ok 'a hundred files come in the order given' \
	both many/* data many/[0-4]* deep many/9*
ok 'a file is hashed as often as it is named' both a a a
head -c 5 data >"$(printf 'odd\n\377name')"
ok 'names are printed as they are' both "$(printf 'odd\n\377name')"

# JSON.
if command -v jq >/dev/null; then
	verityctl digest --json a c --salt=ab --block-size=1024 >json
	ok '--json is JSON, an object a line' test \
		"$(jq -s length json)" = "$(wc -l <json)"
	fsverity digest a c --salt=ab --block-size=1024 >want
	jq -r '"\(.digest) \(.path)"' json >got
	ok 'and has the digests and paths' cmp want got
	is 'and the parameters' "$(jq -c 'del(.digest, .path)' json)" \
		'{"algorithm":"sha256","block_size":1024,"salt":"ab","size":5}
{"algorithm":"sha256","block_size":1024,"salt":"ab","size":5000}'
	ok 'a name that is no UTF-8 does not break it' \
		sh -c 'verityctl digest --json odd* | jq -e .size'
else
	skip 'no jq here'
fi
ok '--json does not go with --compact' fails 2 'does not go with' \
	verityctl digest --json --compact a

# Where trees go.
fsverity digest c --out-merkle-tree=want.tree >want
mkfifo fifo
spawn sh -c 'timeout 20 cat fifo >from-fifo'
ok 'a tree goes into a FIFO' verityctl digest c --out-merkle-tree=fifo
wait $!
ok 'root level first' cmp want.tree from-fifo
ok 'a tree goes to standard output' \
	sh -c 'verityctl digest c --out-merkle-tree=/dev/stdout >both-out'
ok 'before what is printed' sh -c 'cat want.tree want | cmp - both-out'
ln -s target link
ok 'a tree goes through a symlink' verityctl digest c --out-merkle-tree=link
ok 'which stays one' test -L link
ok 'and its target has the tree' cmp want.tree target
: >mode; chmod 600 mode
ok 'an output file is replaced' verityctl digest c --out-descriptor=mode
is 'and keeps its mode' "$(stat -c %a mode)" 600
is 'a new one has the usual mode' "$(stat -c %a target)" 644

# Nothing is lost when it fails.
mkdir out; cd out || bail 'cannot enter out'
echo precious >tree; echo precious >desc
ok 'a missing input is named' fails 4 'digest: ../none: cannot open: No such' \
	verityctl digest ../none --out-merkle-tree=tree --out-descriptor=desc
ok 'a tree that does not fit is an error' fails 4 'tree: cannot|cannot hash' \
	sh -c 'ulimit -f 4; exec verityctl digest ../deep \
		--out-merkle-tree=tree --out-descriptor=desc'
ok 'and from a pipe' fails 4 'cannot hash' \
	sh -c 'ulimit -f 4; exec verityctl digest - \
		--out-merkle-tree=tree --out-descriptor=desc <../deep'
# reads PID: it is verityctl, catches SIGTERM (bit 14), and waits for input.
reads() {
	awk '$1 == "Name:" && $2 == "verityctl" { n++ }
		$1 == "State:" && $2 == "S" { n++ }
		$1 == "SigCgt:" && $2 ~ /[4-7c-f]...$/ { n++ }
		END { exit n < 3 }' "/proc/$1/status"
}
mkfifo ../never
spawn sh -c 'exec 3<>../never; exec sleep 60 3<&3'
sleeper=$!
verityctl digest - --out-merkle-tree=tree <../never 2>../err &
pid=$!
for _ in $(seq 1000); do
	! reads $pid || break
	sleep 0.02
done
kill -TERM $pid
wait $pid
is 'SIGTERM ends it with status 143' $? 143
like 'and a word' "$(cat ../err)" 'digest: interrupted'
stop $sleeper
is 'the files are what they were' "$(cat tree desc)" 'precious
precious'
is 'and no others were left' "$(ls -A)" 'desc
tree'
cd .. || bail 'cannot leave out'
ok 'the input is no output' fails 4 'is the input' \
	verityctl digest c --out-descriptor=./c
is 'and is what it was' "$(wc -c <c)" 5000
ok 'two outputs are not one' fails 2 "is also the tree's file" \
	verityctl digest c --out-merkle-tree=x --out-descriptor=x
ok 'outputs are for one file' fails 2 'takes one FILE only, there are 2' \
	verityctl digest a c --out-descriptor=x
ok 'a directory is no output' fails 4 'out: cannot write: Is a directory' \
	verityctl digest a --out-descriptor=out
ok 'a missing directory is named' fails 4 'no/x: cannot write: No such' \
	verityctl digest a --out-descriptor=no/x

# What is no file.
ok 'a directory is refused' fails 4 'out: is a directory, must be a regular' \
	verityctl digest out
ok 'so is a FIFO, at once' fails 4 'fifo: is a FIFO' verityctl digest fifo
ok 'and a device' fails 4 'is a device' verityctl digest /dev/zero
verityctl digest a none out c >got 2>err
is 'the other files are hashed, the status is 4' $? 4
ok 'and are printed' sh -c 'fsverity digest a c | cmp - got'
is 'each failure is a line' "$(wc -l <err)" 2
is 'messages are not mixed up with progress on a pipe' \
	"$(verityctl digest data 2>&1 >/dev/null)" ''

tap_done
