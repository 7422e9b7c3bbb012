package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/palimpsest-ai/palimpsest/internal/closest"
	"github.com/palimpsest-ai/palimpsest/internal/yamlfile"
)

// Sources are where values come from beside the defaults.
type Sources struct {
	// Flags are those that were given, by name.
	Flags map[string]string
	// Environ is the environment, as os.Environ gives it.
	Environ []string
	// File is the file of settings; empty for none. Optional says that it need
	// not be there.
	File     string
	Optional bool
}

// Config is the settings with their values. It never changes.
type Config struct {
	values map[string]Value
	// unknown are names in the environment that begin like ours and are not.
	unknown []string
}

// Value is what a setting is set to.
type Value struct {
	Setting
	// Text is the value as it was written. It may hold a secret: Shown does not.
	Text string
	// From says where it comes from, in words for people.
	From string
}

// Redacted is the value for people and logs, without what is secret in it.
func (v Value) Redacted() string {
	if v.show == nil {
		return v.Text
	}
	return v.show(v.Text)
}

// sourceValue is a value as a source has it, and where it stands there.
type sourceValue struct{ text, from string }

// layer is the values of one source, by name.
type layer map[string]sourceValue

// Load reads the sources. The error names the first value that cannot be used and
// where it stands.
func Load(s Sources) (*Config, error) {
	file, err := fileLayer(s.File, s.Optional)
	if err != nil {
		return nil, err
	}
	env, unknown := envLayer(s.Environ)
	flags := layer{}
	for name, text := range s.Flags {
		flags[name] = sourceValue{text, "--" + name}
	}
	c := &Config{values: map[string]Value{}, unknown: unknown}
	for _, setting := range Settings() {
		v := Value{setting, setting.Default, "default"}
		for _, l := range []layer{file, env, flags} {
			if g, ok := l[setting.Name]; ok {
				v.Text, v.From = g.text, g.from
			}
		}
		if err := setting.validate(v.Text); err != nil {
			return nil, fmt.Errorf("%s (%s): %q: %w", setting.Name, v.From, v.Redacted(), err)
		}
		c.values[setting.Name] = v
	}
	return c, nil
}

// ConfigEnv names the file of settings in the environment.
const ConfigEnv = envPrefix + "CONFIG"

// reservedEnv are names in the environment that belong to others.
var reservedEnv = []string{ConfigEnv, MasterEnv}

func envLayer(environ []string) (layer, []string) {
	l := layer{}
	var unknown []string
	byEnv := map[string]string{}
	for _, s := range Settings() {
		byEnv[s.Env()] = s.Name
	}
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		switch {
		case !strings.HasPrefix(name, envPrefix), slices.Contains(reservedEnv, name):
		case byEnv[name] == "":
			unknown = append(unknown, name)
		default:
			l[byEnv[name]] = sourceValue{text, name}
		}
	}
	slices.Sort(unknown)
	return l, unknown
}

// fileLayer reads a file of settings: one YAML mapping from names to values.
func fileLayer(path string, optional bool) (layer, error) {
	l := layer{}
	if path == "" {
		return l, nil
	}
	if info, err := os.Stat(path); err == nil && info.Size() > yamlfile.MaxBytes {
		return l, fmt.Errorf("config: %s: over %d bytes; is it a file of settings?", path, yamlfile.MaxBytes)
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
		return l, nil
	case err != nil:
		return l, fmt.Errorf("config: %w", err)
	}
	return l, l.parse(path, data)
}

func (l layer) parse(path string, data []byte) error {
	root, wrong := yamlfile.Read(data)
	if wrong != nil {
		return fmt.Errorf("config: %s: %w", path, wrong)
	}
	pairs, ok := yamlfile.Pairs(root)
	if _, null := root.(*ast.NullNode); !ok && root != nil && !null {
		return fmt.Errorf("config: %s: want settings, one per line, such as: listen: 127.0.0.1:7433", path)
	}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		where := fmt.Sprintf("%s:%d", path, pair.Key.GetToken().Position.Line)
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("config: %s: unknown setting %.60q; did you mean %s? (`palimpsest config show` lists all)", where, name, closest.Names(name, Names(), 1)[0])
		}
		text, ok := scalarText(pair.Value)
		if !ok {
			return fmt.Errorf("config: %s: %s: want a single value", where, name)
		}
		if _, twice := l[name]; twice {
			return fmt.Errorf("config: %s: %s is set twice", where, name)
		}
		l[name] = sourceValue{text, where}
	}
	return nil
}

// scalarText is the text of a single value.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.NullNode:
		return "", true
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimSpace(n.Value.Value), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// All lists the settings with their values, in the order of the table.
func (c *Config) All() []Value {
	var all []Value
	for _, s := range Settings() {
		all = append(all, c.values[s.Name])
	}
	return all
}

// Unknown lists names in the environment that begin like settings and are none.
func (c *Config) Unknown() []string { return c.unknown }

// value panics for a name that is not in the table.
func (c *Config) value(name string) Value {
	v, ok := c.values[name]
	if !ok {
		panic("config: no setting " + name)
	}
	return v
}

// Text returns a value as it was written. Like its siblings it panics for a name
// that is not in the table.
func (c *Config) Text(name string) string { return c.value(name).Text }

// Count returns a whole number.
func (c *Config) Count(name string) int {
	n, _ := parseCount(c.value(name).Text)
	return n
}

// Tokens returns a number of tokens.
func (c *Config) Tokens(name string) int {
	n, _ := ParseTokens(c.value(name).Text)
	return n
}

// Bytes returns a number of bytes.
func (c *Config) Bytes(name string) int {
	n, _ := parseBytes(c.value(name).Text)
	return n
}

// Duration returns a span of time.
func (c *Config) Duration(name string) time.Duration {
	d, _ := parseDuration(c.value(name).Text)
	return d
}
