# What needs more than the go command. Everything else is `go build`, `go test`
# and `.ci/run`.

.PHONY: bench bench-peers release

bench: ## measure us and, where they are installed, others, and print one table
	go -C lab run ./bench

bench-peers: ## install the libraries of npm that bench and `lab peers` compare with
	cd lab/peers && npm ci --ignore-scripts

release: ## build the command for this system as it is released: one static file, stripped
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/palimpsest ./cmd/palimpsest
