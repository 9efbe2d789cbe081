# SPDX-License-Identifier: MIT
# tools: verityctl, one file a subcommand, and the benchmarks.
#
# All but verityctl's main() goes into an archive, so that tests can link it.
# Each bench_NAME.c is a program bench-NAME of its own, and not installed.
# bench-dispatch is not part of all: it needs its peers' headers.
TOOLS_LIB := $(B)/tools.a
TOOLS_SRC := $(filter-out tools/verityctl.c tools/bench_%.c tools/peer_%.c,$(wildcard tools/*.c))
LIBS += $(TOOLS_LIB)
$(TOOLS_LIB): $(TOOLS_SRC:%.c=$(B)/%.o)

VERITYCTL := $(patsubst tools/%.c,$(B)/%,$(wildcard tools/verityctl.c))
BENCH_SRC := $(filter-out tools/bench_dispatch.c,$(wildcard tools/bench_*.c))
BENCH     := $(BENCH_SRC:tools/bench_%.c=$(B)/bench-%)
PROGS += $(VERITYCTL) $(BENCH)

$(VERITYCTL): $(B)/tools/verityctl.o $(TOOLS_LIB) $(MERKLE_LIB)
$(BENCH): $(B)/bench-%: $(B)/tools/bench_%.o $(TOOLS_LIB) $(WQ_BENCH_LIB) $(MERKLE_LIB)
$(VERITYCTL) $(BENCH): LDLIBS := $(MERKLE_LDLIBS)

# The pools beside ours, each behind tools/peer.h.  pkg-config is asked when
# they are built: make deps may just have installed them.
PEER      := $(patsubst tools/%,$(B)/tools/%.o,$(basename $(wildcard tools/peer_*.c*)))
peer_pkgs := glib-2.0 libuv tbb
peer_cpp   = $(shell $(pkgconf) --cflags $(peer_pkgs))
peer_libs  = $(shell $(pkgconf) --libs $(peer_pkgs))
cxxflags   = -std=c++17 $(filter-out -std=% -Wstrict-prototypes -Wmissing-prototypes,$(cflags))

$(foreach p,glib uv,$(eval cppflags_tools/peer_$p = $$(peer_cpp)))
$(B)/tools/%.o: tools/%.cpp $(B)/flags
	@mkdir -p $(@D)
	$(call Q,CXX)$(CXX) $(cppflags) $(peer_cpp) $(cxxflags) -c -o $@ $<

$(B)/bench-dispatch: $(B)/tools/bench_dispatch.o $(PEER) $(TOOLS_LIB) $(WQ_LIB) $(MERKLE_LIB)
	$(call Q,LD)$(CXX) $(ldflags) $(pie) -o $@ $^ $(peer_libs) $(MERKLE_LDLIBS)

# The lint group of tools/deps.sh has these headers, tbb's aside: no C file
# includes those.
lint: lint_cpp += $(shell $(pkgconf) --cflags glib-2.0 libuv)

INSTALL += \
	755:$(B)/verityctl:$(PREFIX)/bin/verityctl \
	644:tools/verityctl.1:$(PREFIX)/share/man/man1/verityctl.1 \
	644:tools/verity-manifest.5:$(PREFIX)/share/man/man5/verity-manifest.5

.PHONY: demo bench bench-hash bench-build bench-dispatch
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

bench-dispatch:
	@sh tools/deps.sh build bench
	@$(MAKE) $(B)/bench-dispatch $(B)/bench-wq
	@mkdir -p build/bench
	@$(B)/bench-dispatch --json build/bench/dispatch.json
	@$(B)/bench-wq --json build/bench/wq.json
