package install

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Switches are the agents, and the ids of the sessions, for which Palimpsest is off.
type Switches []string

const switchesName = "off.json"

// LoadSwitches reads the switches of a data directory.
func LoadSwitches(data string) (s Switches, err error) {
	err = loadJSON(filepath.Join(data, switchesName), &s)
	return s, err
}

// UpdateSwitches has f change the switches of a data directory while no other process does. Without any there is no
// file of them.
func UpdateSwitches(ctx context.Context, data string, f func(*Switches) error) error {
	return alone(ctx, data, func([]string) error {
		s, err := LoadSwitches(data)
		if err == nil {
			err = f(&s)
		}
		if err == nil {
			err = saveJSON(filepath.Join(data, switchesName), s, len(s) == 0)
		}
		return err
	})
}

// Set turns an agent or a session off or on.
func (s *Switches) Set(name string, off bool) {
	*s = slices.DeleteFunc(*s, func(other string) bool { return other == name })
	if off {
		*s = append(*s, name)
	}
}

// Off says why Palimpsest is off for a session of an agent; "" if it is on. Either name may be
// empty. A plugin names its conversations by the agent, the session and what comes after that,
// such as opencode.ses_1.msg_2: session may be such a name without the agent.
func (s Switches) Off(agent, session string) string {
	for _, name := range s {
		if name == agent || name == session || strings.HasPrefix(session, name+".") {
			return fmt.Sprintf("palimpsest is off for %s: `palimpsest on %s`", name, name)
		}
	}
	return ""
}

// OffThread is Off for the name of a plugin's conversation.
func (s Switches) OffThread(name string) string {
	agent, session, ok := strings.Cut(name, ".")
	if !ok {
		return ""
	}
	return s.Off(agent, session)
}
