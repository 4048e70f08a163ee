package pool_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/vmop/sdk/vmop/reconcile"
	"github.com/vmop/sdk/vmop/reconcile/pool"
	"github.com/vmop/sdk/vmop/spec"
)

func drawMember(t *rapid.T) pool.Member {
	names := []string{"a", "b", "c"}
	return pool.Member{
		Pools:     rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID).Draw(t, "pools"),
		Assigned:  rapid.SampledFrom(append(names, "", "", "")).Draw(t, "assigned"),
		Connected: rapid.IntRange(0, 4).Draw(t, "connected") == 0,
		Goes:      rapid.IntRange(0, 4).Draw(t, "goes") == 0,
	}
}

// Each machine counts for itself: once as a machine of each pool that it names, and at
// most once as free or used; nobody's machine is used, and nobody else's is free.
func TestSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.SliceOfN(rapid.Custom(drawMember), 0, 12).Draw(t, "members")
		machines, free, used := pool.Sizes("a", members)
		if machines < 0 || free < 0 || used < 0 || free+used > machines || int(machines) > len(members) {
			t.Fatalf("%d machines, %d free, %d used", machines, free, used)
		}
		more := drawMember(t)
		m, f, u := pool.Sizes("a", append(slices.Clip(members), more))
		in, fits := slices.Contains(more.Pools, "a"), more.Assigned == "" && !more.Connected && !more.Goes
		if (m-machines == 1) != in || (f-free == 1) != (in && fits) || (u-used == 1) != (in && more.Assigned == "a") || f < free || u < used {
			t.Fatalf("%+v makes %d/%d/%d of %d/%d/%d", more, m, f, u, machines, free, used)
		}
	})
}

// However fast machines come, go and change hands, a pool's status is written rarely,
// and in the end it is right and written no more.
func TestSizesAreWrittenRarely(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		s := pool.Snapshot{Pools: []spec.VmPool{
			{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}, {ObjectMeta: metav1.ObjectMeta{Name: "b", UID: "2"}},
		}}
		if rapid.Bool().Draw(t, "a clock was ahead") {
			at := metav1.NewTime(now.Add(time.Hour))
			s.Pools[0].Status.Counted = &at
		}
		writes, last := map[types.UID]int{}, map[types.UID]time.Time{}
		look := func() reconcile.Plan {
			s.Now = now
			plan := pool.Decide(s)
			for _, st := range plan.Statuses {
				i := slices.IndexFunc(s.Pools, func(p spec.VmPool) bool { return p.UID == st.UID })
				if st.Kind != "VmPool" || st.Name != s.Pools[i].Name {
					t.Fatalf("%+v", st)
				}
				if l, again := last[st.UID]; again && now.Sub(l) < 4*time.Second {
					t.Fatalf("pool %s is written again after %v", st.Name, now.Sub(l))
				}
				writes[st.UID]++
				last[st.UID] = now
				at, err := time.Parse(time.RFC3339, st.Status["counted"].(string))
				if err != nil {
					t.Fatal(err)
				}
				number := func(key string) *int32 { return new(int32(st.Status[key].(int64))) }
				s.Pools[i].Status = spec.VmPoolStatus{Machines: number("machines"), Free: number("free"), Used: number("used"), Counted: new(metav1.NewTime(at))}
			}
			return plan
		}
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			if len(s.Members) > 0 && rapid.Bool().Draw(t, "goes") {
				s.Members = slices.Delete(slices.Clone(s.Members), 0, 1)
			} else {
				s.Members = append(slices.Clone(s.Members), drawMember(t))
			}
			look()
			now = now.Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "milliseconds")) * time.Millisecond)
		}
		for range 3 {
			if plan := look(); plan.Wake.After(now) {
				now = plan.Wake
			}
		}
		if plan := look(); len(plan.Statuses) > 0 || !plan.Wake.IsZero() {
			t.Fatalf("there is still %+v", plan)
		}
		for i := range s.Pools {
			m, f, u := pool.Sizes(s.Pools[i].Name, s.Members)
			if st := s.Pools[i].Status; *st.Machines != m || *st.Free != f || *st.Used != u {
				t.Fatalf("%+v, and it has %d, %d, %d", st, m, f, u)
			}
		}
	})
}

// A status that the API server refuses is tried again later.
func TestSizesAreRefused(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := pool.Snapshot{Now: now, Pools: []spec.VmPool{{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}}}
	for i := range 3 {
		s.Members = append(s.Members, pool.Member{Pools: []string{"a", strconv.Itoa(i)}})
	}
	target := pool.Decide(s).Statuses[0].Target()
	s.Failures = []reconcile.Failure{{Target: target, Reason: "Forbidden", Count: 1, Last: now}}
	if plan := pool.Decide(s); len(plan.Statuses) > 0 || !plan.Wake.After(now) {
		t.Errorf("%+v", plan)
	}
}
