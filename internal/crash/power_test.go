package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/dsn"
	"github.com/palimpsest-ai/palimpsest/internal/durable"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/job"
	"github.com/palimpsest-ai/palimpsest/job/river"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// workAWhile does so many deeds for two tenants, and puts jobs that nobody finishes;
// then it closes the store or leaves it as it is.
func workAWhile(ctx context.Context, k task, out io.Writer) error {
	o, err := k.Place.open(ctx)
	if err != nil {
		return err
	}
	jobs, err := river.OnSQLite(ctx, o.db.(*sqlite.DB).SQL(), job.Handlers{"wait": func(ctx context.Context, _ job.Job) error {
		<-ctx.Done()
		return ctx.Err()
	}}, nil)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(d deed) error {
		text, err := json.Marshal(d)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		_, err = out.Write(append(text, '\n')) // one call of the system, which is looked for
		return err
	}
	if err := begin(ctx, k.Place.Folder, say); err != nil {
		return err
	}
	failed := make(chan error)
	for n := range 2 {
		tenant := fmt.Sprintf("%s-%d", k.Process, n)
		w := &worker{
			opened: o, Tenant: o.db.Tenant(tenant), place: k.Place, tenant: tenant, say: say, run: k.Seed,
			random: rand.New(rand.NewPCG(k.Seed, uint64(n))),
		}
		go func() {
			for i := range k.Count {
				err := w.next(ctx)
				if i%5 == 0 {
					err = errors.Join(err, w.do(deed{Kind: "job", Name: w.name("job")}, func(d *deed) error {
						_, err := jobs.Put(ctx, job.Job{Kind: "wait", Key: d.Name})
						return err
					}))
				}
				if err != nil {
					failed <- fmt.Errorf("%s: %w", tenant, err)
					return
				}
			}
			failed <- nil
		}()
	}
	err = errors.Join(<-failed, <-failed)
	if k.Seed%2 == 0 || err != nil {
		return err
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel() // the jobs are not waited for
	_ = jobs.Stop(stopped)
	return o.close()
}

// The folder that a process makes for its first store, and what it says there.
const (
	beginning = "data/of/one/user"
	firstText = "the first of all"
)

// begin makes a store in a folder that is not there, as the command does when it is
// first used, and a file in another.
func begin(ctx context.Context, folder string, say func(deed) error) error {
	db, err := dsn.Open(ctx, filepath.Join(folder, beginning)+"/", nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.Tenant("").Log.Append(ctx, "t", 0, []thread.Message{{Role: thread.User, Parts: []thread.Part{thread.Text{Text: firstText}}}}); err != nil {
		return err
	}
	if err := say(deed{Kind: "begin", Done: true}); err != nil {
		return err
	}
	keys, err := durable.Open(filepath.Join(folder, "keys", "of"))
	if err != nil {
		return err
	}
	defer keys.Root.Close()
	// A process that was killed has made a folder, and did not come to sync it.
	if err := os.Mkdir(filepath.Join(folder, "keys", "of", "half"), 0o700); err != nil {
		return err
	}
	if err := keys.Create("half/one", []byte(firstText)); err != nil {
		return err
	}
	return say(deed{Kind: "key", Done: true})
}

// begun says what is missing of what begin has acknowledged.
func begun(ctx context.Context, folder, kind string) error {
	if kind == "key" {
		text, err := os.ReadFile(filepath.Join(folder, "keys", "of", "half", "one"))
		if err == nil && string(text) != firstText {
			err = fmt.Errorf("the key is %q", text)
		}
		return err
	}
	db, err := dsn.Open(ctx, filepath.Join(folder, beginning)+"/", &dsn.Options{Existing: true})
	if err != nil {
		return err
	}
	defer db.Close()
	th, err := db.Tenant("").Log.Load(ctx, "t")
	if err == nil && (th.Len() != 1 || th.At(0).Text() != firstText) {
		err = fmt.Errorf("the first store has %d messages", th.Len())
	}
	return err
}

// recorded lets a process work under strace, and returns its calls.
func recorded(t *testing.T, k task) []call {
	t.Helper()
	tool, err := exec.LookPath("strace")
	if err != nil {
		if os.Getenv("PALIMPSEST_REQUIRE_STRACE") != "" {
			t.Fatal(err)
		}
		t.Skip("strace is not installed: what a process writes cannot be recorded")
	}
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), tool, "-f", "--seccomp-bpf", "-y", "-xx", "-s", "100000000", "-e", "trace="+traced, "-o", to, os.Args[0])
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	if said, err := cmd.CombinedOutput(); err != nil {
		if os.Getenv("PALIMPSEST_REQUIRE_STRACE") == "" && strings.Contains(string(said), "ptrace") {
			t.Skipf("processes may not be traced here: %s", said)
		}
		t.Fatalf("%v\n%.2000s", err, said)
	}
	f, err := os.Open(to)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls, err := trace(f)
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// said is what a process says with a call, if it does.
func (c call) said() (d deed, ok bool) {
	if c.name != "write" || !c.begins || !strings.HasPrefix(c.args[0], "pipe:") && !strings.HasPrefix(c.args[1], `{"`) {
		return d, false
	}
	err := json.Unmarshal([]byte(c.args[1]), &d)
	return d, err == nil && d.Kind != ""
}

// TestPowerLoss: the power goes in the middle of work, and the disk has of what was
// not synced nothing, all or any part, in sectors. The store opens, nothing that was
// acknowledged is lost, and nothing is half there. PALIMPSEST_LONG=all makes it 40
// processes with 100 losses each instead of two with 12.
func TestPowerLoss(t *testing.T) {
	processes, losses := 2, 12
	if corpus.Longest() {
		processes, losses = 40, 100
	}
	for seed := range uint64(processes) {
		folder, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		k := task{Do: "power", Process: "a", Seed: seed, Count: 40, Place: place{
			Store: "sqlite:" + filepath.Join(folder, "p.db"), Folder: folder, Master: keyring.NewMaster(),
		}}
		calls := recorded(t, k)
		random := rand.New(rand.NewPCG(14, seed))
		// Half of them are where something has just been acknowledged.
		var at, acknowledged []int
		for n, c := range calls {
			if d, ok := c.said(); ok && d.Done {
				acknowledged = append(acknowledged, n+1)
			}
		}
		if len(acknowledged) < k.Count {
			t.Fatalf("%d acknowledged deeds in %d calls", len(acknowledged), len(calls))
		}
		for n := range losses {
			if n%2 == 0 {
				at = append(at, acknowledged[random.IntN(len(acknowledged))])
			} else {
				at = append(at, random.IntN(len(calls)))
			}
		}
		slices.Sort(at)
		d := newDisk(folder)
		var deeds []deed
		for n, c := range calls {
			for ; len(at) > 0 && at[0] == n; at = at[1:] {
				t.Run(fmt.Sprintf("process %d, call %d of %d", seed, n, len(calls)), func(t *testing.T) {
					after(t, d, random, k.Place, deeds)
				})
			}
			d.apply(c)
			if told, ok := c.said(); ok {
				deeds = append(deeds, told)
			}
		}
	}
}

// after lets the power go, and compares what is left with what was acknowledged.
func after(t *testing.T, d *disk, random *rand.Rand, p place, deeds []deed) {
	ctx, folder := t.Context(), t.TempDir()
	if err := d.lost(random, folder); err != nil {
		t.Fatal(err)
	}
	p.Store, p.Folder = "sqlite:"+filepath.Join(folder, "p.db"), folder
	o, err := p.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}()
	ledgers := map[string]*ledger{}
	for _, told := range deeds {
		if told.Kind == "begin" || told.Kind == "key" {
			if err := begun(ctx, folder, told.Kind); err != nil {
				t.Error(err)
			}
			continue
		}
		l := ledgers[told.Tenant]
		if l == nil {
			l = newLedger(told.Tenant)
			ledgers[told.Tenant] = l
		}
		l.note(told)
		if !told.Done || told.Kind != "job" {
			continue
		}
		var kept int
		row := o.db.(*sqlite.DB).SQL().QueryRowContext(ctx, `SELECT count(*) FROM river_job WHERE args ->> 'key' = $1`, told.Name)
		if err := row.Scan(&kept); err != nil || kept != 1 {
			t.Errorf("job %s is there %d times: %v", told.Name, kept, err)
		}
	}
	for _, l := range ledgers {
		l.check(ctx, t, p, o)
	}
	sound(ctx, t, o)
}
