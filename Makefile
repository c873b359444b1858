# SPDX-License-Identifier: MIT OR Apache-2.0
# `make demo` and `make test` set up a fresh Debian 12 or Ubuntu 24.04 by themselves.

PREFIX ?= /usr/local
DESTDIR ?=
# libbpf is built by a make of its own, which must not see what this one was told.
CARGO ?= env -u MAKEFLAGS -u MAKEOVERRIDES -u DESTDIR -u PREFIX cargo
# The parts that touch the kernel need root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -E env PATH="$$PATH")
FATPATH := target/release/fatpath
# What `make install` builds.
PROFILE ?= dist
BUILT := target/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))
# What runs for long is compiled for speed; the demo, to be there soon.
DIST := target/dist

export PATH := $(HOME)/.cargo/bin:$(PATH)

.PHONY: help setup build demo screenshots build-tests test test-long test-kernels test-deb test-systemd test-tarball lint lint-but-clippy book oldest-rust bench papers fmt install uninstall deb deb-arm64 static rpm tarball clean

help:
	@echo 'make demo       an untouched iperf3 over an emulated ocean, without and with fatpath'
	@echo 'make test       all tests, on the real kernel; make test WITH=kernels, those of make test-kernels beside them'
	@echo 'make test-long  the tests that make test leaves out because they last'
	@echo 'make test-kernels  the tests of the kernel under Debian'"'"'s 6.1 and 6.12, in QEMU'
	@echo 'make test-deb   the Debian package in a clean Debian 12 and 13: install, upgrade, remove, purge'
	@echo 'make test-tarball  the tarball in a system without libraries: install, uninstall'
	@echo 'make test-systemd  that, and fatpath.service in a Debian with systemd, under both kernels, in QEMU'
	@echo 'make lint       formats, clippy, the mover for other systems, the book, the rules of the repository'
	@echo 'make book       the pages of docs/ as a book, in target/book; fails when a link leads nowhere'
	@echo 'make oldest-rust  builds with the oldest Rust that Cargo.toml permits'
	@echo 'make bench      all benchmarks; make bench NAME=law.aimd_window_error for one'
	@echo 'make papers     the commands of docs/papers.md, for hours; goes on where it was interrupted'
	@echo 'make screenshots  the pictures of the page in the README, from a real transfer'
	@echo 'make install    binary, header, man pages, completions, systemd unit, default policy; PREFIX and DESTDIR count'
	@echo 'make deb        a Debian package, in target/deb'
	@echo 'make deb-arm64  the same for arm64, cross-compiled on a Debian of another processor, in target/deb-arm64'
	@echo 'make rpm        an RPM of a static program, in target/rpm'
	@echo 'make tarball    a static program with its installer, for any Linux, in target/tarball'
	@echo 'make uninstall  takes them away again; the policy stays'

setup:
	@packaging/setup.sh

build: setup
	$(CARGO) build --release --locked --package fatpath-cli

# What `make test` builds first.
build-tests: setup
	$(CARGO) test --workspace --locked --no-run

demo: build
	$(SUDO) $(FATPATH) lab run experiments/demo.toml --out out/demo --fresh

test:
	@packaging/setup.sh tests
	@[ -z "$(WITH)" ] || packaging/setup.sh $(WITH)
	$(SUDO) tests/run.sh $(WITH)

screenshots:
	@packaging/setup.sh browser
	$(SUDO) env FATPATH_SCREENSHOTS=$(CURDIR)/docs/images $(CARGO) test --locked --package fatpath-cli --test page seen_in_a_browser

test-long:
	@packaging/setup.sh long
	$(SUDO) tests/run.sh long

test-kernels:
	@packaging/setup.sh kernels
	$(CARGO) xtask kernels

test-deb:
	@packaging/setup.sh kernels
	$(CARGO) build --locked --package fatpath-cli
	$(SUDO) tests/deb.sh target/debug/fatpath bookworm
	$(SUDO) tests/deb.sh target/debug/fatpath trixie

test-systemd: test-deb
	@packaging/setup.sh kernels
	$(SUDO) $(CARGO) xtask kernels systemd

lint: lint-but-clippy
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

# Continuous integration has Clippy look at the workspace while it compiles the tests (.ci/clippy).
lint-but-clippy: setup book
	@packaging/setup.sh lint
	$(CARGO) fmt --all --check
	clang-format --dry-run --Werror bpf/*.c bpf/include/*.h bpf/cc/*.h
	$(CARGO) clippy --package fatpath-api --features document --all-targets --locked -- -D warnings
	cp Cargo.lock fuzz/Cargo.lock
# A check needs no libfuzzer, which takes a minute to build.
	CUSTOM_LIBFUZZER_PATH=/none/libfuzzer.a $(CARGO) check --manifest-path fuzz/Cargo.toml --target-dir target
	$(CARGO) xtask check
	env -u MAKEFLAGS -u MAKEOVERRIDES packaging/other-systems.sh
	cd web && npm run --silent check

book: setup
	@packaging/setup.sh book
	rm -rf target/book
	target/tools/bin/mdbook build
	$(CARGO) xtask book

oldest-rust: setup
	packaging/oldest-rust.sh

papers: build
	$(SUDO) $(CARGO) xtask papers $(WORD)

fmt: setup
	$(CARGO) fmt --all
	clang-format -i bpf/*.c bpf/include/*.h bpf/cc/*.h

bench: setup
	$(CARGO) build --profile dist --locked --package fatpath-cli --package fatpath-bench
	$(SUDO) $(DIST)/fatpath-bench $(NAME)

install: setup
	$(CARGO) build --profile $(PROFILE) --locked --package fatpath-cli
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" packaging/install.sh $(BUILT)/fatpath

uninstall:
	DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" packaging/install.sh --uninstall

deb: setup
	$(CARGO) build --profile $(PROFILE) --locked --package fatpath-cli
	packaging/deb.sh $(BUILT)/fatpath target/deb

ARM64 := aarch64-unknown-linux-gnu
deb-arm64: setup
	@packaging/setup.sh arm64
# This processor's program writes the man pages.
	$(CARGO) build --profile $(PROFILE) --locked --package fatpath-cli
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc PKG_CONFIG_ALLOW_CROSS=1 \
	PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig \
	$(CARGO) build --profile $(PROFILE) --locked --package fatpath-cli --target $(ARM64)
	ARCH=arm64 TOOLS=aarch64-linux-gnu- NATIVE=$(BUILT)/fatpath \
	packaging/deb.sh $(BUILT:target/%=target/$(ARM64)/%)/fatpath target/deb-arm64

# A program with its libraries within, glibc among them: for distributions whose own are older, or others.
HOST := $(shell uname -m)-unknown-linux-gnu
STATIC := $(BUILT:target/%=target/$(HOST)/%)
static: setup
	RUSTFLAGS='-C target-feature=+crt-static' \
	$(CARGO) build --profile $(PROFILE) --locked --package fatpath-cli --target $(HOST)

rpm: static
	@packaging/setup.sh rpm
	packaging/rpm.sh $(STATIC)/fatpath target/rpm

tarball: static
	packaging/tarball.sh $(STATIC)/fatpath target/tarball

test-tarball:
	@packaging/setup.sh kernels
	$(MAKE) --no-print-directory tarball PROFILE=dev
	$(SUDO) tests/tarball.sh target/tarball/fatpath-*.tar.gz

clean:
	$(CARGO) clean
	rm -rf out web/dist web/node_modules
