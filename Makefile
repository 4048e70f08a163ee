# The targets that people use; `make help` lists them.

GO      ?= go
BIN     := bin
TOOLS   := $(CURDIR)/.cache/tools

# What programs and images call their version: vmop-cli version.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
STAMP   := -X github.com/vmop/sdk/internal/version.stamped=$(VERSION)

# The packages with goroutines of their own, which are tested under the race detector.
# A test of internal/house names those that are missing here.
RACE := /vmop/runner/|/vmop/(host|hostprobe|qmp|qga|serial|vmopagent)(/|$$)|/frontends/operator/controller$$|/frontends/runner/kubernetes$$|/internal/(asnobody|child)$$|/examples/vmop-agent/agent$$
# Those that take minutes under it: make test has them without, make test RACE_ALL=1, as in CI,
# with it.
RACE_REST := /vmop/(imagesource|runner|transfer)$$|/frontends/cli(/|$$)|/frontends/runner$$|/internal/(controlplane|node|scaleload|spice|tinyguest)$$

# The packages whose tests take longest, the longest first: what is left at the end is
# short. go test keeps the order.
LONG := ./vmop/runner ./frontends/operator ./frontends/cli ./frontends/runner ./vmop/qemucmd ./vmop/host \
	./frontends/operator/controller ./frontends/runner/kubernetes ./internal/crdtest ./internal/controlplane

RACED := $(RACE)$(if $(RACE_ALL),|$(RACE_REST))

# The packages that make test runs after those under the race detector, and without it, where
# those are the fewer: both of its lines take about as long then. It runs two packages at a time
# of the line that has more to do.
AFTER_RACE := $(if $(RACE_ALL),,/internal/(deploytest|tinyguest)$$)
RACE_AT_A_TIME := $(if $(RACE_ALL),2,1)
PLAIN_AT_A_TIME := $(if $(RACE_ALL),1,2)

# $(call TESTED,-E,NAME) are the packages with tests of that name under the race detector,
# and with -vE the others; $(call TESTED,-E,NAME,.) are both.
TESTED = $$($(GO) list $$(git grep -lE '^func $(2)' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,') | grep $(1) '$(or $(3),$(RACE))')

# A check of the promises of machines takes some hundred and fifty steps: a million in that
# world, and as many checks of all others.
LONG_CHECKS ?= 6500
SOAK        ?= 5m
export GOFLAGS ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: deps
deps: ## install what building, running and testing need (Debian, Ubuntu)
	@scripts/deps test

.PHONY: deps-e2e
deps-e2e: ## install what a Kubernetes node for tests needs, too
	@scripts/deps e2e

.PHONY: build
build: ## build bin/vmop-cli, bin/vmop-runner and bin/vm-operator
	$(GO) build -trimpath -ldflags="-s $(STAMP)" -o $(BIN)/vmop-cli ./frontends/cli
	$(GO) build -trimpath -ldflags="-s $(STAMP)" -o $(BIN)/vmop-runner ./frontends/runner
	$(GO) build -trimpath -ldflags="-s $(STAMP)" -o $(BIN)/vm-operator ./frontends/operator

PREFIX ?= /usr/local
SHARE  := $(DESTDIR)$(PREFIX)/share

.PHONY: install
install: build ## install the programs, completions and the manual page below PREFIX (/usr/local)
	install -D -t $(DESTDIR)$(PREFIX)/bin $(BIN)/vmop-cli $(BIN)/vmop-runner $(BIN)/vm-operator
	mkdir -p $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d $(SHARE)/man/man1
	$(BIN)/vmop-cli completion bash >$(SHARE)/bash-completion/completions/vmop-cli
	$(BIN)/vmop-cli completion zsh >$(SHARE)/zsh/site-functions/_vmop-cli
	$(BIN)/vmop-cli completion fish >$(SHARE)/fish/vendor_completions.d/vmop-cli.fish
	$(BIN)/vmop-cli man >$(SHARE)/man/man1/vmop-cli.1

.PHONY: release
release: ## make what a release consists of in bin/: the package, the lists of modules, SHA256SUMS
	rm -f $(BIN)/vmop_*.deb
	@$(MAKE) --no-print-directory deb sbom
	cd $(BIN) && sha256sum vmop_*.deb *.cdx.json >SHA256SUMS

.PHONY: deb
deb: ## make a package for Debian and Ubuntu, bin/vmop_VERSION_ARCH.deb
	@scripts/deb '$(VERSION)' $(BIN)

.PHONY: images
images: ## build the images of operator and runner; scripts/images lists the settings
	@scripts/images

.PHONY: image-bases
image-bases: ## renew the digests in deploy/images/bases; needs their registries
	@$(GO) run ./internal/imagebases/cmd/image-bases deploy/images/bases

.PHONY: run
run: ## boot a tiny Linux machine from examples/hello/vm.yaml
	@scripts/deps run
	@$(MAKE) --no-print-directory build
	@scripts/run-hello

.PHONY: kubeall
kubeall: ## build the Kubernetes programs that tests run (minutes, once)
	@$(GO) run ./internal/controlplane/cmd/control-plane --build

.PHONY: csi
csi: ## build the programs of CSI that tests on a node run (minutes, once)
	@$(GO) run ./internal/node/cmd/csi >/dev/null

.PHONY: control-plane
control-plane: ## run etcd and kube-apiserver until Ctrl-C
	$(GO) run ./internal/controlplane/cmd/control-plane

# What make test leaves to make test-slow, by the names of tests: in an emulator a Debian
# takes minutes to boot, and so do the machines whose firmware checks signatures; a package
# takes as long to compress; and those that fill a disk, change a machine at random, or make
# hundreds of machines compute for half a minute or more. It leaves the faults that the
# promises have to notice, too.
SLOW := DebianGuest|DebianPackage|SecureBootIsEnforced|GuestFindsItsMachineAgain|StorageIsFull|Soak|HundredsOfMachines

# The worlds of the promises are drawn this often by make test, in rounds of 100 by CI, and without
# end by make long.
PROMISES := 15
# Worlds are made and thrown away; much of their time is the garbage collector's otherwise.
DRAWN    := GOGC=400

# Garbage is collected less often, as in CI: there is more memory than processors.
.PHONY: test
test: ## run the tests, under the race detector where goroutines meet
	@scripts/deps test
	@$(MAKE) --no-print-directory kubeall
	@GOGC=$${GOGC:-400} $(MAKE) --no-print-directory -j 3 test-race test-plain test-promised

# Two processors have something to do while guests and timers are waited for. The worlds of
# the promises wait for nothing, and take what the others leave; they have no goroutines that
# the race detector could watch.
.PHONY: test-plain test-race test-promised
test-plain:
	$(GO) test -p $(PLAIN_AT_A_TIME) -timeout 45m -skip '$(SLOW)|^TestPromises' $$($(GO) list $(LONG) ./... | grep -vE '$(RACED)$(addprefix |,$(AFTER_RACE))')
test-promised:
	RAPID_CHECKS=$(PROMISES) $(DRAWN) nice $(GO) test -timeout 45m -run '^TestPromises' -skip AreNoticed $(call TESTED,-E,TestPromises,.)
test-race:
	$(GO) test -p $(RACE_AT_A_TIME) -timeout 45m -race -skip '$(SLOW)|^TestPromises' $$($(GO) list $(LONG) ./... | grep -E '$(RACED)')
	$(if $(AFTER_RACE),$(GO) test -p 1 -timeout 45m -skip '$(SLOW)|^TestPromises' $$($(GO) list ./... | grep -E '$(AFTER_RACE)'))

.PHONY: test-slow
test-slow: ## run the tests that take minutes, which make test leaves out, such as Debian and Secure Boot
	@scripts/deps test
	@$(MAKE) --no-print-directory kubeall
	@$(MAKE) --no-print-directory test-slow-guests test-noticed

# The former have deadlines, the latter only compute.
.PHONY: test-slow-guests test-noticed
test-slow-guests:
	$(GO) test -p 2 -timeout 30m -run '$(SLOW)' $(call TESTED,-vE,Test[A-Za-z0-9]*($(SLOW)))
	$(GO) test -p 1 -timeout 30m -race -run '$(SLOW)' $(call TESTED,-E,Test[A-Za-z0-9]*($(SLOW)))
test-noticed:
	$(DRAWN) $(GO) test -timeout 45m -run '^TestPromises.*AreNoticed' $(call TESTED,-E,TestPromises.*AreNoticed,.)

.PHONY: test-promises
test-promises: ## run the promises of the decisions in CHECKS drawn worlds each (500)
	RAPID_CHECKS=$${CHECKS:-500} $(DRAWN) $(GO) test -run '^TestPromises' -skip AreNoticed -count=1 -timeout 60m $(call TESTED,-E,TestPromises,.)

# The tests about what disks are made of, and of nodes. Those and the others have a node each at a
# time: they wait for kubelets, volumes and guests more than they compute. The former end first;
# AFTER_DISKS are targets that take their place, in CI.
E2E_DISKS := Attachments|Disk|Images|Drain|Uploads|KVMDevice|TakeOver|Tap|RootOwned

.PHONY: test-e2e
test-e2e: ## build the images, run machines in the pods of real nodes and under systemd (needs root)
	@scripts/deps e2e
	@$(MAKE) --no-print-directory kubeall csi
	@images=$$(mktemp -d) && trap 'rm -rf "$$images"' EXIT && $(GO) run ./internal/testimages/cmd/test-images "$$images" && \
		VMOP_TEST_IMAGES="$$images" $(MAKE) --no-print-directory -j 3 test-e2e-disks test-e2e-machines test-e2e-rest

E2E = $(GO) test -tags e2e -p 1 -count=1 -timeout 50m

.PHONY: test-e2e-disks test-e2e-machines test-e2e-rest
test-e2e-disks:
	$(E2E) -run '$(E2E_DISKS)' ./internal/e2e
	$(if $(AFTER_DISKS),@$(MAKE) --no-print-directory $(AFTER_DISKS))
test-e2e-machines:
	$(E2E) -skip '$(E2E_DISKS)' ./internal/e2e
test-e2e-rest:
	$(E2E) ./internal/systemdhost ./internal/node ./internal/testimages

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME (default 1m)
	@scripts/fuzz

.PHONY: long
long: ## run the promises of the reconciliation for a million steps (some hours)
	RAPID_CHECKS=$(LONG_CHECKS) $(DRAWN) $(GO) test -run '^TestPromises' -count=1 -timeout 24h -v $(call TESTED,-E,TestPromises,.)

.PHONY: mutants
mutants: ## build faults into the source and see that the tests notice each (some minutes)
	VMOP_MUTANTS=1 $(GO) test -run TestMutantsAreNoticed -count=1 -timeout 2h -v ./internal/sourcemutants

.PHONY: soak
soak: ## change a running machine at random for SOAK (default 5m)
	VMOP_SOAK=$(SOAK) $(GO) test -run TestSoak -count=1 -timeout 0 -v ./vmop/runner

.PHONY: vulncheck
vulncheck: $(TOOLS)/govulncheck ## look for known vulnerabilities (GOVULNDB may name a copy of the database)
	@$(TOOLS)/govulncheck $${GOVULNDB:+-db $$GOVULNDB} ./... || { code=$$?; \
		test $$code = 3 || echo "vulncheck: nothing was looked up. It needs vuln.go.dev, or a copy of the database: make vulncheck GOVULNDB=file:///srv/vulndb" >&2; \
		exit $$code; }

.PHONY: apidiff
apidiff: $(TOOLS)/apidiff ## compare the library's exported surface with the last release
	@scripts/apidiff

.PHONY: lint
lint: $(TOOLS)/staticcheck $(TOOLS)/apilint ## check the format, vet, staticcheck, API conventions, generated files and go.mod
	@out=$$(gofmt -l $$(git ls-files '*.go')); test -z "$$out" || { echo "gofmt -w is needed for: $$out"; exit 1; }
	$(GO) vet -tags e2e ./...
	$(TOOLS)/staticcheck -tags e2e ./...
	$(TOOLS)/apilint ./vmop/spec
	$(GO) mod tidy -diff
	cd tools/dev && $(GO) mod tidy -diff
	cd tools/apilint && $(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	cd tools/csi && $(GO) mod tidy -diff
	@scripts/verify-generated

.PHONY: generate
generate: $(TOOLS)/controller-gen ## regenerate deep copies and CRDs
	PATH="$(TOOLS):$$PATH" $(GO) generate ./...

.PHONY: bench
bench: ## run the benchmarks; each shows its alternative beside it
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: sbom
sbom: build ## list the modules in each program as CycloneDX, bin/NAME.cdx.json
	@for p in vmop-cli vmop-runner vm-operator; do $(GO) run ./internal/sbom $(BIN)/$$p >$(BIN)/$$p.cdx.json || exit 1; done

.PHONY: bench-scale
bench-scale: ## measure the operator with VMOP_SCALE machines (1000) on a real API server
	@$(MAKE) --no-print-directory kubeall build
	$(GO) run ./internal/scaleload -operator $(BIN)/vm-operator -machines $${VMOP_SCALE:-1000}

.PHONY: clean
clean: ## remove what was built in the tree; machines that make run made stay
	rm -rf $(BIN) $(TOOLS) .cache/hello

$(TOOLS)/apilint: $(wildcard tools/apilint/*)
	@mkdir -p $(TOOLS)
	cd tools/apilint && $(GO) build -o $@ .

$(TOOLS)/%: tools/dev/go.mod
	@mkdir -p $(TOOLS)
	cd tools/dev && $(GO) build -o $(TOOLS)/$* $$($(GO) list -f '{{.ImportPath}}' tool | grep '/$*$$')
