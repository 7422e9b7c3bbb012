# What needs more than the go command. Everything else is `go build`, `go test`
# and `.ci/run`.

.PHONY: bench bench-peers

bench: ## measure us and, where they are installed, others, and print one table
	go -C bench run .

bench-peers: ## install the libraries of npm that bench and `eval --peers` compare with
	cd bench/peers && npm ci --ignore-scripts
