package crash_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/internal/crash"
	"github.com/palimpsest-ai/palimpsest/internal/test/pgtest"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
)

// task is what a process that a test has started is to do.
type task struct {
	Do      string // work, power, history or serve
	Place   place
	Process string
	Seed    uint64
	Count   int
}

// taskVariable holds the task of a process that is no test.
const taskVariable = "PALIMPSEST_TEST_TASK"

func TestMain(m *testing.M) {
	if text := os.Getenv(taskVariable); text != "" {
		if err := perform(context.Background(), text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(pgtest.Main(m))
}

func perform(ctx context.Context, text string) error {
	var k task
	if err := json.Unmarshal([]byte(text), &k); err != nil {
		return err
	}
	switch k.Do {
	case "power":
		return workAWhile(ctx, k, os.Stdout)
	case "history":
		return writeHistory(ctx, k, os.Stdout)
	case "serve":
		return serve(ctx, k.Place, os.Stdout)
	}
	return work(ctx, k.Place, k.Process, k.Seed, os.Stdout)
}

// command is a process with a task.
func command(t testing.TB, k task, environment ...string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), append(environment, taskVariable+"="+string(text))...)
	return cmd
}

// patience is how many lines a process may say before it comes to its point.
const patience = 4000

// killed starts a process, takes what it says into the ledgers and kills it:
// after so many lines, or where it kills itself at a point of the program.
func killed(t testing.TB, k task, point string, after int, ledgers map[string]*ledger) {
	t.Helper()
	var environment []string
	if point != "" {
		environment, after = []string{crash.Variable + "=" + point}, patience
	}
	cmd := command(t, k, environment...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return
	}
	lines := 0
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break // dead; half a line says nothing
		}
		var d deed
		if err := json.Unmarshal(line, &d); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		ledgers[d.Tenant].note(d)
		if lines++; lines == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	err = cmd.Wait()
	if !strings.Contains(fmt.Sprint(err), "killed") || point != "" && lines >= patience {
		t.Errorf("process %s, to be killed at %q: after %d lines: %v\n%s", k.Process, point, lines, err, said.String())
	}
}

// points asks a process which points it comes to while it works.
func points(t testing.TB, p place) []string {
	t.Helper()
	cmd := command(t, task{Do: "work", Place: p, Process: "points", Seed: 1}, crash.Variable+"="+crash.All)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewScanner(out)
	for n := 0; n < 400 && r.Scan(); n++ {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	for r.Scan() { // until it is dead
	}
	// What it was killed by is known.
	_ = cmd.Wait()
	var found []string
	for line := range strings.Lines(said.String()) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), crash.Prefix)
		if !ok {
			t.Fatalf("%s", line)
		}
		found = append(found, name)
	}
	slices.Sort(found)
	return found
}

// kills is how many processes are killed: the whole number where the variable
// asks for it ("500/100"), else a few.
func kills(t testing.TB, long int, few int) int {
	t.Helper()
	value := os.Getenv("PALIMPSEST_CRASHES")
	if value == "" {
		return few
	}
	n, err := strconv.Atoi(strings.Split(value+"/"+value, "/")[long])
	if err != nil {
		t.Fatalf("PALIMPSEST_CRASHES: %v; want two numbers such as 500/100", err)
	}
	return n
}

// fresh is after how many rounds a new store is begun, so that there is not ever
// more to look through.
const fresh = 12

// crashes kills processes in pairs that share a store, one at the points of the
// program in turn and one wherever it is.
func crashes(t *testing.T, count int, create func() place, wanted ...string) {
	t.Parallel()
	ctx := t.Context()
	names := points(t, create())
	for _, name := range wanted {
		if !slices.Contains(names, name) {
			t.Errorf("no process came to %q", name)
		}
	}
	t.Logf("%d points: %q", len(names), names)
	random := rand.New(rand.NewPCG(11, 22))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var p place
	var ledgers map[string]*ledger
	deeds := 0
	for round := range (count + 1) / 2 {
		if round%fresh == 0 {
			p, ledgers = create(), map[string]*ledger{}
			for _, tenant := range []string{"a-0", "a-1", "b-0", "b-1"} {
				ledgers[tenant] = newLedger(tenant)
			}
		}
		done := make(chan struct{})
		point := fmt.Sprintf("%s/%d", names[round%len(names)], 1+random.IntN(3))
		after := 1 + random.IntN(60)
		for n, process := range []string{"a", "b"} {
			k := task{Do: "work", Place: p, Process: process, Seed: uint64(round + 1)}
			own := map[string]*ledger{process + "-0": ledgers[process+"-0"], process + "-1": ledgers[process+"-1"]}
			go func() {
				defer func() { done <- struct{}{} }()
				if n == 0 {
					killed(t, k, point, 0, own)
				} else {
					killed(t, k, "", after, own)
				}
			}()
		}
		<-done
		<-done
		o, err := p.open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range ledgers {
			deeds += l.deeds
			l.deeds = 0
			l.check(ctx, t, p, o)
		}
		counts := sound(ctx, t, o)
		if err := o.close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("round %d, point %q, the other after %d lines; in the store: %+v", round, point, after, counts)
		}
	}
	t.Logf("%d processes killed, %d acknowledged deeds, none lost", 2*((count+1)/2), deeds)
}

// TestSQLite: processes that share a file are killed at every point and anywhere.
// Nothing that was acknowledged is lost, and nothing is half there. A14, A20, B11
func TestSQLite(t *testing.T) {
	crashes(t, kills(t, 0, 14), func() place {
		folder := t.TempDir()
		return place{Store: "sqlite:" + filepath.Join(folder, "p.db"), Folder: folder, Master: keyring.NewMaster()}
	}, "append: written", "commit: plan", "artifact: file", "artifact delete: written", "keys: written", "reseal: written", "migrate: numbered", "migrate: written", "file: written to create")
}

// TestPostgres is TestSQLite on a server.
func TestPostgres(t *testing.T) {
	crashes(t, kills(t, 1, 6), func() place {
		return place{Store: pgtest.Database(t), Folder: t.TempDir(), Master: keyring.NewMaster()}
	}, "append: written", "commit: plan", "artifact: written", "artifact delete: written", "keys: written", "reseal: written", "migrate: numbered", "migrate: written")
}

// TestHalfMade: a database in which an earlier version was killed between the
// table of migrations and its first row is mended.
func TestHalfMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "p.db")
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	const table = `CREATE TABLE palimpsest_schema (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))`
	if _, err := db.Exec(table); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	p := place{Store: "sqlite:" + file, Folder: filepath.Dir(file), Master: keyring.NewMaster()}
	if err := usable(t.Context(), p, "p"); err != nil {
		t.Error(err)
	}
}
