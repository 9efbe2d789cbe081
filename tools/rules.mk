# SPDX-License-Identifier: MIT
# tools: verityctl, one file a subcommand, and the benchmarks.
#
# All but verityctl's main() goes into an archive, so that tests can link it.
# Each bench_NAME.c is a program bench-NAME of its own, and not installed.
TOOLS_LIB := $(B)/tools.a
TOOLS_SRC := $(filter-out tools/verityctl.c tools/bench_%.c,$(wildcard tools/*.c))
LIBS += $(TOOLS_LIB)
$(TOOLS_LIB): $(TOOLS_SRC:%.c=$(B)/%.o)

VERITYCTL := $(patsubst tools/%.c,$(B)/%,$(wildcard tools/verityctl.c))
BENCH     := $(patsubst tools/bench_%.c,$(B)/bench-%,$(wildcard tools/bench_*.c))
PROGS += $(VERITYCTL) $(BENCH)

$(VERITYCTL): $(B)/tools/verityctl.o $(TOOLS_LIB) $(MERKLE_LIB)
$(BENCH): $(B)/bench-%: $(B)/tools/bench_%.o $(TOOLS_LIB) $(MERKLE_LIB)
$(VERITYCTL) $(BENCH): LDLIBS := $(MERKLE_LDLIBS)

INSTALL += \
	755:$(B)/verityctl:$(PREFIX)/bin/verityctl \
	644:tools/verityctl.1:$(PREFIX)/share/man/man1/verityctl.1 \
	644:tools/verity-manifest.5:$(PREFIX)/share/man/man5/verity-manifest.5

.PHONY: demo bench bench-hash bench-build
demo:
	@sh tools/deps.sh build
	@$(MAKE) all
	@B=$(B) sh tools/demo.sh

# Side by side with the peers, which make deps installs; see the scripts.
bench: bench-hash bench-build

bench-hash: all
	@sh tools/deps.sh build bench
	@mkdir -p build/bench
	@$(B)/bench-hash --json build/bench/hash.json
	@echo '# the same without AVX-512 and AVX2'
	@VERITY_CPU=-avx512,-avx2 $(B)/bench-hash --prefix hash-no-avx \
		--json build/bench/hash-no-avx.json

bench-build: all
	@sh tools/deps.sh build bench
	@B=$(B) sh tools/bench-build.sh
