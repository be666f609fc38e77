# make            libraries, program, tests, examples      make san      AddressSanitizer + UBSan
# make test       all tests and examples                   make tsan     ThreadSanitizer, suites with threads
# make check      the rules of the house (CHECKS below)    make fuzz     libFuzzer, FUZZ_SECONDS each
# make install    PREFIX= DESTDIR=                         make aarch64  cross-built tests under qemu
# make bench      times beside PyTorch's, 20 minutes
# BUILD= folder  CC=  CFLAGS=  WERROR=1  DNNL=0 without oneDNN  PNG=0 without libpng  OPENMP= without OpenMP  V=1 shows commands
ifeq ($(origin CC),default)
CC      := gcc
endif
AR      ?= ar
BUILD   ?= build
CFLAGS  ?= -O2 -g
PREFIX  ?= /usr/local
Q       := $(if $(V),,@)
H       := \#
# $(call have,header,libraries,condition): 1 if a program with them compiles, links, and the condition (may be empty) holds
have     = $(shell mkdir -p $(BUILD); printf '$(H)include <%s>\n$(H)if !(%s)\n$(H)error\n$(H)endif\nint main(void){return 0;}' \
           '$(1)' '$(or $(3),1)' | $(CC) $(CPPFLAGS) $(CFLAGS) -xc - $(LDFLAGS) $(2) -o $(BUILD)/.have 2>/dev/null && echo 1)
# $(call part,NAME,header,libraries,condition): an optional library: HONE_NAME and its libraries if it is here
define part
ifeq ($(origin $(1)),undefined)
$(1)    := $(call have,$(2),$(3),$(4))
endif
ifeq ($$($(1)),1)
DEFS    += -DHONE_$(1)
LIBS    += $(3)
endif
endef
DEFS    :=
LIBS    := -lm -lpthread
DNNLH   := $(if $(call have,dnnl.h,-ldnnl),dnnl.h,oneapi/dnnl/dnnl.h)
$(eval $(call part,DNNL,$(DNNLH),-ldnnl,DNNL_VERSION_MAJOR >= 3 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR >= 6)))
$(eval $(call part,PNG,png.h,-lpng))
ifeq ($(origin OPENMP),undefined)
OPENMP  := $(if $(call have,omp.h,-fopenmp),-fopenmp)
endif

# A team of OpenMP threads that spins while it waits takes the cores from everything else.
export OMP_WAIT_POLICY ?= passive

# POSIX everywhere; a file that needs more asks for it. Contraction is off so that the same source gives the same bits on every CPU; a kernel asks for fma by name.
WARN     = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-missing-field-initializers $(if $(WERROR),-Werror)
COMPILE  = $(CC) -std=c17 $(CFLAGS) $(OPENMP) $(WARN) -fPIC -fvisibility=hidden -ffp-contract=off -D_POSIX_C_SOURCE=200809L \
           $(CPPFLAGS) $(DEFS)
LINK     = $(CC) $(CFLAGS) $(OPENMP) $(LDFLAGS)
VERSION := $(shell sed -n 's/.*HONE_VERSION "\(.*\)"/\1/p' include/hone/base.h)
SONAME  := libhone.so.$(firstword $(subst ., ,$(VERSION)))
LIBSRC  := $(sort $(shell find src -name '*.c' -not -path 'src/cli/*'))
CLISRC  := $(sort $(wildcard src/cli/*.c))
TESTSRC := $(sort $(shell find test -name '*.c' -not -path 'test/fuzz/*'))
EXAMPLE := $(patsubst %.c,$(BUILD)/%,$(sort $(wildcard examples/*.c)))
FUZZSRC := $(sort $(wildcard test/fuzz/fuzz_*.c))
obj      = $(patsubst %.c,$(BUILD)/%.o,$(1))
# $(call stamp,name,text): a file that changes when the text does, so that other flags or sources rebuild
stamp    = $(shell mkdir -p $(BUILD); printf '%s\n' '$(2)' | cmp -s - $(BUILD)/$(1) || printf '%s\n' '$(2)' >$(BUILD)/$(1))
ifeq ($(filter clean,$(MAKECMDGOALS)),)
$(call stamp,.flags,$(COMPILE) $(LDFLAGS) $(LIBS))
$(call stamp,.sources,$(LIBSRC) $(CLISRC) $(TESTSRC))
endif

all: lib $(if $(CLISRC),$(BUILD)/hone) $(BUILD)/hone_test $(EXAMPLE)
lib: $(BUILD)/libhone.a $(BUILD)/libhone.so
$(BUILD)/libhone.a: $(call obj,$(LIBSRC)) $(BUILD)/.sources
	$(Q)rm -f $@; $(AR) rcs $@ $(filter %.o,$^)
$(BUILD)/libhone.so: $(call obj,$(LIBSRC)) $(BUILD)/.sources
	$(Q)$(LINK) -shared -Wl,-soname,$(SONAME) -Wl,--no-undefined -o $@ $(filter %.o,$^) $(LIBS)
	$(Q)ln -sf libhone.so $(BUILD)/$(SONAME)
$(BUILD)/hone: $(call obj,$(CLISRC)) $(BUILD)/libhone.a
	$(Q)$(LINK) -o $@ $(filter %.o %.a,$^) $(LIBS)
$(BUILD)/hone_test: $(call obj,$(TESTSRC)) $(BUILD)/libhone.a
	$(Q)$(LINK) -o $@ $(filter %.o %.a,$^) $(LIBS)
# An example sees what a user of the installed library sees: the public headers and the shared library.
$(EXAMPLE): $(BUILD)/examples/%: examples/%.c $(BUILD)/libhone.so $(wildcard include/hone/*)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c17 $(CFLAGS) $(WARN) -Iinclude -o $@ $< -L$(BUILD) -Wl,-rpath,'$$ORIGIN/..' -lhone -lm
$(BUILD)/src/cli/cmd_doctor.o: CPPFLAGS += -DHONE_CFLAGS='"$(strip $(CFLAGS) $(OPENMP))"'
$(BUILD)/%.o: %.c $(BUILD)/.flags
	@mkdir -p $(@D)
	$(if $(V),,@echo '  CC    $<')
	$(Q)$(COMPILE) $(KFLAGS) -Iinclude -Isrc -Itest -MMD -MP -c -o $@ $<
# Kernels: contraction and vectorisation, which change roundings; the order of sums stays as written.
$(call obj,$(wildcard src/backend/cpu/*.c)): KFLAGS := $(if $(findstring -O2,$(CFLAGS)),-O3) -ffp-contract=fast -fno-math-errno \
    -fno-trapping-math -fopenmp-simd -Wno-psabi -Wno-pass-failed
-include $(patsubst %.o,%.d,$(call obj,$(LIBSRC) $(CLISRC) $(TESTSRC)))

test: $(BUILD)/hone_test test-examples test-cli
	$(BUILD)/hone_test $(SUITE)
test-cli: $(BUILD)/hone
	sh test/cli/test_cli.sh $<
test-examples: $(EXAMPLE)
	@set -e; for e in $^; do echo "$$e --quick"; $$e --quick >$$e.out 2>&1 || { cat $$e.out; echo "$$e: failed"; exit 1; }; done

# hone beside PyTorch, into docs/performance.md; BENCH='--quick --out FILE' and other flags
bench: $(BUILD)/hone
	BUILD='$(BUILD)' python3 bench/bench.py $(BENCH)

# --- the rules of the house; `make -k check` shows every breach, `make check-lint` asks for one
CHECKS  := self rooms lint objects symbols headers format faults install gcc clang
check: $(CHECKS:%=check-%)
check-self check-rooms check-format check-faults:
	dev/$(subst -,_,$@).sh
check-lint:
	dev/lint.sh
check-objects: $(BUILD)/libhone.a
check-symbols: $(BUILD)/libhone.so
check-objects check-symbols:
	dev/$(subst -,_,$@).sh $(BUILD)
check-headers:
	CC='$(CC)' DEFS='$(DEFS)' dev/check_headers.sh
check-install: all
	CC='$(CC)' MAKE='$(MAKE)' dev/check_install.sh $(BUILD)
check-gcc check-clang: check-%:
	@if command -v $* >/dev/null; then $(MAKE) --no-print-directory all BUILD=$(BUILD)/werror-$* CC=$* WERROR=1; \
	else echo "SKIP no $* here"; fi
print-%:
	@echo '$($*)'

# --- sanitizers, fuzzing, another CPU: the same sources in build folders of their own
SUB      = $(MAKE) --no-print-directory BUILD=$(BUILD)/$@
SANITIZE = -g -fno-omit-frame-pointer -fno-sanitize-recover=all -fsanitize=
SANENV   = ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 UBSAN_OPTIONS=print_stacktrace=1
# Suites that start threads, or give a device several. OpenMP and oneDNN are left out: ThreadSanitizer cannot see how they synchronise.
TSAN_SUITES    ?= $(or $(shell grep -rlE 'pthread_create|threads = [2-9]' test src/backend 2>/dev/null | \
                  xargs -r sed -n 's/^void suite_\([a-z0-9_]*\).struct check.*/\1/p'),base)
AARCH64_SUITES ?= base random field text tensor safetensors safetensors_write sched sched_rows sched_chain ops graph program debug vmath elementwise edges record record_calls record_ops
FUZZ_SECONDS   ?= 60
san:
	+$(SUB) CFLAGS='-O1 $(SANITIZE)address,undefined' $(BUILD)/$@/hone_test
	$(SANENV) $(BUILD)/$@/hone_test $(SUITE)
tsan:
	+$(SUB) CFLAGS='-O1 $(SANITIZE)thread' OPENMP= DNNL=0 $(BUILD)/$@/hone_test
	dev/run_suites.sh '$(shell setarch -R true 2>/dev/null && echo setarch -R) $(BUILD)/$@/hone_test' $(TSAN_SUITES)
aarch64:
	+$(SUB) CC=aarch64-linux-gnu-gcc DNNL=0 PNG=0 $(BUILD)/$@/hone_test
	dev/run_suites.sh 'qemu-aarch64 -L /usr/aarch64-linux-gnu $(BUILD)/$@/hone_test' $(AARCH64_SUITES)
fuzz:
	+$(SUB) CC=clang OPENMP= DNNL=0 CFLAGS='-O1 $(SANITIZE)address,undefined,fuzzer-no-link' fuzzers
	dev/run_fuzz.sh $(BUILD)/$@ $(FUZZ_SECONDS) $(FUZZSRC)
fuzzers: $(patsubst test/fuzz/%.c,$(BUILD)/%,$(FUZZSRC))
$(BUILD)/fuzz_%: $(BUILD)/test/fuzz/fuzz_%.o $(BUILD)/libhone.a
	$(Q)$(LINK) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# --- installation
D := $(DESTDIR)$(PREFIX)
install: lib $(if $(CLISRC),$(BUILD)/hone)
	install -d $(D)/bin $(D)/lib/pkgconfig $(D)/include/hone
	install -m 644 include/hone/* $(D)/include/hone
	install -m 644 $(BUILD)/libhone.a $(D)/lib
	install -m 755 $(BUILD)/libhone.so $(D)/lib/libhone.so.$(VERSION)
	ln -sf libhone.so.$(VERSION) $(D)/lib/$(SONAME)
	ln -sf $(SONAME) $(D)/lib/libhone.so
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@LIBS@|$(LIBS) $(OPENMP)|' hone.pc.in >$(D)/lib/pkgconfig/hone.pc
	$(if $(CLISRC),install -m 755 $(BUILD)/hone $(D)/bin)
clean:
	rm -rf $(BUILD)
.PHONY: all lib test test-cli test-examples bench check $(CHECKS:%=check-%) san tsan aarch64 fuzz fuzzers install clean
.DELETE_ON_ERROR:
.SECONDARY:
