// Package editdistance says how far a word is from another one, for suggestions of what
// somebody meant.
package editdistance

// tooLong is the length in bytes from which a word is not considered a misspelling.
const tooLong = 64

// Between returns the number of bytes that are missing, superfluous, wrong or swapped with their
// neighbour. For words that are too long it is the sum of their lengths.
func Between(a, b string) int {
	if len(a) > tooLong || len(b) > tooLong {
		return len(a) + len(b)
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
