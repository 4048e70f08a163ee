package spec

func setString[S ~string](s *S, value S) {
	if *s == "" {
		*s = value
	}
}

func setPointer[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

func setSlice[T any](s *[]T) {
	if *s == nil {
		*s = []T{}
	}
}
