package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Switches are the agents and sessions for which Palimpsest is off. The zero value has none off.
type Switches struct {
	Agents   []string `json:"agents,omitempty"`
	Sessions []string `json:"sessions,omitempty"`
}

const switchesName = "off.json"

// LoadSwitches reads the switches of a data directory.
func LoadSwitches(data string) (s Switches, err error) {
	text, err := os.ReadFile(filepath.Join(data, switchesName))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", filepath.Join(data, switchesName), err)
	}
	return s, err
}

// Save writes the switches; without any it removes their file.
func (s Switches) Save(data string) error {
	path := filepath.Join(data, switchesName)
	if len(s.Agents)+len(s.Sessions) == 0 {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	_, err = write(path, append(text, '\n'), newFile)
	return err
}

// Set turns an agent or a session off or on; changed is false if it is so already.
func (s *Switches) Set(name string, isAgent, off bool) (changed bool) {
	list := &s.Sessions
	if isAgent {
		list = &s.Agents
	}
	has := slices.Contains(*list, name)
	if off && !has {
		*list = append(*list, name)
	} else if !off {
		*list = slices.DeleteFunc(*list, func(other string) bool { return other == name })
	}
	return has != off
}

// Off says why Palimpsest is off for a session of an agent; "" if it is on. Either name may be
// empty. A plugin names its conversations by the agent, the session and what comes after that,
// such as opencode.ses_1.msg_2: session may be such a name without the agent.
func (s Switches) Off(agent, session string) string {
	if agent != "" && slices.Contains(s.Agents, agent) {
		return fmt.Sprintf("palimpsest is off for %s: `palimpsest on %s`", agent, agent)
	}
	for _, id := range s.Sessions {
		if session == id || strings.HasPrefix(session, id+".") {
			return fmt.Sprintf("palimpsest is off for this session: `palimpsest on %s`", id)
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
