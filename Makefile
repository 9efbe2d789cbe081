# SPDX-License-Identifier: MIT
# verityd - one make for everything; each folder adds its part in rules.mk.
#
#   make             programs and libraries, into build/none/
#   make demo        seal, damage and check a file before your eyes; flip pools
#   make test        all tests: here, and hash code and pools as emulated ARM64
#   make check       the tests here only, with what is already installed
#   make fuzz        the parsers, each for FUZZ_SECONDS; goes on from last time
#   make soak        seal, killed SOAK_KILLS times at random; a few minutes
#   make lint        format, cppcheck, clang-tidy, gcc -fanalyzer, shellcheck
#   make format      lay out all sources as make lint wants them
#   make bench       both benchmarks: bench-hash and bench-build
#   make bench-hash  the hash kernels alone; JSON into build/bench/
#   make bench-build digest and tree building beside other programs
#   make bench-dispatch
#                    how soon jobs start, beside other thread pools, and what
#                    the job path costs
#   make install     into $(DESTDIR)$(PREFIX); make uninstall takes it away
#   make deps        install what is missing (Debian); DEPS="build test bench
#                    arm64 lint fuzz" says for what, DRYRUN=1 only shows it
#   make clean       remove build/
#   make help        this text
#
# make demo and make test run make deps for what they need; it asks for root
# only when something is missing.  These go with every target:
#
#   SAN=asan         address and undefined-behaviour sanitizers, build/asan/
#   SAN=tsan         thread sanitizer, build/tsan/
#   ARCH=arm64       cross-build with $(CROSS_COMPILE)gcc, build/arm64/; check
#                    then runs the merkle and wq tests under $(EMULATOR)
#   WERROR=1         warnings are errors
#   V=1              show the commands
#   VERITY_CPU=...   CPU features that tests and benchmarks must do without
#
# CC CPPFLAGS CFLAGS LDFLAGS PREFIX LIBDIR DESTDIR PKGCONF are yours to set;
# changed flags rebuild what they concern.

CFLAGS        ?= -O2 -g
PREFIX        ?= /usr/local
LIBDIR        ?= $(PREFIX)/lib
PKGCONF       ?= pkg-config
CROSS_COMPILE ?= aarch64-linux-gnu-
EMULATOR      ?= $(if $(filter aarch64,$(shell uname -m)),,qemu-aarch64-static -cpu max)
DEPS          ?= build test bench arm64 lint fuzz
FUZZ_SECONDS  ?= 60
SOAK_KILLS    ?= 1000
SAN           ?= none
ARCH          ?= host

WARN := -Wall -Wextra -Wshadow -Wundef -Wvla -Wformat=2 -Wpointer-arith \
	-Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes \
	-Wconversion -Wno-sign-conversion -Wimplicit-fallthrough

san_none :=
san_asan := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
san_tsan := -fsanitize=thread -fno-omit-frame-pointer
ifeq ($(origin san_$(SAN)),undefined)
$(error SAN is '$(SAN)', must be none, asan or tsan)
endif

name_host  := $(SAN)
name_arm64 := arm64
ifeq ($(origin name_$(ARCH)),undefined)
$(error ARCH is '$(ARCH)', must be host or arm64)
endif
B := build/$(name_$(ARCH))

ifeq ($(ARCH),arm64)
ifneq ($(SAN),none)
$(error SAN=$(SAN) does not go with ARCH=arm64)
endif
override CC := $(CROSS_COMPILE)gcc
override AR := $(CROSS_COMPILE)ar
pkgconf := PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig $(PKGCONF)
else
pkgconf := $(PKGCONF)
endif

# Fortifying needs an optimizer, and is left alone where it was chosen already.
optimized := $(filter-out -O0,$(lastword $(filter -O%,$(CFLAGS))))
fortified := $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS))
ifeq ($(SAN),none)
hard_cc := -fPIE -fstack-protector-strong
hard_ld := -Wl,-z,relro,-z,now
hard_cc += $(if $(optimized),$(if $(fortified),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2))
pie     := -pie
endif

# What the user gave comes last.  A folder's own flags are cflags_FOLDER.
cppflags = -I. -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -MMD -MP $(CPPFLAGS)
cflags   = -std=c11 -pthread $(WARN) $(if $(filter 1,$(WERROR)),-Werror) \
	$(san_$(SAN)) $(hard_cc) $(CFLAGS)
ldflags  = -pthread $(san_$(SAN)) $(hard_ld) $(LDFLAGS)

ifneq ($(V),1)
Q = @printf '  %-5s %s\n' $(1) $@;
MAKEFLAGS += --no-print-directory
endif

.PHONY: all test lint format install uninstall deps clean help FORCE
.DELETE_ON_ERROR:
all:

# Each fragment appends to these; nothing else is shared between folders but
# the names of the archives.
LIBS    :=	# static archives
PROGS   :=	# programs
TESTS   :=	# C test programs, each printing TAP
INSTALL :=	# MODE:FILE:PLACE; mode "link" makes PLACE a symlink to FILE

folders := merkle wq daemon tools t
include $(wildcard $(folders:%=%/rules.mk))

all: $(LIBS) $(PROGS)

$(B)/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) $(cppflags) $(cppflags_$*) $(cflags) $(cflags_$(*D)) -c -o $@ $<

$(LIBS): $(B)/sources
	$(call Q,AR)rm -f $@ && $(AR) rcs $@ $(filter %.o,$^)

$(PROGS) $(TESTS):
	@mkdir -p $(@D)
	$(call Q,LD)$(CC) $(ldflags) $(pie) -o $@ $^ $(LDLIBS)

# Rewritten only when they change: new flags rebuild, and an archive forgets a
# source that is gone.
$(B)/sources: now = $(sort $(wildcard */*.c))
$(B)/flags:   now = $(CC) $(cppflags) $(cflags) $(ldflags) $(pie) \
	$(foreach d,$(folders),$(cflags_$d))
$(B)/sources $(B)/flags: FORCE
	@mkdir -p $(@D); now='$(subst ','\'',$(now))'; \
	[ "$$now" = "$$(cat $@ 2>/dev/null)" ] || printf '%s\n' "$$now" >$@

test:
	@sh tools/deps.sh build test arm64
	@$(MAKE) check
	@$(MAKE) check ARCH=arm64 SAN=none

# Without t/exec, whose time limit is for the few kills of make check.
.PHONY: soak
soak: all
	@B=$(B) SOAK_KILLS=$(SOAK_KILLS) sh t/seal-crash.t

# cppcheck 2.10 gets the two about values wrong where a minimum is taken and
# where an array is handed on; clang-tidy does the same checks.  clang-tidy 14
# given many files in one call reports a va_list that is no fault.
SRC := $(wildcard */*.[ch])
CPPCHECK_OFF := variableScope unusedStructMember knownConditionTrueFalse unreadVariable
lint_cpp := -I. -Imerkle -D_GNU_SOURCE -DVERITY_VERSION=\"lint\"
lint:
	clang-format --dry-run --Werror $(SRC)
	cppcheck -q -j2 --error-exitcode=1 --std=c11 $(lint_cpp) -D__x86_64__ \
		--enable=warning,style,performance,portability --inline-suppr \
		$(addprefix --suppress=,$(CPPCHECK_OFF)) $(SRC)
	printf '%s\n' $(filter %.c,$(SRC)) | xargs -P2 -I{} sh -c \
		'out=$$(clang-tidy --quiet {} -- -std=c11 $(lint_cpp) 2>&1) || \
		{ printf "%s\n" "$$out" | grep -v "generated\.$$"; exit 1; }'
	$(MAKE) all B=build/analyze SAN=none ARCH=host CC=gcc WERROR=1 \
		CFLAGS='-O2 -g -fanalyzer'
	shellcheck -x -P t -e SC2016,SC2317 t/exec .ci/run \
		$(wildcard t/*.t t/*.sh tools/*.sh)

format:
	clang-format -i $(SRC)

install: all
	@set -e; for i in $(INSTALL); do \
		file=$${i#*:}; to='$(DESTDIR)'$${file#*:}; file=$${file%%:*}; \
		case $$i in \
		link:*) ln -sf "$$file" "$$to" ;; \
		*)      install -D -m "$${i%%:*}" "$$file" "$$to" ;; \
		esac; \
	done

uninstall:
	@for i in $(INSTALL); do rm -f '$(DESTDIR)'"$${i##*:}"; done

deps:
	@sh tools/deps.sh $(DEPS)

clean:
	rm -rf build

help:
	@sed -n '2,$${/^#/!q;s/^# \{0,1\}//p;}' Makefile

-include $(wildcard $(B)/*/*.d)
