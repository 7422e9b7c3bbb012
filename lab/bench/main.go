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
	"slices"
	"strings"
	"time"
)

func main() {
	count := flag.Int("count", 3, "take the median of so `many` runs")
	benchtime := flag.String("benchtime", "200ms", "each run lasts so `long`")
	root := flag.String("root", "..", "the `folder` of the repository")
	only := flag.String("only", strings.Join(parts, ","), "measure these `PARTS` alone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *root, strings.Split(*only, ","), *count, *benchtime); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// parts are the tables.
var parts = []string{"tokenizers", "path", "others", "steps", "memory"}

func run(ctx context.Context, root string, only []string, count int, benchtime string) error {
	asked := map[string]bool{}
	for _, part := range only {
		if !slices.Contains(parts, part) {
			return fmt.Errorf("no part is called %q; known are %s", part, strings.Join(parts, ", "))
		}
		asked[part] = true
	}
	r := &report{bench: results{}}
	for _, b := range []struct {
		pkg, pattern string
		needed       bool
		benchtime    string
	}{
		{"./lab/bench", "^BenchmarkTokenizer$", asked["tokenizers"], benchtime},
		{".", "^BenchmarkPath$", asked["path"], benchtime},
		{".", "^BenchmarkPath$/^plan_again$", asked["others"] && !asked["path"], benchtime},
		{".", "^BenchmarkPrepareStep$", asked["steps"], "90x"}, // more would compact in between
		// So many steps that compactions come as often as they do in use.
		{"./internal/daemon", "^BenchmarkStep$", asked["steps"], "300x"},
	} {
		if !b.needed {
			continue
		}
		fmt.Fprintln(os.Stderr, "measuring", b.pkg, b.pattern)
		if err := r.bench.run(ctx, root, b.pkg, b.pattern, count, b.benchtime); err != nil {
			return err
		}
	}
	var err error
	if asked["tokenizers"] || asked["others"] {
		fmt.Fprintln(os.Stderr, "measuring the libraries of npm")
		if r.peers, err = runPeers(ctx, root, asked, count); err != nil {
			return err
		}
	}
	if asked["memory"] {
		fmt.Fprintln(os.Stderr, "measuring memory")
		if r.memory, err = measureMemory(ctx, root); err != nil {
			return err
		}
	}
	node := "no Node"
	if r.peers != nil {
		node = "Node " + strings.TrimPrefix(r.peers.Node, "v")
	}
	fmt.Printf("%s · %s · %d processors · Go %s · %s · medians of %d\n",
		time.Now().Format("2006-01-02"), processor(), runtime.NumCPU(), strings.TrimPrefix(runtime.Version(), "go"), node, count)
	return r.write(os.Stdout, asked)
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
