package live

import "time"

const (
	// maxQuestions bounds how often a guest agent is asked in one round. The
	// pauses double from firstQuestion: together they are about two minutes, in
	// which a guest that boots gets its addresses.
	maxQuestions  = 8
	firstQuestion = time.Second
	// networkCalm is the least time between two questions that only changes of
	// the guest's network or its signs of life cause: a guest may give them all the
	// time.
	networkCalm = 15 * time.Second
	// networkQuestions are asked after such a change: it comes before the address.
	networkQuestions = 4
)

// Inquiry decides when to ask a guest agent what it knows. It is the memory
// between questions; the zero value is that of a machine that was just started.
// Nothing tells when a guest gets another address, and asking all the time would
// keep an idle host awake: so the agent is asked when its port opens, when the
// guest has changed the filter of a network card or goes on after a pause, and
// then a few more times with growing pauses, until it has answered with an
// address. A guest tells its cards of a new address of IPv6, but not of IPv4; that
// is learned at the next sign of life. The receivers of its methods stay as they
// are.
type Inquiry struct {
	// Open says that an agent has the port open.
	Open bool
	// Due is when to ask; zero means not before something happens.
	Due time.Time
	// Asked counts the questions of this round, and Least how many there are even
	// if the answers say all.
	Asked, Least int
	// Last is when the agent was asked last.
	Last time.Time
}

// Opened tells that an agent has opened the port.
func (q Inquiry) Opened(now time.Time) Inquiry {
	return Inquiry{Open: true, Due: now, Last: q.Last}
}

// Closed tells that the port was closed, or that the machine was reset.
func (q Inquiry) Closed() Inquiry { return Inquiry{Last: q.Last} }

// Resumed tells that the guest goes on: what it was asked meanwhile, it could not
// answer.
func (q Inquiry) Resumed(now time.Time) Inquiry {
	if !q.Open {
		return q
	}
	return q.Opened(now)
}

// NetworkChanged tells that the guest has changed something about a network card.
func (q Inquiry) NetworkChanged(now time.Time) Inquiry {
	if !q.Open {
		return q
	}
	q.Least = networkQuestions
	if !q.Due.IsZero() {
		return q // it will be asked anyway
	}
	q.Asked, q.Due = 1, now.Add(firstQuestion)
	if calm := q.Last.Add(networkCalm); q.Due.Before(calm) {
		q.Due = calm
	}
	return q
}

// Stirred tells of a sign of life, which says nothing of the network: the guest has
// written its clock, as Linux does every eleven minutes where NTP sets the time, or
// somebody has opened the display.
func (q Inquiry) Stirred(now time.Time) Inquiry {
	if !q.Open || !q.Due.IsZero() {
		return q
	}
	q.Asked, q.Least, q.Due = 0, 0, now
	if calm := q.Last.Add(networkCalm); q.Due.Before(calm) {
		q.Due = calm
	}
	return q
}

// Answered tells the result of a question that was asked now: complete says that
// there is nothing more to learn.
func (q Inquiry) Answered(now time.Time, complete bool) Inquiry {
	q.Asked++
	q.Last, q.Due = now, time.Time{}
	if q.Open && q.Asked < maxQuestions && (!complete || q.Asked <= q.Least) {
		q.Due = now.Add(firstQuestion << (q.Asked - 1))
	}
	return q
}
