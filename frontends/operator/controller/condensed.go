package controller

// condensed returns a cache transformation. An object of another type, such as a tombstone of a
// watch, is kept as it is.
func condensed[T any](small func(T) T) func(any) (any, error) {
	return func(o any) (any, error) {
		if t, ok := o.(T); ok {
			return small(t), nil
		}
		return o, nil
	}
}
