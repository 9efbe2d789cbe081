# SPDX-License-Identifier: MIT
# t: every t/*-t.c is one TAP program; every t/*.t is one TAP script.
#
# A program's first word says which layer it links: merkle-hash-t links
# merkle, tools-opts-t links tools and what lies under it.
T_BIN   := $(patsubst %.c,$(B)/%,$(wildcard t/*-t.c))
T_TOOLS := $(filter $(B)/t/tools-%,$(T_BIN))
T_WQ    := $(filter $(B)/t/wq-%,$(T_BIN))
T_FUZZ  := $(patsubst %.c,$(B)/%,$(wildcard t/fuzz_*.c))
TESTS += $(T_BIN) $(T_FUZZ)

# What the tests of merkle share; and main() of a fuzz target, unless it is
# built with -DFUZZING, for then libFuzzer has one.
T_HELP   := $(patsubst %,$(B)/t/%.o,complaint memseal tmpdir)
T_REPLAY := $(if $(findstring -DFUZZING,$(CFLAGS)),,$(B)/t/replay.o)

$(T_BIN): $(B)/t/%: $(B)/t/%.o $(B)/t/tap.o
$(filter $(B)/t/merkle-%,$(T_BIN)): $(T_HELP)
$(T_TOOLS): $(TOOLS_LIB)
$(T_WQ): $(B)/t/wq_help.o $(B)/t/wq_meas.o $(WQ_BENCH_LIB)
$(filter $(B)/t/merkle-%,$(T_BIN)) $(T_TOOLS): $(MERKLE_LIB)
$(T_FUZZ): $(B)/t/%: $(B)/t/%.o $(T_REPLAY) $(MERKLE_LIB)
$(filter-out $(T_WQ),$(T_BIN)) $(T_FUZZ): LDLIBS := $(MERKLE_LDLIBS)

# check: everything here; of ARM64 what computes, with and without the SHA
# instructions.  How long something takes under emulation says nothing, so no
# test prints it.
T_MERKLE := $(filter $(B)/t/merkle-%,$(T_BIN))
prove := prove -j2 -e 'sh t/exec'

.PHONY: check
ifeq ($(ARCH),host)
check: all $(T_BIN) $(T_FUZZ)
	@B=$(B) $(prove) $(T_BIN) $(wildcard t/*.t)
else
check: all $(T_MERKLE) $(T_WQ)
	@echo '  ARM64, all features'
	@B=$(B) EMULATOR='$(EMULATOR)' $(prove) $(T_MERKLE) $(T_WQ)
	@echo '  ARM64, VERITY_CPU=-sha2'
	@B=$(B) EMULATOR='$(EMULATOR)' VERITY_CPU=-sha2 $(prove) $(T_MERKLE)
endif

# fuzz: each parser in turn, on from where the last run stopped.  What is worth
# keeping of build/fuzz/corpus goes into t/corpus, which check replays.
.PHONY: fuzz fuzz-run
fuzz:
	@sh tools/deps.sh build fuzz
	@$(MAKE) fuzz-run B=build/fuzz SAN=none ARCH=host CC=clang \
		CFLAGS='-O1 -g -U_FORTIFY_SOURCE -DFUZZING -fsanitize=fuzzer-no-link,address' \
		LDFLAGS=-fsanitize=fuzzer,address
fuzz-run: $(T_FUZZ)
	@set -e; for t in $(T_FUZZ:$(B)/t/fuzz_%=%); do \
		mkdir -p $(B)/corpus/$$t; echo "  FUZZ  $$t"; \
		$(B)/t/fuzz_$$t -max_total_time=$(FUZZ_SECONDS) -max_len=16384 \
			-timeout=10 -artifact_prefix=$(B)/ -verbosity=0 \
			-print_final_stats=1 $(B)/corpus/$$t t/corpus/$$t; \
	done
