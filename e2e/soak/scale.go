//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/palimpsest-ai/palimpsest/api"
	"github.com/palimpsest-ai/palimpsest/api/neutral"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/postgres"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// A live session has liveMessages messages of about liveBytes in all, a plan in force,
// and takes a step with stepBytes every stepEvery.
const (
	liveMessages = 60
	liveBytes    = 100_000
	stepBytes    = 2_000
	stepEvery    = 10 * time.Minute
	// scaleWindow is the window of a step: the session is over its mark, so that a plan
	// is due, and under the plan it has room for many steps.
	scaleWindow = 24_000
	// templates is how many different sessions there are; the others repeat them, since
	// compacting each would take most of the time.
	templates = 20
)

// scale measures how daemons go on with more and more live sessions over one store: one
// daemon on SQLite, three on PostgreSQL.
func scale(ctx context.Context, o options, sizes string, out io.Writer) (err error) {
	b := &crowd{o: o, out: out}
	if b.address, err = b.place(); err != nil {
		return err
	}
	if b.server != nil {
		defer b.server.Stop()
	}
	count := 1
	if b.server != nil {
		count = 3
	}
	for n := range count {
		d, err := newDaemon(o, fmt.Sprint("scale-", n+1), b.address, "http://127.0.0.1:9")
		if err != nil {
			return err
		}
		b.daemons = append(b.daemons, d)
	}
	defer func() {
		for _, d := range b.daemons {
			d.end(os.Interrupt)
		}
	}()
	for size := range strings.SplitSeq(sizes, ",") {
		n, err := strconv.Atoi(size)
		if err == nil {
			err = b.measure(ctx, n)
		}
		if err != nil {
			return fmt.Errorf("%s sessions: %w", size, err)
		}
	}
	return nil
}

// crowd is the sessions over one store, and its daemons.
type crowd struct {
	o        options
	out      io.Writer
	address  string
	server   *pgtest.Server // nil with SQLite
	daemons  []*daemon
	versions []atomic.Int32 // of the logs, by session
}

func (b *crowd) place() (string, error) {
	if b.o.stores != "postgres" {
		return "sqlite:" + filepath.Join(b.o.work, "scale.db"), nil
	}
	var err error
	if b.server, err = pgtest.Start(&pgtest.Options{Sync: true}); err != nil {
		return "", err
	}
	return b.server.Address("postgres"), nil
}

// opened is the store itself, and what executes a statement in it.
type opened struct {
	store.DB
	execute func(statement string) error
}

func (b *crowd) open(ctx context.Context) (opened, error) {
	if b.server != nil {
		db, err := postgres.Open(ctx, b.address, nil)
		return opened{db, func(statement string) error {
			_, err := db.Pool().Exec(ctx, statement)
			return err
		}}, err
	}
	db, err := sqlite.Open(ctx, strings.TrimPrefix(b.address, "sqlite:"), nil)
	return opened{db, func(statement string) error {
		_, err := db.SQL().ExecContext(ctx, statement)
		return err
	}}, err
}

// diskBytes is what the store takes, its journal left out.
func (b *crowd) diskBytes() (n int64) {
	folder := b.o.work
	if b.server != nil {
		folder = filepath.Join(b.server.Directory(), "data", "base")
	}
	// A file that goes away meanwhile takes nothing.
	_ = filepath.WalkDir(folder, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || b.server == nil && !strings.HasPrefix(e.Name(), "scale.db") || strings.HasSuffix(path, "-wal") {
			return nil
		}
		if info, err := e.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

func (b *crowd) measure(ctx context.Context, n int) error {
	for _, d := range b.daemons {
		if err := d.end(os.Interrupt); err != nil {
			return err
		}
	}
	began := time.Now()
	if err := b.fill(ctx, n); err != nil {
		return err
	}
	filled := time.Since(began)
	began = time.Now()
	for _, d := range b.daemons {
		if err := d.start(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "%d sessions: made in %v; %d daemons ready in %v; store %d MB\n", n, filled.Round(time.Second), len(b.daemons), time.Since(began).Round(time.Millisecond), b.diskBytes()>>20)
	b.tellMemory("at the start")
	b.phase(ctx, n, "at their pace", max(1, 4*len(b.daemons)), float64(n)/stepEvery.Seconds(), b.o.length)
	b.tellMemory("after that")
	b.phase(ctx, n, "as fast as it goes", 4, 0, b.o.length/2)
	b.tellMemory("after that")
	// A kill, and the time until all answer again.
	for _, d := range b.daemons {
		if err := d.end(os.Kill); err != nil && !strings.Contains(err.Error(), "killed") {
			return err
		}
	}
	began = time.Now()
	for _, d := range b.daemons {
		if err := d.start(ctx); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "  ready %v after a kill; store %d MB\n", time.Since(began).Round(time.Millisecond), b.diskBytes()>>20)
	return ctx.Err()
}

func (b *crowd) tellMemory(when string) {
	for _, d := range b.daemons {
		if f, ok := d.look(); ok {
			fmt.Fprintf(b.out, "  %s: %s %d MB, %d files, %d goroutines\n", d.name, when, f.megabytes, f.files, f.goroutines)
		}
	}
}

// phase takes steps in sessions in turn, as a rule in none twice: rate of them a second,
// or as many as it can with 0.
func (b *crowd) phase(ctx context.Context, n int, name string, workers int, rate float64, length time.Duration) {
	within, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	due := make(chan int, n)
	order := rand.New(rand.NewPCG(b.o.seed, uint64(n))).Perm(n)
	began, before := time.Now(), b.processor()
	go func() {
		defer close(due)
		for i := 0; within.Err() == nil; i++ {
			if rate > 0 {
				select {
				case <-time.After(time.Until(began.Add(time.Duration(float64(i) / rate * float64(time.Second))))):
				case <-within.Done():
					return
				}
			}
			select {
			case due <- order[i%n]:
			case <-within.Done():
				return
			}
		}
	}()
	var mu sync.Mutex
	var took []time.Duration
	failed := map[string]int{}
	var agents sync.WaitGroup
	for w := range workers {
		d := b.daemons[w%len(b.daemons)]
		agents.Go(func() {
			for k := range due {
				if within.Err() != nil {
					return
				}
				at := time.Now()
				err := b.step(within, d, k)
				mu.Lock()
				if err == nil {
					took = append(took, time.Since(at))
				} else if within.Err() == nil {
					failed[err.Error()[:min(120, len(err.Error()))]]++
				}
				mu.Unlock()
			}
		})
	}
	agents.Wait()
	slices.Sort(took)
	if len(took) == 0 {
		fmt.Fprintf(b.out, "  %s: no step; %v\n", name, failed)
		return
	}
	each := (b.processor() - before) / time.Duration(len(took))
	fmt.Fprintf(b.out, "  %s: %d steps, %.1f a second, p50 %v, p99 %v, %v of processor each, failed %v\n", name, len(took), float64(len(took))/time.Since(began).Seconds(), at(took, 50), at(took, 99), each.Round(100*time.Microsecond), failed)
}

// processor is the time that the daemons have used since they were started.
func (b *crowd) processor() (sum time.Duration) {
	for _, d := range b.daemons {
		f, _ := d.look()
		sum += f.processor
	}
	return sum
}

func sessionID(n int) string { return fmt.Sprint("live-", n) }

// step brings the output of a tool and asks for a prompt, then brings the answer. A
// session that another agent has just used goes on from there.
func (b *crowd) step(ctx context.Context, d *daemon, n int) error {
	version := int(b.versions[n].Load())
	p, err := d.client.Prepare(ctx, sessionID(n), version, api.Step{Base: &neutral.Prompt{Model: "gpt-soak"}, Messages: []neutral.Message{said1("user", words(stepBytes, uint64(n)<<20|uint64(version)))}, Window: scaleWindow, Output: 1000})
	if err != nil {
		return err
	}
	a, err := d.client.Finish(ctx, sessionID(n), p.Version, api.Answer{Messages: []neutral.Message{said1("assistant", fmt.Sprint("done with step ", p.Version))}})
	if err == nil {
		b.versions[n].Store(int32(a.Version))
	}
	return err
}

func said1(role, text string) neutral.Message {
	return neutral.Message{Role: role, Parts: []neutral.Part{{Type: "text", Text: text}}}
}

// words is text of about so many bytes as a tool might put out, the same for the same seed.
func words(bytes int, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, 7))
	var w strings.Builder
	for w.Len() < bytes {
		switch random.IntN(4) {
		case 0:
			fmt.Fprintf(&w, "internal/queue/worker_%d.go:%d: undefined: Retry%d\n", random.IntN(90), random.IntN(900), random.IntN(90))
		case 1:
			fmt.Fprintf(&w, "2026-03-%02d %02d:%02d:%02d order ORD-%06d waits for stock\n", 1+random.IntN(28), random.IntN(24), random.IntN(60), random.IntN(60), random.IntN(1_000_000))
		default:
			for range 8 + random.IntN(8) {
				w.WriteString([]string{"the ", "build ", "fails ", "when ", "a ", "worker ", "stops ", "before ", "its ", "queue ", "is ", "empty ", "and ", "nobody ", "reads ", "from "}[random.IntN(16)])
			}
			w.WriteString(".\n")
		}
	}
	return w.String()
}

// fill makes sessions up to the given number. The first few are made and compacted by a
// daemon; the others are copies of those under their own names.
func (b *crowd) fill(ctx context.Context, n int) error {
	first := b.daemons[0]
	from := len(b.versions)
	b.versions = slices.Grow(b.versions, n)[:n] // fill is called while no step is taken
	if from == 0 {
		if err := first.start(ctx); err != nil {
			return err
		}
		for k := range templates {
			if err := b.template(ctx, first, k); err != nil {
				return err
			}
		}
		if err := first.end(os.Interrupt); err != nil {
			return err
		}
	}
	db, err := b.open(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	t := db.Tenant("")
	for k := from; k < n; k++ {
		if (k-from)%copiedAtOnce == 0 {
			if err := copyLogs(db.execute, k, min(k+copiedAtOnce, n)); err != nil {
				return err
			}
		}
		p, _, err := t.Plans.Current(ctx, fmt.Sprint("template-", k%templates))
		if err != nil {
			return err
		}
		own := *p
		own.ThreadID = sessionID(k)
		if _, err := t.Plans.Commit(ctx, own.ThreadID, 0, store.Commit{Plan: &own}); err != nil {
			return err
		}
		b.versions[k].Store(liveMessages)
	}
	return nil
}

// copiedAtOnce is how many logs one transaction copies.
const copiedAtOnce = 500

// copyLogs copies the templates' logs to the sessions from one number up to before another.
func copyLogs(execute func(string) error, from, to int) error {
	for _, statement := range []string{
		`INSERT INTO threads (tenant, name, messages, plans, events, created, changed)
		WITH RECURSIVE n(k) AS (SELECT %[1]d UNION ALL SELECT k + 1 FROM n WHERE k + 1 < %[2]d)
		SELECT '', 'live-' || n.k, s.messages, 0, 0, s.created, s.changed FROM n JOIN threads s ON s.tenant = '' AND s.name = 'template-' || (n.k %% %[3]d)`,
		`INSERT INTO messages (thread, position, id, content)
		WITH RECURSIVE n(k) AS (SELECT %[1]d UNION ALL SELECT k + 1 FROM n WHERE k + 1 < %[2]d)
		SELECT t.number, m.position, m.id, m.content FROM n JOIN threads t ON t.tenant = '' AND t.name = 'live-' || n.k
		JOIN threads s ON s.tenant = '' AND s.name = 'template-' || (n.k %% %[3]d) JOIN messages m ON m.thread = s.number`,
	} {
		if err := execute(fmt.Sprintf(statement, from, to, templates)); err != nil {
			return err
		}
	}
	return nil
}

func (b *crowd) template(ctx context.Context, d *daemon, k int) error {
	id := fmt.Sprint("template-", k)
	if _, err := d.client.CreateThread(ctx, api.NewThread{ID: id}); err != nil {
		return err
	}
	var messages []neutral.Message
	for m := range liveMessages {
		messages = append(messages, said1([]string{"user", "assistant"}[m%2], words(liveBytes/liveMessages, uint64(k)<<40|uint64(m))))
	}
	a, err := d.client.Append(ctx, id, 0, api.Append{Messages: messages})
	if err != nil {
		return err
	}
	p, err := d.client.Prepare(ctx, id, a.Version, api.Step{Base: &neutral.Prompt{Model: "gpt-soak"}, Window: scaleWindow, Output: 1000, Force: true})
	if err == nil && p.PlanVersion == 0 {
		err = fmt.Errorf("%s has no plan: it takes %d tokens", id, p.Tokens)
	}
	return err
}
