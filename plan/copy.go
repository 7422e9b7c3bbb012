package plan

import "reflect"

// copyOf returns a deep copy of v, which is pure data: structs, lists, maps and pointers
// of exported fields. Unexported fields are shared; only time.Time has any, and it is
// immutable.
func copyOf[T any](v T) T {
	var out T
	write(reflect.ValueOf(&out).Elem(), reflect.ValueOf(&v).Elem())
	return out
}

// write makes to a copy of from.
func write(to, from reflect.Value) {
	to.Set(from)
	switch from.Kind() {
	case reflect.Pointer:
		if !from.IsNil() {
			to.Set(reflect.New(from.Type().Elem()))
			write(to.Elem(), from.Elem())
		}
	case reflect.Interface:
		if !from.IsNil() {
			v := reflect.New(from.Elem().Type()).Elem()
			write(v, from.Elem())
			to.Set(v)
		}
	case reflect.Slice:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
		if plain(from.Type().Elem()) {
			reflect.Copy(to, from)
			return
		}
		for i := range from.Len() {
			write(to.Index(i), from.Index(i))
		}
	case reflect.Map:
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(from.Type(), from.Len()))
		for at := from.MapRange(); at.Next(); {
			v := reflect.New(from.Type().Elem()).Elem()
			write(v, at.Value())
			to.SetMapIndex(at.Key(), v)
		}
	case reflect.Array:
		for i := range from.Len() {
			write(to.Index(i), from.Index(i))
		}
	case reflect.Struct:
		for i := range from.NumField() {
			if t := from.Type().Field(i); t.IsExported() && !plain(t.Type) {
				write(to.Field(i), from.Field(i))
			}
		}
	}
}

// plain reports whether values of the type cannot be modified through a copy.
func plain(t reflect.Type) bool { return t.Kind() <= reflect.Complex128 || t.Kind() == reflect.String }
