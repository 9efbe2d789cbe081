#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/deps.sh - install what the project needs and this machine lacks.
#
#   sh tools/deps.sh GROUP...        build, test, bench, arm64, lint or fuzz
#   DRYRUN=1 sh tools/deps.sh ...    only print what would be run
#
# On Debian and its kin through apt-get, as root or through sudo.  With
# nothing missing it does nothing, and needs neither.  Elsewhere it names what
# is wanted, and fails where a command is missing.
set -eu

packages() {
	case $1 in
	build) echo gcc make pkg-config libc6-dev libssl-dev ;;
	test)  echo fsverity cryptsetup-bin openssl perl curl strace jq \
		mandoc util-linux e2fsprogs procps protobuf-compiler ;;
	bench) echo fsverity cryptsetup-bin util-linux g++ libglib2.0-dev \
		libuv1-dev libtbb-dev ;;
	arm64) [ "$native" = arm64 ] || echo gcc-aarch64-linux-gnu \
		libc6-dev-arm64-cross qemu-user-static libssl-dev:arm64 ;;
	lint)  echo clang clang-format clang-tidy cppcheck shellcheck \
		libglib2.0-dev libuv1-dev ;;
	fuzz)  echo clang libclang-rt-dev ;;
	*)     usage "no group '$1'" ;;
	esac
}

commands() {
	case $1 in
	build) echo cc make pkg-config ;;
	test)  echo fsverity veritysetup openssl prove curl strace jq setpriv \
		mkfs.ext4 mandoc ps protoc ;;
	bench) echo fsverity veritysetup taskset c++ ;;
	arm64) [ "$native" = arm64 ] ||
		echo aarch64-linux-gnu-gcc qemu-aarch64-static ;;
	lint)  echo clang clang-format clang-tidy cppcheck shellcheck ;;
	fuzz)  echo clang ;;
	*)     usage "no group '$1'" ;;
	esac
}

die() { echo "deps: $*" >&2; exit 1; }

usage() {
	echo "deps: $*; groups are build test bench arm64 lint fuzz" >&2
	exit 2
}

# each LISTER GROUP...: what the groups list, a line each, none twice.
each() {
	_lister=$1; shift
	for _group; do
		_words=$($_lister "$_group") || exit
		for _word in $_words; do echo "$_word"; done
	done | sort -u
}

# missing PACKAGE...: those that are not installed.  A name without ":ARCH"
# means this machine's own or one for all.
missing() {
	installed=$(dpkg-query -W \
		-f '${db:Status-Status} ${Package}:${Architecture}\n' |
		sed -n 's/^installed //p')
	for _pkg; do
		case $_pkg in
		*:*) _full="-e $_pkg" ;;
		*)   _full="-e $_pkg:$native -e $_pkg:all" ;;
		esac
		# shellcheck disable=SC2086 # one or two patterns
		printf '%s\n' "$installed" | grep -qxF $_full || echo "$_pkg"
	done
}

# run COMMAND...: as root, without standard input; or only shown.
run() {
	[ "$(id -u)" -eq 0 ] || set -- sudo "$@"
	if [ "${DRYRUN-}" = 1 ]; then
		echo "$*"
	else
		"$@" </dev/null
	fi
}

# install PACKAGE...: one update, one install.
install() {
	[ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
		die "missing: $*; run this as root, or install sudo"
	case " $* " in
	*:arm64\ *)
		dpkg --print-foreign-architectures | grep -qx arm64 ||
			run dpkg --add-architecture arm64 ;;
	esac
	run apt-get update -q
	run env DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends "$@"
}

# elsewhere GROUP...: not Debian; say what is wanted and see what there is.
elsewhere() {
	_lack=
	for _cmd in $(each commands "$@"); do
		command -v "$_cmd" >/dev/null || _lack="$_lack $_cmd"
	done
	echo "deps: no apt-get here; as Debian names it, this is wanted:" \
		"$(each packages "$@" | paste -sd' ' -)"
	[ -z "$_lack" ] || die "commands not found:$_lack"
}

[ $# -gt 0 ] || usage 'which group?'
native=$(dpkg --print-architecture 2>/dev/null || uname -m | sed 's/aarch64/arm64/')
for group; do
	packages "$group" >/dev/null
done

if ! command -v apt-get >/dev/null; then
	elsewhere "$@"
	exit 0
fi
# shellcheck disable=SC2046 # package names hold no blanks
set -- $(missing $(each packages "$@"))
[ $# -eq 0 ] || install "$@"
