# The two commands of the README. Everything else is CMake: see CMakePresets.json.
.PHONY: demo test test-long build clean

PRESET ?= dev
BUILD = build/$(PRESET)

demo:
	@deploy/demo.sh

test:
	@cmake/bootstrap.sh --tests
	@cmake --preset $(PRESET)
	@cmake --build $(BUILD)
	@tests/run.py $(BUILD)

# The same with the long sweeps: more seeds, more shapes, longer soaks.
test-long:
	@MEROPE_TEST_LONG=1 $(MAKE) test

build:
	@cmake/bootstrap.sh
	@cmake --preset $(PRESET)
	@cmake --build $(BUILD)

clean:
	rm -rf $(BUILD) out
