package summarize

import (
	"reflect"

	"github.com/palimpsest-ai/palimpsest/summarize/internal/work"
)

// size estimates the memory that facts take, in bytes. The texts of identifiers are parts of others.
func (f *facts) size() int { return int(reflect.TypeFor[facts]().Size()) + held(reflect.ValueOf(*f)) }

// held is what a value points to; what several may point to counts without what it points to itself.
func held(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if v.IsNil() || v.Elem().IsZero() || v.Pointer() == reflect.ValueOf(noUser).Pointer() {
			return 0 // it may be one for all that have none of it
		}
		n = int(v.Type().Elem().Size())
		if t := v.Type(); t != reflect.TypeFor[*work.Call]() && t != reflect.TypeFor[*work.Result]() {
			n += held(v.Elem())
		}
	case reflect.Slice:
		n = v.Cap() * int(v.Type().Elem().Size())
		for i := 0; i < v.Len() && v.Type().Elem() != reflect.TypeFor[mention](); i++ {
			n += held(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			n += held(v.Field(i))
		}
	}
	return n
}
