// Package pricing quotes what a label costs the customer.
package pricing

import (
	"errors"
	"fmt"

	"example.com/shipq/order"
)

// ErrNoService is returned for a country we do not ship to.
var ErrNoService = errors.New("pricing: no service to this country")

// zone is a group of countries with one price.
type zone struct {
	base  float64 // euros for the first kilogram
	perKg float64 // euros for each further kilogram, by the started 100 g
}

var zones = map[string]zone{
	"SE": {4.95, 1.15},
	"NO": {4.95, 1.15},
	"DK": {4.95, 1.15},
	"FI": {4.95, 1.15},
	"DE": {6.90, 1.45},
	"NL": {6.90, 1.45},
	"AT": {7.40, 1.55},
	"FR": {7.40, 1.55},
	"GB": {11.20, 2.35},
	"US": {18.60, 6.80},
}

// expressFactor is the surcharge for express.
const expressFactor = 1.35

// Quote returns the price in cents.
func Quote(country string, grams int, service string) (int, error) {
	z, ok := zones[country]
	if !ok {
		return 0, fmt.Errorf("%w: %s", ErrNoService, country)
	}
	if grams <= 0 || grams > order.MaxWeightGrams {
		return 0, fmt.Errorf("pricing: weight %d g is outside 1..%d", grams, order.MaxWeightGrams)
	}
	euros := z.base
	if grams > 1000 {
		steps := (grams - 1000 + 99) / 100
		euros += float64(steps) * z.perKg / 10
	}
	if service == order.Express {
		euros *= expressFactor
	}
	return int(euros * 100), nil
}
