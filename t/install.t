#!/bin/sh
# SPDX-License-Identifier: MIT
# make install: a program is built against what it put there, in each way that
# a user has, and make uninstall takes all of it away.
. "${0%/*}/lib.sh"

[ "$B" = "$TOP/build/none" ] || skip_all 'only what a plain build made is installed'

prefix=/opt/verity
at=$T/root$prefix
ok 'make install works in an empty DESTDIR' \
	make -C "$TOP" install DESTDIR="$T/root" PREFIX=$prefix LIBDIR=$prefix/lib
version=$(verityctl --version 2>/dev/null | sed -n '1s/.* //p')

find root ! -type d -printf '%P %m %l\n' | sed 's/ 777 / -> /; s/ $//' |
	sort >have
sed "s|^|${prefix#/}/|" >want <<-END
	bin/verityctl 755
	include/verity.h 644
	lib/libverity.a 644
	lib/libverity.so -> libverity.so.0
	lib/libverity.so.$version 755
	lib/libverity.so.0 -> libverity.so.$version
	lib/pkgconfig/verity.pc 644
	share/man/man1/verityctl.1 644
	share/man/man3/verity.3 644
	share/man/man5/verity-manifest.5 644
END
sort -o want want
ok 'everything lies in its place, and nothing else' diff want have

PKG_CONFIG_PATH=$at/lib/pkgconfig
PKG_CONFIG_SYSROOT_DIR=$T/root
LD_LIBRARY_PATH=$at/lib
export PKG_CONFIG_PATH PKG_CONFIG_SYSROOT_DIR LD_LIBRARY_PATH
is 'pkg-config knows the version that verityctl shows' \
	"$(pkg-config --modversion verity)" "$version"

# build OUTPUT LIBRARY...: as a user would, with no flags of ours.
build() {
	_out=$1; shift
	# shellcheck disable=SC2046 # flags are words
	cc -Wall -Wextra -Werror -o "$_out" "$TOP/t/example.c" \
		$(pkg-config --cflags verity) "$@"
}
# shellcheck disable=SC2046 # flags are words
ok 'a program builds against the shared library' \
	build dynamic $(pkg-config --libs verity)
like 'by the name that keeps working' "$(ldd dynamic)" \
	"libverity\\.so\\.0 => $at/lib/"
# shellcheck disable=SC2046 # flags are words
ok 'a program builds against the archive' build static \
	$(pkg-config --static --libs verity | sed 's/-lverity/-l:libverity.a/')

seq 100000 >file
ok 'the installed verityctl seals a file' "$at/bin/verityctl" seal file
for how in dynamic static; do
	ok "the $how program reads it" sh -c "./$how file | cmp - file"
done
printf x | dd of=file bs=1 seek=300000 conv=notrunc 2>/dev/null
for how in dynamic static; do
	ok "the $how program refuses a damaged block" \
		fails 1 'Bad message' "./$how" file
done

if command -v g++ >/dev/null; then
	ok 'C++ may include the header' \
		g++ -Wall -Wextra -Werror -fsyntax-only -x c++ "$at/include/verity.h"
else
	skip 'no g++ here'
fi

ok 'make uninstall works' \
	make -C "$TOP" uninstall DESTDIR="$T/root" PREFIX=$prefix LIBDIR=$prefix/lib
is 'and leaves no file' "$(find root ! -type d)" ''

tap_done
