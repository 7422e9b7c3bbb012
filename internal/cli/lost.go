package cli

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lost"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/plan"
	"github.com/palimpsest-ai/palimpsest/render"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// compaction is the last compaction of a session.
type compaction struct {
	Session int       `json:"session,omitempty"` // its number in the list
	Turn    int       `json:"turn"`
	Time    time.Time `json:"time,omitzero"`
	// Unreadable says that nobody but its provider can read the summary, so that what was lost is not known.
	Unreadable bool         `json:"unreadable,omitempty"`
	Lost       []lost.Loss  `json:"lost"`
	Quality    lost.Quality `json:"quality"`
	// Plan is the version of a plan of Palimpsest, and Thread the stored conversation in which it is in force; 0 for a
	// compaction of the agent.
	Plan   int    `json:"plan_version,omitempty"`
	Thread string `json:"thread_id,omitempty"`
	// Stored is the plan in force of the session's stored conversation; nil without one.
	Stored *compaction `json:"stored,omitempty"`
}

// lossesOf lists what a conversation tells and a prompt made of it does not, whose summaries tell in the user's own
// words what the user laid down.
func lossesOf(ctx context.Context, log *thread.Thread, shown []thread.Message) ([]lost.Loss, error) {
	after := slices.Clone(shown)
	for i := range after {
		after[i].ID = "" // the log has one of the same id
	}
	all, err := log.Append(after...)
	if err != nil {
		return nil, err
	}
	found, err := lost.Find(ctx, all, lost.Boundary{From: log.Len(), At: log.Len(), End: all.Len(), Verbatim: true})
	return append([]lost.Loss{}, found...), err
}

// lossOfPlan is what the plan in force of a stored conversation lost; nil if no plan is.
func (k *tenantStore) lossOfPlan(ctx context.Context, id string) (*compaction, error) {
	p, version, err := k.Plans.Current(ctx, id)
	if err != nil || version == 0 || p.Empty() {
		return nil, err
	}
	log, err := k.Log.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	counter, err := counterOfNewest([]*plan.Plan{p})
	if err != nil {
		return nil, err
	}
	c, err := palimpsest.New(palimpsest.Config{Counter: counter})
	if err != nil {
		return nil, err
	}
	res, err := c.Render(p, palimpsest.Request{Thread: log, Profile: render.For(apiOf(log))})
	if err != nil {
		return nil, err
	}
	found, err := lossesOf(ctx, log, res.Prompt.Messages)
	return &compaction{Turn: log.Prefix(p.ThreadVersion).Turns(), Time: p.CreatedAt, Lost: found, Plan: version, Thread: id,
		Quality: lost.Quality{Before: p.OriginalTokens, After: p.CompactedTokens}}, err
}

// lastCompaction looks at the last compaction of a conversation; nil if there is none.
func lastCompaction(ctx context.Context, t *transcript.Transcript, format transcript.Format) (*compaction, error) {
	b, ok := lost.Last(t, format)
	if !ok {
		if n := len(t.Compactions); n > 0 && t.Compactions[n-1].Trigger != "clear" && t.Compactions[n-1].Summary == "" {
			return &compaction{Turn: t.Thread.Prefix(t.Compactions[n-1].At).Turns(), Unreadable: true, Lost: []lost.Loss{}}, nil
		}
		return nil, nil
	}
	counter, _, err := modelCounter(token.Models(), t.Model, "")
	if err != nil {
		return nil, err
	}
	found, err := lost.Find(ctx, t.Thread, b)
	if err != nil {
		return nil, err
	}
	at := t.Thread.At(b.At)
	return &compaction{Turn: at.Turn, Time: at.Time, Lost: append([]lost.Loss{}, found...), Quality: lost.Judge(ctx, t.Thread, b, counter.Until(ctx).Message)}, ctx.Err()
}

func lostCommand(s Streams) *cobra.Command {
	var in input
	var store storeFlag
	c := &cobra.Command{
		Use:   "lost [FILE]",
		Short: "Show what the last compaction of a session lost, and whether it was good",
		Long: `Show what the last compaction of a session lost: your rules and decisions, files in work, the
branch and the pull request that were told before it, still stand, and are neither in its summary
nor in the messages that it kept, in any wording; seven at most. What may have been told is not
listed. Then what it freed, what was read again after it, and what was said again. Without a FILE
it is that of the newest session. Of a conversation that is stored, the plan in force counts too.`,
		Example: "  palimpsest lost\n  palimpsest lost session.jsonl\n  palimpsest lost 2 --json",
		Args:    atMostOneArg("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.open(c.Context(), append(args, latestName)[0], s); err != nil {
				return err
			}
			found, err := lastCompaction(c.Context(), in.Transcript, in.file.Format)
			if err != nil {
				return err
			}
			kept, err := inTenant(c.Context(), &store, func(k *tenantStore) (*compaction, error) { return k.lossOfPlan(c.Context(), in.Thread.ID()) })
			if err != nil && !store.isMissing(err) {
				return err
			}
			if found != nil {
				found.Stored = kept
			}
			in.printWarnings(newPrinter(s.Err))
			found = cmp.Or(found, kept)
			return writeResult(s.Out, c, found, func(p *printer) {
				p.compaction(found, "The session was not compacted. What a compaction would take: palimpsest plan "+in.commandArguments())
				if found != nil && found.Stored != nil {
					p.line("")
					p.compaction(found.Stored, "")
				}
			})
		},
	}
	store.addFlags(c)
	in.store = &store
	in.addFlags(c, "look at")
	c.Flags().Bool("json", false, "write the compaction as JSON; null if there is none")
	return c
}

// compaction prints what a compaction lost, and a line of how it did; none is what to say where there is none.
func (p *printer) compaction(c *compaction, none string) {
	if c == nil {
		p.text("%s", none)
		return
	}
	name := "The last compaction"
	if c.Session > 0 {
		name += fmt.Sprintf(" of session %d", c.Session)
	}
	if c.Plan > 0 {
		name = fmt.Sprintf("Plan %d of Palimpsest", c.Plan)
	}
	if name += fmt.Sprintf(", in turn %d", c.Turn); !c.Time.IsZero() {
		name += ", " + c.Time.Local().Format("2006-01-02 15:04")
	}
	switch {
	case c.Unreadable:
		p.text("%s, has a summary that only its provider can read: what it lost cannot be told.", name)
		return
	case len(c.Lost) == 0:
		p.text("%s: no loss was found. Only what is surely missing is listed; what was merely read is not looked for.", name)
	default:
		p.title(fmt.Sprintf("%s, lost %s", name, plural(len(c.Lost), "thing")))
		p.table(lossColumns, mapSlice(c.Lost, lossRow))
	}
	if c.Plan == 0 {
		p.text("%s", qualityLine(&c.Quality))
		return
	}
	p.text("It made a request of %s tokens one of %s; what it removed is kept.", number(c.Quality.Before), number(c.Quality.After))
	p.line("to search it: palimpsest recall WORDS --thread %s", shellQuote(c.Thread))
}

// lossColumns head a table of losses.
var lossColumns = []string{"", ">turn", "~what", "why"}

func lossRow(l lost.Loss) []string {
	return []string{string(l.Kind), strconv.Itoa(l.Turn), l.Text, l.Why}
}

// short says in a few words what a compaction of a session in the list lost.
func (c *compaction) short() string {
	switch {
	case c.Unreadable:
		return fmt.Sprintf("session %d has a summary that only its provider can read", c.Session)
	case len(c.Lost) == 0:
		return fmt.Sprintf("session %d lost nothing that was found", c.Session)
	}
	return fmt.Sprintf("session %d lost %s", c.Session, plural(len(c.Lost), "thing"))
}

// maxNamed is how many files a line names, and maxSaid limits what was said, in bytes.
const maxNamed, maxSaid = 3, 72

// qualityLine says whether a compaction was good.
func qualityLine(q *lost.Quality) string {
	var after []string
	if n := len(q.Reread); n > 0 {
		after = append(after, plural(n, "file")+" read again ("+joinEach(firstN(q.Reread, maxNamed), path.Base)+")")
	}
	if q.Reruns > 0 {
		after = append(after, plural(q.Reruns, "command")+" run again")
	}
	for _, said := range firstN(q.Repeated, 1) {
		after = append(after, fmt.Sprintf("you said %q again", clip.Short(said, maxSaid)))
	}
	if q.Asked {
		after = append(after, "the agent asked for what it had been told")
	}
	then := "; after it: " + strings.Join(after, ", ") + "."
	if q.Ended {
		then = "; the session ends with it."
	} else if len(after) == 0 {
		then = "; after it nothing was read or asked again."
	}
	of := "as the agent counted its requests: "
	if q.Messages {
		of = "messages alone, estimated: "
	}
	return fmt.Sprintf("It freed %s (%s%s → %s)", plural(max(0, q.Before-q.After), "token"), of, number(q.Before), number(q.After)) + then
}

// overview is what palimpsest shows without a command.
type overview struct {
	Sessions []listedSession `json:"sessions"`
	// Sample says that no session was found, and that the rest is of the sample that comes with Palimpsest.
	Sample     bool          `json:"sample,omitempty"`
	Compaction *compaction   `json:"compaction,omitempty"`        // of the newest session that has one
	Others     []*compaction `json:"other_compactions,omitempty"` // of the sessions behind it
	Week       string        `json:"week,omitempty"`              // what was saved in it, if the settings ask for that
	Next       string        `json:"next"`                        // a command
}

const (
	// latest is how many sessions the overview lists.
	latest = 5
	// mostSearched limits what is read to find compactions, in bytes of files.
	mostSearched = 24 << 20
)

//go:embed sample.jsonl
var sample string

// runOverview shows the latest sessions, what the last compaction lost, and the next step.
func runOverview(c *cobra.Command, s Streams) error {
	finder, err := localFinder()
	if err != nil {
		return err
	}
	all, unread, err := finder.Search("")
	if err != nil {
		return err
	}
	warnUnread(s, unread)
	o := &overview{Sessions: inUse(finder, all, latest)}
	o.Sample = len(o.Sessions) == 0
	if o.Sample {
		var file *transcript.File
		if file, err = transcript.Read(strings.NewReader(sample), &transcript.Options{Name: "sample"}); err == nil {
			o.Compaction, err = lastCompaction(c.Context(), &file.Transcripts[0], file.Format)
		}
	} else {
		err = o.findCompactions(c.Context(), s, finder)
		defer indexInBackground(finder, all)
	}
	if err != nil {
		return err
	}
	if o.Week, err = weekLine(c.Context(), time.Now().AddDate(0, 0, -7)); err != nil {
		return err
	}
	why := o.chooseNext()
	return writeResult(s.Out, c, o, func(p *printer) {
		if o.Sample {
			p.text("No sessions of agents were found on this machine; what `run` and `serve` kept, `palimpsest threads` lists. This is the sample that comes with Palimpsest:")
		} else {
			p.title("Your latest sessions")
			p.sessions(o.Sessions, all)
		}
		p.line("")
		p.compaction(o.Compaction, "No compaction was found in them.")
		if len(o.Others) > 0 {
			p.text("Of the others %s; `palimpsest lost NUMBER` shows it.", joinEach(o.Others, (*compaction).short))
		}
		if o.Week != "" {
			p.text("%s", o.Week)
		}
		p.line("")
		p.line("next: %s   %s", o.Next, why)
	})
}

// weekLine says how much less than whole conversations the compactions since then left; empty for none, or if the settings do not ask.
func weekLine(ctx context.Context, since time.Time) (string, error) {
	settings, err := loadSettings("", nil)
	if err != nil || settings.Text("weekly") != "on" {
		return "", err
	}
	var f storeFlag
	made, saved := 0, 0
	err = f.withTenant(ctx, func(k *tenantStore) error {
		all, err := care.AllThreads(ctx, k.Catalog)
		for _, info := range all {
			for v := info.Plans; v > 0 && !info.Changed.Before(since); v-- {
				p, err := k.Plans.Plan(ctx, info.ID, v)
				if err != nil || p.CreatedAt.Before(since) {
					break // what cannot be read is not counted
				}
				before, _ := k.Plans.Plan(ctx, info.ID, v-1) // none before the first
				round := cmp.Or(before, &plan.Plan{}).Round
				if before != nil && before.OriginalTokens > 0 && round == 0 { // compact does not say it
					round = v - 1
				}
				if less := p.OriginalTokens - p.CompactedTokens; less > 0 && (p.Round == 0 || p.Round > round) { // an edit is no round
					made, saved = made+1, saved+less
				}
			}
		}
		return err
	})
	if f.isMissing(err) || made == 0 {
		return "", nil
	}
	return fmt.Sprintf("In the last seven days %s left %s tokens less than the whole conversation, on average.", plural(made, "compaction"), number(saved/made)), err
}

// noted is what is kept of a session, so that it is read once. Another version is read anew.
type noted struct {
	Version    int         `json:"version"`
	Compaction *compaction `json:"compaction,omitempty"`
}

const noteVersion = 3

// findCompactions finds the last compaction of each session in the list, as far as that is cheap: one that nobody
// has asked for is not read where it is large.
func (o *overview) findCompactions(ctx context.Context, s Streams, finder *sessions.Finder) error {
	room := int64(mostSearched)
	for i := range o.Sessions {
		of := &o.Sessions[i].Session
		var note noted
		if json.Unmarshal(finder.Noted(of), &note) != nil || note.Version != noteVersion {
			if of.Bytes > room {
				if o.Compaction == nil {
					fmt.Fprintf(s.Err, "palimpsest: session %d is too large to look for compactions here: `palimpsest lost %[1]d` does\n", o.Sessions[i].Number)
				}
				continue
			}
			room -= of.Bytes
			file, err := sessions.Open(of.Path, &transcript.Options{Format: transcript.Format(of.Agent), MaxLine: maxInput})
			if err != nil {
				fmt.Fprintf(s.Err, "palimpsest: warning: session %d: %s\n", o.Sessions[i].Number, ErrorText(err))
				continue
			}
			note.Version = noteVersion
			if note.Compaction, err = lastCompaction(ctx, &file.Transcripts[0], file.Format); err != nil {
				return err
			}
			if data, err := json.Marshal(note); err == nil {
				finder.Note(of, data)
			}
		}
		found := note.Compaction
		if found == nil {
			continue
		}
		if found.Session = o.Sessions[i].Number; o.Compaction == nil {
			o.Compaction = found
		} else {
			o.Others = append(o.Others, found)
		}
	}
	return nil
}

// chooseNext chooses the next step and says what it does.
func (o *overview) chooseNext() string {
	if o.Sample {
		o.Next = "palimpsest install"
		return "lets Palimpsest make the compactions of your agents"
	}
	c := cmp.Or(o.Compaction, &compaction{Session: o.Sessions[0].Number})
	if len(c.Lost) == 0 {
		o.Next = fmt.Sprintf("palimpsest inspect %d", c.Session)
		return fmt.Sprintf("shows where the tokens of session %d are", c.Session)
	}
	o.Next = fmt.Sprintf("palimpsest handoff %d", c.Session)
	n := slices.IndexFunc(o.Sessions, func(s listedSession) bool { return s.Number == c.Session })
	if own := transcript.Format(o.Sessions[n].Agent); !slices.Contains(transcript.Writers(), own) {
		o.Next += " --into " + string(transcript.Writers()[0])
	}
	return "begins a fresh session with what matters of it"
}
