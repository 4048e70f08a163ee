package runnerconfig

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func setDefaultPointer[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}
