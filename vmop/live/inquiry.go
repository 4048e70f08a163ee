package live

import "time"

const (
	// maxQuestions bounds the queries of a guest agent in one round. The pauses double from
	// firstQuestion: together they are about two minutes, in which a booting guest gets its
	// addresses.
	maxQuestions  = 8
	firstQuestion = time.Second
	// networkCalm is the least time between two queries that only changes of the guest's network or
	// its signs of life cause: a guest may cause these all the time.
	networkCalm      = 15 * time.Second
	networkQuestions = 4
)

// Inquiry decides when to query a guest agent. It is the memory between queries; its zero value is
// for a machine that was just started. No event reports a guest's new address, and polling would
// keep an idle host awake: so the agent is queried when its port opens, when the guest has changed
// the filter of a network card or resumes after a pause, and then a few more times with growing
// pauses, until it has answered with an address. A new IPv6 address changes a card's filter; a new
// IPv4 address does not, and is found at the next sign of life. Its methods return a new value.
type Inquiry struct {
	// Open reports whether an agent has the port open.
	Open bool
	// Due is when to query; zero means only after an event.
	Due time.Time
	// Asked counts the queries of this round; Least is their minimum, even if the answers are
	// complete.
	Asked, Least int
	// Last is the time of the last query.
	Last time.Time
}

// Opened is called when an agent has opened the port.
func (q Inquiry) Opened(now time.Time) Inquiry {
	return Inquiry{Open: true, Due: now, Last: q.Last}
}

// Closed is called when the port was closed or the machine was reset.
func (q Inquiry) Closed() Inquiry { return Inquiry{Last: q.Last} }

// Resumed is called when the guest resumes: it could not answer queries during the pause.
func (q Inquiry) Resumed(now time.Time) Inquiry {
	if !q.Open {
		return q
	}
	return q.Opened(now)
}

// NetworkChanged is called when the guest has changed the configuration of a network card.
func (q Inquiry) NetworkChanged(now time.Time) Inquiry {
	if !q.Open {
		return q
	}
	q.Least = networkQuestions
	if !q.Due.IsZero() {
		return q // a query is due anyway
	}
	q.Asked, q.Due = 1, now.Add(firstQuestion)
	if calm := q.Last.Add(networkCalm); q.Due.Before(calm) {
		q.Due = calm
	}
	return q
}

// Stirred is called at a sign of life unrelated to the network: the guest has written its clock, as
// Linux does every eleven minutes with NTP, or a viewer has opened the display.
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

// Answered is called with the result of a query made now; complete reports that nothing is missing
// in the answer.
func (q Inquiry) Answered(now time.Time, complete bool) Inquiry {
	q.Asked++
	q.Last, q.Due = now, time.Time{}
	if q.Open && q.Asked < maxQuestions && (!complete || q.Asked <= q.Least) {
		q.Due = now.Add(firstQuestion << (q.Asked - 1))
	}
	return q
}
