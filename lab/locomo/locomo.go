// Package locomo measures what compaction leaves of the conversations of the LoCoMo
// benchmark (Maharana et al. 2024, arXiv 2402.17753), without a model: whether the
// turns that hold the answers to its questions are still there. This is not the accuracy
// that LoCoMo reports, which is about what a model answers.
package locomo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/palimpsest-ai/palimpsest/lab/eval/references"
	"github.com/palimpsest-ai/palimpsest/thread"
	"github.com/palimpsest-ai/palimpsest/token"
)

// dialogue is a conversation with its questions.
type dialogue struct {
	thread *thread.Thread
	texts  []string // of the turns
	// sessions are the numbers of the sessions of the turns, counting from 0, and times the
	// dates of the sessions.
	sessions []int
	times    []time.Time
	// turns are the positions of the turns by their ids, such as D1:3.
	turns     map[string]int
	questions []question
}

// question asks about turns of the conversation.
type question struct {
	text, answer string
	evidence     []int // positions
	category     int
}

// adversarial is the category of questions that have no answer; only Search asks them.
const adversarial = 5

// dateLayout is how sessions are dated.
const dateLayout = "3:04 pm on 2 January, 2006"

// turnID finds the ids of turns: some files write several in one string.
var turnID = regexp.MustCompile(`D\d+:\d+`)

// open reads a file as its authors publish it: a list of conversations, each
// with numbered sessions and questions.
func open(path string) ([]*dialogue, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var samples []struct {
		ID           json.RawMessage            `json:"sample_id"`
		Conversation map[string]json.RawMessage `json:"conversation"`
		QA           []struct {
			Question string          `json:"question"`
			Answer   json.RawMessage `json:"answer"`
			Evidence []string        `json:"evidence"`
			Category int             `json:"category"`
		} `json:"qa"`
	}
	if err := json.Unmarshal(data, &samples); err != nil {
		return nil, fmt.Errorf("%s: not a LoCoMo file, a list of conversations with questions: %w", path, err)
	}
	var all []*dialogue
	for i, x := range samples {
		name := strings.Trim(string(x.ID), `"`)
		if name == "" {
			name = fmt.Sprintf("conversation %d", i+1)
		}
		d, err := newDialogue(name, x.Conversation)
		if err != nil {
			return nil, fmt.Errorf("%s, %s: %w", path, name, err)
		}
		for _, q := range x.QA {
			one := question{text: q.Question, answer: strings.Trim(string(q.Answer), `"`), category: q.Category}
			for _, id := range turnID.FindAllString(strings.Join(q.Evidence, " "), -1) {
				if pos, ok := d.turns[id]; ok {
					one.evidence = append(one.evidence, pos)
				}
			}
			if len(one.evidence) > 0 {
				d.questions = append(d.questions, one)
			}
		}
		if len(d.questions) > 0 {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no conversation with questions about its turns", path)
	}
	return all, nil
}

// newDialogue makes a thread of the sessions. The first speaker is the user, the other
// the assistant; each session begins with its date.
func newDialogue(name string, sessions map[string]json.RawMessage) (*dialogue, error) {
	type turn struct {
		Speaker string `json:"speaker"`
		ID      string `json:"dia_id"`
		Text    string `json:"text"`
		Caption string `json:"blip_caption"`
	}
	var user string
	if err := json.Unmarshal(sessions["speaker_a"], &user); err != nil {
		return nil, errors.New("no speaker_a")
	}
	d := &dialogue{turns: map[string]int{}}
	var messages []thread.Message
	for n := 1; ; n++ {
		raw, ok := sessions[fmt.Sprintf("session_%d", n)]
		if !ok {
			// Dates of sessions that are left out stand in the files too.
			if _, dated := sessions[fmt.Sprintf("session_%d_date_time", n)]; dated {
				continue
			}
			break
		}
		var turns []turn
		if err := json.Unmarshal(raw, &turns); err != nil {
			return nil, fmt.Errorf("session_%d: %w", n, err)
		}
		var date string
		_ = json.Unmarshal(sessions[fmt.Sprintf("session_%d_date_time", n)], &date) // none is none
		at, _ := time.Parse(dateLayout, date)                                       // nor is a date of another form
		d.times = append(d.times, at)
		for i, t := range turns {
			text := t.Speaker + ": " + t.Text
			if t.Caption != "" {
				text += " [shows " + t.Caption + "]"
			}
			if i == 0 && date != "" {
				text = "(" + date + ")\n" + text
			}
			role := thread.Assistant
			if t.Speaker == user {
				role = thread.User
			}
			d.turns[t.ID] = len(messages)
			d.sessions = append(d.sessions, len(d.times)-1)
			d.texts = append(d.texts, text)
			messages = append(messages, thread.Message{Role: role, Parts: []thread.Part{thread.Text{Text: text}}})
		}
	}
	if len(messages) < 4 {
		return nil, errors.New("fewer than four turns")
	}
	var err error
	d.thread, err = thread.New(name).Append(messages...)
	return d, err
}

// Options tune Measure; nil and the zero value are the defaults.
type Options struct {
	// Counter counts tokens. Nil counts o200k.
	Counter *token.Counter
	// Budgets are sizes to fit into, such as "8k" or "20%" of the conversation; none
	// for 40%, 20% and 10%.
	Budgets []string
	// Progress is told how many conversations are done.
	Progress references.Progress
}

// Measure compacts the conversations of files into budgets without knowing the
// questions, and checks what is left of the turns that hold the answers. It is the same
// for the same files and options. The files are as their authors publish them, such as
// locomo10.json.
func Measure(ctx context.Context, paths []string, o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	counter := o.Counter
	if counter == nil {
		var err error
		if counter, err = token.New("o200k", nil); err != nil {
			return nil, fmt.Errorf("locomo.Measure: %w", err)
		}
	}
	budgets := o.Budgets
	if len(budgets) == 0 {
		budgets = []string{"40%", "20%", "10%"}
	}
	var all []*dialogue
	for _, path := range paths {
		some, err := open(path)
		if err != nil {
			return nil, fmt.Errorf("locomo.Measure: %w", err)
		}
		all = append(all, some...)
	}
	r := &Report{Counter: counter.Name(), Conversations: len(all)}
	found := map[string][]map[string]*answered{} // by budget, in the order of the conversations
	for i, d := range all {
		d.questions = slices.DeleteFunc(d.questions, func(q question) bool { return q.category == adversarial })
		r.Questions += len(d.questions)
		weights := d.weights()
		for _, budget := range budgets {
			fits, err := fitted(ctx, d.thread, budget, counter)
			if err != nil {
				return nil, fmt.Errorf("locomo.Measure: %w", err)
			}
			by := map[string]*answered{}
			for _, f := range fits {
				if by[f.Contender] == nil {
					by[f.Contender] = &answered{byCategory: map[int]*kept{}}
					if i == 0 && budget == budgets[0] {
						r.contenders = append(r.contenders, f.Contender)
					}
				}
				if err := d.answers(ctx, &f, weights, counter, by[f.Contender]); err != nil {
					return nil, fmt.Errorf("locomo.Measure: %w", err)
				}
			}
			found[budget] = append(found[budget], by)
		}
		if o.Progress != nil {
			o.Progress(i+1, len(all))
		}
	}
	for _, budget := range budgets {
		r.Columns = append(r.Columns, r.column(budget, found[budget]))
	}
	return r, nil
}
