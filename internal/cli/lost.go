package cli

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/care"
	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/lost"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/plan"
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
	c := &compaction{Turn: at.Turn, Time: at.Time, Lost: append([]lost.Loss{}, found...)}
	c.Quality = lost.Judge(ctx, t.Thread, b, counter.Until(ctx).Message)
	return c, ctx.Err()
}

func lostCommand(s Streams) *cobra.Command {
	var in input
	c := &cobra.Command{
		Use:   "lost [FILE]",
		Short: "Show what the last compaction of a session lost, and whether it was good",
		Long: `Show what the last compaction of a session lost: your rules and decisions, files in work, the
branch and the pull request that were told before it, still stand, and are neither in its summary
nor in the messages that it kept, in any wording; seven at most. What may have been told is not
listed. Then what it freed, what was read again after it, and what was said again. Without a FILE
it is that of the newest session.`,
		Example: "  palimpsest lost\n  palimpsest lost session.jsonl\n  palimpsest lost 2 --json",
		Args:    atMostOneArg("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := in.loadOrNewest(c.Context(), args, s.In); err != nil {
				return err
			}
			in.printTaken(s.Err)
			if err := in.selectRun(); err != nil {
				return err
			}
			found, err := lastCompaction(c.Context(), in.Transcript, in.file.Format)
			if err != nil {
				return err
			}
			return writeResult(s.Out, c, found, func(p *printer) { p.compaction(found, "The session was not compacted.") })
		},
	}
	in.addFlags(c, "look at")
	c.Flags().Bool("json", false, "write the compaction as JSON; null if there is none")
	return c
}

// loadOrNewest loads the file that is named or, without one, the newest session.
func (in *input) loadOrNewest(ctx context.Context, names []string, stdin io.Reader) error {
	if len(names) > 0 {
		return tellThread(ctx, names[0], in.load(names[0], stdin))
	}
	all, err := findSessions()
	all = new(sessions.Finder).InUse(all, 1)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%w: no sessions were found on this machine: name a FILE", errUsage)
	}
	if err != nil {
		return err
	}
	err = in.load(all[0].Path, nil)
	in.named, in.taken = "the newest", &all[0]
	return err
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
		p.table([]string{"", ">turn", "~what", "why"}, mapSlice(c.Lost, func(l lost.Loss) []string {
			return []string{string(l.Kind), strconv.Itoa(l.Turn), l.Text, l.Why}
		}))
	}
	p.text("%s", qualityLine(&c.Quality))
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
	used := finder.InUse(all, latest)
	o := &overview{Sessions: numbered(finder, used, latest), Sample: len(used) == 0}
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
					fmt.Fprintf(s.Err, "palimpsest: session %d is too large to look for compactions here: `palimpsest lost %[1]d` does\n", i+1)
				}
				continue
			}
			room -= of.Bytes
			file, err := sessions.Open(of.Path, &transcript.Options{Format: transcript.Format(of.Agent), MaxLine: maxInput})
			if err != nil {
				fmt.Fprintf(s.Err, "palimpsest: warning: session %d: %s\n", i+1, ErrorText(err))
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
		if found.Session = i + 1; o.Compaction == nil {
			o.Compaction = found
		} else {
			o.Others = append(o.Others, found)
		}
	}
	return nil
}

// chooseNext chooses the next step and says what it does.
func (o *overview) chooseNext() string {
	c := cmp.Or(o.Compaction, &compaction{Session: 1})
	switch {
	case o.Sample:
		o.Next = "palimpsest install"
		return "lets Palimpsest make the compactions of your agents"
	case len(c.Lost) == 0:
		o.Next = fmt.Sprintf("palimpsest inspect %d", c.Session)
		return fmt.Sprintf("shows where the tokens of session %d are", c.Session)
	}
	o.Next = fmt.Sprintf("palimpsest handoff %d", c.Session)
	if own := transcript.Format(o.Sessions[c.Session-1].Agent); !slices.Contains(transcript.Writers(), own) {
		o.Next += " --into " + string(transcript.Writers()[0])
	}
	return "begins a fresh session with what matters of it"
}
