#!/bin/sh
# SPDX-License-Identifier: MIT
# verityctl inspect knows each format by its contents, shows what it says, and
# refuses what is malformed by field, value and limit.
. "${0%/*}/lib.sh"
requires fsverity
requires perl
requires jq
PATH=$PATH:/usr/sbin:/sbin

# shows JQ_FILTER WANT FILE OPTION...: what a field of the JSON is.
shows() {
	_filter=$1 _want=$2; shift 2
	verityctl inspect --json "$@" >json || return
	_got=$(jq -cr "$_filter" json) || return
	[ "$_got" = "$_want" ] || { echo "got $_got"; cat json; return 1; }
}

# sick NAME OFFSET BYTES REGEX: a copy of the file good, changed, is refused.
sick() {
	cp good bad
	overwrite bad "$2" "$3"
	ok "refused: $1" fails 4 "^verityctl: inspect: bad: $4" \
		verityctl inspect bad
}

# cut_to NAME SIZE REGEX: so is one of another size.
cut_to() {
	cp good bad
	truncate -s "$2" bad
	ok "refused: $1" fails 4 "^verityctl: inspect: bad: $3" \
		verityctl inspect bad
}

head -c 600000 /dev/zero >data
salt=00ff10
digest=$(fsverity digest data --salt=$salt --out-merkle-tree=tree \
	--out-descriptor=desc) || bail 'fsverity failed'
digest=${digest%% *}
root=$(perl -e 'read STDIN, $d, 256; print unpack "H64", substr $d, 16' <desc)
levels='[{"level":2,"offset":0,"blocks":1,"size":4096},{"level":1,"offset":4096,"blocks":2,"size":8192}]'

# Descriptors.
cp desc good
ok 'a descriptor is known' shows .format descriptor good
ok 'and its digest' shows .digest "$digest" good
ok 'its root hash' shows .root_hash "$root" good
ok 'its parameters' shows '[.algorithm, .block_size, .salt, .data_size]' \
	"[\"sha256\",4096,\"$salt\",600000]" good
ok 'its levels, root first' shows .levels "$levels" good
ok 'the size of its tree' shows .tree_size 12288 good
ok 'it is not signed' shows .signature '{"type":"none","size":0}' good
overwrite good 4 07000000; printf 1234567 >>good
ok 'a signature goes behind it' shows .signature.size 7 good
ok 'and is not part of the digest' shows .digest "$digest" good
like 'text shows the same' "$(verityctl inspect good)" "^  digest: $digest\$"
like 'by name and format' "$(verityctl inspect good)" \
	'^good: fs-verity descriptor$'
cp desc good
sick 'an unknown algorithm' 1 03 'descriptor.hash_algorithm is 3, must be at most 2'
sick 'a block size too small' 2 08 'descriptor.log_blocksize is 8, must be at least 9'
sick 'a block size of 2^255' 2 ff 'descriptor.log_blocksize is 255, must be'
sick 'a long salt' 3 21 'descriptor.salt_size is 33, must be at most 32'
sick 'a long signature' 4 ffffffff 'descriptor.sig_size is 4294967295, must be at most'
sick 'a signature that is not there' 4 07000000 'descriptor size is 256, must be 263'
sick 'a negative size' 8 ffffffffffffffff \
	'descriptor.data_size is 18446744073709551615, must be at most'
sick 'reserved bytes' 200 01 'descriptor.*must be all zero'
cut_to 'a descriptor cut short' 255 'descriptor size is 255, must be at least 256'
cut_to 'something behind it' 257 'descriptor size is 257, must be 256'

# Sidecars.
{
	perl -e 'print pack "V", 1'
	cat desc
	perl -e 'print pack("VV", 2, 3), "sig"'
} >good
truncate -s 4096 good
cat tree >>good
ok 'a sidecar is known' shows .format sidecar good
ok 'its digest' shows .digest "$digest" good
ok 'its signature' shows .signature '{"type":"raw","size":3}' good
ok 'its levels as they lie in it' shows '[.tree_offset, .levels[].offset]' \
	'[4096,4096,8192]' good
# A version that is none is not known as a sidecar.
sick 'another version' 0 07000000 'not recognised'
sick 'an unknown signature' 260 03000000 'signature type is 3, must be'
sick 'one type too few' 260 00000000 'signature size.* is 3, must be 0'
sick 'a signature without end' 264 ffffffff 'signature size is 4294967295, must be'
cut_to 'a sidecar cut short' 9000 'sidecar size is 9000, must be 16384'
cut_to 'and at its head' 100 'sidecar size is 100, must be at least 268'

# APK signatures, version 4.  idsig NAME=VALUE...: lengths may lie.
idsig() {
	perl - "$@" <<'END'
my %v = (version => 2, alg => 1, lg => 12, salt => '', root => '00' x 32,
	apk => 'ab' x 32, cert => '30' x 700, data => '', key => '30' x 91,
	id => 0x201, sig => '5a' x 71, tree => undef, more => '');
/^(\w+)=(.*)$/s and $v{$1} = $2 for @ARGV;
sub sized { my ($name) = @_; my $b = pack 'H*', $v{$name};
	return pack('V', $v{$name . '_len'} // length $b) . $b }
my $hash = pack('VC', $v{alg}, $v{lg}) . sized('salt') . sized('root');
my $sign = sized('apk') . sized('cert') . sized('data') . sized('key') .
	pack('V', $v{id}) . sized('sig') . pack('H*', $v{more});
print pack('VV', $v{version}, $v{hash_len} // length $hash), $hash,
	pack('V', $v{sign_len} // length $sign), $sign;
if (defined $v{tree}) {
	open my $f, '<', $v{tree} or die; local $/; my $t = <$f>;
	print pack('V', $v{tree_len} // length $t), $t;
}
END
}

# bad_idsig NAME REGEX VALUE...: one that is refused.
bad_idsig() {
	_name=$1 _regex=$2; shift 2
	idsig root="$root" salt=$salt tree=tree "$@" >bad
	ok "refused: $_name" fails 4 "^verityctl: inspect: bad: $_regex" \
		verityctl inspect bad
}

idsig root="$root" salt=$salt tree=tree >good
ok 'an .idsig is known' shows .format idsig good
ok 'its root hash' shows .root_hash "$root" good
ok 'its parameters' shows '[.algorithm, .block_size, .salt]' \
	"[\"sha256\",4096,\"$salt\"]" good
ok 'the length of its certificate' shows .certificate_size 700 good
ok 'its signature' shows .signature \
	'{"type":"ECDSA with SHA-256","id":513,"size":71}' good
ok 'the APK digest' shows '.apk_digest | length' 64 good
ok 'the place and length of its tree' shows '[.tree_size, .tree_offset]' \
	"[12288,$(($(wc -c <good) - 12288))]" good
ok 'without --size it has no digest' shows .digest null good
ok 'with --size it has fs-verity'\''s' shows .digest "$digest" good --size=600000
ok 'another size needs another tree' \
	fails 4 'tree length is 12288, for that --size must be 4096' \
	verityctl inspect good --size=500000
idsig root="$root" salt=$salt >good
ok 'the tree may be left out' shows .tree_size 0 good
ok 'the digest is the same' shows .digest "$digest" good --size=600000
idsig root="$root" more=00112233 id=77 >good
ok 'later versions may add to it' shows .format idsig good
ok 'an unknown signature is one' shows .signature.type unknown good
bad_idsig 'another algorithm' 'hashing_info.hash_algorithm is 2, must be 1' alg=2
bad_idsig 'another block size' 'hashing_info.log2_blocksize is 13, must be 12' lg=13
bad_idsig 'a long salt' 'hashing_info.salt length is 33, must be at most 32' \
	salt="$(printf '%066d' 0)"
bad_idsig 'a salt past the end' \
	'hashing_info.salt length is 4294967295, must be at most' \
	salt_len=4294967295
bad_idsig 'a short root' 'hashing_info.root hash length is 31, must be 32' \
	root="$(printf '%062d' 0)"
bad_idsig 'a short hashing info' 'hashing_info.* must be at' hash_len=9
bad_idsig 'a long one' 'hashing_info' hash_len=60
bad_idsig 'one without end' \
	'hashing_info length is 2147483648, must be at most' hash_len=2147483648
bad_idsig 'a signing info past the end' \
	'signing_info length is 60000, must be at most' sign_len=60000
bad_idsig 'a certificate past the end' \
	'signing_info.certificate length is 60000, must be at most' cert_len=60000
bad_idsig 'a signature past the end' \
	'signing_info.signature length is 99, must be at most' sig_len=99
bad_idsig 'a signing info that ends early' 'signing_info.*4' sign_len=38
bad_idsig 'a tree past the end' 'tree length is 12289, must be 12288' \
	tree_len=12289
bad_idsig 'something behind the tree' 'tree length is 8192, must be 12288' \
	tree_len=8192
idsig root="$root" tree=tree >good
cut_to 'an .idsig cut short' 20 'hashing_info length is'
cut_to 'and shorter' 6 'file size is 6, must be at least 8'
ok '--size is for them only' fails 2 '--size: is for' \
	verityctl inspect desc --size=600000
ok 'and for one' fails 2 '--size: takes one FILE' \
	verityctl inspect good good --size=600000

# dm-verity.
if command -v veritysetup >/dev/null; then
	uuid=01234567-89ab-cdef-0123-456789abcdef
	truncate -s 5000000 disk
	veritysetup format disk good --uuid $uuid --salt $salt >/dev/null ||
		bail 'veritysetup failed'
	ok 'a dm-verity superblock is known' shows .format dm-verity good
	ok 'its UUID' shows .uuid $uuid good
	ok 'its parameters' \
		shows '[.hash_type, .algorithm, .data_block_size, .hash_block_size, .salt]' \
		"[1,\"sha256\",4096,4096,\"$salt\"]" good
	ok 'its data blocks' shows .data_blocks 1220 good
	ok 'its hash area' shows '[.hash_area_offset, .hash_area_size]' \
		"[4096,$(($(wc -c <good) - 4096))]" good
	ok 'its levels, root first' shows '[.levels[].blocks]' '[1,10]' good
	sick 'another version' 8 02 'version is 2, must be 1'
	sick 'an unknown type' 12 02 'hash_type is 2, must be at most 1'
	sick 'an odd block size' 64 01100000 \
		'data_block_size is 4097, must be a power of two'
	sick 'a block size of nothing' 68 00000000 'hash_block_size is 0, must be'
	sick 'a huge one' 68 00000080 'hash_block_size is 2147483648, must be'
	sick 'no data' 72 0000000000000000 'data_blocks is 0, must be at least 1'
	sick 'more data than can be' 72 ffffffffffffffff \
		'data_blocks is 18446744073709551615, must be at most'
	sick 'more data than it has hashes for' 72 00000100 \
		'file size is 49152, .*must be at least'
	sick 'a long salt' 80 ffff 'salt_size is 65535, must be at most 256'
	sick 'an algorithm without end' 32 "$(printf '%064d' 0 | tr 0 6)" \
		"algorithm name's length is 32, must be"
	sick 'no algorithm' 32 00 "algorithm name's length is 0, must be"
	cut_to 'a superblock cut short' 511 'superblock size is 511, must be at least 512'
	overwrite good 32 1b5b6d00
	is 'a name does not speak to the terminal' \
		"$(verityctl inspect good | grep -c 'algorithm: \\x1b\[m')" 1
	for form in '--hash sha512' '--hash sha1' '--format 0' \
		'--hash-block-size 1024 --data-block-size 512'; do
		rm -f good
		# shellcheck disable=SC2086 # several options
		veritysetup format disk good $form >/dev/null || bail "$form"
		ok "sizes with $form" shows '.hash_area_offset + .hash_area_size' \
			"$(wc -c <good)" good
	done
	rm -f good
	veritysetup format disk good --data-blocks 1 >/dev/null
	ok 'one data block has no levels' shows .levels '[]' good
else
	skip 'no veritysetup here'
fi

# Manifests.
printf '%s\n' 'verity-manifest 1' 'serial 3' 'created 2026-01-31T12:00:00Z' \
	'expires 2027-01-31T12:00:00Z' 'algorithm sha256' 'block-size 4096' \
	'' 'dir bin' "$digest bin/tool" '	size 600000' '	exec' \
	'symlink tool' '	target bin/tool' >good
ok 'a manifest is known' shows .format manifest good
ok 'its pin' shows .pin "sha256:$(sha256sum <good | cut -d' ' -f1)" good
ok 'its head' shows '[.serial, .created, .expires, .algorithm]' \
	'[3,"2026-01-31T12:00:00Z","2027-01-31T12:00:00Z","sha256"]' good
ok 'what it lists' shows '[.files, .directories, .symlinks, .bytes]' \
	'[1,1,1,600000]' good
sed 's/^serial 3/serial x/' good >bad
ok 'a bad line is named' fails 4 '^verityctl: inspect: bad:2: "serial" must' \
	verityctl inspect bad
sed 's/^verity-manifest 1/verity-manifest 2/' good >bad
ok 'so is another version' fails 4 'bad:1: manifest version must be 1' \
	verityctl inspect bad

# Anything else.
ok 'another file is not recognised' \
	fails 4 'data: not recognised as fs-verity sidecar, .* or verity manifest' \
	verityctl inspect data
: >empty
ok 'nor an empty one' fails 4 'empty: not recognised' verityctl inspect empty
ok 'a directory is refused' fails 4 '\.: is a directory' verityctl inspect .
ok 'one bad file does not keep the others away' \
	sh -c 'verityctl inspect data good; [ $? -eq 4 ] &&
		verityctl inspect data good | grep -q "^good: "'
ok 'a file name does not break JSON' sh -c 'cp desc "$0" &&
	verityctl inspect --json "$0" | jq -e .digest' "$(printf 'a"\n\377')"

# The CPU.
verityctl inspect --cpu --json >json
ok 'kernels are listed, one for everyone' \
	jq -e '.kernels[] | select(.name == "libcrypto" and .ns_per_kib > 0)' json
ok 'just one is for long runs' \
	jq -e '[.kernels[] | select(.bulk)] | length == 1' json
ok 'each batch size has one' jq -e '[.kernels[].batches] | add == 64' json
ok 'who is not used has a reason, and nobody else' jq -e \
	'all(.kernels[]; has("why_not") == ((.bulk or .batches > 0) | not))' json
off=-avx512,-avx2,-shani,-sha2
VERITY_CPU=$off verityctl inspect --cpu --json >json
ok 'features can be switched off' \
	jq -e 'all(.features[]; . == "no" or startswith("switched off"))' json
is 'then one kernel is left' \
	"$(jq -r '.kernels[] | select(.batches > 0) | .name' json)" libcrypto
like 'text says it too' "$(VERITY_CPU=$off verityctl inspect --cpu)" \
	'^    libcrypto .* long runs, first for 64 of 64 batch sizes$'
ok '--cpu goes with no file' fails 2 '--cpu: goes with no FILE' \
	verityctl inspect --cpu good

tap_done
