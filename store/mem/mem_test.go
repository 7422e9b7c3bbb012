package mem_test

import (
	"testing"

	"github.com/palimpsest-ai/palimpsest/store"
	"github.com/palimpsest-ai/palimpsest/store/mem"
	"github.com/palimpsest-ai/palimpsest/store/storetest"
)

func TestDB(t *testing.T) {
	storetest.Test(t, func(testing.TB) store.DB { return mem.New() })
}
