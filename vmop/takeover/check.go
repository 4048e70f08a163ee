package takeover

import (
	"slices"
)

// Check returns the findings about a takeover: first about the cluster and its namespaces, then
// about each machine and pool, in the order of namespaces and names, and per object the most urgent
// first. The order of the input does not matter, and every machine in it has at least one finding.
func Check(in Input) []Finding {
	c := &check{in: &in, objects: index(in.Objects)}
	c.unseen()
	c.installation()
	c.operators()
	c.own()
	c.settings()
	c.machines()
	c.pools()
	slices.SortStableFunc(c.found, compare)
	return slices.CompactFunc(c.found, func(a, b Finding) bool { return a == b })
}

func (c *check) unseen() {
	for kind, why := range c.in.Unseen {
		c.say("", "", "", Note, TopicInstall, "", kind+" objects could not be read ("+why+"): what follows from them is not in this list", "")
	}
}
