// Package together lets tests that wait run beside each other.
package together

import (
	"flag"
	"fmt"
	"runtime"
	"strconv"
)

// least is the minimum number of concurrent tests on a computer with few processors.
const least = 4

// Tests lets more parallel tests of a package run at once than there are processors, for tests that
// mostly wait for guests, servers and timers. Call it first in TestMain: an explicit -parallel
// takes precedence, because it is parsed later.
func Tests() {
	if err := flag.Set("test.parallel", strconv.Itoa(max(least, runtime.GOMAXPROCS(0)))); err != nil {
		panic(fmt.Sprintf("let tests run together: %v", err))
	}
}
