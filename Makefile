# Two commands do everything: `make demo` and `make test`.
# Both install the Debian packages that are missing (with sudo when not root).

.PHONY: demo test setup build release lint sanitize clean

demo: build
	scripts/demo

test: setup
	scripts/test

build: setup
	swift build

release: setup
	swift build -c release --static-swift-stdlib --product bucketfs

setup:
	@scripts/setup

lint: setup
	scripts/lint

# The tests of every level below the program, under the thread and the address sanitizer.
sanitize: setup
	scripts/sanitize thread
	scripts/sanitize address

clean:
	rm -rf .build .venv .demo .sanitize
