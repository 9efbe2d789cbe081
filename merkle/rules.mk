# SPDX-License-Identifier: MIT
# merkle: bytes in, verdict out.  libcrypto only; no threads, no sockets.
#
# The same objects make merkle.a, which our own programs and tests link, and
# the installed libverity.  All but what merkle/verity.h marks VERITY_API is
# hidden, so the shared library shows just the public functions.
VERITY_VERSION := 0.1.0
VERITY_SONAME  := libverity.so.0

MERKLE_LIB    := $(B)/merkle.a
MERKLE_OBJ    := $(patsubst %.c,$(B)/%.o,$(wildcard merkle/*.c))
MERKLE_LDLIBS := $(or $(shell $(pkgconf) --libs libcrypto 2>/dev/null),-lcrypto)

cflags_merkle           := -fPIC -fvisibility=hidden
cppflags_merkle/version := -DVERITY_VERSION='"$(VERITY_VERSION)"'
$(B)/merkle/version.o: merkle/rules.mk

LIBS += $(MERKLE_LIB) $(B)/libverity.a
$(MERKLE_LIB) $(B)/libverity.a: $(MERKLE_OBJ)

all: $(B)/libverity.so
$(B)/libverity.so: $(B)/$(VERITY_SONAME)
	@ln -sf $(<F) $@

# A sanitizer's own functions come with the program, so only a plain build can
# ask that none be missing.
whole_none := -Wl,-z,defs
so_flags   := -shared -Wl,-soname,$(VERITY_SONAME) $(whole_$(SAN))
$(B)/$(VERITY_SONAME): $(MERKLE_OBJ) $(B)/sources
	$(call Q,LD)$(CC) $(ldflags) $(so_flags) -o $@ $(filter %.o,$^) $(MERKLE_LDLIBS)

# Made anew each time, since PREFIX and LIBDIR may differ from last time's.
install: $(B)/verity.pc
$(B)/verity.pc: merkle/verity.pc.in FORCE
	@mkdir -p $(@D)
	@sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		-e 's|@VERSION@|$(VERITY_VERSION)|' $< >$@

INSTALL += \
	644:merkle/verity.h:$(PREFIX)/include/verity.h \
	644:merkle/verity.3:$(PREFIX)/share/man/man3/verity.3 \
	644:$(B)/verity.pc:$(LIBDIR)/pkgconfig/verity.pc \
	644:$(B)/libverity.a:$(LIBDIR)/libverity.a \
	755:$(B)/$(VERITY_SONAME):$(LIBDIR)/libverity.so.$(VERITY_VERSION) \
	link:libverity.so.$(VERITY_VERSION):$(LIBDIR)/$(VERITY_SONAME) \
	link:$(VERITY_SONAME):$(LIBDIR)/libverity.so
