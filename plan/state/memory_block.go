package state

import (
	"slices"
	"strings"
)

// Memory is the memory block of a workstream: short entries, the older ones folded into a
// summary. Its cycle is independent of the compaction of messages (seed D, "Memory Block
// Compaction"). The zero value is empty.
type Memory struct {
	Summary string   `json:"summary,omitempty"`
	Entries []string `json:"entries,omitempty"`
}

// At memoryTrigger entries the oldest memoryFold are folded.
const (
	memoryTrigger = 15
	memoryFold    = 10
)

// Add returns the memory with more entries. Empty ones are skipped.
func (m Memory) Add(entries ...string) Memory {
	m.Entries = slices.Clone(m.Entries)
	for _, e := range entries {
		if strings.TrimSpace(e) != "" {
			m.Entries = append(m.Entries, e)
		}
	}
	return m
}

// Due returns the entries to fold now, oldest first, and whether it is time.
func (m Memory) Due() (oldest []string, due bool) {
	if len(m.Entries) < memoryTrigger {
		return nil, false
	}
	return slices.Clone(m.Entries[:memoryFold]), true
}

// Folded returns the memory after its n oldest entries became part of the summary. Entries
// that were added meanwhile stay.
func (m Memory) Folded(summary string, n int) Memory {
	return Memory{Summary: summary, Entries: slices.Clone(m.Entries[min(max(n, 0), len(m.Entries)):])}
}

// Render writes summary and entries for the agent. It is empty for an empty memory.
func (m Memory) Render() string {
	var b strings.Builder
	if m.Summary != "" {
		b.WriteString("Memory summary:\n")
		b.WriteString(strings.TrimSpace(m.Summary))
		b.WriteByte('\n')
	}
	if len(m.Entries) > 0 {
		b.WriteString("Memory:\n")
		for _, e := range m.Entries {
			b.WriteString("- ")
			b.WriteString(oneLine(e))
			b.WriteByte('\n')
		}
	}
	return b.String()
}
