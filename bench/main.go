// Command bench measures Palimpsest and, where they are installed, other
// libraries on the same texts and histories, in one run, and prints the tables of
// docs/performance.md. Figures are medians; ratios are of figures of the same run.
//
//	make bench-peers     once: the libraries of npm
//	make bench           about five minutes
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"
)

func main() {
	count := flag.Int("count", 3, "take the median of so `many` runs")
	benchtime := flag.String("benchtime", "200ms", "each run lasts so `long`")
	root := flag.String("root", "..", "the `folder` of the repository")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, *count, *benchtime); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, count int, benchtime string) error {
	r := &report{bench: results{}}
	for _, b := range []struct{ pkg, pattern string }{
		{"./bench", "^BenchmarkTokenizer$"},
		{".", "^BenchmarkPath$"},
		{".", "^BenchmarkPrepareStep$"},
		{"./internal/daemon", "^BenchmarkStep$"},
	} {
		fmt.Fprintln(os.Stderr, "measuring", b.pkg, strings.Trim(b.pattern, "^$"))
		if err := r.bench.run(ctx, root, b.pkg, b.pattern, count, benchtime); err != nil {
			return err
		}
	}
	fmt.Fprintln(os.Stderr, "measuring the libraries of npm")
	var err error
	if r.peers, err = runPeers(ctx, root, count); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "measuring memory")
	if r.memory, err = measureMemory(ctx, root); err != nil {
		return err
	}
	node := "no Node"
	if r.peers != nil {
		node = "Node " + strings.TrimPrefix(r.peers.Node, "v")
	}
	fmt.Printf("%s · %s · %d processors · Go %s · %s · medians of %d\n",
		time.Now().Format("2006-01-02"), processor(), runtime.NumCPU(), strings.TrimPrefix(runtime.Version(), "go"), node, count)
	return r.write(os.Stdout)
}

// processor is the model that Linux names.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for l := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(name) == "model name" {
				return strings.TrimSpace(value)
			}
		}
	}
	return runtime.GOARCH
}
