//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
)

// neighbour measures how much a tenant that asks for all it may have slows another on
// the same daemon, which has its usual limits: the other's steps alone and beside it,
// by turns.
func neighbour(ctx context.Context, o options, out io.Writer) (err error) {
	talks, err := readTalks(o.transcripts)
	if err != nil {
		return err
	}
	up, err := startUpstream(o.seed)
	if err != nil {
		return err
	}
	defer up.Close()
	store := filepath.Join(o.work, "neighbour.db")
	d, err := newDaemon(o, "neighbour", "sqlite:"+store, up.URL)
	if err != nil {
		return err
	}
	d.args = slices.DeleteFunc(d.args, func(arg string) bool { return arg == "--rate" || arg == "--burst" || arg == "100000" })
	quiet, err := d.tenant(store, "quiet")
	if err != nil {
		return err
	}
	greedy, err := d.tenant(store, "greedy")
	if err != nil {
		return err
	}
	if err := d.start(ctx); err != nil {
		return err
	}
	defer func() {
		if ended := d.end(os.Interrupt); err == nil {
			err = ended
		}
	}()

	var alone, beside []time.Duration
	var did, refused atomic.Int64
	next := 0
	const turns = 6
	for turn := range turns {
		within, cancel := context.WithTimeout(ctx, o.length/turns)
		var load sync.WaitGroup
		if turn%2 == 1 {
			for n := range 4 * o.workers {
				load.Go(func() { saturate(within, greedy, talks, fmt.Sprint("greedy-", turn, "-", n), &did, &refused) })
			}
		}
		took := &alone
		if turn%2 == 1 {
			took = &beside
		}
		random := rand.New(rand.NewPCG(o.seed, uint64(turn)))
		for s := (*session)(nil); within.Err() == nil; {
			if s == nil || s.finished() {
				s = newSession(next, talks[next%len(talks)], []*daemon{quiet})
				next++
			}
			began := time.Now()
			if _, err := s.step(within, random); err == nil {
				*took = append(*took, time.Since(began))
			}
			select {
			case <-time.After(o.pause):
			case <-within.Done():
			}
		}
		cancel()
		load.Wait()
	}
	slices.Sort(alone)
	slices.Sort(beside)
	if len(alone) < 50 || len(beside) < 50 {
		return fmt.Errorf("only %d and %d steps: measure for longer", len(alone), len(beside))
	}
	fmt.Fprintf(out, "the other tenant: %d requests answered, %d refused for being too many\n", did.Load(), refused.Load())
	fmt.Fprintf(out, "alone:  %5d steps, p50 %v, p99 %v\n", len(alone), at(alone, 50), at(alone, 99))
	fmt.Fprintf(out, "beside: %5d steps, p50 %v, p99 %v\n", len(beside), at(beside, 50), at(beside, 99))
	fmt.Fprintf(out, "so p50 is %.1f times as long, p99 %.1f times\n", ratio(beside, alone, 50), ratio(beside, alone, 99))
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(out, "load of the machine at the end: %s\n", strings.TrimSpace(string(text)))
	}
	return nil
}

func ratio(a, b []time.Duration, percent int) float64 {
	return float64(at(a, percent)) / float64(max(1, at(b, percent)))
}

// tenant is the daemon as a tenant of a new key sees it.
func (d *daemon) tenant(store, name string) (*daemon, error) {
	key, err := exec.Command(d.program, "keys", "add", "--store", store, "--tenant", name).Output()
	if err != nil {
		return nil, fmt.Errorf("keys add: %w", err)
	}
	own := &daemon{name: name, url: d.url, http: &http.Client{Timeout: d.http.Timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	own.client, err = api.NewClient(d.url, &api.Options{HTTP: own.http, Key: strings.TrimSpace(string(key))})
	return own, err
}

// saturate asks without a pause until ctx ends, but for those that it is told to make.
func saturate(ctx context.Context, d *daemon, talks []talk, id string, did, refused *atomic.Int64) {
	for n := 0; ctx.Err() == nil; n++ {
		k, version := talks[n%len(talks)], 0
		thread := fmt.Sprint(id, "-", n)
		count := func(err error) bool {
			switch {
			case err == nil:
				did.Add(1)
			case api.IsKind(err, api.TooManyRequests):
				refused.Add(1)
				select {
				case <-time.After(time.Second): // as Retry-After says
				case <-ctx.Done():
				}
			}
			return err == nil
		}
		if _, err := d.client.CreateThread(ctx, api.NewThread{ID: thread}); !count(err) {
			continue
		}
		for i := 0; i < len(k.turns) && ctx.Err() == nil; {
			a, err := d.client.Append(ctx, thread, version, api.Append{Messages: append(k.turns[i].before[:len(k.turns[i].before):len(k.turns[i].before)], k.turns[i].answer)})
			switch {
			case count(err):
				version = a.Version
				i++
			case !api.IsKind(err, api.TooManyRequests):
				i = len(k.turns)
			}
		}
	}
}
