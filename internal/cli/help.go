package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
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

func showHelp(c *cobra.Command, args []string) error {
	of, rest, err := c.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return fmt.Errorf("%w: unknown command %q: `palimpsest help` lists all", errUsage, strings.Join(args, " "))
	}
	of.InitDefaultHelpFlag()
	return of.Help()
}

// manCommand writes manual pages, for packagers.
func manCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write a manual page of each command into a directory",
		Hidden: true,
		Args:   exactArgs(1, "one DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			root := c.Root()
			root.InitDefaultHelpFlag()
			return writeManual(root, func(name, page string) error {
				return WriteOutput(filepath.Join(args[0], name+".1"), []byte(page), s.Out)
			})
		},
	}
}

// writeManual calls keep with the page of a command and of each subcommand.
func writeManual(c *cobra.Command, keep func(name, page string) error) error {
	name := strings.ReplaceAll(c.CommandPath(), " ", "-")
	if err := keep(name, manualPage(c, name)); err != nil {
		return err
	}
	for _, below := range c.Commands() {
		if hasManualPage(below) {
			if err := writeManual(below, keep); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasManualPage excludes the commands that cobra adds.
func hasManualPage(c *cobra.Command) bool {
	return c.IsAvailableCommand() && c.Name() != "help" && c.Name() != "completion"
}

// manualPage is the page of a command in roff. It has no date, so that builds are
// reproducible.
func manualPage(c *cobra.Command, name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %q 1 \"\" %q \"Palimpsest\"\n", strings.ToUpper(name), "palimpsest "+Version())
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escapeRoff(name), escapeRoff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escapeRoff(c.UseLine()))
	if c.Long != "" {
		b.WriteString(".SH DESCRIPTION\n" + strings.ReplaceAll(escapeRoff(c.Long), "\n\n", "\n.PP\n") + "\n")
	}
	manualFlags(&b, "OPTIONS", c.NonInheritedFlags())
	manualFlags(&b, "OPTIONS OF ALL COMMANDS", c.InheritedFlags())
	if c.Example != "" {
		b.WriteString(".SH EXAMPLES\n.EX\n" + escapeRoff(c.Example) + "\n.EE\n")
	}
	var related []string
	if c.HasParent() {
		related = append(related, ".BR "+escapeRoff(strings.ReplaceAll(c.Parent().CommandPath(), " ", "-"))+" (1)")
	}
	for _, below := range c.Commands() {
		if hasManualPage(below) {
			related = append(related, ".BR "+escapeRoff(name+"-"+below.Name())+" (1)")
		}
	}
	if len(related) > 0 {
		b.WriteString(".SH SEE ALSO\n" + strings.Join(related, "\n") + "\n")
	}
	return b.String()
}

func manualFlags(b io.Writer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		short := ""
		if f.Shorthand != "" {
			short = "-" + f.Shorthand + ", "
		}
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", escapeRoff(short+"--"+f.Name))
		if value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", escapeRoff(value))
		}
		fmt.Fprintf(b, "\n%s\n", escapeRoff(usage))
	})
}

func escapeRoff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

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
		_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(all, directive))
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
