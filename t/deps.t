#!/bin/sh
# SPDX-License-Identifier: MIT
# make deps: asks apt for just what is missing, and for nothing when all is
# there.  It sees a made-up machine: its PATH holds only what is put there.
. "${0%/*}/lib.sh"

mkdir bin
for tool in cat env grep paste sed sort uname; do
	ln -s "$(command -v "$tool")" bin/
done
sh=$(command -v sh)

# fake PROGRAM SCRIPT
fake() { printf '#!%s\n%s\n' "$sh" "$2" >"bin/$1" && chmod +x "bin/$1"; }

# deps GROUP...: on that machine; whatever would change it goes to log.
deps() {
	rm -f log
	PATH=$T/bin "$sh" "$TOP/tools/deps.sh" "$@"
}

# ran TEXT: what would have changed the machine was just this.
ran() {
	cat log
	[ "$(cat log)" = "$1" ]
}

fake id         'echo "${FAKE_UID-0}"'
fake dpkg-query 'cat installed'
fake apt-get    'echo "apt-get $*" >>log; exit "${FAKE_APT-0}"'
fake dpkg       'case $1 in
--print-architecture) echo amd64 ;;
--print-foreign-architectures) cat foreign ;;
*) echo "dpkg $*" >>log ;;
esac'

for pkg in gcc make pkg-config libc6-dev libssl-dev fsverity cryptsetup-bin \
	openssl perl curl strace jq util-linux e2fsprogs procps mandoc protobuf-compiler clang \
	clang-format clang-tidy cppcheck shellcheck gcc-aarch64-linux-gnu \
	qemu-user-static g++ libglib2.0-dev libuv1-dev libtbb-dev; do
	echo "installed $pkg:amd64"
done >complete
echo 'installed libc6-dev-arm64-cross:all' >>complete
echo 'installed libssl-dev:arm64' >>complete
echo arm64 >foreign
install='apt-get install -q -y --no-install-recommends'

cp complete installed
is 'with all there, nothing is said' \
	"$(FAKE_UID=1000 deps build test bench arm64 lint 2>&1)" ''
ok 'nothing is run, and root is not needed' test ! -e log

sed 's/^installed jq/config-files jq/; /strace/d' complete >installed
is 'a dry run shows the commands' "$(DRYRUN=1 deps test)" "apt-get update -q
env DEBIAN_FRONTEND=noninteractive $install jq strace"
ok 'and runs none' test ! -e log
is 'what another group lacks is left alone' "$(DRYRUN=1 deps build lint)" ''

ok 'what is missing gets installed' deps build test
ok 'by one update and one install' ran "apt-get update -q
$install jq strace"
FAKE_APT=100
export FAKE_APT
ok "apt-get's failure is one of make deps" exits 100 deps test
unset FAKE_APT

FAKE_UID=1000
export FAKE_UID
ok 'with neither root nor sudo it says what to do' \
	fails 1 'missing: jq strace; run this as root' deps test
ok 'and runs nothing' test ! -e log
fake sudo 'echo "sudo $*" >>log'
ok 'a user goes through sudo' deps test
ok 'for all of it' ran "sudo apt-get update -q
sudo env DEBIAN_FRONTEND=noninteractive $install jq strace"
unset FAKE_UID

sed '/libssl-dev:arm64/d' complete >installed
: >foreign
ok "this machine's own library does not stand for ARM64's" deps arm64
ok 'and the architecture is made known first' ran \
	"dpkg --add-architecture arm64
apt-get update -q
$install libssl-dev:arm64"

ok 'an unknown group is a usage error' fails 2 "no group 'tset'" deps tset
ok 'so is none' fails 2 'which group' deps

rm bin/apt-get
ok 'without apt-get a missing command is named' \
	fails 1 'commands not found: cc make pkg-config' deps build
like 'and the packages are' "$(deps build 2>/dev/null)" \
	'gcc libc6-dev libssl-dev make pkg-config$'
for tool in cc make pkg-config; do fake "$tool" ''; done
ok 'with the commands there, nothing more is wanted' deps build

tap_done
