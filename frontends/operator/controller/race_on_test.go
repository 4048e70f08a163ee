//go:build race

package controller

// underRace: the race detector makes everything slower.
const underRace = true
