package order

import (
	"errors"
	"testing"
)

func TestParseID(t *testing.T) {
	tests := []struct {
		in string
		ok bool
	}{
		{"ORD-10007-A", true},
		{"ORD-10007-Z", true},
		{"ORD-10007-G", false},
		{"ORD-1007-A", false},
		{"ord-10007-a", false},
		{"ORD-10O07-A", false},
		{"", false},
	}
	for _, tt := range tests {
		id, err := ParseID(tt.in)
		if (err == nil) != tt.ok {
			t.Errorf("ParseID(%q) error = %v, want ok = %v", tt.in, err, tt.ok)
		}
		if err == nil && string(id) != tt.in {
			t.Errorf("ParseID(%q) = %q", tt.in, id)
		}
		if err != nil && !errors.Is(err, ErrBadID) {
			t.Errorf("ParseID(%q) error %v is not ErrBadID", tt.in, err)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Order{ID: "ORD-10007-A", Customer: "Ada Quist", Country: "SE", WeightGrams: 1200, Service: Standard}
	if err := good.Validate(); err != nil {
		t.Fatalf("good order: %v", err)
	}
	tests := map[string]func(*Order){
		"id":      func(o *Order) { o.ID = "10007" },
		"name":    func(o *Order) { o.Customer = "" },
		"country": func(o *Order) { o.Country = "SWE" },
		"weight":  func(o *Order) { o.WeightGrams = MaxWeightGrams + 1 },
		"service": func(o *Order) { o.Service = "overnight" },
	}
	for name, breakIt := range tests {
		o := good
		breakIt(&o)
		if o.Validate() == nil {
			t.Errorf("%s: want an error", name)
		}
	}
}
