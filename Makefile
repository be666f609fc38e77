# hone: make | make test | make check | make san | make install
CC      ?= gcc
BUILD   ?= build
CFLAGS  ?= -O2 -g
WARN     = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
CPPFLAGS += -Iinclude -Isrc -Itest
LIBS    += -lm -lpthread
LIBSRC  := $(filter-out src/cli/%,$(shell find src -name '*.c'))
CLISRC  := $(wildcard src/cli/*.c)
TESTSRC := $(shell find test -name '*.c' -not -path 'test/fuzz/*')
DNNL    ?= $(shell printf '\#include <dnnl.h>\nint main(void){return 0;}' | $(CC) -xc - -ldnnl -o /dev/null 2>/dev/null && echo 1)
ifeq ($(DNNL),1)
CPPFLAGS += -DHONE_DNNL
LIBS     += -ldnnl
endif
OPENMP  ?= -fopenmp
obj      = $(patsubst %.c,$(BUILD)/%.o,$(1))

all: $(BUILD)/hone_test $(if $(CLISRC),$(BUILD)/hone)
$(BUILD)/libhone.a: $(call obj,$(LIBSRC))
	@rm -f $@; ar rcs $@ $^
$(BUILD)/hone: $(call obj,$(CLISRC)) $(BUILD)/libhone.a
	$(CC) $(CFLAGS) $(OPENMP) -o $@ $^ $(LIBS)
$(BUILD)/hone_test: $(call obj,$(TESTSRC)) $(BUILD)/libhone.a
	$(CC) $(CFLAGS) $(OPENMP) -o $@ $^ $(LIBS)
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) -std=c17 $(CFLAGS) $(OPENMP) $(WARN) $(CPPFLAGS) -fvisibility=hidden -MMD -c -o $@ $<
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
test: all
	./$(BUILD)/hone_test
.PHONY: all test
