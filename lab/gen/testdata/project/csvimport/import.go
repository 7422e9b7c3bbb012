// Package csvimport reads orders from CSV exports. docs/import-format.md
// describes the format.
package csvimport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"example.com/shipq/order"
)

// Reject is a row that could not be used.
type Reject struct {
	Line int
	Err  error
}

func (r Reject) Error() string { return fmt.Sprintf("line %d: %v", r.Line, r.Err) }

// Result is what an import found.
type Result struct {
	Orders  []order.Order
	Rejects []Reject
}

// ErrNoHeader is returned when the first line lacks a needed column.
var ErrNoHeader = errors.New("csvimport: needed column missing")

var needed = []string{"order_id", "customer", "country", "weight_kg"}

// Read reads all rows. An error means that nothing could be read; bad rows are
// in the result.
func Read(r io.Reader) (Result, error) {
	sc := bufio.NewScanner(r)
	if !sc.Scan() {
		return Result{}, fmt.Errorf("%w: empty file", ErrNoHeader)
	}
	cols := make(map[string]int)
	for i, name := range strings.Split(sc.Text(), ",") {
		cols[name] = i
	}
	for _, name := range needed {
		if _, ok := cols[name]; !ok {
			return Result{}, fmt.Errorf("%w: %s", ErrNoHeader, name)
		}
	}
	var res Result
	for line := 2; sc.Scan(); line++ {
		if sc.Text() == "" {
			continue
		}
		o, err := parseRow(cols, strings.Split(sc.Text(), ","))
		if err != nil {
			res.Rejects = append(res.Rejects, Reject{line, err})
			continue
		}
		res.Orders = append(res.Orders, o)
	}
	return res, sc.Err()
}

// parseRow makes an order of one row.
func parseRow(cols map[string]int, row []string) (order.Order, error) {
	get := func(name string) string {
		i, ok := cols[name]
		if !ok || i >= len(row) {
			return ""
		}
		return row[i]
	}
	id, err := order.ParseID(get("order_id"))
	if err != nil {
		return order.Order{}, err
	}
	kg, err := strconv.ParseFloat(get("weight_kg"), 64)
	if err != nil {
		return order.Order{}, fmt.Errorf("weight %q is not a number", get("weight_kg"))
	}
	o := order.Order{
		ID:          id,
		Customer:    get("customer"),
		Country:     get("country"),
		WeightGrams: int(math.Round(kg * 1000)),
		Service:     get("service"),
	}
	if o.Service == "" {
		o.Service = order.Standard
	}
	if s := get("created"); s != "" {
		o.CreatedAt, err = time.Parse("2006-01-02", s)
		if err != nil {
			return order.Order{}, fmt.Errorf("created %q is not a date", s)
		}
	}
	return o, o.Validate()
}
