package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/palimpsest-ai/palimpsest/llm"
	"github.com/palimpsest-ai/palimpsest/llm/internal/exchange"
)

// Embedder turns texts into vectors with a model at /embeddings, as recall.Embedder
// wants it (https://platform.openai.com/docs/api-reference/embeddings). It is safe
// for concurrent use.
type Embedder struct {
	client *Client
}

// NewEmbedder returns an Embedder. The fields of Config that are about answers have no
// effect. The error says which part of the configuration is missing or wrong.
func NewEmbedder(c Config) (*Embedder, error) {
	client, err := newClient(c, api{path: "/embeddings"})
	if err != nil {
		return nil, fmt.Errorf("openai.NewEmbedder: %w", err)
	}
	return &Embedder{client}, nil
}

// String names the provider and the model.
func (e *Embedder) String() string { return e.client.String() }

// Embed returns one vector for each text, in their order. The error is an
// *llm.APIError, except where the request could not be made at all.
func (e *Embedder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	body, err := json.Marshal(map[string]any{"model": e.client.model, "input": texts, "encoding_format": "float"})
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	vectors := make([][]float32, len(texts))
	err = e.client.exchange.Post(ctx, llm.DefaultTimeout, string(body), func(r *exchange.Response) error {
		whole, err := exchange.ReadObject(e.client.provider, r)
		if err != nil {
			return err
		}
		if err := readVectors(whole, vectors); err != nil {
			return exchange.UnreadableError(r, err.Error(), whole)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return vectors, nil
}

// readVectors reads an answer into a vector for each text: one for every index, all of
// one length.
func readVectors(answer string, vectors [][]float32) error {
	clear(vectors)
	var read struct {
		Data []struct {
			Index     int       `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if !gjson.Get(answer, "data").IsArray() || json.Unmarshal([]byte(answer), &read) != nil {
		return errors.New("the answer has no vectors")
	}
	for _, d := range read.Data {
		if d.Index < 0 || d.Index >= len(vectors) || vectors[d.Index] != nil || len(d.Embedding) == 0 {
			return errors.New("the answer has vectors that nobody asked for")
		}
		vectors[d.Index] = d.Embedding
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return errors.New("the answer lacks vectors, or they are not of one length")
		}
	}
	return nil
}
