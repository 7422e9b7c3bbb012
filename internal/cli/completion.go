package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/sessions"
	"github.com/palimpsest-ai/palimpsest/policy"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
	"github.com/palimpsest-ai/palimpsest/token"
	"github.com/palimpsest-ai/palimpsest/transcript"
)

// flagValues returns the values of a flag by its name; nil if it takes files or any text.
func flagValues(flag string) []string {
	switch flag {
	case "to":
		return targets
	case "from":
		return mapSlice(transcript.Formats(), func(f transcript.Format) string { return string(f) })
	case "policy":
		return policyfile.Names()
	case "favor":
		return policy.Favors()
	case "agent":
		return sessions.Agents()
	case "counter":
		return []string{"o200k", "cl100k", "claude", "gemini", "chars/4"}
	case "model":
		return mapSlice(token.Models().All(), func(m token.Model) string { return m.Name })
	}
	for _, s := range config.Settings() {
		if s.Name == flag {
			return s.Values
		}
	}
	return nil
}

// registerCompletions offers the values of flags to the shell, and the ids of sessions for
// a FILE. It takes as long as a short command, so it is called only for the shell.
func registerCompletions(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		all := flagValues(f.Name)
		if len(all) == 0 {
			return
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		if f.Name == "policy" { // or a file
			directive = cobra.ShellCompDirectiveDefault
		}
		// The only error is that the flag has a completion already.
		_ = c.RegisterFlagCompletionFunc(f.Name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return all, directive
		})
	})
	if c.ValidArgsFunction == nil && slices.Contains(strings.Fields(c.Use), "FILE") {
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			all, err := findSessions()
			if err != nil || len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			var ids []string
			for _, f := range all[:min(len(all), 50)] {
				if strings.HasPrefix(f.ID, begun) {
					ids = append(ids, f.ID+"\t"+f.Agent)
				}
			}
			return ids, cobra.ShellCompDirectiveDefault
		}
	}
	for _, below := range c.Commands() {
		registerCompletions(below)
	}
}
