//go:build unix

// Command soak keeps daemons busy for a long time, under faults, and tells whether
// anything was lost and how memory, connections and times went on. See run.sh.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
)

func main() {
	o := options{}
	flag.DurationVar(&o.length, "for", 30*time.Minute, "how long to go on")
	flag.IntVar(&o.sessions, "sessions", 1000, "how many sessions are open at once")
	flag.IntVar(&o.workers, "workers", 8, "how many agents ask at the same time")
	flag.DurationVar(&o.pause, "pause", 40*time.Millisecond, "how long an agent rests between two steps: the load stays the same")
	flag.DurationVar(&o.faults, "faults", 20*time.Second, "how often a daemon is killed or stopped, and started again; 0 is never")
	flag.StringVar(&o.stores, "stores", "postgres,sqlite", "the stores to run daemons on: sqlite is one daemon, postgres two")
	flag.StringVar(&o.memory, "memory", "", "the daemons' setting of that name")
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of what happens when")
	flag.StringVar(&o.program, "palimpsest", "palimpsest", "the program")
	flag.StringVar(&o.work, "work", ".", "a folder for the SQLite file and the logs")
	flag.StringVar(&o.transcripts, "transcripts", "", "a folder of transcripts")
	beside := flag.Bool("neighbour", false, "measure instead how much a tenant that asks for all it may have slows another")
	sizes := flag.String("scale", "", "measure instead so many live sessions, such as 1000,3000,10000, on one store of -stores, each for the time of -for and half of it")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	do := run
	if *beside {
		do = func(ctx context.Context, o options) error { return neighbour(ctx, o, os.Stdout) }
	}
	if *sizes != "" {
		do = func(ctx context.Context, o options) error { return scale(ctx, o, *sizes, os.Stdout) }
	}
	if err := do(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

type options struct {
	length, pause, faults      time.Duration
	sessions, workers          int
	seed                       uint64
	program, work, transcripts string
	stores, memory             string
}

func run(ctx context.Context, o options) (err error) {
	talks, err := readTalks(o.transcripts)
	if err != nil {
		return err
	}
	stores := map[string]string{}
	if strings.Contains(o.stores, "sqlite") {
		stores["sqlite"] = "sqlite:" + filepath.Join(o.work, "soak.db")
	}
	if strings.Contains(o.stores, "postgres") {
		server, err := pgtest.Start(&pgtest.Options{Sync: true})
		if err != nil {
			return err
		}
		defer server.Stop()
		stores["postgres-1"], stores["postgres-2"] = server.Address("postgres"), server.Address("postgres")
	}
	up, err := startUpstream(o.seed)
	if err != nil {
		return err
	}
	defer up.Close()
	var daemons []*daemon
	defer func() {
		for _, d := range daemons {
			err = errors.Join(err, d.end(os.Interrupt))
		}
	}()
	for name, store := range stores {
		d, err := newDaemon(o, name, store, up.URL)
		if err == nil {
			err = d.start(ctx)
		}
		if err != nil {
			return err
		}
		daemons = append(daemons, d)
	}
	fmt.Printf("%d transcripts, %d sessions at once, %d agents, %v\n", len(talks), o.sessions, o.workers, o.length)

	// The sessions wait in a line; each agent takes the first, does a step and puts it
	// back.
	line := make(chan *session, o.sessions)
	for n := range o.sessions {
		line <- newSession(n, talks[n%len(talks)], storeOf(daemons, n))
	}
	next := o.sessions
	var mu sync.Mutex // next, sum
	sum := &tally{began: time.Now()}
	within, cancel := context.WithTimeout(ctx, o.length)
	defer cancel()
	var agents sync.WaitGroup
	for n := range o.workers {
		random := rand.New(rand.NewPCG(o.seed, uint64(n)))
		agents.Go(func() {
			for within.Err() == nil {
				s := <-line
				if s.finished() {
					problems := s.check(ctx)
					mu.Lock()
					sum.checked(s, problems)
					s = newSession(next, talks[next%len(talks)], storeOf(daemons, next))
					next++
					mu.Unlock()
				}
				began, turn := time.Now(), s.done+1
				tries, err := s.step(within, random)
				mu.Lock()
				sum.step(began, time.Since(began), turn, tries, err, within.Err() != nil)
				mu.Unlock()
				line <- s
				select {
				case <-time.After(o.pause):
				case <-within.Done():
				}
			}
		})
	}
	proxied := &proxying{talks: talks, daemons: daemons, client: &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2}}}
	agents.Go(func() { proxied.run(within, o.pause) })
	if o.faults > 0 {
		agents.Go(func() { trouble(within, o, daemons) })
	}
	for every := time.NewTicker(10 * time.Second); ; {
		select {
		case <-every.C:
			mu.Lock()
			for _, d := range daemons {
				sum.look(d)
			}
			mu.Unlock()
			continue
		case <-within.Done():
		}
		every.Stop()
		break
	}
	agents.Wait()
	for _, d := range daemons { // all are there for the last look
		if err := d.start(ctx); err != nil {
			return err
		}
	}
	close(line)
	for s := range line {
		sum.checked(s, s.check(ctx))
	}
	return sum.tell(os.Stdout, proxied, daemons)
}

// trouble kills and stops daemons in turn, and starts them again.
func trouble(ctx context.Context, o options, daemons []*daemon) {
	random := rand.New(rand.NewPCG(o.seed, 1<<40))
	for n := 0; ; n++ {
		select {
		case <-time.After(o.faults):
		case <-ctx.Done():
			return
		}
		d := daemons[n%len(daemons)]
		how := os.Kill
		if random.IntN(3) == 0 {
			how = os.Interrupt
		}
		// It was killed: that it says so is no news.
		_ = d.end(how)
		if err := d.start(context.WithoutCancel(ctx)); err != nil {
			fmt.Println("a daemon does not start again:", err)
			return
		}
	}
}

// storeOf are the daemons of one store: sessions are parted among the stores.
func storeOf(daemons []*daemon, n int) (list []*daemon) {
	for _, d := range daemons {
		if strings.HasPrefix(d.name, "sqlite") == (n%2 == 0) {
			list = append(list, d)
		}
	}
	if list == nil {
		return daemons
	}
	return list
}
