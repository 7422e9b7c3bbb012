package pricing

import (
	"errors"
	"testing"

	"example.com/shipq/order"
)

func TestQuote(t *testing.T) {
	tests := []struct {
		country string
		grams   int
		service string
		want    int
	}{
		{"SE", 1, order.Standard, 495},
		{"SE", 1000, order.Standard, 495},
		{"SE", 1001, order.Standard, 507}, // 506.5, half a cent goes up
		{"SE", 2000, order.Standard, 610},
		{"DE", 1200, order.Standard, 719},
		{"DE", 2000, order.Standard, 835},
		{"FR", 3000, order.Standard, 1050},
		{"GB", 1900, order.Standard, 1332}, // 1331.5
		{"GB", 1000, order.Express, 1512},
		{"US", 5000, order.Express, 6183},
	}
	for _, tt := range tests {
		got, err := Quote(tt.country, tt.grams, tt.service)
		if err != nil || got != tt.want {
			t.Errorf("Quote(%s, %d, %s) = %d, %v; want %d", tt.country, tt.grams, tt.service, got, err, tt.want)
		}
	}
}

func TestQuoteErrors(t *testing.T) {
	if _, err := Quote("BR", 1000, order.Standard); !errors.Is(err, ErrNoService) {
		t.Errorf("Quote to BR: %v, want ErrNoService", err)
	}
	for _, grams := range []int{0, -5, order.MaxWeightGrams + 1} {
		if _, err := Quote("SE", grams, order.Standard); err == nil {
			t.Errorf("Quote of %d g: want an error", grams)
		}
	}
}
