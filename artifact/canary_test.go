package artifact_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/palimpsest-ai/palimpsest/artifact"
	"github.com/palimpsest-ai/palimpsest/internal/test/corpus"
	"github.com/palimpsest-ai/palimpsest/store/keyring"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
)

// canary is a model of what several tenants keep in one store with keys. Each tenant's content holds a word that nobody else's does, and so does
// its metadata.
type canary struct {
	t       *testing.T
	ctx     context.Context
	random  *rand.Rand
	now     time.Time
	backend artifact.Backend
	store   *artifact.Store
	ring    *keyring.Keyring
	tenants []*tenant
	done    map[string]int
}

type tenant struct {
	name, word, mark string
	namer            artifact.Namer
	held             map[string]*record
	ids              []string // all that ever were, in order
	gone             bool
}

type record struct {
	content     string
	sensitivity int
	ends        time.Time // zero: never
}

var classes = []artifact.Sensitivity{artifact.Public, artifact.Internal, artifact.Confidential, artifact.Restricted}

// shared is content that all tenants have in threads of one name.
const shared = "the same words in every tenant, "

// TestCanary does many random things for several tenants, and wants of every
// answer that it is what its own tenant put in, and holds no word of another's.
// In the end no file of the store holds a word of anybody's. PALIMPSEST_LONG=all
// makes it 100,000 operations instead of 5,000. A20
func TestCanary(t *testing.T) {
	operations := 5_000
	if corpus.Longest() {
		operations = 100_000
	}
	path := t.TempDir()
	masters, err := keyring.ParseMasters(keyring.NewMaster())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), filepath.Join(path, "p.db"), &sqlite.Options{Masters: masters})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c := &canary{
		t: t, ctx: t.Context(), random: rand.New(rand.NewPCG(1, 2)), now: time.Date(2025, 5, 12, 9, 0, 0, 0, time.UTC),
		backend: db.Artifacts(), ring: db.Keyring(), done: map[string]int{},
	}
	c.store = artifact.NewStore(c.backend, &artifact.Options{Keyring: c.ring, KeyedIDs: true, Now: func() time.Time { return c.now }})
	for n, name := range []string{"", "acme", "acme/..", "Acme", "ε"} {
		c.add(n, name)
	}
	for n := range operations {
		c.step()
		if t.Failed() {
			t.Fatalf("at operation %d", n)
		}
	}
	c.sealedOnDisk(path)
	for _, what := range []string{"put", "put again", "got", "foreign", "forged", "replayed", "expired", "listed", "swept", "rotated", "moved", "erased", "forbidden"} {
		if c.done[what] == 0 {
			t.Errorf("it never happened: %s", what)
		}
	}
	t.Log(c.done)
}

func (c *canary) add(n int, name string) {
	te := &tenant{
		name: name, word: fmt.Sprintf("canary-%d-%016x", n, c.random.Uint64()), mark: fmt.Sprintf("mark-%d-%016x", n, c.random.Uint64()),
		held: map[string]*record{},
	}
	var err error
	if te.namer, err = c.store.Namer(c.ctx, name); err != nil {
		c.t.Fatal(err)
	}
	c.tenants = append(c.tenants, te)
}

// pick chooses a tenant that is there, and another.
func (c *canary) pick() (mine, theirs *tenant) {
	living := slices.DeleteFunc(slices.Clone(c.tenants), func(te *tenant) bool { return te.gone })
	c.random.Shuffle(len(living), func(i, j int) { living[i], living[j] = living[j], living[i] })
	return living[0], living[1]
}

func (te *tenant) who() artifact.Requester { return artifact.Requester{TenantID: te.name} }

func (c *canary) id(te *tenant) string {
	if len(te.ids) == 0 {
		return "art_0000000000000000"
	}
	return te.ids[c.random.IntN(len(te.ids))]
}

func (c *canary) step() {
	mine, theirs := c.pick()
	switch n := c.random.IntN(1000); {
	case n < 50:
		c.put(mine)
	case n < 500:
		c.get(mine, c.id(mine))
	case n < 700:
		c.foreign(mine, theirs)
	case n < 850:
		c.forged(mine, theirs)
	case n < 900:
		c.now = c.now.Add(time.Duration(c.random.IntN(20)) * time.Second)
	case n < 920:
		c.delete(mine)
	case n < 935:
		c.moved(mine, theirs)
	case n < 985:
		c.list(mine)
	case n < 992:
		c.sweep(mine)
	case n < 997:
		c.rotate(mine)
	case n < 999 && len(c.tenants) < 12:
		c.erase(mine)
	}
}

// answer looks for words of others in what a tenant was told.
func (c *canary) answer(te *tenant, told ...any) {
	text := fmt.Sprint(told...)
	for _, other := range c.tenants {
		if other != te && (strings.Contains(text, other.word) || strings.Contains(text, other.mark)) {
			c.t.Errorf("tenant %q was told of %q: %s", te.name, other.name, text)
		}
	}
}

func (c *canary) put(te *tenant) {
	content := fmt.Sprintf("%s %d %s", te.word, c.random.IntN(400), strings.Repeat("x", c.random.IntN(2000)*c.random.IntN(2)))
	thread := "thread " + te.mark
	if c.random.IntN(4) == 0 {
		content, thread = shared+fmt.Sprint(c.random.IntN(5)), "t"
	}
	m := artifact.Metadata{ThreadID: thread, TenantID: te.name, Sensitivity: classes[c.random.IntN(4)], Tool: te.mark}
	if c.random.IntN(3) > 0 {
		m.TTLSeconds = 1 + c.random.IntN(3000)
	}
	id, err := c.store.Put(c.ctx, m, content)
	c.answer(te, id, err)
	if want := te.namer(thread, content); err != nil || id != want {
		c.t.Fatalf("put: %s, %v, want %s", id, err, want)
	}
	r := &record{content: content, sensitivity: slices.Index(classes, m.Sensitivity)}
	if m.TTLSeconds > 0 {
		r.ends = c.now.Add(time.Duration(m.TTLSeconds) * time.Second)
	}
	c.done["put"]++
	if old := te.held[id]; old != nil && !old.over(c.now) {
		c.done["put again"]++
		r.sensitivity = max(r.sensitivity, old.sensitivity)
		if old.ends.IsZero() || !r.ends.IsZero() && r.ends.Before(old.ends) {
			r.ends = old.ends
		}
	}
	te.held[id] = r
	te.ids = append(te.ids, id)
}

func (r *record) over(now time.Time) bool { return !r.ends.IsZero() && !now.Before(r.ends) }

// get reads one of the tenant's own, which may be over or gone.
func (c *canary) get(te *tenant, id string) {
	who := te.who()
	if c.random.IntN(4) == 0 {
		who.Clearance = classes[c.random.IntN(4)]
	}
	r := te.held[id]
	m, content, err := c.store.Get(c.ctx, who, id)
	c.answer(te, m, content, err)
	switch {
	case r == nil:
		c.done["replayed"]++
		c.refused("an id of what is gone", content, err, artifact.ErrNotFound)
	case r.over(c.now):
		c.done["expired"]++
		c.refused("an expired one", content, err, artifact.ErrExpired)
		_, err := c.store.Metadata(c.ctx, who, id)
		c.refused("metadata of an expired one", "", err, artifact.ErrExpired)
	case who.Clearance != "" && r.sensitivity > slices.Index(classes, who.Clearance):
		c.done["forbidden"]++
		c.refused("a forbidden one", content, err, artifact.ErrForbidden)
	default:
		c.done["got"]++
		if err != nil || content != r.content || m.Sensitivity != classes[r.sensitivity] || m.TenantID != te.name || m.EncryptionKeyID == "" {
			c.t.Errorf("%q got %+v, %d bytes, %v", te.name, m, len(content), err)
		}
	}
}

func (c *canary) refused(what, content string, err, want error) {
	if !errors.Is(err, want) || content != "" {
		c.t.Errorf("%s: %q, %v, want %v", what, content, err, want)
	}
}

// none wants an id to be nothing at all for a tenant.
func (c *canary) none(te *tenant, what, id string) {
	c.done[what]++
	m, content, err := c.store.Get(c.ctx, te.who(), id)
	c.refused(what, content, err, artifact.ErrNotFound)
	known, metaErr := c.store.Metadata(c.ctx, te.who(), id)
	c.refused(what, "", metaErr, artifact.ErrNotFound)
	c.answer(te, m, content, err, known, metaErr)
	if !artifact.IsID(id) {
		return // as a prefix it may be that of one's own
	}
	for m, err := range c.store.List(c.ctx, te.who(), artifact.Filter{TenantID: "acme", Prefix: id}) {
		c.t.Errorf("%s: listed %+v, %v", what, m, err)
	}
}

// foreign uses another tenant's pointer, to read and to delete.
func (c *canary) foreign(mine, theirs *tenant) {
	id := c.id(theirs)
	c.none(mine, "foreign", id)
	if c.random.IntN(10) == 0 {
		if err := c.store.Delete(c.ctx, mine.who(), id); err != nil {
			c.t.Error(err)
		}
		c.get(theirs, id)
	}
}

// forged makes pointers up: from content that is known to be there, by changing
// a digit, by chance, and what is no id at all.
func (c *canary) forged(mine, theirs *tenant) {
	id := c.id(theirs)
	forged := []string{
		artifact.IDOf("t", shared+"1"), artifact.IDOf("thread "+theirs.mark, theirs.word), theirs.namer("t", shared+"1"),
		fmt.Sprintf("art_%016x", c.random.Uint64()), id[:19] + string("0123456789abcdef"[c.random.IntN(16)]),
		id + "/../" + id, "../" + id, strings.ToUpper(id), "", id[:12],
	}[c.random.IntN(10)]
	if mine.held[forged] == nil {
		c.none(mine, "forged", forged)
	}
}

func (c *canary) delete(te *tenant) {
	id := c.id(te)
	if err := c.store.Delete(c.ctx, te.who(), id); err != nil {
		c.t.Error(err)
	}
	delete(te.held, id)
	c.get(te, id)
}

// moved puts sealed content of one tenant in the place of another's, in the
// backend, as somebody might who can write there.
func (c *canary) moved(mine, theirs *tenant) {
	from, to := c.id(theirs), c.id(mine)
	_, stolen, err := c.backend.Get(c.ctx, theirs.name, from)
	if errors.Is(err, artifact.ErrNotFound) {
		return
	}
	if err != nil {
		c.t.Fatal(err)
	}
	m, right, err := c.backend.Get(c.ctx, mine.name, to)
	if errors.Is(err, artifact.ErrNotFound) || err == nil && mine.held[to].over(c.now) {
		return
	}
	c.done["moved"]++
	_, putErr := c.backend.Put(c.ctx, m, stolen, nil)
	if err := errors.Join(err, putErr); err != nil {
		c.t.Fatal(err)
	}
	_, content, err := c.store.Get(c.ctx, mine.who(), to)
	c.answer(mine, content, err)
	c.refused("moved content", content, err, artifact.ErrSealed)
	if _, err := c.backend.Put(c.ctx, m, right, nil); err != nil {
		c.t.Fatal(err)
	}
	c.get(mine, to)
}

func (c *canary) list(te *tenant) {
	c.done["listed"]++
	listed := 0
	for m, err := range c.store.List(c.ctx, te.who(), artifact.Filter{TenantID: "acme"}) {
		c.answer(te, m, err)
		if r := te.held[m.ID]; err != nil || r == nil || r.over(c.now) {
			c.t.Errorf("%q lists %+v, %v", te.name, m, err)
		}
		listed++
	}
	want := 0
	for _, r := range te.held {
		if !r.over(c.now) {
			want++
		}
	}
	if listed != want {
		c.t.Errorf("%q lists %d of %d", te.name, listed, want)
	}
}

// sweep leaves some of what is over, as if a plan pointed there.
func (c *canary) sweep(te *tenant) {
	live := func(m artifact.Metadata) bool { return strings.HasSuffix(m.ID, "0") }
	want := 0
	for id, r := range te.held {
		if r.over(c.now) && !strings.HasSuffix(id, "0") {
			delete(te.held, id)
			want++
		}
	}
	c.done["swept"] += want
	if n, err := c.store.Sweep(c.ctx, te.who(), live); n != want || err != nil {
		c.t.Errorf("swept %d of %d, %v", n, want, err)
	}
}

func (c *canary) rotate(te *tenant) {
	c.done["rotated"]++
	key, err := c.ring.Rotate(c.ctx, te.name)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.random.IntN(6) > 0 {
		return // the job comes later
	}
	if _, err := c.store.Reseal(c.ctx, te.who()); err != nil {
		c.t.Fatal(err)
	}
	for m, err := range c.store.List(c.ctx, te.who(), artifact.Filter{}) {
		if err != nil || m.EncryptionKeyID != key {
			c.t.Errorf("%+v, %v, want it under %s", m, err, key)
		}
	}
}

// erase ends a tenant, whose pointers and copies open nothing any more, and
// begins another.
func (c *canary) erase(te *tenant) {
	c.done["erased"]++
	id := c.id(te)
	m, copied, copyErr := c.backend.Get(c.ctx, te.name, id)
	if err := c.ring.Erase(c.ctx, te.name); err != nil {
		c.t.Fatal(err)
	}
	for m, err := range c.backend.List(c.ctx, artifact.Filter{TenantID: te.name}) {
		if _, failed := c.backend.Delete(c.ctx, te.name, m.ID, nil); err != nil || failed != nil {
			c.t.Fatal(err, failed)
		}
	}
	te.gone, te.held = true, nil
	c.none(te, "replayed", id)
	if copyErr == nil { // somebody brings it back from a backup
		if _, err := c.backend.Put(c.ctx, m, copied, nil); err != nil {
			c.t.Fatal(err)
		}
		_, content, err := c.store.Get(c.ctx, te.who(), id)
		if content != "" || !errors.Is(err, keyring.ErrErased) && !errors.Is(err, artifact.ErrExpired) {
			c.t.Errorf("an erased tenant read %q, %v", content, err)
		}
	}
	c.add(len(c.tenants), fmt.Sprint("tenant ", len(c.tenants)))
}

// sealedOnDisk looks into every file for content, of the living and the erased.
func (c *canary) sealedOnDisk(path string) {
	files, records := 0, 0
	for _, te := range c.tenants {
		for range c.backend.List(c.ctx, artifact.Filter{TenantID: te.name}) {
			records++
		}
	}
	err := filepath.WalkDir(path, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		files++
		for _, te := range c.tenants {
			if bytes.Contains(data, []byte(te.word)) || bytes.Contains(data, []byte(shared)) {
				c.t.Errorf("%s holds the words of %q", name, te.name)
			}
		}
		return err
	})
	if err != nil || records < 10 {
		c.t.Errorf("%d artifacts in %d files, %v", records, files, err)
	}
}
