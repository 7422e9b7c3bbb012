package cli

import (
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/clip"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/policy/policyfile"
)

func policyCommand(s Streams) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "policy",
		Short: "List the policies, show one as a file to start from, and describe the format",
		Long: `A policy says when a conversation is compacted, where it is cut and what happens to
the old part. --policy takes a name, or a YAML file that starts from a policy and
overrides its fields.`,
		Example: "  palimpsest policy show ladder > mine.yaml\n  palimpsest compact session.jsonl --budget 32000 --policy mine.yaml",
	}, policyListCommand(s), policyShowCommand(s), policySchemaCommand(s))
}

func policyListCommand(s Streams) *cobra.Command {
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the policies: when each compacts, where it cuts, and what happens to the old part",
		Example: "  palimpsest policy list",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			type row struct {
				Name string `json:"name"`
				Line string `json:"what"`
			}
			var rows []row
			for i, base := range policyfile.Bases() {
				rows = append(rows, row{policyfile.Names()[i], policyfile.Description(base)})
			}
			return writeResult(s.Out, c, rows, func(p *printer) {
				for _, r := range rows {
					for i, line := range clip.Wrap(r.Line, 78, "") {
						p.line("%-18s %s", map[bool]string{true: r.Name}[i == 0], line)
					}
				}
			})
		},
	}
	c.Flags().Bool("json", false, "write the list as JSON")
	return c
}

func policyShowCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "show NAME|FILE",
		Short: "Write a policy as a complete YAML file, with what each field means",
		Long: `Show writes every field of a policy with its value. The output is itself a policy
file: change what you like, and delete the rest.`,
		Example: "  palimpsest policy show auto\n  palimpsest policy show last-turns:5\n  palimpsest policy show mine.yaml",
		Args:    exactArgs(1, "one NAME or FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			settings, err := policyfile.Default(args[0]), error(nil) // of one with an argument, without that
			if !slices.Contains(policyfile.Bases(), args[0]) {
				settings, err = setup.Settings(args[0], func(name string) (io.ReadCloser, error) { return openInput(name, s.In) })
			}
			if err == nil {
				_, err = s.Out.Write(settings.YAML())
			}
			return err
		},
	}
}

func policySchemaCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Write the JSON schema of policy files, for editors",
		Example: "  palimpsest policy schema > policy.schema.json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := s.Out.Write(policyfile.Schema())
			return err
		},
	}
}
