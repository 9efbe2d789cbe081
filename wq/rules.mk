# SPDX-License-Identifier: MIT
# wq: works in, runs out.  pthreads only.
#
# wq-bench.a is the same with -DWQ_BENCH: it can put one exclusive lock back
# around the job path, and stop a job at a chosen point, so that both can be
# measured.  Only benchmarks and tests link it.
WQ_LIB       := $(B)/wq.a
WQ_BENCH_LIB := $(B)/wq-bench.a
WQ_SRC       := $(wildcard wq/*.c)

LIBS += $(WQ_LIB) $(WQ_BENCH_LIB)
$(WQ_LIB): $(WQ_SRC:%.c=$(B)/%.o)
$(WQ_BENCH_LIB): $(WQ_SRC:%.c=$(B)/bench/%.o)

$(B)/bench/%.o: %.c $(B)/flags
	@mkdir -p $(@D)
	$(call Q,CC)$(CC) -DWQ_BENCH $(cppflags) $(cflags) -c -o $@ $<

-include $(wildcard $(B)/bench/*/*.d)
