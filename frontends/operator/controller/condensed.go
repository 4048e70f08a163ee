package controller

// condensed makes a transformation of what a cache keeps. What is not an object
// of the kind, such as a tombstone of a watch, stays as it is.
func condensed[T any](small func(T) T) func(any) (any, error) {
	return func(o any) (any, error) {
		if t, ok := o.(T); ok {
			return small(t), nil
		}
		return o, nil
	}
}
