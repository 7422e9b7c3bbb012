package references

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/internal/ident"
	"github.com/palimpsest-ai/palimpsest/internal/toolclass"
	"github.com/palimpsest-ai/palimpsest/prompt"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// Session is one conversation with all that is known of its identifiers, which all
// moments and contenders read. Make it with NewSession, and then Link it.
type Session struct {
	Name, Family string
	// Key decides the split; runs of one task share it.
	Key    string
	Thread *thread.Thread
	Base   *prompt.Prompt
	around string // system and tools, flattened
	Sizes  []int  // tokens of each message
	Total  int    // their sum
	Fixed  int    // tokens of system and tools
	Texts  []string
	calls  []int // where the calls begin in each text
	Steps  []int // the positions of the model's messages
	Recaps []Recap

	// What Link makes the references from; nil afterwards.
	norms map[string]bool     // every identifier of the session
	used  [][]ident.Ident     // by step, from the arguments of its calls
	said  [][]ident.Ident     // by step, from an answer that ends a turn
	surf  map[string][]string // by identifier, the forms in which it is written

	Refs []Reference
	Uses [][]int32 // by step, the references in its calls
	says [][]int32 // by step, those in an answer
	Find *finder

	trail    *trail
	changing []changingValue
	lines    *fileLines
}

// Recap is a place where the agent itself compacted, and the summary that it wrote.
type Recap struct {
	At   int // the first position after it
	Text thread.Message
	Size int // tokens
}

// Reference is an identifier that the agent writes in a call or an answer.
type Reference struct {
	ident.Ident
	// Seen lists the messages that hold it, in order.
	Seen []Sighting
	// Near are the rarest words beside its first mention, also those beside later ones.
	// Acts are, for a file, the words that truly say what was done to it. Any of them
	// beside the identifier binds it.
	Near, also, Acts []string
	// Origin says where it came up first: "user", "tool", "call" or "system".
	Origin string
}

// Sighting is a message that holds an identifier. Strict: one of the words of its first
// mention stands beside it there.
type Sighting struct {
	Pos    int
	Strict bool
}

// NewSession reads a conversation. The summaries of the agent's own compactions are not
// part of its thread but become Recaps.
func NewSession(tr *transcript.Transcript, family, key string, counter *token.Counter) (*Session, error) {
	s := &Session{
		Name: tr.Name, Family: family, Key: key,
		Base:  &prompt.Prompt{Model: tr.Model, System: tr.System, Tools: tr.Tools},
		norms: map[string]bool{}, surf: map[string][]string{},
	}
	s.Fixed = counter.System(s.Base.System) + counter.Tools(s.Base.Tools)
	kept := make([]thread.Message, 0, tr.Thread.Len())
	at := make([]int, tr.Thread.Len()+1)
	for i, m := range tr.Thread.All() {
		at[i] = len(kept)
		if m.Kind == thread.Recap {
			continue
		}
		kept = append(kept, *m)
	}
	at[tr.Thread.Len()] = len(kept)
	for _, c := range tr.Compactions {
		if i, ok := tr.Thread.Index(c.Summary); ok && c.Summary != "" {
			s.Recaps = append(s.Recaps, Recap{at[c.At], *tr.Thread.At(i), counter.Message(tr.Thread.At(i))})
		}
	}
	var err error
	if s.Thread, err = thread.New(tr.Name).Append(kept...); err != nil {
		return nil, err
	}
	all := answers(s.Thread)
	s.trail, s.changing, s.lines = newTrail(s.Thread, all), changingValues(all), linesOf(all)
	s.around = flatBase(s.Base)
	s.collectForms(s.readMessages(counter))
	return s, nil
}

// readMessages measures and flattens the messages, and collects the identifiers that the
// model's steps use, which it returns too.
func (s *Session) readMessages(counter *token.Counter) (used map[string]bool) {
	n := s.Thread.Len()
	s.Sizes, s.Texts, s.calls = make([]int, n), make([]string, n), make([]int, n)
	used = map[string]bool{}
	for i, m := range s.Thread.All() {
		s.Sizes[i] = counter.Message(m)
		s.Total += s.Sizes[i]
		s.Texts[i], s.calls[i] = MessageLines(m)
		if m.Role != thread.Assistant {
			continue
		}
		s.Steps = append(s.Steps, i)
		var uses, says []ident.Ident
		for _, c := range m.Calls() {
			text, names := values(c.Arguments)
			uses = append(uses, ident.All(text)...)
			for _, name := range names {
				uses = append(uses, ident.Ident{Type: ident.Name, Norm: name, Surface: name})
			}
		}
		if len(m.Calls()) == 0 {
			says = ident.All(m.Text())
		}
		for _, x := range slices.Concat(uses, says) {
			used[x.Norm] = true
		}
		s.used, s.said = append(s.used, uses), append(s.said, says)
	}
	return used
}

// flatBase is the text of system prompt and tools.
func flatBase(base *prompt.Prompt) string {
	var b strings.Builder
	for _, block := range base.System {
		flatten(&b, block.Text)
	}
	for _, t := range base.Tools {
		b.WriteString(t.Name + "\n" + t.Description + "\n")
		flatten(&b, t.Schema)
	}
	return b.String()
}

// collectForms collects the identifiers of all messages, and the forms in which those
// that are used are written.
func (s *Session) collectForms(used map[string]bool) {
	for _, text := range s.Texts {
		ident.Extract(text, func(x ident.Ident) {
			s.norms[x.Norm] = true
			if used[x.Norm] && !slices.Contains(s.surf[x.Norm], x.Surface) {
				s.surf[x.Norm] = append(s.surf[x.Norm], x.Surface)
			}
		})
	}
	for _, uses := range s.used {
		for _, x := range uses {
			s.norms[x.Norm] = true
		}
	}
}

// Link finds all mentions of the identifiers that the agent uses, but for those that are
// too common to tell anything.
func (s *Session) Link(common func(ident.Ident) bool) {
	index := map[string]int32{}
	s.Find = newFinder()
	s.Uses = make([][]int32, len(s.used))
	s.says = make([][]int32, len(s.said))
	refer := func(list [][]int32, step int, words []ident.Ident) {
		for _, x := range words {
			r, ok := index[x.Norm]
			if !ok {
				if common(x) {
					r = -1
				} else {
					r = int32(len(s.Refs))
					s.Refs = append(s.Refs, Reference{Ident: x})
					forms := append([]string{x.Surface, x.Norm}, s.surf[x.Norm]...)
					slices.Sort(forms)
					for _, form := range slices.Compact(forms) {
						s.Find.Add(r, form)
					}
				}
				index[x.Norm] = r
			}
			if r >= 0 && !slices.Contains(list[step], r) {
				list[step] = append(list[step], r)
			}
		}
	}
	for step, words := range s.used {
		refer(s.Uses, step, words)
	}
	for step, words := range s.said {
		refer(s.says, step, words)
	}
	s.norms, s.used, s.said, s.surf = nil, nil, nil, nil
	rarity := s.rarity()
	s.findActs()
	for i, text := range s.Texts {
		s.Find.Find(text, func(r int32, at, end int) { s.noteMention(&s.Refs[r], i, at, end, rarity) })
	}
	s.Find.Find(s.around, func(r int32, _, _ int) { s.Refs[r].Origin = "system" })
}

// noteMention adds a mention of a reference, at a place of a message.
func (s *Session) noteMention(ref *Reference, message, at, end int, rarity map[string]int) {
	text, inCall := s.Texts[message], at >= s.calls[message]
	if len(ref.Seen) == 0 {
		if role := s.Thread.At(message).Role; role != thread.Assistant {
			ref.Origin = string(role)
		} else if inCall {
			ref.Origin = "call"
		}
		ref.Near = neighbours(text, at, end, rarity)
	}
	_, strict := ref.isBoundAt(text, at, end)
	if n := len(ref.Seen); n > 0 && ref.Seen[n-1].Pos == message {
		ref.Seen[n-1].Strict = ref.Seen[n-1].Strict || strict
		if ref.Origin == "" && inCall {
			ref.Origin = "call" // said and then written in the same step
		}
		return
	}
	if len(ref.Seen) > 0 && len(ref.also) < mostAlso {
		for _, w := range neighbours(text, at, end, rarity) {
			if !slices.Contains(ref.also, w) {
				ref.also = append(ref.also, w)
			}
		}
	}
	ref.Seen = append(ref.Seen, Sighting{message, strict})
}

// rarity counts in how many messages each word stands.
func (s *Session) rarity() map[string]int {
	count := map[string]int{}
	last := map[string]int{}
	for i, text := range s.Texts {
		eachWord(text, func(w string) bool {
			if len(w) >= shortestWord && last[w] != i+1 {
				last[w] = i + 1
				count[w]++
			}
			return true
		})
	}
	return count
}

// What binds an identifier.
const (
	shortestWord = 3   // bytes of a word that may bind
	bindWithin   = 200 // bytes between the word and the identifier, at most
	bindBy       = 3   // words of the first mention, the rarest
	mostAlso     = 6   // words of later mentions
)

// eachWord calls each for the words of a text until it returns false.
func eachWord(text string, each func(string) bool) {
	for i := 0; i < len(text); {
		if !isWordByte[text[i]] {
			i = next(text, i)
			continue
		}
		start := i
		for i < len(text) && isWordByte[text[i]] {
			i++
		}
		if !each(text[start:i]) {
			return
		}
	}
}

// neighbours are the three rarest words on the line of an identifier, or, where
// it stands alone, on the lines around it.
func neighbours(text string, at, end int, rarity map[string]int) []string {
	from, to := at, end
	for range 3 {
		from = max(strings.LastIndexByte(text[:from], '\n'), at-bindWithin, 0)
		if i := strings.IndexByte(text[to:], '\n'); i >= 0 {
			to = min(to+i, end+bindWithin)
		} else {
			to = min(len(text), end+bindWithin)
		}
		var near []string
		add := func(w string) bool {
			if len(w) >= shortestWord && !slices.Contains(near, w) && !strings.Contains(text[at:end], w) {
				near = append(near, w)
			}
			return true
		}
		eachWord(text[from:at], add)
		eachWord(text[end:to], add)
		if len(near) > 0 {
			slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(rarity[a], rarity[b]) })
			return near[:min(len(near), bindBy)]
		}
		to = min(to+1, len(text))
	}
	return nil
}

// isBoundAt reports whether a word stands beside an occurrence of the identifier that
// tells what it is: one of those beside any of its mentions or, strict, beside its first.
// An identifier that stood alone is always bound.
func (r *Reference) isBoundAt(text string, at, end int) (bound, strict bool) {
	if len(r.Near) == 0 && len(r.Acts) == 0 {
		return true, true
	}
	test := func(w string) bool {
		strict = slices.Contains(r.Near, w) || len(r.Acts) > 0 && slices.Contains(r.Acts, strings.ToLower(w))
		bound = bound || strict || slices.Contains(r.also, w)
		return !strict
	}
	eachWord(text[max(0, at-bindWithin):at], test)
	if !strict {
		eachWord(text[end:min(len(text), end+bindWithin)], test)
	}
	return bound, strict
}

// ActWords are the words that say what was done to a file.
var ActWords = map[toolclass.Class][]string{
	toolclass.Read:  {"read", "reads", "viewed", "view"},
	toolclass.Edit:  {"edit", "edited", "edits", "modified", "updated", "changed"},
	toolclass.Write: {"write", "wrote", "written", "created", "create", "edited", "modified", "updated"},
}

// findActs sets the Acts of files by the calls that name them.
func (s *Session) findActs() {
	byNorm := map[string]int{}
	for i := range s.Refs {
		if s.Refs[i].Type == ident.Path {
			byNorm[s.Refs[i].Norm] = i
		}
	}
	for _, i := range s.Steps {
		for _, c := range s.Thread.At(i).Calls() {
			acts := ActWords[toolclass.ClassOf(c.Name)]
			if acts == nil {
				continue
			}
			text, _ := values(c.Arguments)
			ident.Extract(text, func(x ident.Ident) {
				if r, ok := byNorm[x.Norm]; ok && !slices.Contains(s.Refs[r].Acts, acts[0]) {
					s.Refs[r].Acts = append(s.Refs[r].Acts, acts...)
				}
			})
		}
	}
}

// answer is a result with its call.
type answer struct {
	pos    int // of the result
	call   thread.ToolCall
	args   gjson.Result
	file   string // in the arguments; "" for none
	result thread.ToolResult
}

// answers are the results of a thread whose calls are known, in order.
func answers(t *thread.Thread) []answer {
	var all []answer
	calls := map[string]thread.ToolCall{}
	for i, m := range t.All() {
		for _, c := range m.Calls() {
			calls[c.ID] = c
		}
		r, ok := m.Result()
		if c, known := calls[r.CallID]; ok && known {
			args := gjson.Parse(c.Arguments)
			all = append(all, answer{i, c, args, FileOf(args), r})
		}
	}
	return all
}
