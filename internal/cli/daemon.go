package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/palimpsest-ai/palimpsest/internal/config"
	"github.com/palimpsest-ai/palimpsest/internal/ondemand"
)

// defaultIdle is when a daemon that was started on demand ends without requests.
const defaultIdle = 15 * time.Minute

func daemonCommand(s Streams) *cobra.Command {
	var idle time.Duration
	c := &cobra.Command{
		Use:   "daemon",
		Short: "Start your daemon if none is running, and print where it is",
		Long: `Make sure that a daemon runs for you, and print one line of JSON: "socket", its Unix
socket, which needs no key; "url" and "key", its address on this machine and the key
for it (Authorization: Bearer KEY; agents send X-Palimpsest-Key: KEY); its "version",
"api" and "pid". If a daemon is running already, that one is used; any number of
programs may call this command at once.

The daemon takes the settings of "palimpsest serve" from the environment and the file
of settings, uses the same store as the commands, and ends after --idle without
requests. It logs to daemon.log in palimpsest's data directory.`,
		Example: "  palimpsest daemon\n  palimpsest daemon stop",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if idle < 0 {
				return fmt.Errorf("%w: --idle %s: want 0 (never) or more", errUsage, idle)
			}
			data, socket, err := userSocket()
			if err != nil {
				return err
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			environ := os.Environ()
			if dir, err := os.Getwd(); err == nil { // the daemon is started in another folder
				environ = config.AbsoluteEnviron(environ, dir)
			}
			running, err := ondemand.Ensure(c.Context(), ondemand.Start{
				Socket:  socket,
				Env:     environ,
				Command: []string{program, "serve", "--socket", socket, "--listen", "127.0.0.1:0", "--idle", idle.String()},
				Log:     filepath.Join(data, "daemon.log"),
			})
			if err != nil {
				return err
			}
			return json.NewEncoder(s.Out).Encode(running)
		},
	}
	c.Flags().DurationVar(&idle, "idle", defaultIdle, "a daemon that is started now ends after `DURATION` without requests")
	c.AddCommand(daemonStopCommand(s))
	return c
}

func daemonStopCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop your daemon",
		Long:  "Stop the daemon that answers at your socket. It finishes its requests first.",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, socket, err := userSocket()
			if err != nil {
				return err
			}
			was, err := ondemand.Stop(c.Context(), socket)
			switch {
			case errors.Is(err, ondemand.ErrNoDaemon):
				newPrinter(s.Out).line("no daemon answers at %s", socket)
				return nil
			case err != nil:
				return err
			}
			newPrinter(s.Out).line("stopped the daemon, process %d", was.PID)
			return nil
		},
	}
}

// userSocket is the user's data directory and the socket of the user's daemon.
func userSocket() (data, socket string, err error) {
	if data, err = config.DataDir(); err == nil {
		socket, err = ondemand.Socket(data)
	}
	return data, socket, err
}

// reachable is the URL under which this machine reaches a daemon that listens on an address.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "http://" + listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// daemonClient returns the address of the daemon with these settings, and a client for it:
// where it listens on its socket alone, one that asks there.
func daemonClient(c *config.Config) (address string, client *http.Client, err error) {
	listen, socket := c.Text("listen"), c.Text("socket")
	if listen == "" && socket != "" {
		return "http://localhost", ondemand.Client(socket), nil
	}
	transport := &http.Transport{DisableKeepAlives: true}
	address = reachable(listen)
	if file := c.Text("tls-cert"); file != "" {
		address = "https://" + strings.TrimPrefix(address, "http://")
		if transport.TLSClientConfig, err = trustCertificate(file); err != nil {
			return "", nil, fmt.Errorf("tls-cert: %w", err)
		}
	}
	return address, &http.Client{Transport: transport}, nil
}

// trustCertificate trusts a server with the first certificate of a file, whoever signed it
// and whatever name it is for: it is asked at an address of this machine.
func trustCertificate(file string) (*tls.Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%s does not begin with a certificate (PEM)", file)
	}
	return &tls.Config{
		InsecureSkipVerify: true, // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			if !bytes.Equal(s.PeerCertificates[0].Raw, block.Bytes) {
				return fmt.Errorf("the daemon has another certificate than %s", file)
			}
			return nil
		},
	}, nil
}

// healthTimeout limits how long a daemon may take to answer.
const healthTimeout = 10 * time.Second

func healthCommand(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "health [URL]",
		Short: "Report whether a daemon is ready: exit status 0, or 1 if not",
		Long: `Ask a daemon whether it is ready: a health check for containers without a shell or
curl. URL is its address (default: where the settings say that it listens, mostly
http://127.0.0.1:7433; with tls-cert, by TLS with that certificate).`,
		Example: "  palimpsest health\n  palimpsest health http://127.0.0.1:8080",
		Args:    atMostOneArg("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			var address string
			client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			if len(args) == 1 {
				address = args[0]
			} else {
				loaded, err := loadSettings("", nil)
				if err != nil {
					return err
				}
				if address, client, err = daemonClient(loaded); err != nil {
					return err
				}
			}
			if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
				return fmt.Errorf("%w: %s: want a URL such as http://127.0.0.1:7433", errUsage, printable(address))
			}
			if err := askReady(c.Context(), address, client); err != nil {
				return err
			}
			_, err := fmt.Fprintln(s.Out, "ready")
			return err
		},
	}
}

// askReady asks a daemon whether it is ready. No answer, or another one, is an error.
func askReady(ctx context.Context, address string, client *http.Client) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/readyz", nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	client.Timeout = healthTimeout
	answer, err := client.Do(q)
	if err != nil {
		return fmt.Errorf("no daemon answers at %s: `palimpsest serve` starts one: %w", printable(address), err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(answer.Body, 1<<16)); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the daemon is not ready: %s", answer.Status)
	}
	return nil
}
