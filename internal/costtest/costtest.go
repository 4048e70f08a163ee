// Package costtest holds what parses others' texts to a price: memory and time in
// proportion to the text. Tests, properties and fuzz targets look by it for texts that
// cost more than they should.
package costtest

import (
	"runtime"
	"time"
)

// Price limits the cost of parsing a text.
type Price struct {
	// Memory is what any text may allocate, in bytes, PerByte what each of its bytes may, in
	// addition.
	Memory, PerByte int
	// TimePerByte is how long each byte may take, in addition to half a minute for any text,
	// because processors are busy; a text that costs too much takes minutes.
	TimePerByte time.Duration
}

// Hold fails a test in which do, which parses the text, costs more than the price. Nothing that
// allocates may run concurrently.
func (p Price) Hold(t interface{ Fatalf(string, ...any) }, text []byte, do func()) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	do()
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > uint64(p.Memory+p.PerByte*len(text)) {
		t.Fatalf("%d bytes of input cost %d bytes of memory: %.100q", len(text), n, text)
	}
	if most := 30*time.Second + time.Duration(len(text))*p.TimePerByte; took > most {
		t.Fatalf("%d bytes of input took %v: %.100q", len(text), took, text)
	}
}
