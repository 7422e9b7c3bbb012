package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest"
	"github.com/palimpsest-ai/palimpsest/internal/cli"
	"github.com/palimpsest-ai/palimpsest/internal/setup"
	"github.com/palimpsest-ai/palimpsest/lab/eval/exam"
	"github.com/palimpsest-ai/palimpsest/recall"
	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/sqlite"
	"github.com/palimpsest-ai/palimpsest/thread"
)

// lookedFile lists the look-ups of a reader, one a line.
const lookedFile = "lookups.txt"

// lookScripts are what a reader of NAME+recall runs: the file's name and the flag.
var lookScripts = map[string]string{"look": "", "read": " --read"}

// lookCommand answers a look-up of an exam's reader as the tools of a session answer the model.
func lookCommand(s cli.Streams) *cobra.Command {
	var reads bool
	c := &cobra.Command{
		Use:   "look DIR WORDS... | --read DIR ID [LINE]",
		Short: "Look up what was removed from the prompt of an exam's reader",
		Long: `Look is what the scripts look and read in the folder of a reader of NAME+recall call. It prints what the
tool recall, or read_artifact, answers the model of that session, notes the look-up in
` + lookedFile + ` and refuses more than there may be.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			dir, call := args[0], thread.ToolCall{ID: "1", Name: recall.RecallTool}
			arguments := map[string]any{"query": strings.Join(args[1:], " ")}
			if reads {
				call.Name, arguments = recall.ReadArtifactTool, map[string]any{"artifact_id": args[1]}
				if len(args) > 2 {
					line, err := strconv.Atoi(args[2])
					if err != nil || len(args) > 3 {
						return fmt.Errorf("%w: read: want an ID, and perhaps the number of a line", setup.ErrUsage)
					}
					arguments["offset"] = line
				}
			}
			text, err := json.Marshal(arguments)
			if err != nil {
				return err
			}
			call.Arguments = string(text)
			if err := noteLook(filepath.Join(dir, lookedFile), call); err != nil {
				return err
			}
			answer, err := look(c.Context(), filepath.Join(dir, exam.StoreFile), call)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.Out, answer)
			return err
		},
	}
	c.Flags().BoolVar(&reads, "read", false, "read a message or an artifact by its id, instead of a search")
	return c
}

// noteLook notes a look-up, or refuses it.
func noteLook(file string, call thread.ToolCall) error {
	noted, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if n := strings.Count(string(noted), "\n"); n >= exam.MaxLookups {
		return fmt.Errorf("all %d look-ups are used; answer with what you have", n)
	}
	return os.WriteFile(file, append(noted, call.Name+" "+call.Arguments+"\n"...), 0o666)
}

// look answers a call of a tool in the conversation of a store.
func look(ctx context.Context, file string, call thread.ToolCall) (string, error) {
	if _, err := os.Stat(file); err != nil {
		return "", err
	}
	db, err := sqlite.Open(ctx, file, nil)
	if err != nil {
		return "", err
	}
	defer db.Close()
	kept := db.Tenant("")
	held, err := kept.Catalog.Threads(ctx, "", 1)
	if err != nil || len(held) == 0 {
		return "", errors.Join(err, fmt.Errorf("%s holds no conversation", file))
	}
	c, err := palimpsest.New(palimpsest.Config{Store: store.Tenant{Log: kept.Log, Plans: kept.Plans}, Recall: &palimpsest.Recall{}})
	if err != nil {
		return "", err
	}
	result, _, err := c.Session(held[0].ID).Answer(ctx, nil, call)
	if err != nil {
		return "", err
	}
	r, _ := result.Result()
	return r.Text(), nil
}

// writeLookScripts writes the scripts of a reader into its folder.
func writeLookScripts(dir string) error {
	self, err := os.Executable()
	for name, flag := range lookScripts {
		script := fmt.Sprintf("#!/bin/sh\nexec %s look%s -- \"$(dirname \"$0\")\" \"$@\"\n", quoted(self), flag)
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o777))
	}
	return err
}
