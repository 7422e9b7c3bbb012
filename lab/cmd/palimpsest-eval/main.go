// Palimpsest-eval measures compaction policies on recorded conversations; docs/evaluation.md
// describes the measures.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	status := run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(status)
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, s cli.Streams) int {
	return cli.Execute(ctx, args, s, evalCommand)
}
