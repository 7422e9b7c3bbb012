package summarize

import "reflect"

// size estimates the memory that facts take, in bytes. The texts of identifiers are parts of others.
func (f *facts) size() int { return int(reflect.TypeFor[facts]().Size()) + held(reflect.ValueOf(*f)) }

// held is what a value points to; what several may point to counts without what it points to itself.
func held(v reflect.Value) (n int) {
	switch v.Kind() {
	case reflect.String:
		return v.Len()
	case reflect.Pointer:
		if n = int(v.Type().Elem().Size()); !v.IsNil() && v.Type() == reflect.TypeFor[*resultFacts]() {
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
