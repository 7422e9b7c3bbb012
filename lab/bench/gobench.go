package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/palimpsest-ai/palimpsest/internal/test/cputime"
)

// results are the medians of benchmarks: by name, without "Benchmark" and the
// number of processors, then by unit, such as "ns/op".
type results map[string]map[string]float64

// run runs benchmarks of a package of the module at root.
func (r results) run(ctx context.Context, root, pkg, pattern string, count int, benchtime string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", pattern, "-benchmem",
		"-count", strconv.Itoa(count), "-benchtime", benchtime, "-timeout", "30m", pkg)
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("go test -bench %s %s: %w\n%s", pattern, pkg, err, out)
	}
	return r.read(strings.NewReader(string(out)))
}

// read takes the lines of `go test -bench` and keeps the median of each name.
func (r results) read(in io.Reader) error {
	all := map[string]map[string][]float64{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(fields[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 {
			if _, err := strconv.Atoi(name[i+1:]); err == nil {
				name = name[:i]
			}
		}
		if all[name] == nil {
			all[name] = map[string][]float64{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			x, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return fmt.Errorf("benchmark %s: %w", name, err)
			}
			all[name][fields[i+1]] = append(all[name][fields[i+1]], x)
		}
	}
	for name, units := range all {
		r[name] = map[string]float64{}
		for unit, list := range units {
			r[name][unit] = median(list)
		}
	}
	return lines.Err()
}

func median(list []float64) float64 {
	slices.Sort(list)
	if n := len(list); n%2 == 0 {
		return (list[n/2-1] + list[n/2]) / 2
	}
	return list[len(list)/2]
}

// ms is what a benchmark takes of processors, in milliseconds; 0 when it did not
// run.
func (r results) ms(name string) float64 { return r[name][cputime.Unit] / 1e6 }
