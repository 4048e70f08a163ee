package spec

// MaxCPUs returns the number of CPUs that the machine can have: maximumCpus,
// or the product of the topology with absent numbers counted as one. It is 1
// if neither is given. QEMU's -smp demands that product and maximum agree.
func (m *Machine) MaxCPUs() int64 {
	switch {
	case m.MaximumCPUs != nil:
		return int64(*m.MaximumCPUs)
	case m.CPUTopology != nil:
		t := m.CPUTopology
		n := int64(1)
		for _, f := range []int32{t.Sockets, t.DiesPerSocket, t.CoresPerDie, t.ThreadsPerCore} {
			if f > 0 {
				n *= int64(f)
			}
		}
		return n
	}
	return 1
}
