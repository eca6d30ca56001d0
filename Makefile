# Two commands do everything: `make demo` and `make test`.
# Both install the Debian packages that are missing (with sudo when not root).

.PHONY: demo test setup build release lint clean

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

clean:
	rm -rf .build .venv .demo
