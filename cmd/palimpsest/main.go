// Palimpsest keeps LLM agents inside their context window without losing the
// conversation. Run it without arguments to see its commands.
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
	status := cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(status)
}
