#!/bin/sh
# SPDX-License-Identifier: MIT
# time-limit: 120
# Malformed metadata, a rule each: one line that names file, field, value and
# limit, the right status, nothing on standard output, nothing written.
. "${0%/*}/lib.sh"
requires perl

SOURCE_DATE_EPOCH=1700000000
export SOURCE_DATE_EPOCH

# put OFFSET HEX: write these bytes into the sidecar at hand.
put() { overwrite "$sidecar" "$@"; }
cut() { truncate -s "$1" "$sidecar"; }

# refused STATUS REGEX COMMAND...: so, in one line, with no output.
refused() {
	_want=$1 _regex=$2; shift 2
	timeout 20 verityctl "$@" >"$T/out" 2>"$T/err"
	_got=$?
	[ $_got -eq "$_want" ] || echo "status $_got, want $_want"
	[ "$(wc -l <"$T/err")" -eq 1 ] || echo 'not one line'
	grep -qE -e "^verityctl: $1: $_regex\$" "$T/err" ||
		echo "does not match: $_regex"
	[ ! -s "$T/out" ] || { echo "standard output: $(head -c 200 "$T/out")"; }
}

# listing DIR: all that writing something would change.
listing() { find "$1" -printf '%P %y %s %m %T@ %C@\n' | sort; }

# try NAME STATUS REGEX DIR FILE COMMAND...: each command refuses the file, and
# nothing in DIR changes.
try() {
	_name=$1 _status=$2 _re=$3 _dir=$4 _file=$5; shift 5
	listing "$_dir" >before
	{
		for _cmd; do refused "$_status" "$_re" "$_cmd" --quiet "$_file"; done
		listing "$_dir" >after
		diff before after || echo 'something was written'
	} >log 2>&1
	[ ! -s log ] || cat err >>log
	ok "$_name" test ! -s log
	[ ! -s log ] || diag "$(cat log)"
}

mkdir w
perl -e 'print "a" x 20000' >w/f
printf small >w/s
: >w/e
for f in f s e; do verityctl seal --quiet w/$f >/dev/null; cp w/$f.fsv_meta $f.good; done

# Sidecars: of f, five blocks and one hash block; s, of one block; e, empty.
# name|file|how to make it|what is said of it
while IFS='|' read -r name file how said; do
	sidecar=w/$file.fsv_meta
	cp "$file.good" "$sidecar"
	eval "$how"
	try "$name" 4 "w/$file\\.fsv_meta: $said" w "w/$file" check cat
	rm -rf "$sidecar"
done <<'END'
no byte|f|cut 0|sidecar size is 0, must be at least 268
a byte|f|cut 1|sidecar size is 1, must be at least 268
a head that is cut|f|cut 267|sidecar size is 267, must be at least 268
a head alone|f|cut 268|sidecar size is 268, must be 8192
a head and padding alone|f|cut 4096|sidecar size is 4096, must be 8192
a tree that is cut|f|cut 8191|sidecar size is 8191, must be 8192
a tree and a byte|f|cut 8193|sidecar size is 8193, must be 8192
another block|f|cut 12288|sidecar size is 12288, must be 8192
1 TiB of it|f|cut 1T|sidecar size is 1099511627776, must be 8192
version 0|f|put 0 00|version is 0, must be 1
version 2|f|put 0 02|version is 2, must be 1
the last version|f|put 0 ffffffff|version is 4294967295, must be 1
a version in network order|f|put 0 00000001|version is 16777216, must be 1
nothing but zeros|f|cut 0; cut 8192|version is 0, must be 1
nothing but ones|f|perl -e 'print "\377" x 8192' >$sidecar|version is 4294967295, must be 1
some text|f|seq 2000 >$sidecar|version is 171051569, must be 1
another descriptor version|f|put 4 00|descriptor\.version is 0, must be 1
a later one|f|put 4 02|descriptor\.version is 2, must be 1
no algorithm|f|put 5 00|descriptor\.hash_algorithm is 0, must be at least 1
an unknown one|f|put 5 03|descriptor\.hash_algorithm is 3, must be at most 2
the last one|f|put 5 ff|descriptor\.hash_algorithm is 255, must be at most 2
blocks of a byte|f|put 6 00|descriptor\.log_blocksize is 0, must be at least 9
blocks of 256 bytes|f|put 6 08|descriptor\.log_blocksize is 8, must be at least 9
blocks of 128 KiB|f|put 6 11|descriptor\.log_blocksize is 17, must be at most 16
a shift by 64|f|put 6 40|descriptor\.log_blocksize is 64, must be at most 16
the largest shift|f|put 6 ff|descriptor\.log_blocksize is 255, must be at most 16
smaller blocks than the tree is for|f|put 6 0a|sidecar size is 8192, must be 5120
larger ones|f|put 6 10|sidecar size is 8192, must be 268
a salt of 33 bytes|f|put 7 21|descriptor\.salt_size is 33, must be at most 32
one of 255|f|put 7 ff|descriptor\.salt_size is 255, must be at most 32
a descriptor that says it is signed|f|put 8 05|descriptor\.sig_size is 5, must be 0
one of too large a signature|f|put 8 013f|descriptor\.sig_size is 16129, must be at most 16128
of the largest|f|put 8 ffffffff|descriptor\.sig_size is 4294967295, must be at most 16128
a size of 2^63|f|put 12 0000000000000080|descriptor\.data_size is 9223372036854775808, must be at most 9223372036854775807
a size of 2^64 - 1|f|put 12 ffffffffffffffff|descriptor\.data_size is 18446744073709551615, must be at most 9223372036854775807
a size with a tree too high|f|put 6 09; put 12 ffffffffffffff7f|tree levels is 9, must be at most 8
a size with a tree too large|f|put 5 0209; put 12 ffffffffffffff7f|tree levels is 9, must be at most 8
a size the tree is too small for|f|put 12 000000000100|sidecar size is 8192, must be 33824768
by a byte|f|put 12 0100080000000000|sidecar size is 8192, must be 16384
one it is too large for|f|put 12 0010000000000000|sidecar size is 8192, must be 268
no bytes, but a root|f|put 12 0000000000000000; put 20 07|descriptor\.root_hash of an empty file is 7, must be all zero; first other byte is at 0
no bytes, but a tree|f|put 12 0000000000000000; put 20 0000000000000000000000000000000000000000000000000000000000000000|sidecar size is 8192, must be 268
a byte behind the root|f|put 52 01|descriptor\.root_hash padding is 1, must be all zero; first other byte is at 48
the last of these|f|put 83 ff|descriptor\.root_hash padding is 255, must be all zero; first other byte is at 79
a salt of no size|f|put 84 01|descriptor\.salt padding is 1, must be all zero; first other byte is at 80
one longer than its size|f|put 7 02; put 84 010203|descriptor\.salt padding is 3, must be all zero; first other byte is at 82
a byte behind the longest|f|put 7 1f; put 115 80|descriptor\.salt padding is 128, must be all zero; first other byte is at 111
the first reserved byte|f|put 116 01|descriptor\.reserved is 1, must be all zero; first other byte is at 112
one in the middle|f|put 200 02|descriptor\.reserved is 2, must be all zero; first other byte is at 196
the last one|f|put 259 03|descriptor\.reserved is 3, must be all zero; first other byte is at 255
an unknown type of signature|f|put 260 03; put 264 01|signature type is 3, must be at most 2
the last type|f|put 260 ffffffff|signature type is 4294967295, must be at most 2
a signature of no type|f|put 264 0a|signature size without a type is 10, must be 0
a type and no signature|f|put 260 01|signature size is 0, must be at least 1
a raw one, too|f|put 260 02|signature size is 0, must be at least 1
a signature too large|f|put 260 01; put 264 013f|signature size is 16129, must be at most 16128
as large as can be said|f|put 260 01; put 264 ffffffff|signature size is 4294967295, must be at most 16128
one that moves the tree|f|put 260 01; put 264 a00f|sidecar size is 8192, must be 12288
one of another size than the descriptor has|f|put 8 0b; put 260 01; put 264 0a|descriptor\.sig_size is 11, must be 10
one block, and a byte|s|cut 269|sidecar size is 269, must be 268
one block, and a tree|s|cut 8192|sidecar size is 8192, must be 268
one block, and a signature that is cut|s|put 260 01; put 264 05; cut 272|sidecar size is 272, must be 273
one block that is said to be two|s|put 12 0110|sidecar size is 268, must be 8192
an empty file with a root|e|put 51 09|descriptor\.root_hash of an empty file is 9, must be all zero; first other byte is at 31
an empty file with a byte behind the root|e|put 52 09|descriptor\.root_hash padding is 9, must be all zero; first other byte is at 48
an empty file with a tree|e|cut 8192|sidecar size is 8192, must be 268
a folder|f|rm $sidecar; mkdir $sidecar|file type is 4, must be 8
a FIFO|f|rm $sidecar; mkfifo $sidecar|file type is 1, must be 8
END
is 'a socket is status 4, too' "$(perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(
	Local => "w/f.fsv_meta", Listen => 1) or die'
	for cmd in check cat; do verityctl $cmd w/f 2>/dev/null; echo $?; done)" '4
4'
rm w/f.fsv_meta
# With the digest known, what leads elsewhere is not trusted, malformed or not.
digest=$(verityctl digest w/f); digest=${digest%% *}
for how in 'put 4 02' 'put 12 ff' 'put 116 01' 'put 5 09'; do
	cp f.good w/f.fsv_meta; sidecar=w/f.fsv_meta
	eval "$how"
	for cmd in check cat; do
		is "$cmd: $how, pinned, is status 3, in one line" "$(
			verityctl $cmd --pin="$digest" w/f 2>err; echo $?; wc -l <err)" '3
1'
	done
done
rm w/f.fsv_meta

# Manifests.
mkdir -p m/d/sub
perl -e 'print "b" x 20000' >m/d/f
echo tool >m/d/tool; chmod +x m/d/tool
echo x >m/d/sub/x; ln -s d/f m/link
touch -d '2020-01-01 UTC' m/d/f m/d/tool m/d/sub/x
verityctl seal --quiet --sha256 --salt=0a0b m >/dev/null
sed 's/^created.*/&\nexpires 2999-01-01T00:00:00Z/' m/.verity/manifest >good
cp good m/.verity/manifest
ok 'the manifest that is spoilt here is a good one' verityctl check m

# line REGEX: the number of the line that matches.
line() { grep -nE -m 1 -e "$1" good | cut_colon; }
cut_colon() { sed 's/:.*//'; }
long=$(perl -e 'print "n" x 256')
deep=$(perl -e 'print "n/" x 2048')
far=$(perl -e 'print "n" x 4096')
hex=$(printf '%064d' 0)
export long deep far hex
# name|the line that is named: a number, or a regex for the good one's, with
# +N|a Perl program for the whole text in $_|the rule
while IFS='|' read -r name at how rule; do
	perl -0777 -pe "$how" good >m/.verity/manifest
	case $at in
	[0-9]*) number=$at ;;
	*+[0-9]) number=$(($(line "${at%+*}") + ${at##*+})) ;;
	*) number=$(line "$at") ;;
	esac
	try "$name" 4 "m/\\.verity/manifest:$number: $rule" m m check
	try "$name, for a file in it" 4 "(/.*/)?m/\\.verity/manifest:$number: $rule" m m/d/f check cat
done <<'END'
no byte|1|$_ = ""|must end with a newline
a NUL|^algorithm|s/sha256\n/sha\x{0}256\n/|has a NUL byte
no newline at the end|12|s/\n\tmtime.*\z//s|must end with a newline
lines that end as on DOS|1|s/\n/\r\n/g|manifest version must be 1
another format|1|s/verity-manifest/some-manifest/|is not a verity manifest
a mark before the first byte|1|s/^/\xef\xbb\xbf/|is not a verity manifest
an empty first line|1|s/^/\n/|is not a verity manifest
version 0|1|s/manifest 1/manifest 0/|manifest version must be 1
version 2|1|s/manifest 1/manifest 2/|manifest version must be 1
a version with more|1|s/manifest 1/manifest 1 /|manifest version must be 1
no serial|2|s/serial.*\n//|"serial" must be a number
an empty one|2|s/serial 1/serial /|"serial" must be a number
a negative one|2|s/serial 1/serial -1/|"serial" must be a number
one with a leading zero|2|s/serial 1/serial 01/|"serial" must be a number
one with a sign|2|s/serial 1/serial +1/|"serial" must be a number
one of 2^64|2|s/serial 1/serial 18446744073709551616/|"serial" must be a number
one in hex|2|s/serial 1/serial 0x1/|"serial" must be a number
two blanks|2|s/serial 1/serial  1/|"serial" must be a number
two serials|3|s/serial 1\n/$&$&/|"created" must be a UTC time
no time|3|s/created.*\n//|"created" must be a UTC time
a day that is none|3|s/2023-11-14/2023-02-30/|"created" must be a UTC time
a month that is none|3|s/2023-11-14/2023-13-14/|"created" must be a UTC time
a time zone|3|s/:20Z/:20+01:00/|"created" must be a UTC time
no Z|3|s/:20Z/:20/|"created" must be a UTC time
a fraction|3|s/:20Z/:20.5Z/|"created" must be a UTC time
a short year|3|s/2023-/23-/|"created" must be a UTC time
a year of five digits|3|s/2023-/12023-/|"created" must be a UTC time
a blank for the T|3|s/14T22/14 22/|"created" must be a UTC time
the 24th hour|3|s/T22/T24/|"created" must be a UTC time
a malformed end|4|s/2999-01-01/2999-1-1/|"expires" must be a UTC time
an end before the beginning|4|s/2999/1999/|"expires" must be after "created"
one at the beginning|4|s/2999-01-01T00:00:00Z/2023-11-14T22:13:20Z/|"expires" must be after "created"
an end at the epoch, which would be none|4|s/2999-01-01/1970-01-01/; s/2023-11-14T22/1969-11-14T22/|"expires" must be after 1970
an unknown key|5|s/algorithm/colour red\nalgorithm/|"algorithm" must be sha256 or sha512
keys in another order|5|s/(expires.*\n)(algorithm.*\n)/$2$1/|"block-size" must be .*512 to 65536
no algorithm|^algorithm|s/algorithm.*\n//|"algorithm" must be sha256 or sha512
an unknown one|^algorithm|s/algorithm sha256/algorithm md5/|"algorithm" must be sha256 or sha512
capitals|^algorithm|s/algorithm sha256/algorithm SHA256/|"algorithm" must be sha256 or sha512
no block size|^block-size|s/block-size.*\n//|"block-size" must be .*512 to 65536
one of 256|^block-size|s/4096/256/|"block-size" must be .*512 to 65536
one of 128 KiB|^block-size|s/4096/131072/|"block-size" must be .*512 to 65536
one that is no power of two|^block-size|s/4096/4095/|"block-size" must be .*power of two.*
one of 2^32 + 4096|^block-size|s/4096/4294971392/|"block-size" must be .*512 to 65536
a unit|^block-size|s/4096/4K/|"block-size" must be .*512 to 65536
a salt of half a byte|^salt|s/0a0b/0a0/|"salt" must be 1 to 32 bytes in hex
none of it|^salt|s/0a0b//|"salt" must be 1 to 32 bytes in hex
one of 33 bytes|^salt|s/0a0b/"0a" x 33/e|"salt" must be 1 to 32 bytes in hex
one that is not hex|^salt|s/0a0b/0a0g/|"salt" must be 1 to 32 bytes in hex
one in capitals|^salt|s/0a0b/0A0B/|"salt" must be 1 to 32 bytes in hex
two salts|^salt+1|s/salt.*\n/$&$&/|the head must end with an empty line
no empty line|8|s/\n\n/\n/|the head must end with an empty line
a blank in it|8|s/\n\n/\n \n/|the head must end with an empty line
a head alone|7|s/\nsalt.*/\n/s|the head must end with an empty line
an empty line between entries|^dir d$+1|s/dir d\n/$&\n/|entry is neither dir, symlink nor ALG:HEX
one at the end|26|s/\z/\n/|entry is neither dir, symlink nor ALG:HEX
a comment|^dir d$+1|s/dir d\n/$&# comment\n/|entry is neither dir, symlink nor ALG:HEX
an unknown kind|^dir d$|s/dir d\n/fifo d\n/|entry is neither dir, symlink nor ALG:HEX
a digest of another algorithm|d/f$|s/sha256:(\S+) d\/f/sha512:$1$1 d\/f/|entry is neither dir, symlink nor ALG:HEX
no algorithm before it|d/f$|s/sha256:(\S+) d\/f/$1 d\/f/|entry is neither dir, symlink nor ALG:HEX
a digest that is too short|d/f$|s/\S( d\/f)/$1/|digest has the wrong length or digits
one that is too long|d/f$|s/\S( d\/f)/00$1/|digest has the wrong length or digits
one that is not hex|d/f$|s/\S( d\/f)/g$1/|digest has the wrong length or digits
one in capitals|d/f$|s/sha256:\S+( d\/f)/"sha256:" . "A" x 64 . $1/e|digest has the wrong length or digits
a digest and no path|d/f$|s/(sha256:\S+) d\/f\n/$1\n/|digest has the wrong length or digits
an empty path|d/f$|s/ d\/f\n/ \n/|path is empty
an absolute path|^dir d$|s/dir d\n/dir \/d\n/|path has an empty component
a slash at its end|^dir d$|s/dir d\n/dir d\/\n/|path has an empty component
two slashes|d/f$|s/ d\/f\n/ d\/\/f\n/|path has an empty component
a way up|d/f$|s/ d\/f\n/ d\/..\/f\n/|path has a component "\." or "\.\."
nothing but it|^dir d$|s/dir d\n/dir ..\n/|path has a component "\." or "\.\."
a way to nowhere|d/f$|s/ d\/f\n/ d\/.\/f\n/|path has a component "\." or "\.\."
a component of 256 bytes|d/f$|s/ d\/f\n/ d\/$ENV{long}\n/|path has a component of over 255 bytes
a path of 4096 bytes|^dir d$|s/dir d\n/dir $ENV{deep}\n/|path is longer than 4095 bytes
paths out of order|^symlink+2|s/(symlink.*\n.*\n)/$1dir c\n/|paths must be sorted and unique
by signed bytes|^symlink+1|s/(symlink.*\n.*\n)/dir \xff\n$1/|paths must be sorted and unique
a path twice|^dir d$+1|s/dir d\n/dir d\ndir d\n/|paths must be sorted and unique
a file and a folder of a name|d/f$+4|s/\ndir d\/sub/\ndir d\/f\ndir d\/sub/|paths must be sorted and unique
no folder above|^dir d$|s/dir d\n//|path is not under a dir entry
a file above|d/tool$+5|s/(d\/tool\n(?:\t.*\n)+)/$1dir d\/tool\/x\n/|path is not under a dir entry
a symlink above|26|s/\z/dir link\/x\n/|path is not under a dir entry
an unknown escape|^dir d$|s/dir d\n/dir d\\x\n/|path is not escaped as it must be
half an escape|^dir d$|s/dir d\n/dir d\\\n/|path is not escaped as it must be
a TAB in a path|^dir d$|s/dir d\n/dir d\t\n/|path is not escaped as it must be
a CR in it|d/f$|s/ d\/f\n/ d\/f\r\n/|path is not escaped as it must be
no size|d/f$+1|s/\tsize 20000\n//|a file needs a "size" below 2\^63
no attribute at all|d/f$+1|s/(d\/f\n)(?:\t.*\n)+/$1/|a file needs a "size" below 2\^63
an empty size|d/f$+1|s/size 20000/size /|a file needs a "size" below 2\^63
a negative one|d/f$+1|s/size 20000/size -1/|a file needs a "size" below 2\^63
one of 2^63|d/f$+1|s/size 20000/size 9223372036854775808/|a file needs a "size" below 2\^63
one of 2^64 + 1|d/f$+1|s/size 20000/size 18446744073709551617/|a file needs a "size" below 2\^63
a leading zero|d/f$+1|s/size 20000/size 020000/|a file needs a "size" below 2\^63
blanks for the TAB|d/f$+1|s/\tsize 20000/        size 20000/|a file needs a "size" below 2\^63
exec before the size|d/tool$+1|s/(\tsize 5\n)(\texec\n)/$2$1/|a file needs a "size" below 2\^63
exec with a value|d/tool$+2|s/\texec\n/\texec 1\n/|entry is neither dir, symlink nor ALG:HEX
exec twice|d/tool$+3|s/\texec\n/$&$&/|entry is neither dir, symlink nor ALG:HEX
a short SHA-256|d/f$+2|s/(size 20000\n\tsha256 .*).\n/$1\n/|"sha256" must be 64 hex digits
one that is not hex|d/f$+2|s/(size 20000\n\tsha256 )./$1x/|"sha256" must be 64 hex digits
one in capitals|d/f$+2|s/(size 20000\n\tsha256 ).*/$1 . "A" x 64/e|"sha256" must be 64 hex digits
SHA-256 after the time|d/f$+3|s/(size 20000\n)(\tsha256.*\n)(\tmtime.*\n)/$1$3$2/|entry is neither dir, symlink nor ALG:HEX
a time without a fraction|d/f$+3|s/(\tmtime \d+)\S+/$1/|"mtime" must be SECONDS\.NNNNNNNNN
a fraction of 8 digits|d/f$+3|s/(\tmtime \d+\.\d{8})\d/$1/|"mtime" must be SECONDS\.NNNNNNNNN
one of 10|d/f$+3|s/(\tmtime \d+\.\d{9})/${1}0/|"mtime" must be SECONDS\.NNNNNNNNN
a minus zero|d/f$+3|s/(\tmtime )\d+/$1-0/|"mtime" must be SECONDS\.NNNNNNNNN
a plus|d/f$+3|s/(\tmtime )/$1+/|"mtime" must be SECONDS\.NNNNNNNNN
a time of 2^63|d/f$+3|s/(\tmtime )\d+/${1}9223372036854775808/|"mtime" must be SECONDS\.NNNNNNNNN
one before all time|d/f$+3|s/(\tmtime )\d+/${1}-9223372036854775809/|"mtime" must be SECONDS\.NNNNNNNNN
a time twice|d/f$+4|s/\tmtime.*\n/$&$&/|entry is neither dir, symlink nor ALG:HEX
an unknown attribute|d/f$+4|s/(\tmtime.*\n)/$1\towner 0\n/|entry is neither dir, symlink nor ALG:HEX
a folder with a size|^dir d$+1|s/dir d\n/$&\tsize 0\n/|entry is neither dir, symlink nor ALG:HEX
a symlink without a target|25|s/(symlink link\n).*/$1dir m\n/s|a symlink needs a "target"
an empty target|^symlink+1|s/\ttarget .*\n/\ttarget \n/|a symlink needs a "target"
one with an unknown escape|^symlink+1|s/\ttarget .*\n/\ttarget \\0\n/|target is not escaped as it must be
one of 4096 bytes|^symlink+1|s/\ttarget .*\n/\ttarget $ENV{far}\n/|target is longer than 4095 bytes
a symlink with a size|26|s/\z/\tsize 3\n/|entry is neither dir, symlink nor ALG:HEX
END
total=$_n
ok 'these are more than 60' test "$total" -gt 60

# What is no text to be parsed.
while IFS='|' read -r name how said; do
	rm -rf m/.verity/manifest
	eval "$how"
	try "$name" 4 "m/\\.verity/manifest: $said" m m check
	rm -rf m/.verity/manifest
done <<'END'
a manifest of over 1 GiB|truncate -s 1073741825 m/.verity/manifest|read: too large
a folder|mkdir m/.verity/manifest|is not a regular file
a FIFO|mkfifo m/.verity/manifest|is not a regular file
a symlink to a good one|ln -s ../../good m/.verity/manifest|open: a symbolic link.*
END

# The same text, pinned, is refused by seal, too, and nothing is lost.
perl -pe 's/^serial.*/serial 01/' good >m/.verity/manifest
pin=sha256:$(sha256sum <m/.verity/manifest | sed 's/ .*//')
listing m >before
is 'seal refuses to go on from a malformed manifest' "$(
	verityctl seal --pin="$pin" m 2>&1; echo $?)" \
	'verityctl: seal: m/.verity/manifest:2: "serial" must be a number
4'
listing m >after
ok 'and writes nothing' cmp before after

tap_done
