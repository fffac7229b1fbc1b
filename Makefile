# Short names for what CONTRIBUTING.md explains. `make` runs what CI runs first.
MODULES := $(shell go list -m -f '{{.Dir}}')

.PHONY: check test race fuzz soak bench hotpath lint tidy quickstart ci

check: lint test

test:
	go test work

race:
	go test -race -shuffle=on work

# make fuzz PKG=./slice FUZZ=FuzzName TIME=1m
TIME ?= 30s
fuzz:
	go test $(PKG) -run '^$$' -fuzz '^$(FUZZ)$$' -fuzztime $(TIME)

# make soak FOR=30m SEED=1
FOR ?= 30m
SEED ?= 1
soak:
	go test ./chaos -run '^TestSoak$$' -v -timeout 0 -soak.for $(FOR) -chaos.seed $(SEED)

bench:
	go run ./bench table

hotpath:
	go test . -run '^$$' -bench . -benchmem

lint:
	@test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	@for m in $(MODULES); do (cd $$m && go vet ./...) || exit 1; done
	@if command -v golangci-lint >/dev/null; then for m in $(MODULES); do (cd $$m && golangci-lint run) || exit 1; done; \
	else echo 'golangci-lint is not on PATH: only gofmt and vet were run'; fi

tidy:
	@for m in $(MODULES); do (cd $$m && go mod tidy) || exit 1; done

quickstart:
	go run ./examples/quickstart

ci:
	.ci/run
