package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/palimpsest-ai/palimpsest/internal/config"
)

// settingFlags are the flags for the daemon's settings, and --config.
type settingFlags struct {
	flags *pflag.FlagSet
	file  string
}

func (s *settingFlags) add(f *pflag.FlagSet) {
	s.flags = f
	f.StringVar(&s.file, "config", "", "read settings from this `FILE` (default: $"+config.ConfigEnv+", else config.yaml in the user's configuration folder)")
	for _, setting := range config.Settings() {
		f.Var(&settingValue{text: setting.Default, want: setting.ValueName}, setting.Name, setting.Usage)
	}
}

// settingValue is the value of a flag; config.Load checks it.
type settingValue struct{ text, want string }

func (v *settingValue) Set(text string) error { v.text = text; return nil }
func (v *settingValue) String() string        { return v.text }
func (v *settingValue) Type() string          { return v.want }

// load reads flags, environment and file.
func (s *settingFlags) load() (*config.Config, error) {
	given := map[string]string{}
	s.flags.Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return loadSettings(s.file, given)
}

// loadSettings reads the environment and a file of settings, "" for the user's. What is given
// as a flag goes before both.
func loadSettings(file string, given map[string]string) (*config.Config, error) {
	sources := config.Sources{Flags: given, Environ: os.Environ(), File: cmp.Or(file, os.Getenv(config.ConfigEnv))}
	if sources.File == "" {
		sources.File, _ = settingsFile()
		sources.Optional = true
	}
	c, err := config.Load(sources)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	return c, nil
}

// settingsFile is where the user's settings are, or would be.
func settingsFile() (string, error) {
	if file := os.Getenv(config.ConfigEnv); file != "" {
		return filepath.Abs(file)
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "palimpsest", "config.yaml"), nil
}

func configCommand(s Streams) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "config",
		Short: "Show the settings of the daemon",
	}, configShowCommand(s))
}

// settingRow is a setting in the output of config show.
type settingRow struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  string `json:"from"`
	Env   string `json:"env"`
	Usage string `json:"usage"`
}

func configShowCommand(s Streams) *cobra.Command {
	var given settingFlags
	c := &cobra.Command{
		Use:   "show",
		Short: "Show every setting, its value and where it comes from",
		Long: `Show every setting of the daemon, its value and where it comes from. A flag
overrides the environment, the environment the file, and the file the default.
Passwords are not shown. compact, threads and the other commands heed store and
master-key too, where no --store is given.`,
		Example: "  palimpsest config show\n  PALIMPSEST_RATE=50 palimpsest config show --config daemon.yaml --json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			loaded, err := given.load()
			if err != nil {
				return err
			}
			for _, name := range loaded.Unknown() {
				fmt.Fprintf(s.Err, "palimpsest: warning: %s in the environment is not a setting\n", printable(name))
			}
			shown := mapSlice(loaded.All(), func(v config.Value) settingRow {
				return settingRow{v.Name, v.Redacted(), v.From, v.Env(), v.Usage}
			})
			return writeResult(s.Out, c, shown, func(p *printer) {
				p.table([]string{"setting", "value", "from"}, mapSlice(shown, func(v settingRow) []string { return []string{v.Name, v.Value, v.From} }))
				if usual, err := defaultStore(); err == nil && loaded.Text("store") == "" {
					p.line("the store is %s", usual)
				}
			})
		},
	}
	given.add(c.Flags())
	c.Flags().Bool("json", false, "write a JSON array")
	return c
}
