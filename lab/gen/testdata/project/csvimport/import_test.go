package csvimport

import (
	"errors"
	"strings"
	"testing"

	"example.com/shipq/order"
)

func TestRead(t *testing.T) {
	res, err := Read(strings.NewReader(`order_id,customer,country,weight_kg,service,created
ORD-10001-A,Ada Quist,SE,1.2,standard,2025-05-02
ORD-10002-A,Bo Lind,DK,0.45,express,2025-05-02

ORD-10003-A,Cleo Maat,NL,3,,
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Orders) != 3 || len(res.Rejects) != 0 {
		t.Fatalf("%d orders, rejects %v", len(res.Orders), res.Rejects)
	}
	o := res.Orders[0]
	if o.ID != "ORD-10001-A" || o.WeightGrams != 1200 || o.CreatedAt.Format("2006-01-02") != "2025-05-02" {
		t.Errorf("first order = %+v", o)
	}
	if res.Orders[2].Service != order.Standard {
		t.Errorf("default service = %q", res.Orders[2].Service)
	}
}

func TestReadRejects(t *testing.T) {
	res, err := Read(strings.NewReader(`order_id,customer,country,weight_kg
10001,Ada Quist,SE,1.2
ORD-10002-A,Bo Lind,DK,heavy
ORD-10003-A,,NL,3
ORD-10004-A,Dan Ek,SE,99
`))
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Orders) != 0 || len(res.Rejects) != 4 {
		t.Fatalf("%d orders, rejects %v", len(res.Orders), res.Rejects)
	}
	for i, r := range res.Rejects {
		if r.Line != i+2 {
			t.Errorf("reject %d is on line %d", i, r.Line)
		}
	}
}

func TestReadHeader(t *testing.T) {
	for _, in := range []string{"", "order_id,customer,country\n"} {
		if _, err := Read(strings.NewReader(in)); !errors.Is(err, ErrNoHeader) {
			t.Errorf("Read(%q): %v, want ErrNoHeader", in, err)
		}
	}
}
