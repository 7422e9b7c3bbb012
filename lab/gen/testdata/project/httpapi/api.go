// Package httpapi is the HTTP interface of shipq.
package httpapi

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"example.com/shipq/order"
	"example.com/shipq/pricing"
	"example.com/shipq/store"
)

// maxBody is the largest request body we read.
const maxBody = 1 << 20

// API serves the endpoints. Use Handler.
type API struct {
	Store *store.Store
	Log   *slog.Logger
}

// Handler returns the routes.
func (a *API) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", a.create)
	mux.HandleFunc("GET /orders", a.list)
	mux.HandleFunc("GET /orders/{id}", a.get)
	mux.HandleFunc("POST /quote", a.quote)
	mux.HandleFunc("GET /stats", a.stats)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n"))
	})
	return mux
}

// newOrder is what a caller may say about an order.
type newOrder struct {
	ID          string `json:"id"`
	Customer    string `json:"customer"`
	Country     string `json:"country"`
	WeightGrams int    `json:"weight_grams"`
	Service     string `json:"service"`
}

func (n newOrder) order() order.Order {
	if n.Service == "" {
		n.Service = order.Standard
	}
	return order.Order{
		ID:          order.ID(n.ID),
		Customer:    n.Customer,
		Country:     n.Country,
		WeightGrams: n.WeightGrams,
		Service:     n.Service,
	}
}

func (a *API) create(w http.ResponseWriter, r *http.Request) {
	var n newOrder
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&n); err != nil {
		a.fail(w, http.StatusBadRequest, err)
		return
	}
	o := n.order()
	if err := o.Validate(); err != nil {
		a.fail(w, http.StatusUnprocessableEntity, err)
		return
	}
	if err := a.Store.Put(o); err != nil {
		if err == store.ErrExists {
			a.fail(w, http.StatusConflict, err)
			return
		}
		a.fail(w, http.StatusInternalServerError, err)
		return
	}
	a.reply(w, http.StatusCreated, o)
}

func (a *API) list(w http.ResponseWriter, r *http.Request) {
	status := order.Status(r.URL.Query().Get("status"))
	if status != "" && !status.Valid() {
		a.fail(w, http.StatusBadRequest, errors.New("unknown status"))
		return
	}
	a.reply(w, http.StatusOK, a.Store.List(status))
}

func (a *API) get(w http.ResponseWriter, r *http.Request) {
	id, err := order.ParseID(r.PathValue("id"))
	if err != nil {
		a.fail(w, http.StatusBadRequest, err)
		return
	}
	o, err := a.Store.Get(id)
	if errors.Is(err, store.ErrNotFound) {
		a.fail(w, http.StatusNotFound, err)
		return
	}
	if err != nil {
		a.fail(w, http.StatusInternalServerError, err)
		return
	}
	a.reply(w, http.StatusOK, o)
}

func (a *API) quote(w http.ResponseWriter, r *http.Request) {
	var n newOrder
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&n); err != nil {
		a.fail(w, http.StatusBadRequest, err)
		return
	}
	cents, err := pricing.Quote(n.Country, n.WeightGrams, n.order().Service)
	if err != nil {
		a.fail(w, http.StatusUnprocessableEntity, err)
		return
	}
	a.reply(w, http.StatusOK, map[string]int{"cents": cents})
}

func (a *API) stats(w http.ResponseWriter, _ *http.Request) {
	a.reply(w, http.StatusOK, a.Store.Stats())
}

func (a *API) reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.Log.Warn("reply not sent", "err", err)
	}
}

func (a *API) fail(w http.ResponseWriter, code int, err error) {
	if code >= 500 {
		a.Log.Error("request failed", "err", err)
	}
	a.reply(w, code, map[string]string{"error": err.Error()})
}
