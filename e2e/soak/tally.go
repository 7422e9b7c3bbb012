//go:build unix

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// tally adds up what happened.
type tally struct {
	began    time.Time
	minutes  []minute
	sessions int // that were looked through
	messages int // that were acknowledged in them
	problems []string
	refusals map[string]int
	again    int // calls that were made once more
	looks    map[string][]looked
}

// minute are the times of the steps that began in a minute and needed no second try, and
// in which turn of their session each of them was: a longer one takes longer.
type minute struct {
	took  []time.Duration
	turns []int
}

// turnsTogether is how many turns of sessions are told together.
const turnsTogether = 15

func (s *tally) step(began time.Time, took time.Duration, turn, tries int, err error, over bool) {
	if over {
		return
	}
	if err != nil {
		if s.refusals == nil {
			s.refusals = map[string]int{}
		}
		text := err.Error()
		s.refusals[text[:min(len(text), 120)]]++
		return
	}
	at := int(began.Sub(s.began) / time.Minute)
	for len(s.minutes) <= at {
		s.minutes = append(s.minutes, minute{})
	}
	if tries <= 3 { // create, prepare and finish
		m := &s.minutes[at]
		m.took, m.turns = append(m.took, took), append(m.turns, turn)
	} else {
		s.again += tries - 2
	}
}

func (s *tally) checked(x *session, problems []string) {
	s.sessions++
	s.messages += x.version
	s.problems = append(s.problems, problems...)
}

func (s *tally) look(d *daemon) {
	if s.looks == nil {
		s.looks = map[string][]looked{}
	}
	if f, ok := d.look(); ok {
		s.looks[d.name] = append(s.looks[d.name], f)
	}
}

// tell writes the figures. The error says that something was lost.
func (s *tally) tell(w io.Writer, p *proxying, daemons []*daemon) error {
	steps := 0
	for _, m := range s.minutes {
		steps += len(m.took)
	}
	fmt.Fprintf(w, "%d steps, %d calls made again; %d sessions read back, %d acknowledged messages, %d problems\n", steps, s.again, s.sessions, s.messages, len(s.problems))
	fmt.Fprintf(w, "%d proxied requests, %d answered, %d made again\n", p.asked.Load(), p.answered.Load(), p.again.Load())
	for _, d := range daemons {
		fmt.Fprintf(w, "%s: %d starts, %d killed, %d stopped\n", d.name, d.starts, d.kills, d.stops)
		all := s.looks[d.name]
		if len(all) < 3 {
			continue
		}
		third := len(all) / 3
		for name, part := range map[string][]looked{"first third": all[:third], "last third": all[len(all)-third:]} {
			most := func(of func(looked) int) int {
				n := 0
				for _, f := range part {
					n = max(n, of(f))
				}
				return n
			}
			fmt.Fprintf(w, "  %s: at most %d MB, %d files, %d goroutines\n", name, most(func(f looked) int { return f.megabytes }), most(func(f looked) int { return f.files }), most(func(f looked) int { return f.goroutines }))
		}
	}
	s.tellByTurn(w)
	for n, m := range s.minutes {
		slices.Sort(m.took)
		if len(m.took) > 0 {
			fmt.Fprintf(w, "minute %2d: %5d steps, p50 %v, p99 %v\n", n+1, len(m.took), at(m.took, 50), at(m.took, 99))
		}
	}
	for text, n := range s.refusals {
		fmt.Fprintf(w, "refused %d times: %s\n", n, text)
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(w, "load of the machine at the end: %s\n", strings.TrimSpace(string(load)))
	}
	if len(s.problems) > 0 {
		return errors.New(strings.Join(s.problems[:min(len(s.problems), 20)], "\n"))
	}
	return nil
}

// tellByTurn compares steps of sessions of the same length, early and late.
func (s *tally) tellByTurn(w io.Writer) {
	for from := 1; from <= longest; from += turnsTogether {
		for half, minutes := range map[string][]minute{"first": s.minutes[:len(s.minutes)/2], "second": s.minutes[len(s.minutes)/2:]} {
			var took []time.Duration
			for _, m := range minutes {
				for i, turn := range m.turns {
					if turn >= from && turn < from+turnsTogether {
						took = append(took, m.took[i])
					}
				}
			}
			if slices.Sort(took); len(took) > 0 {
				fmt.Fprintf(w, "turns %2d to %2d, %s half: %5d steps, p50 %v, p99 %v\n", from, from+turnsTogether-1, half, len(took), at(took, 50), at(took, 99))
			}
		}
	}
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)-1)*percent/100].Round(100 * time.Microsecond)
}
