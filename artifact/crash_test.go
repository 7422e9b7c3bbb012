package artifact_test

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// openSealed opens a store with its keys.
func openSealed(t *testing.T, path, master string) (*artifact.Store, *keyring.Keyring) {
	t.Helper()
	masters, err := keyring.ParseMasters(master)
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(path, "p.db"), &sqlite.Options{Masters: masters})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return artifact.NewStore(db.Artifacts(), &artifact.Options{Keyring: db.Keyring(), KeyedIDs: true}), db.Keyring()
}

// TestKilled kills pairs of processes while they put, rotate and reseal in one
// store, at moments of chance. Whatever was acknowledged can be read, before and
// after the rest is sealed anew. A20
func TestKilled(t *testing.T) {
	if path := os.Getenv("PALIMPSEST_TEST_SEALED"); path != "" {
		sealUntilKilled(t, path)
		return
	}
	rounds := 4
	if corpus.Longest() {
		rounds = 100
	}
	path, master := t.TempDir(), keyring.NewMaster()
	random := rand.New(rand.NewPCG(3, 4))
	var acknowledged map[string]string
	total := 0
	for round := range rounds {
		tenant := fmt.Sprint("tenant ", round/4) // so that there is not ever more to seal
		if round%4 == 0 {
			acknowledged = map[string]string{}
		}
		var lines [2][]string
		done := make(chan struct{})
		for n := range lines {
			most := 1 + random.IntN(25)
			go func() {
				defer func() { done <- struct{}{} }()
				lines[n] = runAndKill(t, path, master, tenant, fmt.Sprintf("%d-%d", round, n), most)
			}()
		}
		<-done
		<-done
		s, ring := openSealed(t, path, master)
		before, err := ring.Current(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range slices.Concat(lines[0], lines[1]) {
			what, rest, _ := strings.Cut(line, " ")
			id, content, _ := strings.Cut(rest, " ")
			switch {
			case what == "put":
				acknowledged[id] = content
				total++
			case what == "rotated" && number(t, id) > number(t, before):
				t.Errorf("round %d: %s was made and is not there; the newest is %s", round, id, before)
			}
		}
		readable(t, s, tenant, acknowledged)
		if round%4 == 3 {
			if _, err := s.Reseal(t.Context(), artifact.Requester{TenantID: tenant}); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
			readable(t, s, tenant, acknowledged)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	if total < 2*rounds {
		t.Errorf("only %d artifacts in %d rounds", total, rounds)
	}
}

func number(t *testing.T, keyID string) (n int) {
	if _, err := fmt.Sscanf(keyID, "dk-%d", &n); err != nil && keyID != "" {
		t.Errorf("key %q: %v", keyID, err)
	}
	return n
}

func readable(t *testing.T, s *artifact.Store, tenant string, want map[string]string) {
	t.Helper()
	for id, content := range want {
		if _, got, err := s.Get(t.Context(), artifact.Requester{TenantID: tenant}, id); err != nil || got != content {
			t.Errorf("%s: %q, %v, want %q", id, got, err, content)
		}
	}
}

// runAndKill starts this test as a process of its own, reads what it says it has
// done, and kills it after so many lines.
func runAndKill(t *testing.T, path, master, tenant, writer string, most int) (lines []string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), "PALIMPSEST_TEST_SEALED="+path, "PALIMPSEST_TEST_MASTER="+master,
		"PALIMPSEST_TEST_TENANT="+tenant, "PALIMPSEST_TEST_WRITER="+writer)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	r := bufio.NewReader(out)
	for {
		line, err := r.ReadString('\n')
		if err != nil { // killed; half a line is not said
			break
		}
		lines = append(lines, strings.TrimSuffix(line, "\n"))
		if len(lines) == most {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	if cmd.Wait() == nil || len(lines) < most {
		t.Errorf("writer %s ended by itself after %q", writer, lines)
	}
	return lines
}

// sealUntilKilled works until it is killed, and says what it has done.
func sealUntilKilled(t *testing.T, path string) {
	s, ring := openSealed(t, path, os.Getenv("PALIMPSEST_TEST_MASTER"))
	tenant := os.Getenv("PALIMPSEST_TEST_TENANT")
	for n := 1; ; n++ {
		content := fmt.Sprintf("%s/%d", os.Getenv("PALIMPSEST_TEST_WRITER"), n)
		id, err := s.Put(t.Context(), artifact.Metadata{ThreadID: "t", TenantID: tenant}, content)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("put", id, content)
		if n%8 != 0 {
			continue
		}
		key, err := ring.Rotate(t.Context(), tenant)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("rotated", key)
		if n%16 == 0 {
			if _, err := s.Reseal(t.Context(), artifact.Requester{TenantID: tenant}); err != nil {
				t.Fatal(err)
			}
			fmt.Println("resealed")
		}
	}
}
