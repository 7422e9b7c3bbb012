package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/palimpsest-ai/palimpsest/internal/redact"
	"github.com/palimpsest-ai/palimpsest/internal/suggest"
	"github.com/palimpsest-ai/palimpsest/internal/yamlfile"
)

// Sources are where values come from besides the defaults.
type Sources struct {
	// Flags are the flags that were given, by name. Others than settings are ignored.
	Flags map[string]string
	// Environ is the environment, in the form of os.Environ.
	Environ []string
	// File is the file of settings; empty for none. If it is Optional, it need not exist.
	// Relative paths in it are relative to its folder.
	File     string
	Optional bool
}

// Config holds the settings with their values. It never changes.
type Config struct {
	values  map[string]Value
	unknown []string // names in the environment that look like settings and are none
}

// Value is a setting and what it is set to.
type Value struct {
	Setting
	// Text is the value as written. It may hold a password; Redacted does not.
	Text string
	// From names the source, for people.
	From string
}

// Redacted is the value without a password.
func (v Value) Redacted() string {
	if v.hasPassword {
		return redact.URL(v.Text)
	}
	return v.Text
}

// Load reads the sources. The error names the first value that cannot be used and its
// source.
func Load(s Sources) (*Config, error) {
	c := &Config{values: map[string]Value{}}
	for _, setting := range Settings() {
		c.values[setting.Name] = Value{setting, setting.Default, "default"}
	}
	if err := c.readFile(s.File, s.Optional); err != nil {
		return nil, err
	}
	c.readEnviron(s.Environ)
	for name, text := range s.Flags {
		c.set(name, text, "--"+name)
	}
	for _, v := range c.All() {
		if err := v.validate(v.Text); err != nil {
			return nil, fmt.Errorf("%s (%s): %q: %w", v.Name, v.From, v.Redacted(), err)
		}
	}
	return c, nil
}

func (s Setting) validate(text string) error {
	switch {
	case text == s.Default:
	case s.Values != nil && !slices.Contains(s.Values, text):
		return fmt.Errorf("want one of %s", strings.Join(s.Values, ", "))
	case s.check != nil:
		return s.check(text)
	}
	return nil
}

// set sets a value and reports whether there is such a setting.
func (c *Config) set(name, text, from string) bool {
	v, ok := c.values[name]
	if ok {
		v.Text, v.From = text, from
		c.values[name] = v
	}
	return ok
}

// ConfigEnv names the file of settings in the environment.
const ConfigEnv = envPrefix + "CONFIG"

func (c *Config) readEnviron(environ []string) {
	names := map[string]string{}
	for _, s := range Settings() {
		names[s.Env()] = s.Name
	}
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, envPrefix) || name == ConfigEnv || name == MasterEnv {
			continue
		}
		if !c.set(names[name], text, name) {
			c.unknown = append(c.unknown, name)
		}
	}
	slices.Sort(c.unknown)
}

// AbsoluteEnviron is an environment for a process in another folder: a relative path in a setting
// means there what it means in dir.
func AbsoluteEnviron(environ []string, dir string) []string {
	in := map[string]func(dir, text string) string{ConfigEnv: fileIn}
	for _, s := range Settings() {
		in[s.Env()] = s.in
	}
	made := slices.Clone(environ)
	for i, entry := range made {
		if name, text, _ := strings.Cut(entry, "="); in[name] != nil {
			made[i] = name + "=" + in[name](dir, text)
		}
	}
	return made
}

// readFile reads a file of settings: one YAML mapping from names to values.
func (c *Config) readFile(path string, optional bool) error {
	if path == "" {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.Size() > yamlfile.MaxBytes {
		return fmt.Errorf("config: %s: over %d bytes; is it a file of settings?", path, yamlfile.MaxBytes)
	}
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
		return nil
	case err != nil:
		return fmt.Errorf("config: %w", err)
	}
	root, wrong := yamlfile.Read(data)
	if wrong != nil {
		return fmt.Errorf("config: %s: %w", path, wrong)
	}
	pairs, ok := yamlfile.Pairs(root)
	if _, null := root.(*ast.NullNode); !ok && root != nil && !null {
		return fmt.Errorf("config: %s: want settings, one per line, such as: listen: 127.0.0.1:7433", path)
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		name := pair.Key.GetToken().Value
		where := fmt.Sprintf("%s:%d", path, pair.Key.GetToken().Position.Line)
		text, single := scalarText(pair.Value)
		switch {
		case c.values[name].Name == "":
			var names []string
			for _, s := range Settings() {
				names = append(names, s.Name)
			}
			return fmt.Errorf("config: %s: unknown setting %.60q; did you mean %s? (`palimpsest config show` lists all)", where, name, suggest.Names(name, names, 1)[0])
		case !single:
			return fmt.Errorf("config: %s: %s: want a single value", where, name)
		case seen[name]:
			return fmt.Errorf("config: %s: %s is set twice", where, name)
		}
		seen[name] = true
		if in := c.values[name].in; in != nil { // not where the daemon happens to be started
			text = in(filepath.Dir(path), text)
		}
		c.set(name, text, where)
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

// Unknown lists names in the environment that begin with PALIMPSEST_ and are no settings.
func (c *Config) Unknown() []string { return c.unknown }

// value panics for a name that is not in the table.
func (c *Config) value(name string) Value {
	v, ok := c.values[name]
	if !ok {
		panic("config: no setting " + name)
	}
	return v
}

// Text returns a value as it was written. Like the methods below it panics for a name that
// is not in the table.
func (c *Config) Text(name string) string { return c.value(name).Text }

// Count returns a whole number.
func (c *Config) Count(name string) int { return parsed(c, name, parseCount) }

// Tokens returns a number of tokens.
func (c *Config) Tokens(name string) int { return parsed(c, name, ParseTokens) }

// Bytes returns a number of bytes.
func (c *Config) Bytes(name string) int { return parsed(c, name, parseBytes) }

// Duration returns a span of time.
func (c *Config) Duration(name string) time.Duration { return parsed(c, name, parseDuration) }

// parsed is a value as parse reads it: zero where it cannot, as it does of an empty text and of some defaults.
func parsed[T any](c *Config, name string, parse func(string) (T, error)) T {
	v, _ := parse(c.value(name).Text)
	return v
}

// DataDir returns where the program keeps a user's data: palimpsest under $XDG_DATA_HOME,
// else under ~/.local/share, on macOS ~/Library/Application Support, on Windows
// %LocalAppData%. The error says which variable to set.
func DataDir() (string, error) { return dataDir(runtime.GOOS, os.Getenv, os.UserHomeDir) }

func dataDir(system string, env func(string) string, homeDir func() (string, error)) (string, error) {
	// The XDG specification has relative paths ignored.
	if data := env("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "palimpsest"), nil
	}
	if data := env("LocalAppData"); system == "windows" && data != "" {
		return filepath.Join(data, "palimpsest"), nil
	}
	home, err := homeDir()
	if err != nil {
		return "", fmt.Errorf("%w; set XDG_DATA_HOME or name a store", err)
	}
	if system == "darwin" {
		return filepath.Join(home, "Library", "Application Support", "palimpsest"), nil
	}
	return filepath.Join(home, ".local", "share", "palimpsest"), nil
}
