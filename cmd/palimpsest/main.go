// Palimpsest keeps LLM agents inside their context window without losing the
// conversation. Run it without arguments to see its commands.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/cli"
)

// lastGrace is how long the command has to end after a second signal. Some programs send each twice.
const lastGrace = 500 * time.Millisecond

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		second := <-signals
		time.Sleep(lastGrace)
		number, _ := second.(syscall.Signal)
		os.Exit(128 + int(number)) // like a shell
	}()
	os.Exit(cli.Run(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
