package machineconfig

func intPointer(p *int32) *int {
	if p == nil {
		return nil
	}
	return new(int(*p))
}

func setString(s *string, value string) {
	if *s == "" {
		*s = value
	}
}
