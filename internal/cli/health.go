package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// healthPatience is how long a daemon may take to say that it is ready.
const healthPatience = 10 * time.Second

func healthCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "health [URL]",
		Short: "Say whether a daemon is ready: exit status 0, or 1",
		Long: `Ask a daemon whether it is ready, as a container's health check does where there
is no shell and no curl. URL is its address (default: http://127.0.0.1:7433).`,
		Example: "  palimpsest health\n  palimpsest health http://127.0.0.1:8080",
		Args:    atMostOne("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			address := "http://127.0.0.1:7433"
			if len(args) == 1 {
				address = args[0]
			}
			if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
				return fmt.Errorf("%w: %s: want a URL such as http://127.0.0.1:7433", errUsage, printable(address))
			}
			q, err := http.NewRequestWithContext(c.Context(), http.MethodGet, strings.TrimSuffix(address, "/")+"/readyz", nil)
			if err != nil {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			client := http.Client{Timeout: healthPatience, Transport: &http.Transport{DisableKeepAlives: true}}
			answer, err := client.Do(q)
			if err != nil {
				return fmt.Errorf("no daemon answers: %w", err)
			}
			defer answer.Body.Close()
			if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)); err != nil {
				return err
			}
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("the daemon is not ready: %s", answer.Status)
			}
			_, err = fmt.Fprintln(s.Out, "ready")
			return err
		},
	}
}
