package machinetest

import (
	"maps"
	"slices"
)

func (w *world) check() {
	w.checkOneGuest()
	w.checkReporter()
	users := map[string]string{}
	for _, uid := range slices.Sorted(maps.Keys(w.guests)) {
		for _, c := range w.guests[uid].claims {
			if other, used := users[c]; used {
				w.violated("a disk has one machine", "claim %s is used by pods %s and %s", c, uid, other)
			}
			users[c] = string(uid)
		}
	}
	w.checkRoom()
}
