// Shipqctl imports orders from CSV exports.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"example.com/shipq/csvimport"
	"example.com/shipq/order"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "import" {
		fmt.Fprintln(os.Stderr, "usage: shipqctl import [-dry-run] [-url URL] FILE")
		os.Exit(2)
	}
	if err := runImport(os.Args[2:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "shipqctl:", err)
		os.Exit(1)
	}
}

func runImport(args []string, out io.Writer) error {
	fs := flag.NewFlagSet("import", flag.ExitOnError)
	dry := fs.Bool("dry-run", false, "only check the file")
	url := fs.String("url", "http://localhost:8080", "where shipqd listens")
	fs.Parse(args)
	if fs.NArg() != 1 {
		return fmt.Errorf("want one file, got %d", fs.NArg())
	}
	f, err := os.Open(fs.Arg(0))
	if err != nil {
		return err
	}
	defer f.Close()
	res, err := csvimport.Read(f)
	if err != nil {
		return err
	}
	for _, r := range res.Rejects {
		fmt.Fprintln(out, "rejected:", r)
	}
	if !*dry {
		for _, o := range res.Orders {
			if err := post(*url, o); err != nil {
				return fmt.Errorf("%s: %w", o.ID, err)
			}
		}
	}
	fmt.Fprintf(out, "%d orders, %d rejected\n", len(res.Orders), len(res.Rejects))
	return nil
}

func post(url string, o order.Order) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	resp, err := http.Post(url+"/orders", "application/json", bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		msg, _ := io.ReadAll(io.LimitReader(resp.Body, 1024))
		return fmt.Errorf("shipqd answered %d: %s", resp.StatusCode, bytes.TrimSpace(msg))
	}
	return nil
}
